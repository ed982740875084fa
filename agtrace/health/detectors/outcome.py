"""Findings about what the human had to say, and about how a session ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agtrace_indexer.landmarks.attempts import attempts
from agtrace_indexer.landmarks.recognition import landmarks
from agtrace_schema.events import Outcome, UserKind
from agtrace_schema.landmarks import LandmarkKind
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import command_of, named, only_reads, quoted
from agtrace.health.facts.causes import cause_of
from agtrace.health.facts.changes import changed_files
from agtrace.health.facts.checks import is_check, reviews
from agtrace.health.facts.corrections import Correction, answer_to, corrections
from agtrace.health.facts.ending import ending_of, shown_by
from agtrace.health.facts.questions import own_words
from agtrace.health.facts.redone import Again, again
from agtrace.health.finding import Finding, detector
from agtrace.health.history import Call, History
from agtrace.text.numbers import counted

_MANY_CORRECTIONS, _MANY_LINES, _FEW_WORDS = 3, 10, 4
_QUOTES, _PROBLEM = 160, 100
_TAKES_OUT = later(r"\b(?:git (?!status|log|diff|show)|rm |sed -\w*i|mv )")
_WENT_WELL = later(r"(?i)\bsuccess|nothing to commit|up.to.date")
_HANDED_ON = (LandmarkKind.COMMIT, LandmarkKind.PUSH, LandmarkKind.PULL_REQUEST)
_BRINGING = ("am", "merge", "pull", "rebase")
_WILL_LOOK = later(r"(?i)\W*(?:i['’]ll|i will|let me|checking|looking|still \w+ing|sure|okay?)\b")
_FINDING = later(r"\[P\d\][^\n]+|(?m:^(?!Error: Process completed)(?:[Ee]rror|FAIL(?:ED)?)\b[^\n]+)")


@detector("Outcome", version=6)
def find_corrections(history: History) -> Iterator[Finding]:
    """The human said that the work was wrong, didn't run, wasn't what was asked for, or should be undone, stopped it
    and had it redone, or refused to have something changed, or three calls. It says how many lines that had been
    reported done were then replaced, if they are 10 or more.
    """
    found = corrections(history)
    if not found:
        return
    spoken = [one for one in found if not one.silent]
    if not spoken and len(found) < _MANY_CORRECTIONS and not any(_weighs(one, history) for one in found):
        return
    worst = next((one for one in found if _weighs(one, history)), found[0])
    said = f"The human refused {counted(len(found), 'call')} without a word: "
    said += worst.quote + (f", and then wrote {quoted(worst.then)}" if worst.then else "")
    maybe = all(one.mild for one in found) and len(found) == 1
    if spoken:
        silent = len(found) - len(spoken)
        strongest = sorted(spoken, key=lambda one: (-one.weight, len(one.quote)))
        said = (
            f"The human {'may have ' if maybe else ''}objected to the work {counted(len(spoken), 'time')}: "
            f"{_quotes([one.quote for one in strongest])}"
            + (f"; and refused {counted(silent, 'call')} without a word" if silent else "")
        )
    lines = sum(one.lines for one in found)
    if lines >= _MANY_LINES:
        said += f"; {lines} lines that had been reported done were redone"
    yield Finding.of(
        "Critical" if len(found) >= _MANY_CORRECTIONS else "Info" if maybe else "Warning",
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


@detector("Outcome", version=3)
def find_review_problems(history: History) -> Iterator[Finding]:
    """A review or the CI found problems in what the model had reported done: a review by another model says so in the
    log, or a turn began with what one had found and then changed something again.
    """
    known = {one.event_index for one in corrections(history)}
    later = [one for one in again(history).values() if one.reviewed is not None and one.changed]
    later = [one for one in later if one.said.event_index not in known and not _is_own(one, history)]
    found = reviews(history)
    if not found and not later:
        return
    problems = [problem for review in found for problem in review.problems]
    times = len(found) + len(later)
    yield Finding.of(
        "Warning",
        f"A review or the CI found problems in what had been done{f' {times} times' if times > 1 else ''}: "
        + quoted(problems[-1] if problems else _reviewed(later[-1], history), _PROBLEM),
        sorted([*(one.event_index for one in found), *(one.reviewed or 0 for one in later)]),
        found[0].turn if found else later[0].said.turn,
        count=len(problems) or times,
    )


def _is_own(one: Again, history: History) -> bool:
    """Whether the model itself had found what the human hands on."""
    found = _FINDING.search(one.said.text)
    title = found[0].partition("] ")[2] if found else ""
    return bool(title) and any(
        title in said.text for said in history.messages if said.event_index < one.said.event_index
    )


def _reviewed(one: Again, history: History) -> str:
    """Return the first finding of a review that the human handed on, else what the model said of it, else their words.

    A model first says that it will look, and then what it saw.
    """
    if told := _FINDING.search(one.said.text):
        return told[0]
    turn = [message.text for message in history.messages if message.turn == one.said.turn and message.text.strip()]
    return next((text for text in turn if not _WILL_LOOK.match(text)), own_words(one.said.text) or one.said.text)


_ADMITS = later(
    r"(?i)(?<!if )\b(?:i|it|that|was|were|been|had|the \w+|earlier) (?:have |had |may have )?\W{0,2}"
    r"(?:accidentally|inadvertently|mistakenly)\W+\w+(?:ed|id|ook|ote|ent|ut)\b|\bi should(?:n['’]t| not) have\b"
    r"|\b(?:edit|change|command|commit|push|deletion) was a mistake\b|\bmy (?:mistake|fault|error)\b"
)
_SENTENCE_END = later(r"[.!?…:]\s+|[。！？]|\n+")
_SHORT = 30
_OF_THE_HUMAN = later(r"(?i)\byou(?:r|['’]ve)?\b")


@detector("Outcome")
def find_admitted_mistake(history: History) -> Iterator[Finding]:
    """The model said that it, or what it had made, had done something by mistake, and not because the human had
    objected to it.
    """
    told = {place for one in corrections(history) if (place := answer_to(one.event_index, history)) is not None}
    for message in history.messages:
        said = _ADMITS.search(message.text)
        if said is None or message.event_index in told:
            continue
        begin = max((end.end() for end in _SENTENCE_END.finditer(message.text, 0, said.start())), default=0)
        ends = (end.start() + 1 for end in _SENTENCE_END.finditer(message.text, said.end()))
        sentence = message.text[begin : next((end for end in ends if end - begin > _SHORT), None)]
        if not _OF_THE_HUMAN.search(sentence):
            yield Finding.of(
                "Warning",
                f"The model said that it had made a mistake: {quoted(sentence, _QUOTES)}",
                (message.event_index,),
                message.turn,
            )
            return


# -- endings ---------------------------------------------------------------------------------------


@detector("Failures", version=3)
def find_ended_on_failure(history: History) -> Iterator[Finding]:
    """The last attempt of the session failed, or it ended with an error of the model's API, whatever was said
    afterwards, or its last commit, push or the like failed and was never made good. If the last attempt was none of
    these and no check, it is only information, and must name a cause.
    """
    ending = ending_of(history)
    if ending.ending != "error_left" or ending.event_index is None:
        yield from _left_undone(history)
        return
    last = next((call for call in reversed(history.calls) if call.evidence == ending.event_index), None)
    weighs = last is None or is_check(last) or bool(attempts(command_of(last) or ""))
    if undone := [] if weighs else list(_left_undone(history)):
        yield from undone
        return
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


def _left_undone(history: History) -> Iterator[Finding]:
    """Find the last commit, push or pull request of a session, if it failed and none like it succeeded later."""
    left: dict[LandmarkKind, Call] = {}
    for call in history.calls if not history.at_work else ():
        meant = [one for one in attempts(command_of(call) or "") if one.kind in _HANDED_ON and one.how not in _BRINGING]
        done = {one.kind for one in landmarks(meant, call.result, call.outcome)} if meant else set()
        for one in meant:
            left.pop(one.kind, None)
        if meant and call.failed and meant[-1].kind not in done:
            left[meant[-1].kind] = call
    for kind, call in [*left.items()][-1:]:
        if (cause := cause_of(call, history)) is not None and not _WENT_WELL.search(cause.line):
            yield Finding.of(
                "Warning",
                f"The last {kind.value.replace('_', ' ')} failed, and was never made good: {named(call)}: "
                f"{quoted(cause.line, _PROBLEM)}",
                (call.evidence,),
                call.turn,
            )


@detector("Outcome", version=2)
def find_abandoned(history: History) -> Iterator[Finding]:
    """The session ends with a human request that the model never answered, or the human stopped the model in a turn
    that had changed something, and the session ends there.
    """
    ending = ending_of(history)
    if ending.event_index is None or any(said.kind is UserKind.TASK for said in history.said):
        return
    asked = next((one for one in reversed(history.said) if one.kind is UserKind.HUMAN), None)
    if ending.ending == "abandoned":
        said = "The session ends with a request that the model never answered"
    elif (
        ending.ending == "interrupted"
        and asked is not None
        and any(
            call.event_index > asked.event_index and call.writes and call.outcome is Outcome.OK
            for call in history.calls
        )
    ):
        said = "The human stopped the model after it had changed something, and the session ends there"
    else:
        return
    if asked is not None:
        said += f": {quoted(own_words(asked.text) or asked.text, _PROBLEM)}"
    yield Finding.of(
        "Warning" if ending.ending == "abandoned" else "Info", said, (ending.event_index,),
        _turn_of(history, ending.event_index),
    )  # fmt: skip


_STUCK = later(
    r"(?i)\bblock(?:ed|er)\b|\bpermiss|\bpermiso|\bberechtigung|\b(?:access|permission) (?:is |was )?(?:denied|refused)"
    r"|\b(?:no|not|without|needs?|lacks?|missing)\b.{0,30}\b(?:access|credentials?|tokens?|passwords?|login)\b"
    r"|\b(?:can(?:not|['’]t)|unable to) (?:access|reach|open|read|continue|proceed|go on|log ?in|connect)\b|权限|権限"
)
"""How a model says that it can't go on by itself."""
_LAST = 500


@detector("Outcome", version=2)
def find_left_question(history: History) -> Iterator[Finding]:
    """The session ends with the model waiting, and it can't go on without the human: a call was refused, it says that
    it is blocked or has no access, or it asked with a tool.
    """
    asked = next((one for one in history.messages if one.event_index == ending_of(history).event_index), None)
    refused = {call.turn for call in history.calls if call.outcome is Outcome.REJECTED}
    stuck = asked is None or asked.turn in refused or _STUCK.search(asked.text[-_LAST:])
    ending = ending_of(history)
    if ending.ending != "question_left" or ending.event_index is None or not stuck:
        return
    if not any(said.kind is UserKind.TASK for said in history.said):
        said = f"The session ends with the model waiting: {ending.reason}"
        yield Finding.of("Info", said, (ending.event_index,), _turn_of(history, ending.event_index))


def _turn_of(history: History, event: int) -> int | None:
    return next((entry.turn for entry in reversed(history.entries) if shown_by(entry) == event), None)
