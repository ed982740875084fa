"""The cost of something: the time from its first event to its last, and the tokens of the responses in between."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate

from agtrace.health.history import Call, Entry, History, Usage
from agtrace.text.numbers import duration


def cost(history: History, first_event: int, last_event: int) -> str:
    """Return a clause such as `, 4 min and 120,000 tokens`, with what is known; empty if nothing is."""
    begin = bisect_left(history.entries, first_event, key=_place)
    end = bisect_right(history.entries, last_event, lo=begin, key=_place)
    if begin == end:
        return ""
    sums = _token_sums(history)
    start, tokens = history.entries[begin].at, sums[end] - sums[begin]
    lasted = max(map(_ended_at, history.entries[max(begin, end - 20) : end])) - start if start else 0
    known = [duration(lasted)] if lasted >= 1_000 else []
    known += [f"{tokens:,} tokens"] if tokens else []
    return f", {' and '.join(known)}" if known else ""


def _token_sums(history: History) -> list[int]:
    """Return the sums of tokens before each entry, and finally of all entries."""
    sums: list[int] | None = history.derived.get("token_sums")
    if sums is None:
        tokens = (entry.total if isinstance(entry, Usage) else 0 for entry in history.entries)
        sums = history.derived["token_sums"] = list(accumulate(tokens, initial=0))
    return sums


def _ended_at(entry: Entry) -> int:
    return max(entry.at, entry.answered_at) if isinstance(entry, Call) else entry.at


def _place(entry: Entry) -> int:
    return entry.event_index
