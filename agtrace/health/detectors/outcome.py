"""Findings about what the human had to say, and about how a session ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agtrace_indexer.landmarks.attempts import attempts
from agtrace_indexer.landmarks.recognition import landmarks
from agtrace_schema.events import UserKind
from agtrace_schema.landmarks import LandmarkKind
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import asks_human, call_label, command_of, quoted
from agtrace.health.facts.causes import cause_of
from agtrace.health.facts.changes import changes
from agtrace.health.facts.checks import DISCLOSED, PROSE, is_check, reviews
from agtrace.health.facts.corrections import corrections, says
from agtrace.health.facts.ending import ending_of, shown_by
from agtrace.health.facts.questions import own_words
from agtrace.health.facts.redone import Again, again
from agtrace.health.finding import Finding, detector
from agtrace.health.history import Call, History
from agtrace.text.numbers import counted

_MANY_CORRECTIONS, _MANY_LINES = 3, 10
_QUOTES, _PROBLEM = 160, 100
_WENT_WELL = later(r"(?i)\bsuccess|nothing (?:added )?to commit|no changes added|up.to.date|already exists")
_COMMITTED = later(
    r"(?i)\bcommitted (?:as|in|to)\b|\bcommit (?:already |actually )?(?:went through|landed)\b"
    r"|\balready (?:committed|in HEAD)"
)
_HANDED_ON = (LandmarkKind.COMMIT, LandmarkKind.PUSH, LandmarkKind.PULL_REQUEST)
_BRINGING = ("am", "merge", "pull", "rebase")
_WILL_LOOK = later(r"(?i)\W*(?:i['’]ll|i will|let me|checking|looking|still \w+ing|sure|okay?)\b")
_SAW = later(
    r"(?i)\b(?:fail(?:s|ed|ing|ures?)|errors?|panic|bug|root cause|missing)\b.*\b(?:is|are|because|in|on|due)\b"
    r"|\bfound (?:it|the)\b"
)
"""How a model tells what a failure was."""
_FINDING = later(r"\[P\d\][^\n]+|(?m:^(?!Error: Process completed)(?:[Ee]rror|FAIL(?:ED)?)\b[^\n]+)")


@detector("Outcome", version=7)
def find_corrections(history: History) -> Iterator[Finding]:
    """The human said that the work was wrong, wasn't what was asked for, or should be undone, came back with a failure
    of what had been made, or refused to have something changed. It says how many lines that had been reported done
    were then replaced, if they are 10 or more.
    """
    found = corrections(history)
    if not found:
        return
    said, failures, refused = ([one for one in found if one.how == how] for how in ("words", "failure", "silent"))
    told = []
    if said:
        clearest = sorted((one.quote for one in said), key=lambda quote: (not says("strong", quote), len(quote)))
        told.append(f"objected to the work {counted(len(said), 'time')}: {_quotes(clearest)}")
    if failures:
        quotes = _quotes([one.quote for one in failures])
        told.append(f"came back with a failure {counted(len(failures), 'time')}: {quotes}")
    ended = refused and not refused[-1].then and refused[-1].event_index == history.calls[-1].evidence
    if len(refused) >= _MANY_CORRECTIONS or ended:
        last = refused[-1].quote + (f", and wrote {quoted(refused[-1].then)}" if refused[-1].then else "")
        told.append(f"refused {counted(len(refused), 'call')}: {last}")
    lines = sum(one.lines for one in found)
    if lines >= _MANY_LINES:
        told.append(f"{lines} lines that had been reported done were redone")
    loud = len(said) + len(failures)
    if told:
        yield Finding.of(
            "Critical" if loud >= _MANY_CORRECTIONS else "Warning" if loud else "Info",
            f"The human {'; '.join(told)}",
            [one.event_index for one in found],
            found[0].turn,
        )


def _quotes(texts: Sequence[str]) -> str:
    """Quote the first two texts, and say how many more there are."""
    shown = " and ".join(quoted(text, _QUOTES // len(texts[:2])) for text in texts[:2])
    return shown if len(texts) <= 2 else f"{shown}, and {len(texts) - 2} more"


@detector("Outcome", version=4)
def find_review_problems(history: History) -> Iterator[Finding]:
    """A review by another model, or the CI, found problems in what the model had reported done: the log has the review,
    or a turn began with what the CI had found and then changed something again.
    """
    known = {one.event_index for one in corrections(history)}
    later = [one for one in again(history).values() if one.failed_ci and one.changed]
    later = [one for one in later if one.said.event_index not in known]
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


def _reviewed(one: Again, history: History) -> str:
    """Return the first failure that the human handed on, else what the model said of it, else their words.

    A model first says that it will look, and then what it saw.
    """
    if match := _FINDING.search(one.said.text):
        return match[0]
    turn = [message.text for message in history.messages if message.turn == one.said.turn and message.text.strip()]
    seen = next((text for text in turn if _SAW.search(text)), None)
    return seen or next(
        (text for text in turn if not _WILL_LOOK.match(text)), own_words(one.said.text) or one.said.text
    )


# -- endings ---------------------------------------------------------------------------------------


@detector("Failures", version=4)
def find_ended_on_failure(history: History) -> Iterator[Finding]:
    """The session ended with an error of the model's API, on a check, a commit or the like that failed, or its last
    commit, push or the like failed and was never made good; not if the model said that the failure isn't its own.
    """
    ending = ending_of(history)
    last = next((call for call in reversed(history.calls) if call.evidence == ending.event_index), None)
    if ending.ending != "error_left" or not (last is None or is_check(last) or attempts(command_of(last) or "")):
        yield from _left_undone(history)
        return
    after = [message.text for message in history.messages if message.event_index > (ending.event_index or 0)]
    if not any(map(DISCLOSED.search, after)):
        how = "and the model spoke after it" if after else "and the model said nothing after it"
        yield Finding.of(
            "Warning" if after else "Critical",
            f"The session ended on a failure, {how}: {ending.reason}",
            (ending.event_index or 0,),
            _turn_of(history, ending.event_index or 0),
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
        after = (message.text for message in history.messages if message.event_index > call.event_index)
        if _WENT_WELL.search(call.result) or (kind is _HANDED_ON[0] and any(map(_COMMITTED.search, after))):
            continue
        if (cause := cause_of(call, history)) is not None:
            yield Finding.of(
                "Warning",
                f"The last {kind.value.replace('_', ' ')} failed, and was never made good: {call_label(call)}: "
                f"{quoted(cause.line, _PROBLEM)}",
                (call.evidence,),
                call.turn,
            )


@detector("Outcome", version=3)
def find_abandoned(history: History) -> Iterator[Finding]:
    """The session ends with a human request that the model never answered, or the human
    stopped the model in a turn that had changed something, no plan, and the session ends there.
    """
    ending = ending_of(history)
    if ending.event_index is None or any(said.kind is UserKind.TASK for said in history.said):
        return
    asked = next((one for one in reversed(history.said) if one.kind is UserKind.HUMAN), None)
    last = next((call for call in reversed(history.calls) if call.evidence == ending.event_index), None)
    changed = {change.path for call in history.calls if asked and call.turn == asked.turn for change in changes(call)}
    if ending.ending == "abandoned":
        said = "The session ends with a request that the model never answered"
    elif ending.ending == "interrupted" and not all(map(PROSE.search, changed)) and not (last and asks_human(last)):
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


@detector("Outcome", version=3)
def find_left_question(history: History) -> Iterator[Finding]:
    """The session ends with the model waiting, and it can't go on without the human: it says that it is blocked or has
    no access, or it asked with a tool.
    """
    asked = next((one for one in history.messages if one.event_index == ending_of(history).event_index), None)
    stuck = asked is None or _STUCK.search(asked.text[-_LAST:])
    ending = ending_of(history)
    if ending.ending != "question_left" or ending.event_index is None or not stuck:
        return
    if not any(said.kind is UserKind.TASK for said in history.said):
        said = f"The session ends with the model waiting: {ending.reason}"
        yield Finding.of("Info", said, (ending.event_index,), _turn_of(history, ending.event_index))


def _turn_of(history: History, event: int) -> int | None:
    return next((entry.turn for entry in reversed(history.entries) if shown_by(entry) == event), None)
