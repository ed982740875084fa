"""What the rules find in one session, without its sub-agents: the index keeps it (`histories.kept_health`)."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Literal, NamedTuple

from agtrace_schema.analysis import Insight, SessionEnding, SessionFigures, Severity, Timeline, TimeSpent, TokenShares
from msgspec import DecodeError, Struct, json
from msgspec.structs import replace

SEVERITIES: tuple[Severity, ...] = ("Critical", "Warning", "Info")
"""The worst first."""

How = Literal["instead", "before"]
"""The same command worked, changed; or it worked after another one."""


class Checks(NamedTuple):
    """The tests, builds and linters that a session ran."""

    run: int
    failed: int
    failing: bool
    """Whether the last one failed."""


class Experience(NamedTuple):
    """A failure, with what is known of its end."""

    what: str
    """The program with its subcommand."""
    error: str
    """The key of the error, equal for equal errors."""
    line: str
    """The error as the log has it."""
    tried: str
    """The command that failed."""
    failed_event: int
    at: int
    worked_event: int | None
    """The call that succeeded; None if none did."""
    how: How | None
    worked: str | None
    """The command that worked, or the one before."""
    way: str | None
    """What was different, equal for equal differences."""
    milliseconds: int
    tokens: int
    times: int = 1
    """How often it failed so before it worked, or before this was given up."""


class Examination(Struct, frozen=True):
    """The findings in a session, and the facts that the score is made from."""

    calls: int
    """Tool calls, without probes."""
    failed: int
    """Calls that failed; not what was refused, interrupted, or reported later."""
    unanswered: int
    """Calls that never got a result although the session went on."""
    probes: int
    """Calls that only looked whether something is there."""
    turns: int
    corrections: int
    """What the human corrected, in words or with a failure."""
    requests: int
    """Further texts of the human, not those of a few words."""
    checks: Checks
    ending: SessionEnding
    insights: list[Insight]
    """Of one severity in the order in which detectors tell most; without the references of evidence, which hold ids
    that other sessions can make longer."""
    untold: bool
    """Whether its log doesn't say how its calls ended."""
    time: TimeSpent
    shares: TokenShares
    figures: SessionFigures
    experiences: list[Experience]
    timeline: Timeline | None = None
    """Only if it was asked for; it isn't kept."""


# -- what a person called wrong ----------------------------------------------------------------------

_DECISIONS = "findings.json"
"""A file of the data folder: the id of a session -> the keys of its findings that a person called wrong."""


def called_wrong(folder: Path) -> dict[str, list[str]]:
    """Return the keys of the findings that a person called wrong, by the id of the session; none without a file."""
    with suppress(OSError, DecodeError):
        return json.decode((folder / _DECISIONS).read_bytes(), type=dict[str, list[str]])
    return {}


def call_wrong(folder: Path, session: str, keys: Collection[str]) -> None:
    """Keep which findings of a session a person called wrong, besides those of before; none takes all of it back.

    Raises `OSError` if the file can't be written.
    """
    known = called_wrong(folder)
    known[session] = sorted({*known.get(session, ()), *keys}) if keys else []
    with NamedTemporaryFile(dir=folder, prefix=_DECISIONS, delete=False) as file:
        file.write(json.format(json.encode({one: wrong for one, wrong in known.items() if wrong})))
    os.replace(file.name, folder / _DECISIONS)


def key_of(detector: str, event: int) -> str:
    """Return what tells a finding from the others of its session: its detector, and the first event that shows it."""
    return f"{detector}:{event}"


def accepted(examination: Examination, wrong: Collection[str]) -> Examination:
    """Return an examination without the findings that a person called wrong."""
    gone = [
        one
        for one in examination.insights
        if one.evidence and key_of(one.detector, one.evidence[0].event_index) in wrong
    ]
    if not gone:
        return examination
    corrections = 0 if any(one.detector == "corrections" for one in gone) else examination.corrections
    return replace(
        examination, insights=[one for one in examination.insights if one not in gone], corrections=corrections
    )
