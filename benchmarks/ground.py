"""The ground for measurements: cached corpora, and machines with a home, an index and nothing else.

No measurement sees the real home: every process gets an environment made here from scratch.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from agtrace_indexer.index.opening import open_read_only

from agtrace import settings
from agtrace.settings.model import Settings
from benchmarks import corpus
from benchmarks.corpus import repeated

AGTRACE = str(Path(sys.executable).with_name("agtrace"))

NOTHING_FOUND = 1
"""The exit code of a search without a hit."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A home without agents and a folder for an index, both in one folder."""

    folder: Path

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.folder / "data"

    @property
    def database(self) -> Path:
        """The path of the index."""
        return self.settings.database

    @property
    def environment(self) -> dict[str, str]:
        """All environment variables of a process on this machine."""
        home = self.folder / "home"
        home.mkdir(parents=True, exist_ok=True)
        return {
            "HOME": str(home),
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "AGTRACE_DATA_DIR": str(self.data),
            "CLAUDE_CONFIG_DIR": str(home / ".claude"),
            "CODEX_HOME": str(home / ".codex"),
            "GEMINI_CLI_HOME": str(home),
            "XDG_DATA_HOME": str(home / ".local" / "share"),
        }

    @property
    def settings(self) -> Settings:
        """The settings of a reader in this process."""
        return settings.load(self.environment)

    @property
    def index_bytes(self) -> int:
        """The size of the index with the files next to it, such as its write-ahead log."""
        return sum(path.stat().st_size for path in self.data.glob(f"{self.database.name}*"))

    def agtrace(self, *arguments: str) -> float:
        """Run a command and return its seconds. Raises `subprocess.CalledProcessError` if it fails."""
        began = time.perf_counter()
        with self.start(*arguments) as process:
            code = process.wait()
        if code and not (code == NOTHING_FOUND and arguments[0] == "search"):
            raise subprocess.CalledProcessError(code, process.args)
        return time.perf_counter() - began

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command, discarding its output but not its errors."""
        return subprocess.Popen(
            [AGTRACE, *arguments], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )

    def forget(self) -> None:
        """Remove the index."""
        shutil.rmtree(self.data, ignore_errors=True)

    def connect(self) -> sqlite3.Connection:
        """Open the index for reading as `agtrace.index.reader` does."""
        connection = open_read_only(self.database)
        connection.row_factory = sqlite3.Row
        return connection


@dataclass(slots=True)
class Ground:
    """A folder with corpora, which are kept, and machines, which are made for every run."""

    folder: Path
    rounds: int
    say: Callable[[str], None]
    """Reports progress to a person."""
    logs: Path | None = None
    """The real logs that its corpora repeat; None if they are generated."""
    _indexed: dict[int, Machine] = field(default_factory=dict)

    def corpus(self, megabytes: int, seed: int = 1) -> Path:
        """Return the folder of a corpus of about this many 10^6 bytes; it is made if missing."""
        folder = self.folder / "corpus" / (f"{megabytes}" if seed == 1 else f"{megabytes}-seed-{seed}")
        if not folder.exists():
            self.say(f"making a corpus of {megabytes} MB, seed {seed}")
            unfinished = folder.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            if self.logs:
                repeated.write(unfinished, megabytes, self.logs, seed)
            else:
                corpus.write(unfinished, megabytes, seed)
            unfinished.replace(folder)
        return folder

    def machine(self, name: str) -> Machine:
        """Make a machine without an index."""
        machine = Machine((self.folder / "machines" / name).absolute())
        shutil.rmtree(machine.folder, ignore_errors=True)
        return machine

    def indexed(self, megabytes: int) -> Machine:
        """Return the machine with the index of a corpus, which a run makes once and must not change."""
        if megabytes not in self._indexed:
            logs = self.corpus(megabytes)
            self.say(f"indexing {megabytes} MB")
            machine = self.machine(f"{megabytes}")
            machine.agtrace("index", str(logs))
            self._indexed[megabytes] = machine
        return self._indexed[megabytes]

    def keep(self, megabytes: int, machine: Machine) -> None:
        """Use a machine with a newly made index of a corpus as the result of `indexed`."""
        self._indexed[megabytes] = machine

    def copy(self, machine: Machine, name: str) -> Machine:
        """Make a machine with a copy of an index, which may be changed."""
        copied = self.machine(name)
        shutil.copytree(machine.data, copied.data)
        return copied


def files_of(logs: Path) -> list[Path]:
    """Return all files of a corpus."""
    return sorted(path for path in logs.rglob("*") if path.is_file())


def size_of(logs: Path) -> int:
    """Return the size in bytes of all files of a corpus."""
    return sum(path.stat().st_size for path in files_of(logs))


def warm(logs: Path) -> None:
    """Read a corpus once, so that it is in the page cache."""
    for path in files_of(logs):
        path.read_bytes()
