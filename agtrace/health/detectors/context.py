"""Findings about the context window: how often it was compacted, and in the middle of what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from agtrace_schema.events import UserKind
from agtrace_schema.patterns import later
from msgspec import Struct
from msgspec.structs import replace

from agtrace.health.facts.api import is_compaction
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import Call, History, Message, Notice, Said, Usage

_FEWEST = 2

_HELD = later(r'"preTokens":\s*([0-9]{1,12})')
_TRIGGER = later(r'"trigger": ?"(auto|manual)"')
_ASKED_FOR = later(r"(?:\s*<command-(?:name|message)>)?\s*/?(?:compact|compress|summarize)\b")


class Compaction(Struct, frozen=True):
    """A replacement of the context by a summary of it."""

    event_index: int
    turn: int | None
    at: int
    automatic: bool
    """Whether the agent did it by itself: as the log says, else if the human gave no command for it next to it."""
    tokens: int | None = None
    """The size of the context before, if the log records it."""


def compactions(history: History) -> list[Compaction]:
    """Return the compactions of a session, in file order.

    One may be recorded twice, as a boundary and by its summary: if the model does nothing in between, both are the same
    compaction, unless there is a second boundary.
    """
    found: list[Compaction] | None = history.derived.get("compactions")
    if found is None:
        found = history.derived["compactions"] = _compactions(history)
    return found


def _compactions(history: History) -> list[Compaction]:
    found: list[Compaction] = []
    told: set[bool] = set()
    asked = decided = False
    for entry in history.entries:
        boundary = is_compaction(entry, history.provider)
        if boundary or (isinstance(entry, Said) and entry.kind is UserKind.COMPACTION_SUMMARY):
            if not told or boundary in told:
                trigger = _TRIGGER.search(entry.text) if isinstance(entry, Notice) else None
                automatic, decided = trigger[1] == "auto" if trigger else not asked, trigger is not None
                told_size = _HELD.search(entry.text) if isinstance(entry, Notice) else None
                held = int(told_size[1]) if told_size else None
                found.append(Compaction(entry.event_index, entry.turn, entry.at, automatic, held))
                told = set()
            told.add(boundary)
        elif isinstance(entry, Said) and entry.kind is UserKind.COMMAND and _ASKED_FOR.match(entry.text):
            asked = True
            if told and not decided:  # Claude Code writes the command after its effect
                found[-1] = replace(found[-1], automatic=False)
        elif isinstance(entry, (Call, Message)) or (isinstance(entry, Said) and entry.opens_turn):
            told, asked = set(), False
    return found


@detector(
    "TokenUsage",
    "The context was compacted automatically within a turn, with tool calls of that turn before and after, at least "
    "twice in the session.",
    structural=True,
    version=2,
)
def find_compaction_mid_task(history: History) -> Iterator[Finding]:
    """Find automatic compactions with tool calls of the same turn before and after."""
    executed: dict[int | None, list[int]] = defaultdict(list)
    for call in history.calls:
        executed[call.turn].append(call.event_index)
    found = [
        compaction
        for compaction in compactions(history)
        if compaction.automatic
        and (events := executed.get(compaction.turn))
        and events[0] < compaction.event_index < events[-1]
    ]
    if len(found) < _FEWEST:
        return
    yield Finding(
        severity="Warning",
        message=f"The agent's context was compacted {len(found):,} times in the middle of its work"
        f"{_cost(history, found)}, which left only a summary of what it had read",
        count=len(found),
        events=evidence([compaction.event_index for compaction in found]),
        turn=found[0].turn,
    )


def _cost(history: History, found: list[Compaction]) -> str:
    """Return a clause with the size of the context before, if the log has figures."""
    waiting = iter(found)
    following = next(waiting, None)
    last, held = 0, []
    for entry in history.entries:
        if following is not None and entry.event_index >= following.event_index:
            held.append(following.tokens or last)
            last, following = 0, next(waiting, None)
        if isinstance(entry, Usage) and entry.whole_input:
            last = entry.whole_input
    known = list(filter(None, held))
    if not known:
        return ""
    return f", at about {sum(known) // len(known):,} tokens{' each time' if len(known) > 1 else ''}"
