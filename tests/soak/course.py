"""The course of a soak: everything starts, runs for the given time and ends, and what is left is compared."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import anyio
import anyio.to_thread
import orjson
from agtrace_indexer.index.tombstones import place_of

from agtrace.index.reader import home_roots
from benchmarks.ground import AGTRACE, Machine
from tests.soak import life, remains, supply, telling, vitals
from tests.soak.chores import Chores
from tests.soak.conversation import Seen, said
from tests.soak.visitors import Visitor

AGENTS = tuple(life.DEEDS)

_ROOT = Path(__file__).resolve().parents[2]

_OVER_HTTP = 4
"""One in this many clients shares a server over HTTP with others."""

_SERVER = "server http"
_SHOWN = 20
"""The most troubles that are reported at once; all are reported in the end."""

_LONGEST_PAUSE = 5.0
"""The most seconds between two samples of the processes."""

_PATIENCE = 120.0
"""The most seconds for a process to end, and for the watcher to see the last change."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The parameters of a soak."""

    minutes: float
    seed: int
    clients: int
    megabytes: float
    """The total size of the generated logs."""
    samples: int
    """The number of times the sample sessions are written, for their families, forks and odd lines."""
    pace: float
    """Seconds between two actions of an agent on whole logs."""
    pause: float
    """Seconds between two questions of a client."""
    chores: float
    """Seconds between two commands."""
    term: float
    """Seconds until a client continues with another server."""
    line: float
    """Seconds between two lines about the progress."""


@dataclass(slots=True)
class Course:
    """All participants. `say` gets the lines about the progress."""

    wanted: Wanted
    folder: Path
    say: Callable[[str], None]
    machine: Machine = field(init=False)
    seen: Seen = field(default_factory=Seen)
    visitors: list[Visitor] = field(init=False)
    chores: Chores = field(init=False)
    watch: vitals.Watch = field(init=False)
    archive: remains.Archive = field(init=False)
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _end: float = 0
    _told: tuple[int, int] = (0, 0)
    """The number of samples and calls that have been reported."""

    def run(self) -> list[str]:
        """Run the whole course; return what was wrong, as sentences."""
        self._prepare()
        with ExitStack() as stack:
            stack.callback(self._kill)
            self._begin()
            anyio.run(self._together)
            self.say("quiet: everybody ends")
            troubles = [*self._end_all(), *self._compare()]
            return [*self.seen.troubles, *self._unexplained(), *self.watch.troubles(), *troubles]

    def summary(self) -> Iterator[str]:
        """Yield a summary for a person."""
        yield f"archived logs: {len(self.archive)}; forgotten sessions: {len(self.chores.forgotten)}"
        yield from telling.summary(self._deeds(), self.seen.calls, self.watch)

    # -- before ----------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Make the supply of logs, put some of them in place, and index these."""
        wanted = self.wanted
        self.machine = Machine(self.folder.absolute() / "machine")
        self.say(f"making {wanted.megabytes:g} MB of logs")
        supply.make(self._supply, wanted.megabytes, wanted.samples, wanted.seed)
        for agent in AGENTS:
            supply.put_first(self._supply / agent, self._home / f".{agent}")
        self.machine.agtrace("index", "--json")
        random = Random(wanted.seed)
        self.visitors = [
            Visitor(number, self.machine, Random(random.random()), self.seen, self._over, wanted.pause,
                    None if number else wanted.term)
            for number in range(wanted.clients)
        ]  # fmt: skip
        self.chores = Chores(self.machine, Random(random.random()), self.seen, self._over, wanted.chores)
        self.archive = remains.Archive(self.machine.database)
        self.watch = vitals.Watch(self.machine.database, self._observed)

    @property
    def _supply(self) -> Path:
        return self.folder / "supply"

    @property
    def _home(self) -> Path:
        return Path(self.machine.environment["HOME"])

    def _begin(self) -> None:
        seconds = 60 * self.wanted.minutes
        self._start("watch", AGTRACE, "index", "--watch", "--json")
        url = self._listening()
        for visitor in self.visitors[_OVER_HTTP - 1 :: _OVER_HTTP]:
            visitor.url = url
        for agent in AGENTS:
            size = sum(path.stat().st_size for path in life.logs_of(self._supply / agent))
            self._journal(agent).touch()
            self._start(
                agent, sys.executable, "-m", "tests.soak.life", agent, self._supply, self._home, self._journal(agent),
                "--seed", self.wanted.seed, "--rate", max(size / seconds, 1000), "--pace", self.wanted.pace,
            )  # fmt: skip
        self._end = time.monotonic() + seconds

    def _start(self, name: str, *command: Any) -> None:
        with (self.folder / f"{name}.out").open("wb") as out, (self.folder / f"{name}.err").open("wb") as err:
            self._processes[name] = subprocess.Popen(
                [str(part) for part in command], env=self.machine.environment, cwd=_ROOT, stdin=subprocess.DEVNULL,
                stdout=out, stderr=err,
            )  # fmt: skip

    def _listening(self) -> str:
        """Start the server over HTTP, open to anyone; return its address."""
        self._start(_SERVER, AGTRACE, "mcp", "--http", "127.0.0.1:0", "--no-token")
        due, log = time.monotonic() + _PATIENCE, self.folder / f"{_SERVER}.err"
        while not log.read_bytes().endswith(b"\n") and time.monotonic() < due:
            time.sleep(0.05)
        return str(orjson.loads(log.read_bytes().splitlines()[0])["url"])

    # -- meanwhile -------------------------------------------------------------------------------------

    async def _together(self) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._observe)
            group.start_soon(self.chores.go_on)
            for visitor in self.visitors:
                group.start_soon(visitor.stay)

    async def _observe(self) -> None:
        """Sample everything again and again, and report progress, and the first troubles as soon as they occur."""
        due = time.monotonic() + self.wanted.line
        self.say(telling.HEAD)
        shown = 0
        while not self._over():
            await anyio.sleep(min(_LONGEST_PAUSE, self.wanted.line / 4))
            await anyio.to_thread.run_sync(self._look)
            for trouble in self.seen.troubles[shown:_SHOWN]:
                self.say(f"OFF: {trouble[:1000]}")
            shown = len(self.seen.troubles)
            if time.monotonic() >= due:
                self._tell()
                due += self.wanted.line

    def _look(self) -> None:
        self.watch.look()
        self.archive.look()
        for name, process in list(self._processes.items()):
            if process.poll() is not None:
                self.seen.troubles.append(f"{name} ended early with {process.returncode}")
                del self._processes[name]

    def _tell(self) -> None:
        looks, calls = self._told
        self._told = len(self.watch.looks), len(self.seen.calls)
        held = (*vitals.counted(self.machine.database), len(self.archive))
        troubles = len(self.seen.troubles)
        self.say(telling.line(self.watch.looks[looks:], self.seen.calls[calls:], held, troubles))

    def _observed(self) -> dict[str, int]:
        servers = {visitor.name: visitor.pid for visitor in self.visitors if visitor.pid is not None}
        others = {name: process.pid for name, process in self._processes.items() if name not in AGENTS}
        return {**others, **servers, **self.chores.running}

    def _over(self) -> bool:
        return time.monotonic() >= self._end

    # -- after -----------------------------------------------------------------------------------------

    def _end_all(self) -> Iterator[str]:
        """Stop the agents, and the watcher once it has seen their last changes."""
        for agent in AGENTS:
            yield from self._ended(agent)
        roots = [Path(root) for root in home_roots(self.machine.settings)]
        due = time.monotonic() + _PATIENCE
        while (left := remains.behind(self.machine.database, roots)) and time.monotonic() < due:
            time.sleep(0.1)
        if left:
            yield f"the watcher has not seen {len(left)} files as they are, such as {left[0]}"
        self.archive.look()
        yield from self._ended("watch")
        yield from self._ended(_SERVER)
        yield from said(self.folder / f"{_SERVER}.err")
        for name in ("watch", *AGENTS):
            for line in (self.folder / f"{name}.err").read_text(errors="replace").splitlines():
                if not line.startswith("agtrace: another agtrace is indexing"):
                    yield f"{name} said: {line[:400]}"
        for visitor in self.visitors:
            if visitor.url is None:
                yield from said(visitor.log)

    def _ended(self, name: str) -> Iterator[str]:
        process = self._processes.pop(name, None)
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            yield f"{name} did not end within {_PATIENCE:.0f} s"
            return
        if code:
            yield f"{name} ended with {code}"

    def _kill(self) -> None:
        for process in self._processes.values():
            process.kill()

    def _compare(self) -> Iterator[str]:
        """Compare what is left with a fresh index of the existing logs, and with what vanished."""
        self.chores.run("index", "--json")
        doctor = json.loads(self.chores.run("doctor", "--json").stdout)
        if doctor["index"]["integrity"] != "ok":
            yield f"the index is damaged: {doctor['index']}"
        other = Machine(self.folder.absolute() / "afresh")
        other.data.mkdir(parents=True)
        if place_of(self.machine.database).exists():
            shutil.copy(place_of(self.machine.database), place_of(other.database))
        other.agtrace("index", "--json", *(root for root in home_roots(self.machine.settings) if Path(root).exists()))
        self.say("comparing with a fresh index")
        yield from remains.differences(self.machine.database, other.database)
        yield from self.archive.changes(self.chores.forgotten)

    def _unexplained(self) -> Iterator[str]:
        """Yield errors about sessions to which nothing happened that would explain them."""
        replaced = [deed["path"] for deed in self._deeds() if deed["act"] in life.REPLACING]
        happened = "\n".join([*replaced, *self.chores.forgotten])
        yield from (sentence for sentence, ids in self.seen.refused if not any(uid in happened for uid in ids))

    def _deeds(self) -> Iterator[dict[str, Any]]:
        """Yield the agents' actions on whole logs so far."""
        for agent in AGENTS:
            lines = self._journal(agent).read_bytes().splitlines(keepends=True)
            yield from (orjson.loads(line) for line in lines if line.endswith(b"\n"))

    def _journal(self, agent: str) -> Path:
        return self.folder / f"{agent}.journal"
