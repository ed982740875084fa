"""Findings about the context window: how often it was compacted, and in the middle of what."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator

from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.events import UserKind
from agtrace_schema.patterns import later
from msgspec import Struct
from msgspec.structs import replace

from agtrace.health.facts.actions import is_compaction, is_poll, is_shell, named
from agtrace.health.finding import Finding, detector
from agtrace.health.history import Call, History, Message, Notice, Said, Usage, derived
from agtrace.text.numbers import counted

_COMPACTIONS = 2

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


@derived
def compactions(history: History) -> list[Compaction]:
    """Return the compactions of a session, in file order.

    One may be recorded twice, as a boundary and by its summary: if the model does nothing in between, both are the same
    compaction, unless there is a second boundary.
    """
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


@detector("TokenUsage", structural=True, version=2)
def find_compaction_mid_task(history: History) -> Iterator[Finding]:
    """The context was compacted automatically within a turn, with tool calls of that turn before and after, at least
    twice in the session.
    """
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
    if len(found) < _COMPACTIONS:
        return
    yield Finding.of(
        "Warning",
        f"The agent's context was compacted {len(found):,} times in the middle of its work"
        f"{_cost(history, found)}, which left only a summary of what it had read",
        [compaction.event_index for compaction in found],
        found[0].turn,
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


# -- tokens ----------------------------------------------------------------------------------------

CHARS_PER_TOKEN = 4
"""For estimating the tokens of texts: about right for English and for code."""

CACHED = 20_000
CACHE_LIVES_MS = 5 * 60_000
MUCH_MISSED, MUCH_TOLD = 200_000, 50_000

LARGE_RESULT = 40_000
LARGE_TOGETHER = 100_000


@detector("TokenUsage", version=4)
def find_cache_misses(history: History) -> Iterator[Finding]:
    """At least 50,000 tokens weren't read from the cache, as the log says with its reasons. If it says nothing, at
    least 200,000 tokens were paid for again: of the 20,000 or more tokens that the same model had been given less than
    5 minutes before, less than half were read from the cache, with no compaction in between.
    """
    if told := _told_misses(history):
        by_reason = Counter[str]()
        for _, reason, tokens in told:
            by_reason[reason] += tokens
        paid = sum(tokens * usage.missed_usd for usage, _, tokens in told) + 1e-9  # a half is rounded up
        if by_reason.total() >= MUCH_TOLD:
            reasons = ", ".join(f"{reason} {tokens:,}" for reason, tokens in by_reason.most_common())
            yield Finding.of(
                "Warning",
                f"{counted(len(told), 'response')} could have read {by_reason.total():,} more tokens from the cache"
                f"{f', for ${paid:,.4f} less' if paid > 1e-5 else ''}: {reasons}",
                [usage.event_index for usage, *_ in told],
                told[0][0].turn,
            )
        return
    missed = list(_missed(history))
    again = sum(tokens for _, tokens in missed)
    if again < MUCH_MISSED:
        return
    responses = "A response" if len(missed) == 1 else f"{len(missed):,} responses"
    yield Finding.of(
        "Warning",
        f"{responses} paid again for {again:,} tokens that the same model had been given shortly before: "
        "they weren't read from the cache",
        [usage.event_index for usage, _ in missed],
        missed[0][0].turn,
    )


@detector("TokenUsage", version=3)
def find_large_results(history: History) -> Iterator[Finding]:
    """Commands and polls printed at least 100,000 characters (about 25,000 tokens) into the context, at least 40,000
    each; files that were read don't count.
    """
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
    yield Finding.of("Warning", message, [call.evidence for call in large], large[0].turn)


def _estimated(chars: int) -> str:
    return f"{chars:,} characters (about {chars // CHARS_PER_TOKEN:,} tokens)"


def _told_misses(history: History) -> list[tuple[Usage, str, int]]:
    """Return the responses of which the log says for what reason, and of how many tokens, they missed the cache."""
    kinds, last = AGENTS[history.provider].notices.cache_misses, None
    found: list[tuple[Usage, str, int]] = []
    for entry in history.entries:
        if isinstance(entry, Usage):
            last = entry
        elif isinstance(entry, Notice) and entry.kind in kinds and last:
            reason, _, tokens = entry.text.partition(" ")
            if tokens.isdecimal():
                found.append((last, reason, int(tokens)))
    return found


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
