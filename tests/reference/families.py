"""Which lines of Claude Code logs are copies, without agtrace: `python -m tests.reference.families FILE...`.

A fork, a background copy or a resumed session repeats lines of another log under the same uuid (formats.md
2.1, Branching, resume, fork). They count once, for the older session. Prints one JSON object a file: what
it holds of its own and what it copies; all figures are numbers of things, tokens are tokens.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable
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
    records,
    responses,
    results,
    tokens,
)

Line = tuple[str, str]


class Totals(NamedTuple):
    """What some lines hold; lines are those with a uuid."""

    lines: int
    tool_calls: int
    results: int
    human: int
    responses: int
    usage: Usage


class Shares(NamedTuple):
    """What a log holds of its own, and what it repeats of older ones."""

    own: Totals
    copied: Totals


class Log:
    """One log, read."""

    def __init__(self, path: Path) -> None:
        """Read the whole file."""
        self.path = path
        self.records = [record for record in once(records(path)) if identity(record) is not None]
        self.stamps = dict(zip(map(line_of, self.records), stamps(self.records), strict=True))
        self.groups = {global_key(key, group): group for key, group in responses(self.records).items()}
        times = sorted(self.stamps.values())
        sub_agent = bool(self.records) and all(record.get("isSidechain") for record in self.records)
        named = next((str(record["sessionId"]) for record in self.records if "sessionId" in record), "")
        self.age = (sub_agent, times[0] if times else 0.0, times[-1] if times else 0.0, named, str(path))
        """Sorts logs whose lines don't tell which is older: sub-agents last, then by first and last time."""

    def is_older(self, other: Log) -> bool:
        """Whether the first line that only this log holds is earlier than the other's; one without any is older.

        A sub-agent is never older than a main session: one that logs the whole conversation again
        (known-bugs.md 8) goes on before the conversation does.
        """
        if self.age[0] != other.age[0]:
            return other.age[0]
        mine, others = self.first_own(other), other.first_own(self)
        return mine < others if mine != others else self.age < other.age

    def first_own(self, other: Log) -> float:
        """The time of the first line that the other log doesn't hold, in seconds since 1970; before all if none."""
        return next((stamp for line, stamp in self.stamps.items() if line not in other.stamps), float("-inf"))


def families(paths: Iterable[Path]) -> dict[Path, Shares]:
    """What each of these logs holds of its own and what it copies."""
    logs = [Log(path) for path in paths]
    owners = owners_of({log.path: set(log.stamps) for log in logs}, logs)
    response_owners = owners_of({log.path: set(log.groups) for log in logs}, logs)
    return {log.path: shares(log, owners, response_owners) for log in logs}


def owners_of(held: dict[Path, set[Any]], logs: list[Log]) -> dict[Any, Path]:
    """For each thing that logs hold, the oldest of those that hold it."""
    holders = defaultdict(list)
    for log in logs:
        for thing in held[log.path]:
            holders[thing].append(log)
    return {thing: oldest(found).path for thing, found in holders.items()}


def oldest(logs: list[Log]) -> Log:
    """The log that is older than most of the others."""
    return max(sorted(logs, key=lambda log: log.age), key=lambda log: sum(log.is_older(o) for o in logs if o is not log))


def shares(log: Log, owners: dict[Line, Path], response_owners: dict[Key, Path]) -> Shares:
    """Divide a log by who owns its lines and responses."""
    parts = []
    for own in (True, False):
        lines = [line for line in log.records if (owners[line_of(line)] == log.path) == own]
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
    """What a response is known by in all logs: both its ids, else its first line's uuid (known-bugs.md 4 and 5)."""
    return key if all(key) else ("", str(group[0].get("uuid")))


def line_of(record: Record) -> Line:
    """The identity of a line that has one."""
    found = identity(record)
    assert found is not None
    return found


def stamps(lines: list[Record]) -> list[float]:
    """The time of each line in seconds since 1970; one without a time has that of the line before it."""
    found, last = [], 0.0
    for line in lines:
        try:
            last = datetime.fromisoformat(str(line.get("timestamp"))).timestamp()
        except ValueError:
            pass
        found.append(last)
    return found


def printed(totals: Totals) -> dict[str, Any]:
    """Totals as JSON."""
    return {**totals._asdict(), "usage": totals.usage._asdict()}


if __name__ == "__main__":
    for path, found in families(map(Path, sys.argv[1:])).items():
        line = {"file": str(path), "own": printed(found.own), "copied": printed(found.copied)}
        sys.stdout.write(json.dumps(line) + "\n")
