"""Where the human says that the work was wrong: refusals with words, corrections, interruptions, work undone.

Only the human's own words count, not what they quote or hand on (`questions.py`). No single sign is sure: words of a
correction are right about half of the time, three of four times where the model had just changed something. So a
request counts from `ENOUGH` on, by what speaks for it together: its words, what it shows, that the model admits it,
and that the model then redoes its work. The words are in `agtrace/data/corrections.toml`, by language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from agtrace_schema.events import Outcome, UserKind
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import (
    asks_human,
    command_of,
    is_interruption,
    named,
    only_reads,
    refused_by_human,
)
from agtrace.health.facts.questions import own_words, phrases
from agtrace.health.facts.redone import again
from agtrace.health.history import Call, History, Message, Notice, Said, derived
from agtrace.sessions.said import human_words

ENOUGH = 3
_STRONG, _WEAK, _ADMITTED, _REFUSED, _INTERRUPTED, _WORKED = 2, 1, 2, 2, 1, 1
_SHOWN, _REDONE, _SOME_LINES = 1, 1, 3
"""What a failure in the text weighs, and that the model then replaced so many lines of earlier turns."""

_LONGEST = 1_500
"""Characters of a request in the human's own words; a longer one is a task, or a text that somebody else wrote."""

_QUOTED, _PLAIN, _BEGINNING = 80, 300, 60
"""Characters up to which words alone make a correction; in a longer text they are rarely what it is about, unless it
begins with them.
"""

_DENIED = 200
"""Characters up to which a text may report that what was delivered isn't there or doesn't run."""

_LOOKED_AT = 600
_ADMISSION = 200
_BEFORE_WORDS = later(r"^\W+")

_BY_A_PROGRAM = later(r"\s*(?:<[a-z-]+>|Caveat: |Implement the following plan|# |\[Request interrupted|Base directory)")
_SENTENCE_END = later(r"[.!?…]\s+|[。！？]|\n+")
_ASKS_ANEW = later(
    r"(?i)(?:1[.)]|[-*•]) "
    r"|\W*(?:why (?:is|are|does|do) my\b|diagnose\b|how (?:do|can) (?:i|we)\b|you'?re (?:right|correct)\b)"
)
"""How a list begins, a question about something else, and a text that agrees."""
_ASKS = later(r"(?i)\A(?!\W*(?:why|where)\b).*[?？]\s*\Z|\A(?:when|if)\b")
_SHOWING = later(r"<[^>\n]{1,80}>|\[[Ii]mage[^\]\n]*\]")
"""What an agent puts in the place of a picture."""
_GO_AHEAD_LENGTH = 80

_GO_AHEAD = later(
    r"\W*(?:(?:oh|ah|oops|sorry|ok|okay|yes|yep|please|pls|just|my bad|never ?mind)\b\W*)*"
    r"(?:(?:wrong|by) (?:key|button|mistake|accident)\W*|mis-?click(?:ed)?\W*|please\W+)*"
    r"(?:continue|go on|go ahead|proceed|carry on|keep going|resume|retry|try again|do it|weiter|mach weiter|continuez?"
    r"|continúa|sigue|continua|продолж\w*|继续|続けて|계속)?(?: please| then)?\W*",
    re.IGNORECASE,
)
"""What the human says who refused a call by mistake."""


class Correction(NamedTuple):
    """A request or a refusal of the human that says that the work was wrong."""

    event_index: int
    turn: int | None
    quote: str
    """The human's own words; of a refusal without any, the call."""
    silent: bool = False
    """Whether the human refused a call and said nothing."""
    then: str = ""
    """What the human wrote next, if they said nothing."""
    weight: int = ENOUGH
    """What speaks for it."""
    lines: int = 0
    """The lines of earlier turns that the model then replaced or deleted."""
    mild: bool = False
    """Whether it counts half: nothing was said, or little speaks for it."""


@derived
def corrections(history: History) -> list[Correction]:
    """Return what the human corrected, in file order."""
    return list(_corrections(history))


def _corrections(history: History) -> Iterator[Correction]:
    found = _Weighing(history)
    for entry in history.entries:
        if isinstance(entry, Call):
            yield from found.called(entry)
        elif isinstance(entry, (Said, Notice)) and is_interruption(entry, history.provider):
            found.stopped = max(found.stopped, _INTERRUPTED)
        elif isinstance(entry, Said) and entry.kind is UserKind.HUMAN:
            yield from found.said(entry)
    if not history.at_work:
        yield from found.refused_silently()


class _Weighing:
    """What speaks for a correction, from one text of the human to the next."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.messages: dict[int | None, str] = {one.event_index: one.text for one in history.messages}
        self.first = True
        self.worked = self.before = False
        self.stopped = 0
        self.refused: Call | None = None
        """The call that the human refused without a word, since the human last spoke."""

    def called(self, call: Call) -> Iterator[Correction]:
        """Note a call; yield the correction if the human refused it with words."""
        self.worked |= call.outcome is Outcome.OK and (
            bool(call.writes) or (command_of(call) is not None and not only_reads(call))
        )
        if call.outcome is not Outcome.REJECTED or asks_human(call):
            return
        reason = (human_words(call.result) or "").strip()
        if reason:
            yield Correction(call.evidence, call.turn, reason)
            return
        if refused_by_human(call):
            self.stopped, self.refused = _REFUSED, self.refused or call

    def said(self, text: Said) -> Iterator[Correction]:
        """Yield the correction if this text of the human is one."""
        by_mistake = self.refused is not None and goes_ahead(text.text)
        answer = self.messages.get(answer_to(text.event_index, self.history), "")
        weight = 0 if self.first or by_mistake else self._weight(text, answer)
        if weight >= ENOUGH:
            after = again(self.history).get(text.event_index)
            quote = _strongest(text.text) or f"(a picture, of which the model said: {' '.join(answer.split())})"
            mild = weight == ENOUGH and _by_words(own_words(text.text)) < _STRONG
            lines = after.lines if after else 0
            yield Correction(text.event_index, text.turn, quote, weight=weight, lines=lines, mild=mild)
        elif not by_mistake:
            yield from self.refused_silently(text.text)
        self.first, self.worked, self.before, self.stopped, self.refused = False, False, self.worked, 0, None

    def refused_silently(self, then: str = "") -> Iterator[Correction]:
        """Yield the refusal about which the human said nothing, with what they wrote next."""
        if self.refused:
            yield Correction(
                self.refused.evidence, self.refused.turn, named(self.refused), silent=True, then=then, mild=True
            )

    def _weight(self, text: Said, answer: str) -> int:
        said = own_words(text.text)
        after = again(self.history).get(text.event_index)
        admitted = _ADMITTED if _words("admits").match(_BEFORE_WORDS.sub("", _normal(answer)[:_ADMISSION])) else 0
        if (len(said) > _LONGEST and not admitted) or _BY_A_PROGRAM.match(text.text) or goes_ahead(text.text):
            return 0
        if (after is not None and after.reviewed == text.event_index) or not (said or _SHOWING.search(text.text)):
            return 0  # what a review found is told as such, and others' words say nothing
        redone = _REDONE if after is not None and after.lines >= _SOME_LINES and len(said) <= _PLAIN else 0
        shown = _SHOWN if after is not None and after.shown else 0
        denied = after is not None and after.changed and len(said) <= _DENIED and not _ASKS.search(said)
        words = _STRONG if denied and _words("denies").search(_normal(said)) else _by_words(said)
        if not (words or (admitted and after is not None) or (redone and (shown or self.stopped))):
            return 0
        confirmed = self.stopped + admitted
        plain = len(said) <= _PLAIN or _words("strong").search(_normal(said)[:_BEGINNING])
        if not confirmed + shown and (not plain or _ASKS_ANEW.match(said)):
            return 0
        return words + confirmed + shown + redone + (self.worked or self.before) * _WORKED


def _by_words(said: str) -> int:
    looked_at = _normal(said)[:_LOOKED_AT]
    return _STRONG if _words("strong").search(looked_at) else _WEAK if _words("weak").search(looked_at) else 0


def answer_to(event: int, history: History) -> int | None:
    """Return the event of the first message of the model after a request; None if there is none before the next."""
    for entry in history.entries:
        if entry.event_index > event:
            if isinstance(entry, Message) and entry.text.strip():
                return entry.event_index
            if isinstance(entry, Said) and entry.kind is UserKind.HUMAN:
                return None
    return None


def goes_ahead(text: str) -> bool:
    """Whether the human only tells the model to go on."""
    return len(text) <= _GO_AHEAD_LENGTH and _GO_AHEAD.fullmatch(text) is not None


def _strongest(text: str) -> str:
    """Return a correction on one line, a long one from the sentence on that says most clearly what is wrong; empty if
    the human only showed a picture.
    """
    said = own_words(text)
    if len(said) > _QUOTED:
        starts = [0, *(found.end() for found in _SENTENCE_END.finditer(said))]
        for begin, end in pairwise([*starts, len(said)]):
            if _words("strong").search(_normal(said[begin:end])):
                return " ".join(said[begin:].split())
    return " ".join((said or _SHOWING.sub(" ", text)).split())


def _normal(text: str) -> str:
    return " ".join(text.lower().replace("’", "'").split())


@cache
def _words(kind: str) -> re.Pattern[str]:
    """Return an expression for the words of a kind, in all languages that are known."""
    return re.compile(rf"(?<![a-z'])(?:{phrases(kind)})")
