"""Findings about what the human had to say, and about how a session ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from agtrace_indexer.landmarks.attempts import attempts
from agtrace_schema.analysis import Ending, Severity
from agtrace_schema.events import Outcome, UserKind
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import command_of, counted_attempts, only_reads, quoted, quoted_path
from agtrace.health.facts.causes import cause_of
from agtrace.health.facts.changes import changed_files
from agtrace.health.facts.checks import is_check, reviews
from agtrace.health.facts.corrections import Correction, corrections, goes_ahead, objects
from agtrace.health.facts.ending import ending_of, shown_by
from agtrace.health.facts.questions import own_words
from agtrace.health.facts.redone import Again, again
from agtrace.health.finding import Finding, detector
from agtrace.health.history import History
from agtrace.text.numbers import counted

_MANY_CORRECTIONS = 3
_QUOTES, _PROBLEM = 160, 100


@detector("Outcome", version=3)
def find_corrections(history: History) -> Iterator[Finding]:
    """The human said that the work was wrong, wasn't what was asked for, or should be undone, or refused to
    have something changed, or at least three calls.
    """
    found = corrections(history)
    if not found:
        return
    spoken = [one for one in found if not one.silent]
    if not spoken and len(found) < _MANY_CORRECTIONS and not any(_weighs(one, history) for one in found):
        return
    said = f"The human refused {counted(len(found), 'call')} without a word{_before(history, found[0])}: "
    said += found[0].quote + (f", and then wrote {quoted(found[0].then)}" if found[0].then else "")
    if spoken:
        strongest = sorted(spoken, key=lambda one: (-one.weight, len(one.quote)))
        said = (
            f"The human objected to the work {counted(len(found), 'time')}: {_quotes([one.quote for one in strongest])}"
        )
    yield Finding.of(
        "Critical" if len(found) >= _MANY_CORRECTIONS else "Warning",
        said,
        [one.event_index for one in found],
        found[0].turn,
    )


def _weighs(refused: Correction, history: History) -> bool:
    """Whether the human refused to have something changed, and didn't only want to say something."""
    call = next((call for call in history.calls if call.evidence == refused.event_index), None)
    if call is None or only_reads(call):
        return False
    changes = bool(changed_files(call)) or _TAKES_OUT.search(command_of(call) or "") is not None
    return changes or not refused.then or len(refused.then.split()) >= _FEW_WORDS


def _quotes(texts: Sequence[str]) -> str:
    """Quote the first two texts, and say how many more there are."""
    shown = " and ".join(quoted(text, _QUOTES // len(texts[:2])) for text in texts[:2])
    return shown if len(texts) <= 2 else f"{shown}, and {len(texts) - 2} more"


def _before(history: History, refused: Correction) -> str:
    """Return a clause with the failed attempts just before a refused call, if there were any."""
    before = [attempt for attempt in counted_attempts(history) if attempt.last_event < refused.event_index]
    failed = len(list(takewhile(lambda attempt: attempt.failed, reversed(before))))
    return f", after {counted(failed, 'failed attempt')}" if failed else ""


@detector("Outcome")
def find_stopped(history: History) -> Iterator[Finding]:
    """The human stopped the model after it had changed something, wrote more than a word or two, and the model then
    redid lines of its work; or that happened at least twice.
    """
    known = {one.event_index for one in corrections(history)}
    found = [one for one in again(history) if one.stopped and one.said.event_index not in known]
    found = [one for one in found if len(_words(one).split()) >= _FEW_WORDS]
    if len(found) < _STOPS and not any(one.lines for one in found):
        return
    yield Finding.of(
        "Warning" if len(found) > 1 else "Info",
        f"The human stopped the model at work {counted(len(found), 'time')}, and then wrote "
        + _quotes([_words(one) for one in found]),
        [one.said.event_index for one in found],
        found[0].said.turn,
    )


# -- done, then redone -----------------------------------------------------------------------------

_TAKES_OUT = later(r"\b(?:git (?!status|log|diff|show)|rm |sed -\w*i|mv )")
_WENT_WELL = later(r"(?i)\bsuccess|nothing to commit|up.to.date")
_STOPS, _FEW_WORDS = 2, 4
_SOME_LINES, _MANY_LINES = 3, 10
_FINDING = later(r"\[P\d\][^\n]+|(?m:^(?!Error: Process completed)(?:[Ee]rror|FAIL(?:ED)?)\b[^\n]+)")
_AROUND = later(
    r"\A\s*# Files mentioned by the user:[\s\S]*?## My request for \w+:|<[^>\n]{1,80}>|\[[Ii]mage[^\]\n]*\]"
)
_ATTACHED = later(r"\S*/attachments/\S+")
_LEAVES = later(r"(?i)\b(?:commit|merge|push|pr|pull request)\b")
"""A request to hand the work on is no reason to redo it."""


@detector("Outcome", version=2)
def find_redone(history: History) -> Iterator[Finding]:
    """A turn replaced or deleted lines of an earlier one that was reported done, after the human had shown a failure of
    it, or had objected to it, which the model may have admitted, or had stopped the model. Plans and notes don't
    count, nor do fewer than 10 lines after what `corrections` tells of.
    """
    known = {one.event_index for one in corrections(history)}
    touched = [one for one in again(history) if one.lines and not goes_ahead(one.said.text)]
    found = [
        one
        for one in touched
        if one.shown
        or one.said.event_index in known
        or objects(one.said, history)
        or (one.stopped and one.redone >= _SOME_LINES and not _LEAVES.search(one.said.text))
    ]
    lines: dict[str, int] = {}
    for one in found:
        for path, count in one.lines.items():
            lines[path] = lines.get(path, 0) + count
    told = all(one.said.event_index in known for one in found)
    if not found or (told and sum(lines.values()) < _MANY_LINES):
        return
    most = max(lines, key=lambda path: lines[path])
    worst = max(found, key=lambda one: one.redone)
    weighs = len(found) > 1 or sum(lines.values()) >= _MANY_LINES
    severity: Severity = "Warning" if weighs else "Info"
    where = "committed or pushed" if all(one.left for one in found) else "reported done"
    yield Finding.of(
        severity,
        f"{counted(sum(lines.values()), 'line')} that had been {where} "
        f"{'was' if sum(lines.values()) == 1 else 'were'} redone in {counted(len(found), 'later turn')}, most in "
        f"{quoted_path(most)}, after {quoted(_words(worst), _PROBLEM)}",
        [event for one in found for event in (one.said.event_index, one.edits[0])],
        found[0].said.turn,
        count=len(found),
    )


def _words(one: Again) -> str:
    """Return the human's own words, without what an agent puts around files and pictures."""
    text = _AROUND.sub(" ", one.said.text)
    return own_words(text) or " ".join(text.split()) or one.said.text


@detector("Outcome", version=2)
def find_review_problems(history: History) -> Iterator[Finding]:
    """A review or the CI found problems in what the model had reported done: a review by another model says so in the
    log, or a turn began with what one had found and then changed something again.
    """
    known = {one.event_index for one in corrections(history)}
    later = [one for one in again(history) if one.reviewed is not None and one.changed]
    later = [one for one in later if one.said.event_index not in known]
    found = reviews(history)
    problems = [problem for review in found for problem in review.problems]
    if not found and not later:
        return
    times = len(found) + len(later)
    quote = problems[-1] if problems else _reviewed(later[-1], history)
    yield Finding.of(
        "Warning",
        f"A review or the CI found problems in what had been done{f' {times} times' if times > 1 else ''}: "
        + quoted(quote, _PROBLEM),
        sorted([*(one.event_index for one in found), *(one.reviewed or 0 for one in later)]),
        found[0].turn if found else later[0].said.turn,
        count=len(problems) or times,
    )


def _reviewed(one: Again, history: History) -> str:
    """Return the first finding of a review that the human handed on, else their words, else what the model said."""
    told = _FINDING.search(one.said.text)
    words = told[0] if told else " ".join(_ATTACHED.sub(" ", one.said.text).split())
    after = (message.text for message in history.messages if message.event_index > one.said.event_index)
    return words or next(after, one.said.text)


# -- endings ---------------------------------------------------------------------------------------


@detector("Failures", version=2)
def find_ended_on_failure(history: History) -> Iterator[Finding]:
    """The last attempt of the session failed, or it ended with an error of the model's API, whatever was said
    afterwards. If that was no check, commit, push or the like, it is only information, and must name a cause.
    """
    ending = ending_of(history)
    if ending.ending != "error_left" or ending.event_index is None:
        return
    last = next((call for call in reversed(history.calls) if call.evidence == ending.event_index), None)
    weighs = last is None or is_check(last) or bool(attempts(command_of(last) or ""))
    cause = None if last is None or weighs else cause_of(last, history)
    if not weighs and (cause is None or _WENT_WELL.search(cause.line)):
        return
    spoken = any(message.event_index > ending.event_index for message in history.messages)
    how = "and the model spoke after it" if spoken else "and the model said nothing after it"
    yield Finding.of(
        "Info" if not weighs else "Warning" if spoken else "Critical",
        f"The session {'ended' if weighs else 'may have ended'} on a failure, {how}: {ending.reason}",
        (ending.event_index,),
        _turn_of(history, ending.event_index),
    )


@detector("Outcome")
def find_abandoned(history: History) -> Iterator[Finding]:
    """The session ends with a human request that the model never answered."""
    if not any(said.kind is UserKind.TASK for said in history.said):
        said = "The session ends with a request that the model never answered"
        yield from _ended(history, "abandoned", "Warning", said)


_STUCK = later(
    r"(?i)\bblock(?:ed|er)\b|\bpermiss|\bpermiso|\bberechtigung|\b(?:access|permission) (?:is |was )?(?:denied|refused)"
    r"|\b(?:no|not|without|needs?|lacks?|missing)\b.{0,30}\b(?:access|credentials?|tokens?|passwords?|login)\b"
    r"|\b(?:can(?:not|['’]t)|unable to) (?:access|reach|open|read|continue|proceed|go on|log ?in|connect)\b|权限|権限"
)
"""How a model says that it can't go on by itself."""


@detector("Outcome", version=2)
def find_left_question(history: History) -> Iterator[Finding]:
    """The session ends with the model waiting, and it can't go on without the human: a call was refused, it says that
    it is blocked or has no access, or it asked with a tool.
    """
    asked = next((one for one in history.messages if one.event_index == ending_of(history).event_index), None)
    refused = {call.turn for call in history.calls if call.outcome is Outcome.REJECTED}
    stuck = asked is None or asked.turn in refused or _STUCK.search(asked.text)
    if stuck and not any(said.kind is UserKind.TASK for said in history.said):
        yield from _ended(history, "question_left", "Info", "The session ends with the model waiting: {reason}")


def _ended(history: History, ending: Ending, severity: Severity, message: str) -> Iterator[Finding]:
    found = ending_of(history)
    if found.ending == ending and found.event_index is not None:
        turn = _turn_of(history, found.event_index)
        yield Finding.of(severity, message.format(reason=found.reason), (found.event_index,), turn)


def _turn_of(history: History, event: int) -> int | None:
    return next((entry.turn for entry in reversed(history.entries) if shown_by(entry) == event), None)
