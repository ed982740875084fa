"""The time to check that the index is up to date, and the time until a line just written is found."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

import orjson
from agtrace_indexer.index.queries.matches import EventFilters
from agtrace_indexer.run import index, refresh

from agtrace.index.reader import Index
from agtrace.search.matching import Contains, Deadline
from agtrace.search.scan import Question, snapshot_of
from benchmarks.ground import Ground, files_of
from benchmarks.table import number, percentile, ratio, table

FILES = 5_000
LOG_BYTES = 20_000_000
"""The size of the log to which lines are appended."""
LONG_LINES = 130_000
"""The lines of a session of more than 100,000 events."""
CHECKS = 50
COMMANDS = 10
APPENDS = 20

_BEGINNING = 6_000
"""The most bytes of a small log, unless its first line is longer."""
_PATIENCE = 10.0

_UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_VENDOR_ID = re.compile(rb"\b(msg|req|toolu)_[A-Za-z0-9]+")


def report(ground: Ground, megabytes: int) -> Iterator[str]:
    """Yield the three tables."""
    yield _unchanged(ground, megabytes)
    yield _appended(ground, megabytes)
    yield _grown(ground, megabytes)


def milliseconds(step: Callable[[], object], times: int) -> list[float]:
    """Return the times of a step, after a first run that doesn't count."""
    step()
    found = []
    for _ in range(times):
        began = time.perf_counter()
        step()
        found.append(1000 * (time.perf_counter() - began))
    return found


def _unchanged(ground: Ground, megabytes: int) -> str:
    logs = ground.folder / "small" / f"{megabytes}"
    if not logs.exists():
        ground.say(f"making {FILES:,} small logs")
        _write_small(ground.corpus(megabytes), logs)
    machine = ground.machine("small")
    ground.say(f"checking {FILES:,} files that haven't changed")
    machine.agtrace("index", str(logs))
    listed = milliseconds(lambda: _list_and_stat(logs), CHECKS)
    checked = milliseconds(lambda: index(machine.database, ()), CHECKS)
    command = milliseconds(lambda: machine.agtrace("index"), COMMANDS)
    bare = milliseconds(lambda: machine.agtrace("--version"), COMMANDS)
    head = (f"{FILES:,} files, nothing new, ms", "p50", "p95", "ratio", "of")
    return table(
        head,
        [
            ["list and stat, nothing else", *_spread(listed), "", ""],
            ["check in process", *_spread(checked), _quotient(checked, listed), "list and stat"],
            ["agtrace --version", *_spread(bare), "", ""],
            ["agtrace index", *_spread(command), _quotient(command, bare), "agtrace --version"],
        ],
    )


def _appended(ground: Ground, megabytes: int) -> str:
    machine = ground.copy(ground.indexed(megabytes), "appended")
    logs = (ground.folder / "appended").absolute()
    shutil.rmtree(logs, ignore_errors=True)
    log = _write_large(ground.corpus(megabytes), logs)
    machine.agtrace("index", str(logs))
    kept = Index(machine.settings)
    files = len(files_of(ground.corpus(megabytes))) + 1
    ground.say(f"appending {APPENDS} lines to a log of 20 MB")
    unchanged = milliseconds(lambda: kept.refresh(_PATIENCE), APPENDS)
    found = [_append_and_find(kept, log, count) for count in range(APPENDS)]
    size = f"{log.stat().st_size / 1e6:.0f} MB"
    return table(
        (f"index of {megabytes} MB, {files:,} files, ms", "p50", "p95", "ratio", "of"),
        [
            ["check, nothing new", *_spread(unchanged), "", ""],
            [f"line appended to {size} until found", *_spread(found), _quotient(found, unchanged), "check"],
        ],
    )


def _grown(ground: Ground, megabytes: int) -> str:
    machine = ground.machine("grown")
    logs = (ground.folder / "grown").absolute()
    shutil.rmtree(logs, ignore_errors=True)
    ground.say(f"making a session of {LONG_LINES:,} lines")
    log = _write_large(ground.corpus(megabytes), logs, lines=LONG_LINES)
    machine.agtrace("index", str(logs))
    counts = iter(range(APPENDS + 1))

    def append() -> None:
        with log.open("ab") as file:
            file.write(_user_line(log, f"appendedline{(count := next(counts)):04}", count))
        refresh(machine.database, changed=[str(log)])

    times = milliseconds(append, APPENDS)
    (events,) = machine.connect().execute("SELECT count(*) FROM event").fetchone()
    what = f"a session of {events:,} events, {log.stat().st_size / 1e6:.0f} MB, ms"
    return table((what, "p50", "p95"), [["one line more, indexed in process", *_spread(times)]])


def _append_and_find(kept: Index, log: Path, count: int) -> float:
    """Return the milliseconds from appending a line until a search has found it."""
    text = f"appendedline{count:04}"
    line = _user_line(log, text, count)
    began = time.perf_counter()
    with log.open("ab") as file:
        file.write(line)
    fresh = kept.refresh(_PATIENCE)
    with kept.reader() as reader:
        hits = _search(reader.connection, text)
    took = 1000 * (time.perf_counter() - began)
    if hits != 1 or fresh.state != "ready":
        raise AssertionError(f"a line appended to {log} was found {hits} times, expected once; the index is {fresh}")
    return took


def _search(connection: sqlite3.Connection, text: str) -> int:
    connection.execute("BEGIN")
    try:
        asked = Question(connection, Contains(text), EventFilters(), snapshot_of(connection))
        return len(asked.page(10, None, Deadline()).hits)
    finally:
        connection.rollback()


def _user_line(log: Path, text: str, count: int) -> bytes:
    """Return a prompt, as Claude Code writes it."""
    record = {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/mira/work/lantern",
        "sessionId": log.stem,
        "version": "2.1.30",
        "gitBranch": "main",
        "type": "user",
        "message": {"role": "user", "content": f"Now look at {text}, please."},
        "uuid": str(uuid5(NAMESPACE_OID, text)),
        "timestamp": f"2026-11-21T12:00:{count:02}.000Z",
    }
    return orjson.dumps(record) + b"\n"


def _list_and_stat(folder: Path) -> int:
    size = 0
    for entry in os.scandir(folder):
        size += _list_and_stat(Path(entry.path)) if entry.is_dir() else entry.stat(follow_symlinks=False).st_size
    return size


def _claude_logs(corpus: Path) -> list[Path]:
    return [path for path in files_of(corpus / "claude" / "projects") if _UUID.fullmatch(path.stem.encode())]


def _write_small(corpus: Path, folder: Path) -> None:
    """Write the beginnings of Claude Code's logs many times, each time with new ids."""
    logs = _claude_logs(corpus)
    beginnings = [(log.parent.name, _beginning(log)) for log in logs[: FILES // 10]]
    for count in range(FILES):
        project, content = beginnings[count % len(beginnings)]
        place = folder / project / f"{uuid5(NAMESPACE_OID, str(count))}.jsonl"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(_renamed(content, str(count)))


def _beginning(log: Path) -> bytes:
    """Return the first lines of a log, at least one."""
    lines: list[bytes] = []
    with log.open("rb") as file:
        for line in file:
            if lines and sum(map(len, lines)) + len(line) > _BEGINNING:
                break
            lines.append(line)
    return b"".join(lines)


def _write_large(corpus: Path, folder: Path, lines: int | None = None) -> Path:
    """Write the largest log of Claude Code as often as needed, as one session: of 20 MB, or so many lines or more."""
    source = max(_claude_logs(corpus), key=lambda log: log.stat().st_size)
    log = folder / "-home-mira-work-lantern" / f"{uuid5(NAMESPACE_OID, 'large')}.jsonl"
    log.parent.mkdir(parents=True)
    content, copies = source.read_bytes(), 0
    with log.open("wb") as file:
        while file.tell() < LOG_BYTES if lines is None else copies * content.count(b"\n") < lines:
            copied = _renamed(content, f"copy {copies}")
            own = uuid5(NAMESPACE_OID, f"copy {copies}/{source.stem}")
            file.write(copied.replace(str(own).encode(), log.stem.encode()))
            copies += 1
    if lines is None:
        os.truncate(log, log.read_bytes().rfind(b"\n", 0, LOG_BYTES) + 1)
    return log


def _renamed(content: bytes, salt: str) -> bytes:
    """Return the same lines with other ids, so that no event repeats one from another log."""
    content = _UUID.sub(lambda found: str(uuid5(NAMESPACE_OID, f"{salt}/{found[0].decode()}")).encode(), content)
    return _VENDOR_ID.sub(
        lambda found: b"%b_01%b" % (found[1], uuid5(NAMESPACE_OID, f"{salt}/{found[0].decode()}").hex.encode()), content
    )


def _spread(times: list[float]) -> list[str]:
    return [number(percentile(times, share)) for share in (0.5, 0.95)]


def _quotient(times: list[float], base: list[float]) -> str:
    return ratio(statistics.median(times), statistics.median(base))
