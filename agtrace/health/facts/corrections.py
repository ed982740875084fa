"""Where the human says that the work was wrong: refusals with words, corrections, interruptions, work undone.

No single sign is sure: words of a correction are right about half of the time, three of four times where the model had
just changed something. So a request counts from `ENOUGH` on, by what speaks for it together. The words are in
`agtrace/data/corrections.toml`, by language.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from agtrace_schema.events import Outcome, UserKind
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import asks_human, command_of, only_reads
from agtrace.health.facts.api import is_interruption
from agtrace.health.facts.changes import Change, changes
from agtrace.health.history import Call, Entry, History, Message, Notice, Said
from agtrace.sessions.said import human_words

ENOUGH = 3
_STRONG, _WEAK, _ADMITTED, _REFUSED, _INTERRUPTED, _WORKED, _UNDONE, _GIT = 2, 1, 2, 2, 1, 1, 2, 1

_LONGEST = 1_500
"""Characters of a request; a longer one is a task, or a text that somebody else wrote."""
_QUOTED = later(r'(```|""").*?(?:\1|\Z)', re.DOTALL)
"""What the human quotes, such as an error."""

_LOOKED_AT = 600
_ADMISSION = 200

_BY_A_PROGRAM = later(r"\s*(?:<[a-z-]+>|Caveat: |Implement the following plan|# |\[Request interrupted|Base directory)")
_TAKING_BACK = later(
    r"\bgit (?:-C \S+ )?(?:checkout (?:-- |\S+ -- )|restore\b|reset --hard|revert\b|stash drop)", re.IGNORECASE
)


class Correction(NamedTuple):
    """A request or a refusal of the human that says that the work was wrong."""

    event_index: int
    turn: int | None
    quote: str
    """The human's own words."""


class _Words(NamedTuple):
    """The signs of corrections in the languages that are known."""

    strong: re.Pattern[str]
    weak: re.Pattern[str]
    admits: re.Pattern[str]


def corrections(history: History) -> list[Correction]:
    """Return what the human corrected, in file order."""
    found: list[Correction] | None = history.derived.get("corrections")
    if found is None:
        found = history.derived["corrections"] = list(_corrections(history))
    return found


def _corrections(history: History) -> Iterator[Correction]:
    undone = _undone(history)
    first, worked, before, stopped = True, False, False, 0
    for place, entry in enumerate(history.entries):
        if isinstance(entry, Call):
            worked |= _changes_something(entry)
            if entry.outcome is Outcome.REJECTED and not asks_human(entry):
                reason = (human_words(entry.result) or "").strip()
                if reason:
                    yield Correction(entry.evidence, entry.turn, reason)
                else:
                    stopped = _REFUSED
        elif isinstance(entry, (Said, Notice)) and is_interruption(entry, history.provider):
            stopped = max(stopped, _INTERRUPTED)
        elif isinstance(entry, Said) and entry.kind is UserKind.HUMAN:
            evidence = (
                stopped + (worked or before) * _WORKED + undone.get(entry.turn, 0) + _admitted(history.entries, place)
            )
            said = _by_words(entry.text)
            if not first and said and said + evidence >= ENOUGH and _is_typed(entry.text):
                yield Correction(entry.event_index, entry.turn, " ".join(entry.text.split()))
            first, worked, before, stopped = False, False, worked, 0


def _changes_something(call: Call) -> bool:
    return call.outcome is Outcome.OK and (bool(call.writes) or (command_of(call) is not None and not only_reads(call)))


def _is_typed(text: str) -> bool:
    """Whether the human wrote a text, and it isn't a task of its own."""
    return len(_QUOTED.sub("", text)) <= _LONGEST and not _BY_A_PROGRAM.match(text)


def _by_words(text: str) -> int:
    said, words = _normal(_QUOTED.sub("", text))[:_LOOKED_AT], _words()
    return _STRONG if words.strong.search(said) else _WEAK if words.weak.search(said) else 0


def _admitted(entries: list[Entry], place: int) -> int:
    """Return what the first message of the model after a request weighs."""
    for entry in entries[place + 1 :]:
        if isinstance(entry, Message):
            return _ADMITTED if _words().admits.match(_normal(entry.text)[:_ADMISSION]) else 0
        if isinstance(entry, Said) and entry.kind is UserKind.HUMAN:
            return 0
    return 0


def _undone(history: History) -> dict[int | None, int]:
    """Return what speaks for work being taken back in each turn: edits exactly undone, commands of git."""
    made: dict[str, list[tuple[int | None, Change]]] = {}
    found: dict[int | None, int] = {}
    for call in history.calls:
        command = command_of(call)
        if command is not None and _TAKING_BACK.search(command):
            found[call.turn] = max(found.get(call.turn, 0), _GIT)
        if call.outcome is not Outcome.OK:
            continue
        for change in changes(call):
            before = made.setdefault(change.path, [])
            if any(turn != call.turn and _takes_back(change, earlier) for turn, earlier in before):
                found[call.turn] = _UNDONE
            before.append((call.turn, change))
    return found


def _takes_back(change: Change, earlier: Change) -> bool:
    told = not change.whole and not earlier.whole and bool(earlier.added)
    return told and change.removed == earlier.added and change.added == earlier.removed


def _normal(text: str) -> str:
    return " ".join(text.lower().replace("’", "'").split())


@cache
def _words() -> _Words:
    """Return the words of all languages as three expressions."""
    data = Path(__file__).parents[2] / "data" / "corrections.toml"
    languages = tomllib.loads(data.read_text(encoding="utf-8")).values()

    def any_of(kind: str) -> re.Pattern[str]:
        told = "|".join(expression for language in languages for expression in language[kind])
        return re.compile(rf"(?<![a-z'])(?:{told})")

    return _Words(any_of("strong"), any_of("weak"), any_of("admits"))
