"""Findings about a context window that is exceeded again and again."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agtrace_schema.events import Provider
from agtrace_schema.patterns import later

from agtrace.health.detectors.context import compactions
from agtrace.health.facts.actions import is_human
from agtrace.health.facts.api import is_api_error
from agtrace.health.facts.cost import cost
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import Call, Entry, History, Message, Notice, Said

_FEWEST, _CRITICAL = 2, 3

_CONTEXT_EXCEEDED = later(
    r"""
      \b(?:prompt|input|conversation|request)\ (?:is\ )?too\ long\b
    | \bcontext[ _](?:length|window|size)[ _]exceeded | \bexceed_context_size
    | \bmax(?:imum)?\ context\ (?:length|size) | \bcontext\ length\ of\ only\b
    | \b(?:exceed\w*|overflow\w*|ran\ out\ of\ room\ in|(?:larg|long)er\ than|too\ (?:long|large|big)\ for)
      [^.\n]{0,60}\bcontext\ (?:window|length|size|limit)
    | \bcontext\ (?:window|length|size|limit)\b[^.\n]{0,40}\b(?:exceeded|full|reached|overflow\w*|too\ small)\b
    | \btoken\ count\b[^.\n]{0,40}\bexceeds\ the\ maximum\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""How the APIs of Anthropic, OpenAI, Google and Amazon, and servers such as llama.cpp, say that a request is too long;
not how they refuse too many tokens a minute, too much output or too many bytes."""


@detector(
    "Loops",
    "At least 2 errors of the model's API say that the context window was exceeded, or it was compacted at least twice "
    "in a row with nothing done in between.",
)
def find_context_errors(history: History) -> Iterator[Finding]:
    """Find a context window that was exceeded repeatedly, or compacted again at once."""
    errors = [notice for notice in history.notices if is_context_error(notice, history.provider)]
    if len(errors) >= _FEWEST:
        said = f"The model's API refused {len(errors)} requests because they exceeded the context window"
        yield _of_context(history, [notice.event_index for notice in errors], errors[0].turn, said)
    compacted = max(_compacted_at_once(history), key=len, default=[])
    if len(compacted) >= _FEWEST:
        said = f"The context was compacted {len(compacted)} times in a row with nothing done in between"
        yield _of_context(history, [entry.event_index for entry in compacted], compacted[0].turn, said)


def is_context_error(notice: Notice, provider: Provider) -> bool:
    """Whether a notice is an error of the model's API that says the context window was exceeded."""
    return is_api_error(notice, provider) and _CONTEXT_EXCEEDED.search(notice.text) is not None


def _of_context(history: History, events: list[int], turn: int | None, said: str) -> Finding:
    critical = len(events) >= _CRITICAL or _is_last(history, events[-1])
    return Finding(
        severity="Critical" if critical else "Warning",
        message=said + cost(history, events[0], events[-1]),
        count=len(events),
        events=evidence(events),
        turn=turn,
    )


def _is_last(history: History, event_index: int) -> bool:
    """Whether the model and the human neither said nor did anything after an event."""
    for entry in reversed(history.entries):
        if entry.event_index <= event_index:
            return True
        if isinstance(entry, (Call, Message)) or (isinstance(entry, Said) and is_human(entry)):
            return False
    return True


def _compacted_at_once(history: History) -> Iterator[list[Entry]]:
    """Yield runs of compactions without a tool call or a word of the human in between."""
    events = {compaction.event_index for compaction in compactions(history)}
    row: list[Entry] = []
    for entry in history.entries if len(events) >= _FEWEST else []:
        if entry.event_index in events:
            row.append(entry)
        elif isinstance(entry, Call) or (isinstance(entry, Said) and is_human(entry)):
            yield row
            row = []
    yield row
