"""Where the human says that the work was wrong: refusals with words, corrections, interruptions, work undone.

Only the human's own words count, not what they quote or hand on (`questions.py`). A new wish is no objection: something
must have been done or said before that the text contradicts, or in which it names a fault. Any one of the signs in
docs/health.md is enough. The words are in `agtrace/data/corrections.toml`, by language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Literal, NamedTuple

from agtrace_schema.events import Outcome, UserKind
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import (
    asks_human,
    call_label,
    command_of,
    is_interruption,
    is_poll,
    only_reads,
    refused_by_human,
)
from agtrace.health.facts.checks import is_check
from agtrace.health.facts.questions import own_words, phrases
from agtrace.health.facts.redone import again, said_to_fail
from agtrace.health.history import Call, History, Message, Notice, UserText, derived
from agtrace.sessions.quotes import human_words
from agtrace.text.failing_lines import failing_lines_in as failures_in

_LONGEST = 1_500
"""Characters of a request in the human's own words; a longer one is a task, or a text that somebody else wrote."""

_QUOTED, _PLAIN, _BEGINNING = 80, 300, 150
"""Characters up to which words alone make a correction; in a longer text they are rarely what it is about, unless it
begins with them.
"""

_LOOKED_AT = 600
_MANY_WORDS, _FEW_CHARS = 5, 20
_ADMISSION = 200
_BEFORE_WORDS = later(r"^\W+")

_BY_A_PROGRAM = later(r"\s*(?:<[a-z-]+>|Caveat: |Implement the following plan|# |\[Request interrupted|Base directory)")
_SENTENCE_END = later(r"[.!?…]\s+|[。！？]|\n+")
_ASKS_ANEW = later(
    r"(?i)\W*(?:why (?:is|are|does|do) my\b|diagnose\b|how (?:do|can) (?:i|we)\b|you'?re (?:right|correct)\b|i wonder\b"
    r"|(?:any chance|(?:can|could|should)(?:n?['’]?t)?) we\b|(?:how|what) about\b|let'?s\b|i'?m (?:just )?wondering\b)"
)
"""How a question about something else begins, a proposal, and a text that agrees."""
_LIST = later(r"(?:1[.)]|[-*•]) ")
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
    """The human's own words; of what they only pasted, the line that failed; of a refusal without words, the call."""
    how: Literal["words", "failure", "silent"] = "words"
    """Whether they said it, pasted a failure of what had been made, or refused a call without calling it wrong."""
    then: str = ""
    """What the human said of the call, or wrote next."""
    lines: int = 0
    """The lines of earlier turns that the model then replaced or deleted."""


@derived
def corrections(history: History) -> list[Correction]:
    """Return what the human corrected, in file order."""
    return list(_corrections(history))


def requests(history: History) -> int:
    """Return how often the human wrote more than a few words, not counting the first time."""
    said = (one.text for one in history.said if one.kind is UserKind.HUMAN)
    return max(0, sum(len(text.split()) >= _MANY_WORDS for text in said) - 1)


def _corrections(history: History) -> Iterator[Correction]:
    found = _Watching(history)
    for entry in history.entries:
        if isinstance(entry, Call):
            yield from found.called(entry)
        elif isinstance(entry, (UserText, Notice)) and is_interruption(entry, history.provider):
            found.stopped = True
        elif isinstance(entry, UserText) and entry.kind is UserKind.HUMAN:
            yield from found.said(entry)
    if not history.at_work:
        yield from found.refused_silently()


class _Watching:
    """What was done and stopped, from one text of the human to the next."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.messages: dict[int | None, str] = {one.event_index: one.text for one in history.messages}
        self.first = True
        self.worked = self.before = self.stopped = False
        self.refused: Call | None = None
        """The call that the human last refused without an objection, since they last spoke."""
        self.reason = ""
        """What they said of it."""

    def called(self, call: Call) -> Iterator[Correction]:
        """Note a call; yield the correction if the human refused it with words."""
        does = bool(call.writes) or (command_of(call) is not None and not only_reads(call))
        self.worked |= does and call.outcome is Outcome.OK
        if call.outcome is not Outcome.REJECTED or asks_human(call):
            return
        reason = " ".join((human_words(call.result) or "").split())
        if (says("strong", reason) or says("stops", reason)) and not _ASKS_ANEW.match(reason):
            yield Correction(call.evidence, call.turn, reason)
        elif refused_by_human(call) and does and not is_check(call) and not is_poll(call):
            yield from self.refused_silently(reason)
            self.refused, self.reason = call, reason
        self.stopped |= refused_by_human(call) and not reason

    def said(self, text: UserText) -> Iterator[Correction]:
        """Yield the correction if this text of the human is one."""
        if not goes_ahead(text.text):
            if self.first or not (how := self._objects(text)):
                yield from self.refused_silently(text.text)
            else:
                after = again(self.history).get(text.event_index)
                quote = _strongest(text.text) if how == "words" else _failing_line(text.text)
                if _SHOWING.search(text.text) and len(quote) < _FEW_CHARS:
                    quote += f" (a picture, of which the model said: {self._answer(text)})"
                yield Correction(text.event_index, text.turn, quote, how, lines=after.lines if after else 0)
        self.before, self.refused = self.worked, None
        self.first = self.worked = self.stopped = False

    def refused_silently(self, then: str = "") -> Iterator[Correction]:
        """Yield the refusal about which the human said nothing, with what they wrote next."""
        if self.refused:
            said = self.reason or then
            yield Correction(self.refused.evidence, self.refused.turn, call_label(self.refused), "silent", said)

    def _answer(self, text: UserText) -> str:
        return " ".join(self.messages.get(answer_to(text.event_index, self.history), "")[:_ADMISSION].split())

    def _objects(self, text: UserText) -> Literal["words", "failure"] | None:
        """Return how a text objects, if it does; the signs are those of docs/health.md."""
        said, after = own_words(text.text), again(self.history).get(text.event_index)
        answer = _normal(self._answer(text))
        admitted = _words("admits").match(_BEFORE_WORDS.sub("", answer)) is not None
        if (len(said) > _LONGEST and not admitted) or _BY_A_PROGRAM.match(text.text) or _ASKS_ANEW.match(said):
            return None
        if (after is not None and after.reviewed == text.event_index) or not (said or _SHOWING.search(text.text)):
            return None  # what a review found is told as such, and others' words say nothing
        plain = len(said) <= _PLAIN or _words("strong").search(_normal(said)[:_BEGINNING]) is not None
        if plain and not _LIST.match(said):
            if says("strong", said) and (after is not None or admitted):
                return "words"
            if self.stopped and says("stops", said):
                return "words"
        if admitted and (self.worked or self.before):
            return "words"
        return "failure" if after is not None and after.shown and after.changed else None


def says(kind: Literal["strong", "stops"], said: str) -> bool:
    """Whether a text has words that name a fault, or begins with those that stop something."""
    text = _normal(said)[:_LOOKED_AT]
    return (
        _words(kind).search(text) if kind == "strong" else _words(kind).match(_BEFORE_WORDS.sub("", text))
    ) is not None


def answer_to(event: int, history: History) -> int | None:
    """Return the event of the first message of the model after a request; None if there is none before the next."""
    for entry in history.entries:
        if entry.event_index > event:
            if isinstance(entry, Message) and entry.text.strip():
                return entry.event_index
            if isinstance(entry, UserText) and entry.kind is UserKind.HUMAN:
                return None
    return None


def goes_ahead(text: str) -> bool:
    """Whether the human only tells the model to go on."""
    return len(text) <= _GO_AHEAD_LENGTH and _GO_AHEAD.fullmatch(text) is not None


def _strongest(text: str) -> str:
    """Return a correction on one line, a long one from the sentence on that says most clearly what is wrong."""
    said = own_words(text)
    if len(said) > _QUOTED:
        starts = [0, *(match.end() for match in _SENTENCE_END.finditer(said))]
        for begin, end in pairwise([*starts, len(said)]):
            if _words("strong").search(_normal(said[begin:end])):
                return " ".join(said[begin:].split())
    return " ".join((said or text).split())


def _failing_line(text: str) -> str:
    """Return the first line of a text that reports a failure."""
    lines = text.splitlines()
    return next((lines[place] for place, _ in failures_in(lines)), None) or said_to_fail(text) or text


def _normal(text: str) -> str:
    return " ".join(text.lower().replace("’", "'").split())


@cache
def _words(kind: str) -> re.Pattern[str]:
    """Return an expression for the words of a kind, in all languages that are known."""
    return re.compile(rf"(?<![a-z'])(?:{phrases(kind)})")
