"""Searching logs without agtrace: `python -m benchmarks.peers CORPUS [QUERY ...]`.

Three programs from PyPI that put logs of coding agents into SQLite, and ripgrep, which has no index. Each program runs
in an environment of its own, in a pinned version, with a home folder that has nothing but the corpus; the real home
isn't touched. A corpus is a folder with the agents' own folders: `claude/projects`, `codex/sessions`, `gemini/tmp`.
Programs that can't be installed, fail or take too long have a row in the table like the others.
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
    requirements: tuple[str, ...]
    python: tuple[int, int]
    """The lowest Python version that it supports."""
    environment: Path

    reads: tuple[str, ...]
    """The logs that it reads, as patterns relative to a corpus."""
    leaves_out: str
    """A pattern of file names among them that it skips; may be empty."""
    indexes_tool_output: bool

    indexing: tuple[str, ...]
    """The command to index; in all commands {home} stands for the home folder and {query} for the query."""
    searching: tuple[str, ...]
    """The command to find twenty hits in what is indexed."""
    searching_fresh: tuple[str, ...]
    """The command to find twenty hits after checking for new lines; empty if there is none."""
    quoted: Callable[[str], str]
    """Quotes a query of several words or with punctuation."""

    database: str
    """A path relative to the home folder."""
    finished: str
    """SQL for the paths of the logs in the database."""

    @property
    def trouble(self) -> str:
        """The reason why it can't run; empty if it can."""
        if _text(self.environment / "requirements.txt") == " ".join(self.requirements):
            return ""
        return _text(self.environment / "trouble.txt") or "not installed"

    def index(self, corpus: Path, home: Path, limit: float = LIMIT) -> IndexRun:
        """Index a corpus from an empty home, which becomes this program's; stop after this many seconds."""
        if self.trouble:
            return IndexRun(0.0, 0, 0, 0, None, self.trouble)
        _furnish(home, corpus)
        seconds, code, peak, output = _measured(self._command(self.indexing, home), home, limit)
        finished = self._finished(home)
        size = sum(map(_size, self._offered(corpus) if code == 0 and finished else finished))
        database = home / self.database
        files = database.parent.glob(database.name + "*")
        note = _note(code, limit, output) or ("" if finished else "it found no logs")
        return IndexRun(seconds, size, sum(map(_size, files)), peak, code if finished else code or 1, note)

    def search(self, query: str, home: Path, fresh: bool = False) -> SearchRun:
        """Search an indexed home; with `fresh` it checks for new lines first, as two of the three do by default."""
        template = self.searching_fresh if fresh else self.searching
        if self.trouble or not template:
            return SearchRun(0.0, self.trouble or "it has no search that checks for new lines")
        command = self._command(template, home, self.quoted(query))
        seconds, code, _, output = _measured(command, home, SEARCH_LIMIT)
        return SearchRun(seconds, "" if code == 0 else _note(code, SEARCH_LIMIT, output))

    def _command(self, template: tuple[str, ...], home: Path, query: str = "") -> list[str]:
        program, *arguments = (part.replace("{home}", str(home)).replace("{query}", query) for part in template)
        return [str(self.environment / "bin" / program), *arguments]

    def _offered(self, corpus: Path) -> set[Path]:
        found = {path for pattern in self.reads for path in corpus.glob(pattern)}
        return {path for path in found if not (self.leaves_out and path.match(self.leaves_out))}

    def _finished(self, home: Path) -> set[Path]:
        try:
            with closing(sqlite3.connect(f"file:{home / self.database}?mode=rw", uri=True)) as connection:
                return {Path(path) for (path,) in connection.execute(self.finished)}
        except sqlite3.Error:  # it was stopped before it created the file or the table
            return set()


def peers(folder: Path) -> list[Peer]:
    """Return the programs, installed below this folder or not."""
    folder = folder.absolute()
    return [_cc_conversation_search(folder), _ai_session_search(folder), _claude_code_to_sqlite(folder)]


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


def _cc_conversation_search(folder: Path) -> Peer:
    """Messages of Claude Code in an FTS5 table, without tool results.

    core/indexer.py writes "[Tool result]" into messages.full_content, which message_content_fts indexes, instead of a
    tool_result block; of a tool's input only "command" is kept, and thinking is dropped. Logs of sub-agents are
    skipped. The depth of a session's answers is computed in quadratic time, and never ends if parents form a circle.
    """
    search = ("cc-conversation-search", "search", "--limit", "20")
    return Peer(
        name="cc-conversation-search",
        requirements=("cc-conversation-search==0.5.3",),
        python=(3, 9),
        environment=folder / "cc-conversation-search",
        reads=("claude/projects/*/*.jsonl",),
        leaves_out="agent-*",
        indexes_tool_output=False,
        indexing=("cc-conversation-search", "index", "--all"),
        searching=(*search, "--no-index", "--", "{query}"),
        searching_fresh=(*search, "--", "{query}"),
        quoted=lambda query: query if query.isalnum() else _phrase(query),
        database=".conversation-search/index.db",
        finished="SELECT conversation_file FROM conversations",
    )


def _ai_session_search(folder: Path) -> Peer:
    """Messages of nine agents in two FTS5 tables, one of words and one of trigrams; a native program.

    Tool results are in messages.content, kind "tool_result", which messages_fts and messages_trigram index. Logs of
    sub-agents are read, thinking is dropped. Of Gemini CLI's logs it reads only the older ones, one JSON document each.
    """
    search = ("aise", "messages", "search", "--skip-release-notification", "--limit", "20")
    return Peer(
        name="ai-session-search",
        requirements=("ai-session-search==1.0.0rc4",),
        python=(3, 12),
        environment=folder / "ai-session-search",
        reads=("claude/projects/**/*.jsonl", "codex/sessions/**/*.jsonl", "gemini/tmp/**/session-*.json"),
        leaves_out="",
        indexes_tool_output=True,
        indexing=("aise", "reindex", "--skip-release-notification"),
        searching=(*search, "--index-refresh", "existing-only", "--", "{query}"),
        searching_fresh=(*search, "--index-refresh", "before-query", "--", "{query}"),
        quoted=str,
        database=".local/share/ai-session-search/index.db",
        finished="SELECT source_path FROM files_seen",
    )


def _claude_code_to_sqlite(folder: Path) -> Peer:
    """Messages of Claude Code in SQLite with an FTS5 table; searched with sqlite-utils, which comes with it.

    utils.py puts the first 100,000 characters of a tool_result block into messages.content, which messages_fts indexes;
    of a tool call only the tool's name is kept. Logs of sub-agents are skipped unless asked for. Every import reads all
    logs again.
    """
    database = "logs.db"
    search = ("sqlite-utils", "search", "--limit", "20")
    return Peer(
        name="claude-code-to-sqlite",
        requirements=("claude-code-to-sqlite==0.1.0", "sqlite-utils==4.2.1"),
        python=(3, 10),
        environment=folder / "claude-code-to-sqlite",
        reads=("claude/projects/**/*.jsonl",),
        leaves_out="agent-*",
        indexes_tool_output=True,
        indexing=("claude-code-to-sqlite", "sessions", f"{{home}}/{database}"),
        searching=(*search, "--quote", f"{{home}}/{database}", "messages", "--", "{query}"),
        searching_fresh=(),
        quoted=str,
        database=database,
        finished="SELECT file_path FROM sessions",
    )


def _phrase(query: str) -> str:
    return '"' + query.replace('"', '""') + '"'


def _install(peer: Peer) -> None:
    """Recreate the environment; leaves requirements.txt in it, or trouble.txt."""
    python = _interpreter(peer.python)
    if not python:
        _leave(peer, "trouble.txt", "needs Python {}.{} or newer".format(*peer.python))
        return
    pip = [str(peer.environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in ([python, "-m", "venv", "--clear", str(peer.environment)], [*pip, *peer.requirements]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            _leave(peer, "trouble.txt", "not installed: " + _last(done.stderr))
            return
    _leave(peer, "requirements.txt", " ".join(peer.requirements))


def _leave(peer: Peer, name: str, text: str) -> None:
    peer.environment.mkdir(parents=True, exist_ok=True)
    (peer.environment / name).write_text(text)


def _interpreter(least: tuple[int, int]) -> str | None:
    """Return this Python, or another that is new enough, from PATH or pyenv's folder; None if there is none."""
    question = f"import sys; sys.exit(sys.version_info < {least})"
    for python in _interpreters(least):
        if subprocess.run([python, "-c", question], capture_output=True, check=False).returncode == 0:
            return python
    return None


def _interpreters(least: tuple[int, int]) -> Iterator[str]:
    yield sys.executable
    found = (shutil.which(f"python3.{minor}") for minor in range(least[1], 20))
    yield from (python for python in found if python)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(pyenv.glob("versions/3.*/bin/python")))


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


def _measured(command: list[str], home: Path, limit: float) -> tuple[float, int | None, int, str]:
    """Return seconds, the exit code or None if it was stopped, bytes of peak memory, and all output."""
    helper = [sys.executable, "-I", "-c", MEASURE, str(limit), *command]
    environment = {"HOME": str(home), "PATH": os.defpath, "LANG": "C.UTF-8"}
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
    """Index and search with every program, and search with ripgrep; yield the lines of a table."""
    yield (
        f"{'':<24}{'tool output':>12}{'MB':>7}{'s':>8}{'MB/s':>7}{'database':>10}{'peak MB':>9}  "
        + "".join(f"{query:>20}" for query in queries)
        + "   ms of a search: as indexed / fresh"
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
    searches = []
    for query in queries:
        pair = [median(partial(peer.search, query, home, fresh)) for fresh in (False, True)]
        row += f"{' / '.join(map(_milliseconds, pair)):>20}"
        searches += pair
    return row + _notes([run, *searches])


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
