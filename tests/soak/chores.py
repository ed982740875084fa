"""Commands that people run now and then: maintenance, reports, examinations and questions."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from random import Random

import anyio
import anyio.to_thread

from benchmarks.ground import AGTRACE, Machine
from tests.soak.conversation import Seen
from tests.soak.visitors import OWN

_MAY_FAIL = frozenset({"doctor", "health", "forget"})
"""Commands that may exit with 1 for a good reason: the sample sessions have lines that aren't JSON; while a server
reads the WAL, forgotten texts stay in it until the next run."""

LONGEST = 300
"""The most seconds that a command may take while everything else is running."""

_FORGET = ("forget",)
_AT_LEAST = 4
"""The fewest commands that are run, however short the time."""

COMMANDS = (
    ("index", "--optimize", "--json"),
    ("report", "--json"),
    _FORGET,
    ("doctor", "--json"),
    ("index", "--json"),
    ("report", "--html", "-"),
    ("health", "--json"),
    ("index", "--optimize"),
    _FORGET,
    ("search", "error", "--by-session"),
    ("doctor",),
    ("sessions", "--json"),
)


@dataclass(slots=True)
class Chores:
    """Runs one command after another, in turn, about every `pause` seconds."""

    machine: Machine
    random: Random
    seen: Seen
    ended: Callable[[], bool]
    pause: float
    running: dict[str, int] = field(default_factory=dict)
    """The current command, with its process."""
    done: int = 0
    forgotten: set[str] = field(default_factory=set)
    """The ids of forgotten sessions, as in their logs."""

    async def go_on(self) -> None:
        """Run commands until the end."""
        while self.done < _AT_LEAST or not self.ended():
            command = COMMANDS[self.done % len(COMMANDS)]
            self.done += 1
            if command == _FORGET:
                await anyio.to_thread.run_sync(self.forget)
            else:
                await anyio.to_thread.run_sync(self.run, *command)
            due = time.monotonic() + self.random.uniform(0.5, 1.5) * self.pause
            while time.monotonic() < due and not self.ended():
                await anyio.sleep(min(0.5, self.pause))

    def forget(self) -> None:
        """Forget a session that has no part in another log, with everything that belongs to it."""
        before = self._sessions()
        likely = sorted(uid for uid, _, kind in before if kind == "main" and not uid.startswith(OWN))
        if not likely:
            return
        chosen = self.random.choice(likely)
        told = json.loads(self.run("forget", chosen, "--dry-run", "--json").stdout or "{}")
        if told.get("also_in") == []:
            self.run("forget", chosen, "--yes", "--json")
            self.forgotten |= {own for _, own, _ in before} - {own for _, own, _ in self._sessions()}

    def _sessions(self) -> list[tuple[str, str, str]]:
        """Return the visible id of each session, the id in its log, and the kind."""
        with closing(sqlite3.connect(self.machine.database, timeout=30)) as connection:
            return connection.execute("SELECT uid, own_id, kind FROM session").fetchall()

    def run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run a command, which must succeed and may complain only about other writers."""
        shown = " ".join(["agtrace", arguments[0], *(word for word in arguments[1:] if word.startswith("--"))])
        began = time.monotonic()
        with subprocess.Popen(
            [AGTRACE, *arguments], env=self.machine.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            self.running[shown] = process.pid
            try:
                out, err = process.communicate(timeout=LONGEST)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                self.seen.troubles.append(f"{shown} took more than {LONGEST} s")
            finally:
                del self.running[shown]
        self.seen.note(shown, time.monotonic() - began)
        lines = err.decode(errors="replace").splitlines()
        strange = [line for line in lines if not line.startswith("agtrace: ")]
        wrong = process.returncode not in ((0, 1) if arguments[0] in _MAY_FAIL else (0,))
        if wrong or strange:
            self.seen.troubles.append(f"{shown} exited with {process.returncode}: {(strange or lines)[-3:]}")
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)
