"""Responses in a row that do nothing but say something."""

from __future__ import annotations

from collections.abc import Iterator

from agtrace_schema.events import UserKind

from agtrace.health.facts.actions import is_human
from agtrace.health.facts.cost import cost
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import Call, History, Message, Said, of_one_response

_FEWEST, _CRITICAL = 3, 6


@detector(
    "Loops", "At least 3 responses in a row that only say something, with no execution and no human between them."
)
def find_monologue(history: History) -> Iterator[Finding]:
    """Responses in a row that do nothing but say something, to nobody who answers."""
    rows = sorted(_monologues(history), key=len, reverse=True)
    for row in rows:
        yield Finding(
            severity="Critical" if len(row) >= _CRITICAL else "Warning",
            message=f"The model only talked in {len(row)} responses in a row: it ran nothing and nobody answered"
            + cost(history, row[0].event_index, row[-1].event_index),
            count=len(row),
            events=evidence([message.event_index for message in row]),
            turn=row[0].turn,
        )


def _monologues(history: History) -> Iterator[list[Message]]:
    """The first message of each response, of rows of responses without an execution and without news in between."""
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
    """Whether a text gives the model something new to speak about: of a human, or from an agent at work."""
    return is_human(said) or said.kind is UserKind.NOTIFICATION
