"""Searching one's logs without agtrace: `python -m benchmarks.peers CORPUS [QUERY ...]`.

Three programs from PyPI that put logs of coding agents into SQLite, and ripgrep, which has no index. Each program runs
from an environment of its own, in its pinned version, on a home folder that holds nothing but the corpus; the real
home isn't touched. A corpus is a folder with the agents' own folders: `claude/projects`, `codex/sessions`,
`gemini/tmp`. What can't be installed, fails or takes too long has a row in the table like the others.
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
"""Searches that are timed, after one that isn't."""
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
"""A small process between this one and the measured one: the peak of a new process begins at that of its parent."""


@dataclass(frozen=True)
class IndexRun:
    """What one program did with a corpus and an empty home."""

    seconds: float
    bytes_indexed: int
    """Bytes of the logs that it reads of this corpus; of a run that failed or was stopped, of those it has finished."""
    database_bytes: int
    """With the files beside the database, such as its write-ahead log."""
    peak_rss_bytes: int
    """Of the largest process; never below some 10 MB, where a Python process begins."""
    exit_code: int | None
    """None if it was stopped or never began."""
    note: str
    """What went wrong, for people; empty if nothing did."""

    @property
    def rate(self) -> float:
        """10^6 bytes of logs a second; 0 if nothing was indexed."""
        return self.bytes_indexed / 1e6 / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class SearchRun:
    """One search in a new process, from its start to its end."""

    seconds: float
    note: str = ""
    """Why the time doesn't count; empty if it does."""


@dataclass(frozen=True)
class Peer:
    """A program from PyPI, with what its source says about it, and where it is or would be installed."""

    name: str
    requirements: tuple[str, ...]
    python: tuple[int, int]
    """The least Python version that it runs on."""
    environment: Path

    reads: tuple[str, ...]
    """The logs that it reads, as patterns below a corpus."""
    leaves_out: str
    """Pattern of file names among them that it passes over; may be empty."""
    indexes_tool_output: bool

    indexing: tuple[str, ...]
    """A command, as the next ones: {home} stands for the home folder, {query} for the query."""
    searching: tuple[str, ...]
    """For twenty hits in what is indexed."""
    searching_fresh: tuple[str, ...]
    """For twenty hits after a look for new lines; empty if there is no such command."""
    quoted: Callable[[str], str]
    """How a query of several words or with punctuation must be written."""

    database: str
    """A path below the home folder."""
    finished: str
    """SQL for the paths of the logs that the database has."""

    @property
    def trouble(self) -> str:
        """Why it can't run; empty if it can."""
        if _text(self.environment / "requirements.txt") == " ".join(self.requirements):
            return ""
        return _text(self.environment / "trouble.txt") or "not installed"

    def index(self, corpus: Path, home: Path, limit: float = LIMIT) -> IndexRun:
        """Index a corpus from an empty home, which becomes this program's; stop it after so many seconds."""
        if self.trouble:
            return IndexRun(0.0, 0, 0, 0, None, self.trouble)
        _furnish(home, corpus)
        seconds, code, peak, output = _measured(self._command(self.indexing, home), home, limit)
        size = sum(map(_size, self._offered(corpus) if code == 0 else self._finished(home)))
        database = home / self.database
        files = database.parent.glob(database.name + "*")
        return IndexRun(seconds, size, sum(map(_size, files)), peak, code, _note(code, limit, output))

    def search(self, query: str, home: Path, fresh: bool = False) -> SearchRun:
        """Search a home that was indexed; `fresh` has it look for new lines first, as two of three do unasked."""
        template = self.searching_fresh if fresh else self.searching
        if self.trouble or not template:
            return SearchRun(0.0, self.trouble or "it has no search that looks for new lines")
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
        except sqlite3.Error:  # it was stopped before it made the file or the table
            return set()


def peers(folder: Path) -> list[Peer]:
    """The programs as they are or aren't installed below a folder."""
    folder = folder.absolute()
    return [_cc_conversation_search(folder), _ai_session_search(folder), _claude_code_to_sqlite(folder)]


def install(folder: Path) -> list[Peer]:
    """Install what is missing below a folder, with pip as it is configured here; what fails has a `trouble`."""
    for peer in peers(folder):
        if peer.trouble:
            _install(peer)
    return peers(folder)


def ripgrep(corpus: Path, query: str) -> SearchRun:
    """Count the lines that hold a text, in all logs and without regard to case.

    `-F`: a text and not a pattern. `-i`: without regard to case. `-c`: counts lines, so no time goes into printing
    lines of a hundred kilobytes. The rest has it read all logs whatever ignore files, hidden folders and the user's
    configuration say. It sees JSON as it is written: a query with a quote, a line break or an escaped letter doesn't
    hit, and its hits have no order.
    """
    program = shutil.which("rg")
    if not program:
        return SearchRun(0.0, "rg isn't installed")
    flags = ["--no-config", "--no-ignore", "--hidden", "--threads", str(THREADS)]
    began = time.perf_counter()
    command = [program, "-i", "-F", "-c", *flags, "-e", query, str(corpus)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    seconds = time.perf_counter() - began
    return SearchRun(seconds, "" if done.returncode in (0, 1) else _note(done.returncode, 0.0, done.stderr))


def median(search: Callable[[], SearchRun], runs: int = RUNS) -> SearchRun:
    """Search once for the page cache and then several times; the first trouble ends it."""
    times = []
    for number in range(runs + 1):
        run = search()
        if run.note:
            return run
        times += [run.seconds] if number else []
    return SearchRun(statistics.median(times))


def _cc_conversation_search(folder: Path) -> Peer:
    """Messages of Claude Code in an FTS5 table, without what tools gave.

    core/indexer.py writes "[Tool result]" into messages.full_content, which message_content_fts indexes, in place of a
    tool_result block; of a tool's input only "command" is kept, and thinking is dropped. Logs of sub-agents are passed
    over. A session's depth of answers is computed in quadratic time, and never ends if parents go in a circle.
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

    What tools gave is in messages.content, kind "tool_result", which messages_fts and messages_trigram index. Logs of
    sub-agents are read, thinking is dropped. Of Gemini CLI's logs it reads the older ones, one JSON document each.
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

    utils.py puts the content of a tool_result block into messages.content, the first 100,000 characters of it, which
    messages_fts indexes; of a tool's input nothing is kept but the tool's name. Logs of sub-agents are passed over
    unless asked for. Every import reads all logs again.
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
    """Make the environment anew; leaves requirements.txt in it, or trouble.txt."""
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
    """This Python, or another one that starts, from PATH or pyenv's folder."""
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
    """Put the logs where the agents keep theirs, as hard links if the file system can."""
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
    """Seconds, exit code or None if it was stopped, bytes of peak memory, and all that it printed."""
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
    """The last line that isn't empty."""
    return next((line.strip()[:80] for line in reversed(output.splitlines()) if line.strip()), "")


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def report(corpus: Path, folder: Path, queries: tuple[str, ...], limit: float) -> Iterator[str]:
    """Index with every program and search with each and with ripgrep; the lines of a table."""
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
    """Every trouble once."""
    return "   " + "; ".join(dict.fromkeys(run.note for run in runs if run.note))


def _milliseconds(run: SearchRun) -> str:
    return "-" if run.note else f"{run.seconds * 1000:.0f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description="Search logs without agtrace.")
    parser.add_argument("corpus", type=Path, help="a folder with claude/projects, codex/sessions and gemini/tmp")
    parser.add_argument("queries", nargs="*", default=QUERIES, metavar="QUERY")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the programs are installed")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds after which an index run is stopped")
    wanted = parser.parse_args()
    for line in report(wanted.corpus, wanted.folder, tuple(wanted.queries), wanted.limit):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
