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
    (re.compile(r"(?<=for agent in \()([^()]+)(?=\)\})"), r"\1, TERN"),
)
"""What is added to the registry: an import and a name."""

ASKING = """
import json, sys
from click.testing import CliRunner
from agtrace.commands import group
for arguments in json.load(sys.stdin):
    run = CliRunner().invoke(group.agtrace, arguments, prog_name="agtrace", env={"COLUMNS": "160"})
    print(json.dumps([run.exit_code, run.stdout, run.stderr]))
"""
"""Runs commands one after another in one process."""

START = 1_790_000_000_000


def lines(session: str) -> list[dict[str, Any]]:
    """Return a session of Tern's: a failed build, an edit, calls to agtrace, an API error."""
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
    """Make a copy of the indexer that knows Tern; return the value for PYTHONPATH."""
    package = folder / "agtrace_indexer"
    shutil.copytree(ROOT / "indexer" / "agtrace_indexer", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(TERN, package / "providers" / "tern", ignore=shutil.ignore_patterns("__pycache__"))
    registry = package / "providers" / "registry.py"
    text = registry.read_text()
    for place, named in NAMED:
        text, count = place.subn(named, text)
        assert count == 1
    registry.write_text(text)
    return folder


@dataclass
class Nest:
    """A machine with Tern on it."""

    folder: Path
    code: Path

    @property
    def flights(self) -> Path:
        """The folder of Tern's logs."""
        return self.folder / "tern" / "flights"

    @property
    def data(self) -> Path:
        """The folder of agtrace's index."""
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
        """Open Tern's database, in the mode that agents use."""
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

    def run(self, code: str, given: Any = None) -> list[Any]:
        """Return the JSON values, one per line, printed by a process that knows Tern."""
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.folder / "home"), "TERN_NEST": str(self.folder / "tern"),
            "AGTRACE_DATA_DIR": str(self.data), "PYTHONPATH": str(self.code),
        }  # fmt: skip
        ended = subprocess.run(
            [sys.executable, "-c", code], env=environment, input=json.dumps(given), capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        return [json.loads(line) for line in ended.stdout.splitlines()]

    def ask(self, *commands: str) -> list[str]:
        """Return what commands print, each given as its words; all must succeed."""
        answers = self.run(ASKING, [command.split() for command in commands])
        assert [code for code, _, _ in answers] == [0] * len(commands), answers
        return [out for _, out, _ in answers]

    def data_of(self, *commands: str) -> list[Any]:
        """Return the data of the answers to commands, each given as its words."""
        return [json.loads(answer)["data"] for answer in self.ask(*(f"{command} --json" for command in commands))]


def add(connection: sqlite3.Connection, session: str, *told: dict[str, Any], changed: int = 1) -> None:
    """Write lines of a session into Tern's database."""
    given = [(session, changed, json.dumps(line)) for line in told]
    connection.executemany("INSERT INTO line (flight, changed, line) VALUES (?, ?, ?)", given)
