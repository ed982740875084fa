"""A machine with Tern on it: an indexer that knows Tern, Tern's home, and an index of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TERN = Path(__file__).parent / "tern"
NAMED = (
    (re.compile(r"(?m)^(?=\nif TYPE_CHECKING:)"), "from agtrace_indexer.providers.tern import TERN\n"),
    (re.compile(r"(?<=_AGENTS = \()([^()]+)(?=\))"), r"\1    TERN,\n"),
)
"""What is added to the registry: an import and a name."""

ANSWERING = """
import json, os, signal, sys
from click.testing import CliRunner
import agtrace.answers.service, agtrace.render, agtrace_indexer.parallel.pool, agtrace_indexer.run.work
from pathlib import Path
from agtrace.commands import group
from agtrace_indexer import redact
redact.use(Path(sys.argv[1]))
redact.redact("a text")
for line in sys.stdin:
    if not (child := os.fork()):
        signal.alarm(120)
        environment, commands = json.loads(line)
        os.environ.update(environment)
        runs = [CliRunner().invoke(group.agtrace, given, prog_name="agtrace") for given in commands]
        print(json.dumps([[run.exit_code, run.stdout, run.stderr] for run in runs]), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print("null", flush=True)
"""
"""Loads everything once, then lets a process of its own run the commands of each line, one after the other."""

START = 1_790_000_000_000


def lines(session: str) -> list[dict[str, Any]]:
    """A session of Tern's: a failed build, an edit, calls to agtrace, an error of the API."""
    told: list[dict[str, Any]] = [
        {"tern": "start", "id": session, "cwd": "/srv/tidepool", "model": "tern-1"},
        {"tern": "ask", "text": "Mend the tide gauge"},
        {"tern": "call", "id": "c1", "tool": "dive", "with": {"line": "make gauge"}},
        {"tern": "back", "id": "c1", "text": "gauge.py:3: SyntaxError: high water", "fine": False},
        {"tern": "call", "id": "c2", "tool": "preen", "with": {"target": "src/gauge.py", "was": "a", "becomes": "b"}},
        {"tern": "back", "id": "c2", "text": "changed", "fine": True},
        {"tern": "call", "id": "c0", "tool": "peer", "with": {"target": "src/gauge.py"}},
        {"tern": "back", "id": "c0", "text": "b = 1", "fine": True},
        {"tern": "call", "id": "c3", "tool": "dive", "with": {"line": "agtrace search 'high water'"}},
        {"tern": "back", "id": "c3", "text": "high water, 9 times", "fine": True},
        {"tern": "call", "id": "c4", "tool": "agtrace/list_sessions", "with": {"query": "high water"}},
        {"tern": "back", "id": "c4", "text": "high water sessions", "fine": True},
        {"tern": "eaten", "in": 1200, "out": 34},
        {"tern": "say", "text": "The gauge is mended"},
        {"tern": "ask", "text": "And the moon?"},
        {"tern": "storm", "text": "529: the sky is overloaded"},
        {"tern": "song", "text": "kee-arr"},
    ]
    return [record | {"at": START + 1000 * number, "step": number} for number, record in enumerate(told)]


def checkout(folder: Path) -> Path:
    """A copy of the indexer that knows Tern; gives what goes into PYTHONPATH."""
    package = folder / "agtrace_indexer"
    shutil.copytree(ROOT / "indexer" / "agtrace_indexer", package, ignore=shutil.ignore_patterns("*.pyc.*"))
    shutil.copytree(TERN, package / "providers" / "tern", ignore=shutil.ignore_patterns("__pycache__"))
    registry = package / "providers" / "registry.py"
    text = registry.read_text()
    for place, named in NAMED:
        text, count = place.subn(named, text)
        assert count == 1
    registry.write_text(text)
    return folder


class Knowing:
    """An agtrace that knows Tern, loaded once for many machines."""

    def __init__(self, code: Path, rules: Path) -> None:
        self._environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(code)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", ANSWERING, str(rules)], env=self._environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, environment: dict[str, str], commands: list[list[str]]) -> list[tuple[int, str, str]]:
        """What a process does that runs these commands: the exit code, stdout and stderr of each."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps([environment, commands]) + "\n")
        self._process.stdin.flush()
        ended = json.loads(self._process.stdout.readline())
        assert ended is not None, "the process died"
        return [(code, out, err) for code, out, err in ended]

    def value_of(self, code: str) -> Any:
        """What such code prints, as JSON."""
        return json.loads(subprocess.check_output([sys.executable, "-c", code], env=self._environment, timeout=300))

    def close(self) -> None:
        """End its process."""
        self._process.communicate()


@dataclass
class Nest:
    """A machine with Tern on it."""

    folder: Path
    knowing: Knowing

    @property
    def flights(self) -> Path:
        """Where Tern keeps its logs."""
        return self.folder / "tern" / "flights"

    @property
    def data(self) -> Path:
        """Where agtrace keeps its index."""
        return self.folder / "data"

    def log(self, session: str) -> None:
        """Write a session as a log of lines."""
        self.flights.mkdir(parents=True, exist_ok=True)
        (self.flights / f"{session}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines(session)))

    def document(self, session: str) -> None:
        """Write a session as one JSON document."""
        document = {"tern": "flight", "lines": lines(session)}
        (self.flights / f"{session}.json").write_text(json.dumps(document, indent=1))

    def feathers(self, session: str, told: Iterable[dict[str, Any]] | None = None) -> None:
        """Write a session as a folder of small files."""
        folder = self.flights / "feathers" / session
        folder.mkdir(parents=True)
        for number, line in enumerate(told or lines(session), 1):
            (folder / f"{number:03}.json").write_text(json.dumps(line))

    def database(self) -> sqlite3.Connection:
        """Open Tern's database, in the mode in which agents write theirs."""
        self.flights.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.flights / "nest.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS line (id INTEGER PRIMARY KEY, flight TEXT, changed INTEGER, line TEXT)"
        )
        return connection

    def rows(self, *sessions: str) -> None:
        """Write sessions into the database, and close it."""
        with closing(self.database()) as connection:
            for session in sessions:
                add(connection, session, *lines(session))

    def run(self, *commands: str) -> list[tuple[int, str, str]]:
        """Run commands in a process, each given as its words: return their exit codes, stdout and stderr."""
        environment = {
            "HOME": str(self.folder / "home"), "TERN_NEST": str(self.folder / "tern"),
            "AGTRACE_DATA_DIR": str(self.data), "COLUMNS": "160",
        }  # fmt: skip
        return self.knowing.run(environment, [command.split() for command in commands])

    def ask(self, *commands: str) -> list[str]:
        """Return what commands print; all must succeed, though a search may find nothing."""
        answers = self.run(*commands)
        for command, (code, _, _) in zip(commands, answers, strict=True):
            assert code == 0 or (code == 1 and command.startswith("search ")), answers
        return [out for _, out, _ in answers]

    def data_of(self, *commands: str) -> list[Any]:
        """The data of the answers to commands, each given as its words."""
        return [json.loads(answer)["data"] for answer in self.ask(*(f"{command} --json" for command in commands))]


def add(connection: sqlite3.Connection, session: str, *told: dict[str, Any], changed: int = 1) -> None:
    """Write lines of a session into Tern's database."""
    given = [(session, changed, json.dumps(line)) for line in told]
    connection.executemany("INSERT INTO line (flight, changed, line) VALUES (?, ?, ?)", given)
