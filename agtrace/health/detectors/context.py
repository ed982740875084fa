"""Findings about the context window: how often it was compacted, and in the middle of what."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from agtrace_schema.events import Provider, UserKind
from agtrace_schema.patterns import later
from msgspec import Struct
from msgspec.structs import replace

from agtrace.health.facts.actions import is_api_error, is_compaction, is_human, is_poll, is_shell, named
from agtrace.health.finding import Finding, cost, detector
from agtrace.health.history import Call, Entry, History, Message, Notice, Said, Usage, derived

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


# -- context errors --------------------------------------------------------------------------------

_CONTEXT_ERRORS, _CONTEXT_ERRORS_CRITICAL = 2, 3

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


@detector("Loops")
def find_context_errors(history: History) -> Iterator[Finding]:
    """At least 2 errors of the model's API say that the context window was exceeded, or it was compacted at least twice
    in a row with nothing done in between.
    """
    errors = [notice for notice in history.notices if is_context_error(notice, history.provider)]
    if len(errors) >= _CONTEXT_ERRORS:
        said = f"The model's API refused {len(errors)} requests because they exceeded the context window"
        yield _of_context(history, [notice.event_index for notice in errors], errors[0].turn, said)
    compacted = max(_compacted_at_once(history), key=len, default=[])
    if len(compacted) >= _CONTEXT_ERRORS:
        said = f"The context was compacted {len(compacted)} times in a row with nothing done in between"
        yield _of_context(history, [entry.event_index for entry in compacted], compacted[0].turn, said)


def is_context_error(notice: Notice, provider: Provider) -> bool:
    """Whether a notice is an error of the model's API that says the context window was exceeded."""
    return is_api_error(notice, provider) and _CONTEXT_EXCEEDED.search(notice.text) is not None


def _of_context(history: History, events: list[int], turn: int | None, said: str) -> Finding:
    critical = len(events) >= _CONTEXT_ERRORS_CRITICAL or _is_last(history, events[-1])
    return Finding.of("Critical" if critical else "Warning", said + cost(history, events[0], events[-1]), events, turn)


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
    for entry in history.entries if len(events) >= _CONTEXT_ERRORS else []:
        if entry.event_index in events:
            row.append(entry)
        elif isinstance(entry, Call) or (isinstance(entry, Said) and is_human(entry)):
            yield row
            row = []
    yield row


# -- tokens ----------------------------------------------------------------------------------------

CHARS_PER_TOKEN = 4
"""For estimating the tokens of texts: about right for English and for code."""

CACHED = 20_000
CACHE_LIVES_MS = 5 * 60_000
MUCH_MISSED = 200_000

LARGE_RESULT = 40_000
LARGE_TOGETHER = 100_000


@detector("TokenUsage", version=2)
def find_cache_misses(history: History) -> Iterator[Finding]:
    """At least 200,000 tokens were paid for again: of the 20,000 or more tokens that the same model had been given less
    than 5 minutes before, less than half were read from the cache, with no compaction in between.
    """
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
