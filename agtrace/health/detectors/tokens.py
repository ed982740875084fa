"""Findings about wasted tokens: cache misses, large results."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from agtrace.health.detectors.context import compactions
from agtrace.health.facts.actions import is_poll, is_shell
from agtrace.health.facts.labels import named
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import History, Usage

CHARS_PER_TOKEN = 4
"""For estimating the tokens of texts: about right for English and for code."""

CACHED = 20_000
CACHE_LIVES_MS = 5 * 60_000
MUCH_MISSED = 200_000

LARGE_RESULT = 40_000
LARGE_TOGETHER = 100_000


@detector(
    "TokenUsage",
    "At least 200,000 tokens were paid for again: of the 20,000 or more tokens that the same model had been given less "
    "than 5 minutes before, less than half were read from the cache, with no compaction in between.",
    version=2,
)
def find_cache_misses(history: History) -> Iterator[Finding]:
    """Find responses that paid again for what a response shortly before had put into the cache."""
    missed = list(_missed(history))
    again = sum(tokens for _, tokens in missed)
    if again < MUCH_MISSED:
        return
    responses = "A response" if len(missed) == 1 else f"{len(missed):,} responses"
    yield Finding(
        severity="Warning",
        message=f"{responses} paid again for {again:,} tokens that the same model had been given shortly before: "
        "they weren't read from the cache",
        count=len(missed),
        events=evidence([usage.event_index for usage, _ in missed]),
        turn=missed[0][0].turn,
    )


@detector(
    "TokenUsage",
    "Commands and polls printed at least 100,000 characters (about 25,000 tokens) into the context, at least 40,000 "
    "each; files that were read don't count.",
    version=3,
)
def find_large_results(history: History) -> Iterator[Finding]:
    """Find results that filled the context by their size."""
    large = [call for call in history.calls if call.result_chars >= LARGE_RESULT and (is_shell(call) or is_poll(call))]
    together = sum(call.result_chars for call in large)
    if together < LARGE_TOGETHER:
        return
    largest = max(large, key=lambda call: call.result_chars)
    message = f"{named(largest)} put {_estimated(together)} into the context"
    if len(large) > 1:
        message = (
            f"{len(large):,} large results put {_estimated(together)} into the context; "
            f"the largest, from {named(largest)}, has {largest.result_chars:,} characters"
        )
    yield Finding(
        severity="Warning",
        message=message,
        count=len(large),
        events=evidence([call.evidence for call in large]),
        turn=large[0].turn,
    )


def _estimated(chars: int) -> str:
    return f"{chars:,} characters (about {chars // CHARS_PER_TOKEN:,} tokens)"


def _missed(history: History) -> Iterator[tuple[Usage, int]]:
    """Yield the responses that paid again, each with the number of tokens.

    A response could have read from the cache what the one before it was given, or all of its own input if that is
    less, because the conversation was cleared in between.
    """
    compacted = [compaction.event_index for compaction in compactions(history)]
    last: dict[str | None, Usage] = {}
    for usage in history.usages:
        before, given = last.get(usage.model), usage.whole_input
        if given is not None:
            last[usage.model] = usage
        if before is None or given is None or usage.cache_read_tokens is None or not (before.at and usage.at):
            continue
        held = before.whole_input or 0
        again = min(held, given) - usage.cache_read_tokens
        in_time = usage.at - before.at < CACHE_LIVES_MS
        if held >= CACHED and in_time and 2 * again > held and not _any_between(compacted, before, usage):
            yield usage, again


def _any_between(events: list[int], first: Usage, last: Usage) -> bool:
    place = bisect_left(events, first.event_index)
    return place < len(events) and events[place] < last.event_index
