"""Find the copied lines of Claude Code logs, without agtrace: `python -m tests.reference.families FILE...`.

A fork, a background copy or a resumed session repeats lines of another log under the same uuid (formats.md
2.1, Branching, resume, fork). They count once, for the older session. Prints one JSON object per file: its own
contents and its copies; all figures are counts, including those of tokens.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from tests.reference.claude_counts import (
    Key,
    Record,
    Usage,
    asks,
    best,
    calls,
    identity,
    once,
    placeholder,
    records,
    responses,
    results,
    tokens,
)

Line = tuple[str, str]


class Totals(NamedTuple):
    """The counts of some lines."""

    lines: int
    tool_calls: int
    results: int
    human: int
    responses: int
    usage: Usage


class Shares(NamedTuple):
    """A log's own contents, and its copies from older ones."""

    own: Totals
    copied: Totals


class Log:
    """One log, read."""

    def __init__(self, path: Path) -> None:
        """Read the whole file."""
        self.path = path
        self.records = once(records(path))
        chained = [(line, stamp) for record, stamp in stamped(self.records) if (line := identity(record)) is not None]
        self.stamps: dict[Line, float] = dict(chained)
        self.groups = {global_key(key, group): group for key, group in responses(self.records).items()}
        times = sorted(self.stamps.values())
        sub_agent = bool(self.records) and all(record.get("isSidechain") for record in self.records)
        named = next((str(record["sessionId"]) for record in self.records if "sessionId" in record), "")
        self.age = (sub_agent, times[0] if times else 0.0, times[-1] if times else 0.0, named, str(path))
        """Sorts logs whose lines don't show which is older: sub-agents last, then by first and last time."""

    def is_older(self, other: Log) -> bool:
        """Whether the first line that only this log has is earlier than the other's; a log without any is older.

        A sub-agent is never older than a main session: one that logs the whole conversation again
        (tests/known_bugs.md, 8) continues before the conversation does.
        """
        if self.age[0] != other.age[0]:
            return other.age[0]
        mine, others = self.first_own(other), other.first_own(self)
        return mine < others if mine != others else self.age < other.age

    def first_own(self, other: Log) -> float:
        """Return when the first line not in the other log was written, in seconds since 1970; before all if none."""
        return next((stamp for line, stamp in self.stamps.items() if line not in other.stamps), float("-inf"))


def families(paths: Iterable[Path]) -> dict[Path, Shares]:
    """Return the own contents and the copies of each of these logs."""
    logs = [Log(path) for path in paths]
    lines = {line: oldest(found).path for line, found in holders((log, log.stamps) for log in logs).items()}
    answers = {key: fullest(key, found).path for key, found in holders((log, log.groups) for log in logs).items()}
    return {log.path: shares(log, lines, answers) for log in logs}


def holders(held: Iterable[tuple[Log, Iterable[Any]]]) -> dict[Any, list[Log]]:
    """Return the logs that have each thing."""
    found = defaultdict(list)
    for log, things in held:
        for thing in things:
            found[thing].append(log)
    return found


def oldest(logs: list[Log]) -> Log:
    """Return the log that is older than most of the others."""
    by_age = sorted(logs, key=lambda log: log.age)
    return max(by_age, key=lambda log: sum(log.is_older(other) for other in logs if other is not log))


def fullest(key: Key, logs: list[Log]) -> Log:
    """Return the oldest log with the final figures of a response: a copy made while it was written has lower ones."""
    held = {log.path: (not placeholder(log.groups[key]), tokens(best(log.groups[key])).output) for log in logs}
    return oldest([log for log in logs if held[log.path] == max(held.values())])


def shares(log: Log, owners: dict[Any, Path], response_owners: dict[Any, Path]) -> Shares:
    """Divide a log by the owners of its lines and responses."""
    parts = []
    for own in (True, False):
        lines = [line for line in log.records if (owners.get(identity(line), log.path) == log.path) == own]
        groups = [group for key, group in log.groups.items() if (response_owners[key] == log.path) == own]
        parts.append(totals(lines, groups))
    return Shares(*parts)


def totals(lines: list[Record], groups: list[list[Record]]) -> Totals:
    """Count lines and responses."""
    usage = Usage()
    for group in groups:
        usage = usage.plus(tokens(best(group)))
    return Totals(
        lines=len(lines),
        tool_calls=sum(len(calls(line)) for line in lines),
        results=sum(len(results(line)) for line in lines),
        human=sum(asks(line) for line in lines),
        responses=len(groups),
        usage=usage,
    )


def global_key(key: Key, group: list[Record]) -> Key:
    """Return a response's key in all logs: both its ids, or its first line's uuid (tests/known_bugs.md, 4 and 5)."""
    uuid = group[0].get("uuid")
    return key if all(key) or not isinstance(uuid, str) else ("", uuid)


def stamped(lines: list[Record]) -> Iterator[tuple[Record, float]]:
    """Yield each line with its time in seconds since 1970; one without a time has that of the line before it."""
    last = 0.0
    for line in lines:
        with suppress(ValueError):
            last = datetime.fromisoformat(str(line.get("timestamp"))).timestamp()
        yield line, last


def printed(totals: Totals) -> dict[str, Any]:
    """Return totals as JSON."""
    return {**totals._asdict(), "usage": totals.usage._asdict()}


if __name__ == "__main__":
    for path, found in families(map(Path, sys.argv[1:])).items():
        line = {"file": str(path), "own": printed(found.own), "copied": printed(found.copied)}
        sys.stdout.write(json.dumps(line) + "\n")
