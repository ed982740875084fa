"""Findings about wasted tokens: one expensive turn, cache misses, files read again, large results."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from agtrace.health.detectors.context import compactions
from agtrace.health.facts.file_reads import changed_by_command, file_name, files_read, part_read, same_file
from agtrace.health.facts.labels import quoted, tool_named
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import Call, History, Usage

CHARS_PER_TOKEN = 4
"""For estimating the tokens of texts: about right for English and for code."""

FEWEST_TURNS = 3
CONCENTRATED = 0.5
LARGE_SESSION = 200_000

CACHED = 20_000
CACHE_LIVES_MS = 5 * 60_000
FEW_MISSES = 3
MUCH_MISSED = 200_000

READS = 3
MANY_TOKENS = 20_000

LARGE_RESULT = 40_000
LARGE_TOGETHER = 100_000


@detector(
    "TokenUsage", "One turn took at least half of the tokens of a session with at least 3 turns and 200,000 tokens."
)
def find_token_concentration(history: History) -> Iterator[Finding]:
    """Find a turn that took at least half of the tokens of a large session."""
    by_turn: dict[int | None, int] = defaultdict(int)
    for usage in history.usages:
        by_turn[usage.turn] += usage.total
    total = sum(by_turn.values())
    by_turn.pop(None, None)
    if history.turns < FEWEST_TURNS or total < LARGE_SESSION or not by_turn:
        return
    turn, tokens = max(by_turn.items(), key=lambda share: share[1])
    if tokens < CONCENTRATED * total:
        return
    of_turn = [usage for usage in history.usages if usage.turn == turn]
    yield Finding(
        severity="Info",
        message=f"Turn {turn} took {tokens:,} of {total:,} tokens ({tokens / total:.0%}), "
        f"in {len(of_turn):,} of {len(history.usages):,} responses",
        count=1,
        events=evidence([usage.event_index for usage in sorted(of_turn, key=lambda usage: -usage.total)[:1]]),
        turn=turn,
    )


@detector(
    "TokenUsage",
    "At least 3 responses, or 200,000 tokens, were paid again: less than half of the 20,000 or more tokens that "
    "the same model was given less than 5 minutes before was read from the cache, without a compaction in between.",
)
def find_cache_misses(history: History) -> Iterator[Finding]:
    """Find responses that paid again for what a response shortly before had put into the cache."""
    missed = list(_missed(history))
    again = sum(tokens for _, tokens in missed)
    if len(missed) < FEW_MISSES and again < MUCH_MISSED:
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
    "The same part of a file was read at least 3 times with the same result, with no write to the file and no "
    "compaction in between.",
)
def find_repeated_reads(history: History) -> Iterator[Finding]:
    """Find parts of files that were read again and again although nothing had changed them."""
    reading = _Reading([compaction.event_index for compaction in compactions(history)])
    for call in history.calls:
        reading.take(call)
    found = sorted(reading.repeated(), key=lambda reads: (-reads.again, reads.calls[0].event_index))
    for reads in found:
        yield Finding(
            severity="Warning" if reads.again >= MANY_TOKENS else "Info",
            message=f"The same part of {quoted(reads.name)} was read {len(reads.calls):,} times although "
            f"nothing changed it: about {reads.again:,} tokens for text already in the context",
            count=len(reads.calls),
            events=evidence([call.event_index for call in reads.calls]),
            turn=reads.calls[0].turn,
        )


@detector("TokenUsage", "Results of at least 40,000 characters (about 10,000 tokens) went into the context.")
def find_large_results(history: History) -> Iterator[Finding]:
    """Find results that filled the context by their size."""
    large = [call for call in history.calls if call.result_chars >= LARGE_RESULT]
    if not large:
        return
    largest, together = max(large, key=lambda call: call.result_chars), sum(call.result_chars for call in large)
    if len(large) == 1:
        message = f"A {tool_named(largest.tool)} result put {_estimated(together)} into the context"
    else:
        message = (
            f"{len(large):,} large results put {_estimated(together)} into the context; "
            f"the largest, from {tool_named(largest.tool)}, has {largest.result_chars:,} characters"
        )
    yield Finding(
        severity="Warning" if together >= LARGE_TOGETHER else "Info",
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


@dataclass(slots=True)
class _Reads:
    """Reads of one part of a file, with no change to it in between."""

    name: str
    files: tuple[str, ...]
    calls: list[Call] = field(default_factory=list)

    @property
    def again(self) -> int:
        """The estimated tokens of all reads except the first."""
        return sum(call.result_chars for call in self.calls[1:]) // CHARS_PER_TOKEN


class _Reading:
    """A pass through the calls of a session that keeps the reads since each part was last changed."""

    def __init__(self, compacted: list[int]) -> None:
        self._compacted = compacted
        self._compactions = 0
        self._open: dict[Hashable, _Reads] = {}
        self._by_name: dict[str, dict[str, set[Hashable]]] = {}
        """The open reads, by the names of the files and then by their paths as written."""
        self._done: list[_Reads] = []

    def take(self, call: Call) -> None:
        """Take the next call."""
        passed = bisect_left(self._compacted, call.event_index)
        if passed > self._compactions:
            self._compactions = passed
            self._close(self._open)
        for path in call.writes:
            self._close(
                key
                for other, keys in self._by_name.get(file_name(path), {}).items()
                if same_file(path, other)
                for key in keys
            )
        for name in changed_by_command(call, self._by_name):
            self._close(key for keys in self._by_name.get(name, {}).values() for key in keys)
        files = files_read(call)
        if files:
            self._read(call, files)

    def repeated(self) -> list[_Reads]:
        """Return the reads that were repeated often enough."""
        self._close(self._open)
        return self._done

    def _read(self, call: Call, files: tuple[str, ...]) -> None:
        key = part_read(call)
        reads = self._open.get(key)
        if reads and not reads.calls[-1].says_the_same(call):
            self._close([key])  # something changed it
            reads = None
        if reads is None:
            reads = self._open[key] = _Reads(", ".join(files), files)
            for path in files:
                self._by_name.setdefault(file_name(path), {}).setdefault(path, set()).add(key)
        reads.calls.append(call)

    def _close(self, keys: Iterable[Hashable]) -> None:
        for key in dict.fromkeys(keys):
            reads = self._open.pop(key)
            if len(reads.calls) >= READS:
                self._done.append(reads)
            for path in dict.fromkeys(reads.files):
                self._forget(path, key)

    def _forget(self, path: str, key: Hashable) -> None:
        name = file_name(path)
        paths = self._by_name[name]
        paths[path].discard(key)
        if not paths[path]:
            del paths[path]
        if not paths:
            del self._by_name[name]
