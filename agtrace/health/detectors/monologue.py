"""Findings about responses in a row that only talk."""

from __future__ import annotations

from collections.abc import Iterator

from agtrace_schema.events import UserKind

from agtrace.health.facts.actions import is_human
from agtrace.health.facts.cost import cost
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import Call, History, Message, Said, of_one_response

_FEWEST, _CRITICAL = 3, 6


@detector("Loops", "At least 3 responses in a row only talked, with no tool call and no word of the human in between.")
def find_monologue(history: History) -> Iterator[Finding]:
    """Find responses in a row that only talk, while nobody answers."""
    rows = sorted(_monologues(history), key=len, reverse=True)
    for row in rows:
        yield Finding(
            severity="Critical" if len(row) >= _CRITICAL else "Warning",
            message=f"The model only talked in {len(row)} responses in a row: it called no tool and nobody answered"
            + cost(history, row[0].event_index, row[-1].event_index),
            count=len(row),
            events=evidence([message.event_index for message in row]),
            turn=row[0].turn,
        )


def _monologues(history: History) -> Iterator[list[Message]]:
    """Yield runs of responses without a tool call and without news in between, as the first message of each."""
    row: list[Message] = []
    acting: Call | None = None
    for entry in history.entries:
        if isinstance(entry, Message):
            of_one = any(of_one_response(entry, before) for before in (acting, *row[-1:]) if before)
            if entry.text.strip() and not of_one:
                row.append(entry)
            continue
        if isinstance(entry, Call):
            acting = entry
            row = row[:-1] if row and of_one_response(acting, row[-1]) else row
        elif not isinstance(entry, Said) or not _is_news(entry):
            continue
        if len(row) >= _FEWEST:
            yield row
        row = []
    if len(row) >= _FEWEST:
        yield row


def _is_news(said: Said) -> bool:
    """Whether a text gives the model something new to talk about: from a human, or from an agent at work."""
    return is_human(said) or said.kind is UserKind.NOTIFICATION
