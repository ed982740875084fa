"""Findings about requests that the human makes again."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil

from agtrace_schema.events import Outcome, UserKind

from agtrace.health.facts.api import is_api_error, is_interruption, was_retried
from agtrace.health.facts.cost import cost
from agtrace.health.facts.labels import quoted
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import Call, History, Message, Notice, Said

_REVIEW = "entered_review_mode"

ALIKE = 0.85
"""The share of their words (Jaccard index) that two requests must have in common."""

_FEWEST_CHARS, _FEWEST_WORDS = 20, 4
_FEWEST_UNSPACED = 10
_MOST_COMPARED = 50
"""The most earlier requests compared in full, so that thousands of similar ones don't take quadratic time."""

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W{_UNSPACED}]+")
_OF_UNSPACED = re.compile(rf"[{_UNSPACED}]")


@dataclass
class _Asked:
    """A request, together with those that ask the same again."""

    words: frozenset[str]
    requests: list[Said] = field(default_factory=list)


@detector(
    "Loops",
    "The human asked for the same thing again, with at least 85 % of the words in common, after the model had worked "
    "on it.",
)
def find_repeated_request(history: History) -> Iterator[Finding]:
    """Find requests that the human made before, and that the model worked on then."""
    found = [asked for asked in _groups(_answered(history)) if len(asked.requests) > 1]
    for asked in sorted(found, key=lambda asked: -len(asked.requests)):
        requests, times = asked.requests, len(asked.requests)
        often = "twice" if times == 2 else f"{times} times"
        said = f"The human asked for the same thing {often}: {quoted(requests[0].text)}"
        yield Finding(
            severity="Warning",
            message=said + cost(history, requests[0].event_index, requests[-1].event_index),
            count=times,
            events=evidence([request.event_index for request in requests]),
            turn=requests[0].turn,
        )


# -- which requests count --------------------------------------------------------------------------


def _answered(history: History) -> list[Said]:
    """Return the requests, except those that had to be sent again; the last one counts in any case."""
    found: list[Said] = []
    request: Said | None = None
    answered = stopped = reviewing = False
    for entry in history.entries:
        if isinstance(entry, Notice) and entry.kind == _REVIEW:
            reviewing = True
        elif isinstance(entry, Said) and entry.kind in (UserKind.HUMAN, UserKind.TASK):
            if reviewing:
                reviewing = False  # the request that Codex makes for /review
                continue
            if request is not None and answered and not stopped:
                found.append(request)
            request, answered, stopped = entry, False, False
        elif isinstance(entry, (Call, Message)):
            answered, reviewing = True, False
            stopped = isinstance(entry, Call) and entry.outcome in (Outcome.INTERRUPTED, Outcome.REJECTED)
        elif is_interruption(entry, history.provider):
            stopped = True
        elif isinstance(entry, Notice) and is_api_error(entry, history.provider):
            stopped |= not was_retried(entry)
    return [*found, request] if request is not None else found


# -- which of them are alike -----------------------------------------------------------------------


def _groups(requests: list[Said]) -> list[_Asked]:
    """Group requests that are alike, which are found by their rarest words.

    Two sets with a share of `ALIKE` in common differ in few words only: of the rarest words of one, taken one more
    than that, at least one is also in the other.
    """
    texts = [_normalised(request.text) for request in requests]
    by_text: dict[str, _Asked] = {}
    of_word: dict[str, list[_Asked]] = defaultdict(list)
    known = {text: _words(text) for text in texts}
    frequency = Counter(word for words in known.values() for word in words)
    for request, text in zip(requests, texts, strict=True):
        words = known[text]
        if not _long_enough(text):
            continue
        if text not in by_text:
            rarest = sorted(words, key=lambda word: (frequency[word], word))
            telling = rarest[: len(rarest) - ceil(ALIKE * len(rarest)) + 1]
            by_text[text] = _like(words, telling, of_word) or _new(words, telling, of_word)
        by_text[text].requests.append(request)
    return list({id(asked): asked for asked in by_text.values()}.values())


def _like(words: frozenset[str], telling: list[str], of_word: dict[str, list[_Asked]]) -> _Asked | None:
    looked_at = 0
    for word in telling:
        for asked in reversed(of_word[word][-_MOST_COMPARED:]):
            if len(words & asked.words) >= ALIKE * len(words | asked.words):
                return asked
            looked_at += 1
            if looked_at >= _MOST_COMPARED:
                return None
    return None


def _new(words: frozenset[str], telling: list[str], of_word: dict[str, list[_Asked]]) -> _Asked:
    asked = _Asked(words)
    for word in telling:
        of_word[word].append(asked)
    return asked


def _normalised(text: str) -> str:
    """Return the words of a text in lower case, without punctuation, joined by single spaces."""
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def _words(normalised: str) -> frozenset[str]:
    """Return the words of a text; for scripts without spaces, all pairs of adjacent characters."""
    words: set[str] = set()
    for word in normalised.split():
        pairs = len(word) > 2 and _OF_UNSPACED.match(word)
        words.update((word[at : at + 2] for at in range(len(word) - 1)) if pairs else (word,))
    return frozenset(words)


def _long_enough(normalised: str) -> bool:
    """Whether a text is long enough that repeating it is no coincidence."""
    if len(_OF_UNSPACED.findall(normalised)) * 2 > len(normalised):
        return len(normalised.replace(" ", "")) >= _FEWEST_UNSPACED
    return len(normalised) >= _FEWEST_CHARS and len(normalised.split()) >= _FEWEST_WORDS
