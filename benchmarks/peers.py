"""Indexing and searching logs without agtrace: `python -m benchmarks.peers CORPUS [QUERY ...]`.

agentsview, a program from PyPI that puts logs of coding agents into SQLite, and ripgrep, which has no index. agentsview
runs in an environment of its own, in a pinned version, with a home folder that has nothing but the corpus; the real
home isn't touched. A corpus has the folders of the agents: `claude/projects`, `codex/sessions`, `gemini/tmp`.
A program that can't be installed, fails or takes too long has a row in the table like the others.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

FOLDER = Path(".bench/peers")
"""Where the environments are kept, below the current folder."""
LIMIT = 600.0
"""Seconds after which an index run is stopped."""
SEARCH_LIMIT = 60.0
"""Seconds after which a search is stopped."""
RUNS = 5
"""The number of timed searches, after one that isn't timed."""
QUERIES = ("error", "permission denied", "src/main.py")

THREADS = 2
"""Threads of ripgrep."""

MEASURE = """
import json, os, resource, signal, subprocess, sys, time

began = time.perf_counter()
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True)
code = None
try:
    code = child.wait(float(sys.argv[1]))
except subprocess.TimeoutExpired:
    pass
finally:
    seconds = time.perf_counter() - began
    if code is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps([seconds, code, peak]))
"""
"""A small process between this one and the measured one, as a new process starts with the peak of its parent."""


@dataclass(frozen=True)
class IndexRun:
    """One program's indexing of a corpus from an empty home."""

    seconds: float
    bytes_indexed: int
    """Bytes of the corpus's logs that it reads; if the run failed or was stopped, of those it finished."""
    database_bytes: int
    """Including the files next to the database, such as its write-ahead log."""
    peak_rss_bytes: int
    """Of the largest process; never below some 10 MB, with which a Python process starts."""
    exit_code: int | None
    """None if it was stopped or never started."""
    note: str
    """What went wrong, for a person; empty if nothing did."""

    @property
    def rate(self) -> float:
        """10^6 bytes of logs per second; 0 if nothing was indexed."""
        return self.bytes_indexed / 1e6 / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class SearchRun:
    """One search in a new process, from start to end."""

    seconds: float
    note: str = ""
    """Why the time doesn't count; empty if it does."""


@dataclass(frozen=True)
class Peer:
    """A program from PyPI, with facts from its source, and the place where it is or would be installed."""

    name: str
    requirement: str
    environment: Path
    reads: tuple[str, ...]
    """The logs that it reads, as patterns relative to a corpus."""
    indexes_tool_output: bool
    indexing: tuple[str, ...]
    """The command to index."""
    searching: tuple[str, ...]
    """The command to find twenty hits in what is indexed; {query} stands for the query."""
    variables: tuple[tuple[str, str], ...]
    """Environment variables with which it runs."""
    database: str
    """A path relative to the home folder."""
    finished: str
    """SQL for the paths of the logs in the database."""

    @property
    def trouble(self) -> str:
        """The reason why it can't run; empty if it can."""
        if _text(self.environment / "requirements.txt") == self.requirement:
            return ""
        return _text(self.environment / "trouble.txt") or "not installed"

    def index(self, corpus: Path, home: Path, limit: float = LIMIT) -> IndexRun:
        """Index a corpus from an empty home, which becomes this program's; stop after this many seconds."""
        if self.trouble:
            return IndexRun(0.0, 0, 0, 0, None, self.trouble)
        _furnish(home, corpus)
        seconds, code, peak, output = _measured(self._command(self.indexing), self._environment(home), home, limit)
        finished = self._finished(home)
        size = sum(map(_size, self._offered(corpus) if code == 0 and finished else finished))
        database = home / self.database
        files = database.parent.glob(database.name + "*")
        note = _note(code, limit, output) or ("" if finished else "it found no logs")
        return IndexRun(seconds, size, sum(map(_size, files)), peak, code if finished else code or 1, note)

    def search(self, query: str, home: Path) -> SearchRun:
        """Search an indexed home."""
        if self.trouble:
            return SearchRun(0.0, self.trouble)
        command = self._command(self.searching, query)
        seconds, code, _, output = _measured(command, self._environment(home), home, SEARCH_LIMIT)
        return SearchRun(seconds, "" if code == 0 else _note(code, SEARCH_LIMIT, output))

    def _command(self, template: tuple[str, ...], query: str = "") -> list[str]:
        program, *arguments = (part.replace("{query}", query) for part in template)
        return [str(self.environment / "bin" / program), *arguments]

    def _environment(self, home: Path) -> dict[str, str]:
        return {"HOME": str(home), "PATH": os.defpath, "LANG": "C.UTF-8", **dict(self.variables)}

    def _offered(self, corpus: Path) -> set[Path]:
        return {path for pattern in self.reads for path in corpus.glob(pattern)}

    def _finished(self, home: Path) -> set[Path]:
        try:
            with closing(sqlite3.connect(f"file:{home / self.database}?mode=rw", uri=True)) as connection:
                return {Path(path) for (path,) in connection.execute(self.finished)}
        except sqlite3.Error:  # it was stopped before it created the file or the table
            return set()


def peers(folder: Path) -> list[Peer]:
    """Return the programs, installed below this folder or not."""
    return [_agentsview(folder.absolute())]


def install(folder: Path) -> list[Peer]:
    """Install missing programs below a folder, with pip as configured here; those that fail have a `trouble`."""
    for peer in peers(folder):
        if peer.trouble:
            _install(peer)
    return peers(folder)


def ripgrep(corpus: Path, query: str, *, regex: bool = False) -> SearchRun:
    """Count the lines with a text, or that match a regular expression, in all logs, ignoring case.

    `-F`: a text, not a pattern. `-i`: ignore case. `-c`: count lines, so that no time goes into printing lines of a
    hundred kilobytes. The other options make it read all logs whatever ignore files, hidden folders and the user's
    configuration say. It sees JSON as written: a query with a quote, a line break or an escaped letter finds nothing,
    and its hits have no order.
    """
    program = shutil.which("rg")
    if not program:
        return SearchRun(0.0, "rg isn't installed")
    flags = ["--no-config", "--no-ignore", "--hidden", "--threads", str(THREADS)]
    began = time.perf_counter()
    command = [program, "-i", *([] if regex else ["-F"]), "-c", *flags, "-e", query, str(corpus)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    seconds = time.perf_counter() - began
    return SearchRun(seconds, "" if done.returncode in (0, 1) else _note(done.returncode, 0.0, done.stderr))


def median(search: Callable[[], SearchRun], runs: int = RUNS) -> SearchRun:
    """Search once to fill the page cache, then several times, and return the median; the first trouble ends it."""
    times = []
    for number in range(runs + 1):
        run = search()
        if run.note:
            return run
        times += [run.seconds] if number else []
    return SearchRun(statistics.median(times))


def _agentsview(folder: Path) -> Peer:
    """Messages, tool calls and results of many agents in SQLite, messages in an FTS5 table too; a native program.

    Without its daemon a command syncs once and ends.
    """
    return Peer(
        name="agentsview",
        requirement="agentsview==0.46.1",
        environment=folder / "agentsview",
        reads=("claude/projects/**/*.jsonl", "codex/sessions/**/*.jsonl", "gemini/tmp/**/session-*.json*"),
        indexes_tool_output=True,
        indexing=("agentsview", "sync"),
        searching=("agentsview", "session", "search", "--limit", "20", "--", "{query}"),
        variables=(("DO_NOT_TRACK", "1"), ("AGENTSVIEW_NO_DAEMON", "1")),
        database=".agentsview/sessions.db",
        finished="SELECT file_path FROM sessions",
    )


def _install(peer: Peer) -> None:
    """Recreate the environment; leaves requirements.txt in it, or trouble.txt."""
    pip = [str(peer.environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in ([sys.executable, "-m", "venv", "--clear", str(peer.environment)], [*pip, peer.requirement]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            _leave(peer, "trouble.txt", "not installed: " + _last(done.stderr))
            return
    _leave(peer, "requirements.txt", peer.requirement)


def _leave(peer: Peer, name: str, text: str) -> None:
    peer.environment.mkdir(parents=True, exist_ok=True)
    (peer.environment / name).write_text(text)


def _furnish(home: Path, corpus: Path) -> None:
    """Put the logs where the agents keep theirs, as hard links if the file system supports them.

    All paths are absolute, as the programs run with another working directory.
    """
    for log in corpus.rglob("*"):
        agent, *below = log.relative_to(corpus).parts
        if log.is_file() and below:
            _link(log, home.joinpath(f".{agent}", *below))


def _link(log: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(log, place)
    except OSError:
        shutil.copy2(log, place)


def _measured(
    command: list[str], environment: dict[str, str], home: Path, limit: float
) -> tuple[float, int | None, int, str]:
    """Return seconds, the exit code or None if it was stopped, bytes of peak memory, and all output."""
    helper = [sys.executable, "-I", "-c", MEASURE, str(limit), *command]
    done = subprocess.run(helper, env=environment, cwd=home, capture_output=True, check=True)
    seconds, code, peak = json.loads(done.stdout)
    return seconds, code, peak, done.stderr.decode(errors="replace")


def _note(code: int | None, limit: float, output: str) -> str:
    if code is None:
        return f"stopped after {limit:g} s"
    errors = [line for line in output.splitlines() if line.lower().startswith("error")]
    if not code and not errors:
        return ""
    return f"exit code {code}, {len(errors)} errors: {errors[-1][:80] if errors else _last(output)}"


def _last(output: str) -> str:
    """Return the last line that isn't empty."""
    return next((line.strip()[:80] for line in reversed(output.splitlines()) if line.strip()), "")


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def report(corpus: Path, folder: Path, queries: tuple[str, ...], limit: float) -> Iterator[str]:
    """Index and search with agentsview, and search with ripgrep; yield the lines of a table."""
    yield (
        f"{'':<24}{'tool output':>12}{'MB':>7}{'s':>8}{'MB/s':>7}{'database':>10}{'peak MB':>9}  "
        + "".join(f"{query:>20}" for query in queries)
        + "   ms of a search"
    )
    for peer in install(folder):
        with tempfile.TemporaryDirectory(dir=folder) as home:
            yield _row(peer, peer.index(corpus, Path(home), limit), Path(home), queries)
    runs = [median(partial(ripgrep, corpus, query)) for query in queries]
    yield f"{'ripgrep':<24}{'yes':>12}{'':>43}" + "".join(f"{_milliseconds(run):>20}" for run in runs) + _notes(runs)


def _row(peer: Peer, run: IndexRun, home: Path, queries: tuple[str, ...]) -> str:
    row = (
        f"{peer.name:<24}{'yes' if peer.indexes_tool_output else 'no':>12}{run.bytes_indexed / 1e6:>7.0f}"
        f"{run.seconds:>8.1f}{run.rate:>7.1f}{run.database_bytes / 1e6:>7.0f} MB{run.peak_rss_bytes / 1e6:>9.0f}  "
    )
    searches = [median(partial(peer.search, query, home)) for query in queries]
    return row + "".join(f"{_milliseconds(one):>20}" for one in searches) + _notes([run, *searches])


def _notes(runs: Sequence[IndexRun | SearchRun]) -> str:
    """Return every trouble once."""
    return "   " + "; ".join(dict.fromkeys(run.note for run in runs if run.note))


def _milliseconds(run: SearchRun) -> str:
    return "-" if run.note else f"{run.seconds * 1000:.0f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description="Search logs without agtrace.")
    parser.add_argument("corpus", type=Path, help="a folder with claude/projects, codex/sessions and gemini/tmp")
    parser.add_argument("queries", nargs="*", default=QUERIES, metavar="QUERY")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="the folder in which the programs are installed")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds after which an index run is stopped")
    wanted = parser.parse_args()
    for line in report(wanted.corpus.absolute(), wanted.folder.absolute(), tuple(wanted.queries), wanted.limit):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
