"""An agent at work, as a process: logs that begin, grow, move and vanish, until it is told to end.

`python -m tests.soak.life AGENT SUPPLY HOME JOURNAL --seed N --rate N --pace SECONDS`. The supply is a folder of
whole logs, which this writes piece by piece. Its actions on whole logs are appended to the journal, one JSON object
per line.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import IO, Any
from uuid import UUID

import orjson
import zstandard

ABOUT = ".meta.json"
"""The ending of the names of files that describe a sub-agent and aren't logs."""

OPEN = 4
"""The number of logs that an agent writes at the same time."""

_PIECE = 8_000
"""The average number of bytes that an agent writes at once, in whole lines or not."""

_WHOLE_LINES = 0.7
"""The share of pieces that end where a line does."""

_REWRITES = 12
"""The number of times a log that is one document is rewritten until it is complete."""

_TORN = 0.02
"""Seconds for which a document is half-written."""

_LONGEST_REST = 0.5


@dataclass(slots=True)
class Log:
    """A log, and the part that is still to be written."""

    path: Path
    states: Iterator[bytes] | None
    """The successive contents of a document; None for a log of lines."""
    content: bytes = b""
    at: int = 0
    """The number of bytes written so far of a log of lines."""


@dataclass(slots=True)
class Agent:
    """One of the three agents, with its logs."""

    name: str
    supply: Iterator[Path]
    folder: Path
    """The folder of the supply's logs for this agent; paths below it are also those below the home."""
    home: Path
    random: Random
    journal: IO[bytes]
    open: list[Log] = field(default_factory=list)
    whole: list[Path] = field(default_factory=list)

    def live(self, rate: float, pace: float, ended: Callable[[], bool]) -> None:
        """Write about `rate` bytes per second, and act on a whole log about every `pace` seconds."""
        deed = time.monotonic() + pace
        while not ended():
            while len(self.open) < OPEN and self.begin():
                pass
            written = self.grow(self.random.choice(self.open)) if self.open else _PIECE
            time.sleep(min(written / rate, _LONGEST_REST))
            if time.monotonic() >= deed:
                self.act(self.random.choice(DEEDS[self.name]))
                deed = time.monotonic() + pace * self.random.uniform(0.5, 1.5)

    def begin(self, place: Path | None = None) -> bool:
        """Open the next log of the supply, at its own path or another one; return False if there is none left."""
        source = next(self.supply, None)
        if source is None:
            return False
        path = place.with_suffix(source.suffix) if place else self.home / source.relative_to(self.folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        about = source.with_suffix(ABOUT)
        if about.exists():
            shutil.copy(about, path.with_suffix(ABOUT))
        content = source.read_bytes()
        if path.suffix == ".json":
            self.open.append(Log(path, _states(content)))
        else:
            path.write_bytes(b"")
            self.open.append(Log(path, None, content))
        return True

    def grow(self, log: Log) -> int:
        """Write the next piece of a log; return the number of bytes written."""
        piece = self._rewrite(log) if log.states is not None else self._append(log)
        if not piece:
            self.open.remove(log)
            self.whole.append(log.path)
        return piece

    def _append(self, log: Log) -> int:
        end = log.at + max(1, int(self.random.expovariate(1 / _PIECE)))
        if self.random.random() < _WHOLE_LINES:
            end = log.content.find(b"\n", end) + 1 or len(log.content)
        piece = log.content[log.at : end]
        log.at += len(piece)
        if piece:
            with log.path.open("ab") as file:
                file.write(piece)
        return len(piece)

    def _rewrite(self, log: Log) -> int:
        assert log.states is not None
        state = next(log.states, b"")
        if not state:
            return 0
        if self.random.random() < 0.5:
            beside = log.path.with_suffix(".tmp")
            beside.write_bytes(state)
            beside.replace(log.path)
        else:
            half = len(state) // 2
            with log.path.open("wb", buffering=0) as file:
                file.write(state[:half])
                time.sleep(_TORN)
                file.write(state[half:])
        return len(state)

    def act(self, name: str) -> None:
        """Act on a whole log, and note that in the journal."""
        paths = [path for path in self.whole if path.exists()]
        if name == "cut":
            paths = [path for path in paths if path.suffix == ".jsonl"]
        if not paths:
            return
        path = self.random.choice(paths)
        self.whole.remove(path)
        noted = getattr(self, name)(path)
        if noted is not None:
            self.journal.write(orjson.dumps({"act": name, "path": str(path), **noted}) + b"\n")
            self.journal.flush()

    def delete(self, path: Path) -> dict[str, Any]:
        """Delete a log, as agents do after a month."""
        path.unlink()
        return {}

    def move(self, path: Path) -> dict[str, Any] | None:
        """Move a log to another folder, as renaming a project does; a sub-agent's log stays where it is."""
        if path.name.startswith("agent-"):
            self.whole.append(path)
            return None
        folder = path.parent.name
        other = folder.removesuffix("-moved") if folder.endswith("-moved") else f"{folder}-moved"
        to = path.parent.with_name(other) / path.name
        to.parent.mkdir(exist_ok=True)
        path.replace(to)
        self.whole.append(to)
        return {"to": str(to)}

    def archive(self, path: Path) -> dict[str, Any] | None:
        """Move a rollout to the folder where Codex keeps old ones."""
        to = self.home / "archived_sessions" / path.name
        to.parent.mkdir(exist_ok=True)
        if to != path:
            path.replace(to)
        self.whole.append(to)
        return {"to": str(to)}

    def compress(self, path: Path) -> dict[str, Any] | None:
        """Put a rollout's compressed form next to it, and remove the plain one."""
        if path.suffix == ".zst":
            self.whole.append(path)
            return None
        to = path.with_name(f"{path.name}.zst")
        beside = path.with_name(f"{path.name}.part")
        beside.write_bytes(zstandard.compress(path.read_bytes()))
        beside.replace(to)
        path.unlink()
        self.whole.append(to)
        return {"to": str(to)}

    def cut(self, path: Path) -> dict[str, Any]:
        """Truncate a log somewhere, and let it grow again."""
        content = path.read_bytes()
        at = self.random.randrange(len(content) + 1)
        os.truncate(path, at)
        self.open.append(Log(path, None, content, at))
        return {"at": at}

    def replace(self, path: Path) -> dict[str, Any]:
        """Replace this log by the beginning of another one."""
        place = path.with_name(path.name.removesuffix(".zst"))
        path.unlink()
        return {"by": self.begin(place)}

    def copy(self, path: Path) -> dict[str, Any] | None:
        """Resume a session under another id: a new log that begins with the lines of the old one."""
        self.whole.append(path)
        if path.name.startswith("agent-"):
            return None
        uid = str(UUID(int=self.random.getrandbits(128), version=4))
        to = path.with_name(f"{uid}.jsonl")
        lines = path.read_bytes().splitlines(keepends=True)
        kept = b"".join(lines[: self.random.randrange(1, len(lines) + 1)]) if lines else b""
        to.write_bytes(kept.replace(path.stem.encode(), uid.encode()))
        self.whole.append(to)
        return {"to": str(to)}


DEEDS = {
    "claude": ("delete", "delete", "move", "cut", "replace", "copy"),
    "codex": ("delete", "archive", "compress", "cut", "replace"),
    "gemini": ("delete", "delete", "cut", "replace"),
}
"""The actions on whole logs of each agent; repeated ones are more frequent."""

REPLACING = ("cut", "replace")
"""Actions after which another log is in the place of one, whose id may then no longer lead to the same things."""


def logs_of(folder: Path) -> Iterator[Path]:
    """Yield the logs below a folder."""
    return (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(ABOUT))


def _states(content: bytes) -> Iterator[bytes]:
    """Yield the successive contents of a document that is rewritten with more and more of its messages."""
    document = orjson.loads(content)
    messages = document.get("messages", []) if isinstance(document, dict) else []
    step = max(1, len(messages) // _REWRITES)
    for end in range(step, len(messages), step):
        yield orjson.dumps({**document, "messages": messages[:end]}, option=orjson.OPT_INDENT_2)
    yield content


def main() -> None:
    """Run until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.life")
    parser.add_argument("agent", choices=DEEDS)
    for name in ("supply", "home", "journal"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True, help="bytes a second")
    parser.add_argument("--pace", type=float, required=True, help="seconds between what happens to whole logs")
    wanted = parser.parse_args()
    ended: list[int] = []
    parent = os.getppid()
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    folder = wanted.supply / wanted.agent
    logs = sorted(logs_of(folder))
    random = Random(f"{wanted.seed}/{wanted.agent}")
    random.shuffle(logs)
    home = wanted.home / f".{wanted.agent}"
    with wanted.journal.open("ab") as journal, suppress(KeyboardInterrupt):
        agent = Agent(wanted.agent, iter(logs), folder, home, random, journal)
        agent.whole = sorted(logs_of(home))
        agent.live(wanted.rate, wanted.pace, lambda: bool(ended) or os.getppid() != parent)


if __name__ == "__main__":
    main()
