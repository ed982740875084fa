"""The two engines side by side: sizes, pushing, questions, and many who ask while some push.

`python -m benchmarks.team [MEGABYTES] [--logs LOGS]` makes a corpus, indexes it, starts a PostgreSQL server in a
temporary folder, and pushes all of it. It takes PostgreSQL's programs (Debian: postgresql) and `agtrace[team]`.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from agtrace_indexer.redact import redact, use
from agtrace_indexer.run import index
from agtrace_team import people
from agtrace_team.connection import connect
from agtrace_team.push import Audience, Push, chosen
from agtrace_team.server import Server

from agtrace.answers.log import silent
from agtrace.answers.service import Service
from agtrace.settings import load
from benchmarks import corpus, queries
from benchmarks.__main__ import LOGS
from benchmarks.corpus import repeated
from benchmarks.table import number, percentile, ratio, table

READERS, PUSHERS, SECONDS = 50, 10, 20
_TABLES = """
SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'team'::regnamespace
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.team", description=__doc__)
    parser.add_argument("megabytes", type=int, nargs="?", default=200)
    parser.add_argument("--logs", type=Path, default=LOGS, help="real logs, repeated to that size")
    parser.add_argument("--readers", type=int, default=READERS)
    parser.add_argument("--pushers", type=int, default=PUSHERS)
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parser.add_argument("--ask", nargs=3, metavar=("URL", "INDEX", "SECONDS"), help=argparse.SUPPRESS)
    parser.add_argument("--push", nargs=3, metavar=("URL", "INDEX", "SECONDS"), help=argparse.SUPPRESS)
    wanted = parser.parse_args(arguments)
    if wanted.ask or wanted.push:
        url, database, seconds = wanted.ask or wanted.push
        use(Path(database).parent)
        (_ask_on if wanted.ask else _push_on)(url, Path(database), float(seconds))
        return
    with tempfile.TemporaryDirectory(prefix="agtrace-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        for block in _blocks(Path(folder), wanted):
            sys.stdout.write(f"{block}\n\n")
            sys.stdout.flush()


def _blocks(folder: Path, wanted: argparse.Namespace) -> Iterator[str]:
    logs = folder / "logs"
    if wanted.logs.is_dir():
        repeated.write(logs, wanted.megabytes, wanted.logs)
    else:
        corpus.write(logs, wanted.megabytes)
    database = folder / "own" / "index.sqlite3"
    database.parent.mkdir()
    use(database.parent)
    index(database, [str(logs)], otherwise=[])
    server = Server(folder / "server")
    server.start()
    try:
        server.make("team")
        with connect(server.url("team")) as owner:
            for login in ("ann", *(f"pusher{number}" for number in range(wanted.pushers))):
                people.add(owner, login, login, None, push=True)
        yield _pushed(database, server)
        yield _sizes(database, server)
        yield _asked(database, server)
        yield _together(database, server, wanted)
    finally:
        server.stop("immediate")


def _push(database: Path, url: str, audience: Audience = "team", **options: Any) -> tuple[float, int, int]:
    """Push an index; return the seconds, and how many sessions and bytes went."""
    began = time.perf_counter()
    with closing(sqlite3.connect(database)) as own, closing(connect(url)) as team:
        projects = [project for (project,) in own.execute("SELECT DISTINCT project_id FROM session")]
        push = Push(own, team, "bench", "bench", "")
        done = push.run(chosen(own, dict.fromkeys(projects, audience)), lambda _provider, _id: False, **options)
    return time.perf_counter() - began, len(done.new), done.bytes


def _pushed(database: Path, server: Server) -> str:
    url = server.url("team", "ann")
    first, sessions, text = _push(database, url)
    with connect(server.url("team")) as owner:
        for name in ("block_grams", "ranked_event_stems"):
            owner.execute("SELECT gin_clean_pending_list(%s::regclass)", (f"team.{name}",))
        owner.execute("VACUUM ANALYZE")
    again, *_ = _push(database, url)
    rows = [
        ("sessions", f"{sessions:,}"),
        ("MB of text", number(text / 1e6)),
        ("first push, s", number(first)),
        ("first push, MB of text a second", number(text / 1e6 / first)),
        ("nothing new, s", number(again)),
    ]
    return table(("push", "figure"), rows)


def _sizes(database: Path, server: Server) -> str:
    with closing(sqlite3.connect(database)) as own:
        text = own.execute("SELECT sum(text_size) FROM block").fetchone()[0]
    sqlite = database.stat().st_size
    with connect(server.url("team")) as owner:
        sizes: dict[str, int] = dict(owner.execute(_TABLES).fetchall())
    whole = sum(sizes.values())
    rows = [("all", number(sqlite / 1e6), number(whole / 1e6), ratio(whole, text))]
    largest = sorted(sizes, key=lambda name: -sizes[name])[:8]
    rows += [(name, "", number(sizes[name] / 1e6), ratio(sizes[name], text)) for name in largest]
    return table((f"MB on the disk, of {text / 1e6:,.0f} MB of text", "SQLite", "PostgreSQL", "of the text"), rows)


def _questions(database: Path) -> list[tuple[str, str, dict[str, Any]]]:
    """Return what is asked: (kind, tool, arguments)."""
    with closing(sqlite3.connect(database)) as own:
        own.row_factory = sqlite3.Row
        texts = [query.text for query in queries.held_out(own) if query.text][:40]
        longest = "SELECT uid FROM session WHERE kind = 'main' ORDER BY tool_calls DESC LIMIT 20"
        ids = [uid for (uid,) in own.execute(longest)]
    return [
        *(("search, newest first", "search_event_previews", {"query": text, "order": "newest"}) for text in texts),
        *(("search, best first", "search_event_previews", {"query": text}) for text in texts),
        *(
            ("list of sessions", "list_sessions", {"sort": sort})
            for sort in ("newest", "total_tokens", "cost", "failed_calls")
        ),
        *(("session", "get_session_details", {"session_id": uid}) for uid in ids),
        *(("event", "get_event_details", {"session_id": uid, "event_index": 3}) for uid in ids),
    ]


def _answers(database: Path, url: str | None) -> Service:
    environment = {"AGTRACE_DATA_DIR": str(database.parent), "HOME": str(database.parent / "nobody")}
    return Service(load({**environment, **({"AGTRACE_INDEX": url} if url else {})}), log=silent, refresh_seconds=60)


def _asked(database: Path, server: Server) -> str:
    engines = {"SQLite": _answers(database, None), "PostgreSQL": _answers(database, server.url("team", "ann"))}
    return _compared(database, engines)


def _compared(database: Path, engines: dict[str, Service]) -> str:
    """Ask two the same, in turns."""
    times: dict[str, dict[str, list[float]]] = {}
    for answers in engines.values():
        answers.ask("list_sessions", {})
    for kind, tool, arguments in _questions(database):
        for name, answers in engines.items():
            began = time.perf_counter()
            answers.ask(tool, arguments)
            times.setdefault(kind, {}).setdefault(name, []).append(1000 * (time.perf_counter() - began))
    first, second = engines
    rows = []
    for kind, of in times.items():
        cells = [number(percentile(of[name], share)) for name in engines for share in (0.5, 0.95)]
        rows.append((kind, *cells, ratio(percentile(of[second], 0.5), percentile(of[first], 0.5))))
    return table(("ms", f"{first} p50", "p95", f"{second} p50", "p95", "ratio"), rows)


def _together(database: Path, server: Server, wanted: argparse.Namespace) -> str:
    """Let readers ask while pushers push, each in a process of its own."""

    asked = database.with_name("questions.json")
    asked.write_text(json.dumps(_questions(database)))

    def start(what: str, login: str) -> subprocess.Popen[str]:
        given = (what, server.url("team", login), str(database if what == "--push" else asked), str(wanted.seconds))
        command = [sys.executable, "-m", "benchmarks.team", *given]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ})

    asking = [start("--ask", "ann") for _ in range(wanted.readers)]
    pushing = [start("--push", f"pusher{number}") for number in range(wanted.pushers)]
    times: dict[str, list[float]] = {}
    for process in (*asking, *pushing):  # each says when it is ready; then all begin
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
    for process in (*asking, *pushing):
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in (*asking, *pushing):
        out, _ = process.communicate()
        for line in out.splitlines():
            kind, _, ms = line.rpartition("\t")
            times.setdefault(kind, []).append(float(ms))
    rows = [
        (kind, f"{len(of):,}", number(percentile(of, 0.5)), number(percentile(of, 0.95)), number(max(of)))
        for kind, of in sorted(times.items())
    ]
    head = f"{wanted.readers} readers beside {wanted.pushers} pushers, {wanted.seconds} s: ms"
    return table((head, "number", "p50", "p95", "slowest"), rows)


def _get_ready() -> None:
    """Say that this process is ready, and wait for the others."""
    redact("a text")  # makes the rules ready
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()


def _ask_on(url: str, database: Path, seconds: float) -> None:
    questions = json.loads(database.read_text())
    answers = _answers(database, url)
    answers.ask("list_sessions", {})
    _get_ready()
    end, chance = time.monotonic() + seconds, Random(os.getpid())
    while True:
        kind, tool, arguments = chance.choice(questions)
        began = time.perf_counter()
        given = answers.ask(tool, arguments)
        said = f"error: {kind}" if given.is_error else kind
        sys.stdout.write(f"{said}\t{1000 * (time.perf_counter() - began):.2f}\n")
        if time.monotonic() >= end:
            return


def _push_on(url: str, database: Path, seconds: float) -> None:
    _get_ready()
    times, end = [time.perf_counter()], time.monotonic() + seconds

    def note(_done: int, _total: int) -> None:
        times.append(time.perf_counter())
        if time.monotonic() >= end:
            raise TimeoutError

    with suppress(TimeoutError):
        _push(database, url, audience="self", report=note)
    for one, other in pairwise(times[1:]):
        sys.stdout.write(f"push of a session\t{1000 * (other - one):.2f}\n")


if __name__ == "__main__":
    main()
