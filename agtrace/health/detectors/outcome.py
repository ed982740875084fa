"""Findings about how a session ended and what it left: checks, todos, corrections, reviews."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import dropwhile, islice, takewhile

from agtrace_indexer.landmarks.attempts import attempts
from agtrace_indexer.landmarks.questions import asked
from agtrace_indexer.landmarks.recognition import landmarks
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.analysis import Ending, SessionEnding, Severity
from agtrace_schema.events import Outcome, Provider, UserKind
from agtrace_schema.landmarks import LandmarkKind, Verdict
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import (
    Attempt,
    asks_human,
    command_of,
    counted_attempts,
    error_text,
    is_api_error,
    is_interruption,
    is_passed_over,
    is_probe,
    named,
    only_reads,
    own_name,
    quoted,
    tool_named,
)
from agtrace.health.facts.changes import changed_files, writes_by_shell
from agtrace.health.facts.checks import OF_THE_MACHINE, Kind, keeps_list, kinds_of, reviews, ticked_off, todos
from agtrace.health.facts.corrections import Correction, corrections
from agtrace.health.facts.questions import asks_to_go_on, question_in
from agtrace.health.finding import Finding, detector
from agtrace.health.history import Call, Entry, History, Message, Notice, Said, Thought, Usage, derived, of_one_response
from agtrace.text.numbers import counted
from agtrace.text.signatures import signature_of

# -- ending ----------------------------------------------------------------------------------------
# How a session ended: decided by the last thing that anybody did in it, whatever the harness wrote afterwards.

_SHOWN = 120
_OF_THE_HARNESS = frozenset(
    {UserKind.COMMAND, UserKind.INJECTED, UserKind.NOTIFICATION, UserKind.COMPACTION_SUMMARY}
)  # a command is answered by the harness, so it isn't a request
_GOODBYES = frozenset({"exit", "quit", "/exit", "/quit", ":q", "q", "bye", "logout"})
_STOPPED = frozenset({Outcome.REJECTED, Outcome.INTERRUPTED})


@derived
def ending_of(history: History) -> SessionEnding:
    """Return how a session ended, the reason for this verdict, and the event that shows it."""
    if history.at_work:
        return _ended("unknown", "its log grew a moment ago, so it may still be running")
    last = _last_thing(history)
    if isinstance(last, Notice) and is_api_error(last, history.provider):
        said = error_text(last)
        return _ended(
            "error_left", f"the model's API failed{f' ({said})' if said else ''}, and nothing came after it", last
        )
    failed = _failed_at_last(history)
    if failed is not None and not _refused_after(failed, history):
        return _ended("error_left", f"the last tool call failed ({_failure(failed)})", failed)
    if last is None:
        return _ended("unknown", "nobody asked for anything, and the model did nothing")
    if history.continued:
        return _ended("finished", "the human approved the plan, which another session carries out", last)
    if isinstance(last, (Call, Message)):
        return _by_response(history, last)
    if is_interruption(last, history.provider):
        return _ended("interrupted", "the human interrupted the model, and nothing came after it", last)
    return _ended("abandoned", "the last request was never answered", last)


def is_unanswered(call: Call, provider: Provider) -> bool:
    """Whether a call never got a result although nobody stopped it; not for tools whose results are never logged."""
    tools = AGENTS[provider].tools
    if not AGENTS[provider].logs_results:
        return False
    if call.tool in tools.unanswered or call.tool in tools.answering:
        return False
    return call.result_event is None and call.outcome not in _STOPPED


def shown_by(entry: Entry) -> int:
    """Return the event that shows the outcome of an entry."""
    return entry.evidence if isinstance(entry, Call) else entry.event_index


@detector("Outcome", structural=True)
def find_abandoned(history: History) -> Iterator[Finding]:
    """The session ends with a human request that the model never answered."""
    yield from _finding(
        history, "abandoned", "Warning", "The session ends with a request that the model never answered"
    )


@detector("Outcome")
def find_left_question(history: History) -> Iterator[Finding]:
    """The session ends with the model waiting for the human: it asked for something that it needs to continue; an offer
    after finished work doesn't count.
    """
    if any(said.kind is UserKind.TASK for said in history.said):
        return
    yield from _finding(history, "question_left", "Info", "The session ends with the model waiting: {reason}")


def _ended(ending: Ending, reason: str, entry: Entry | None = None) -> SessionEnding:
    if entry is None:
        return SessionEnding(ending=ending, reason=reason)
    return SessionEnding(ending=ending, reason=reason, event_index=shown_by(entry))


def _finding(history: History, ending: Ending, severity: Severity, message: str) -> Iterator[Finding]:
    found = ending_of(history)
    if found.ending != ending or found.event_index is None:
        return
    last = _last_thing(history)
    yield Finding.of(
        severity, message.format(reason=found.reason), (found.event_index,), None if last is None else last.turn
    )


def _last_thing(history: History) -> Entry | None:
    """Return the last thing that the human, the model or a tool did, or that stopped them.

    Who says goodbye asks for nothing, and what stops the answer to that stops no work.
    """
    things = (entry for entry in reversed(history.entries) if _is_thing(entry, history))
    done = last = next(things, None)
    while done is not None and _stops(done, history):
        done = next(things, None)
    return next(things, None) if done is not None and _is_goodbye(done) else last


def _stops(entry: Entry, history: History) -> bool:
    return not isinstance(entry, (Call, Message)) and is_interruption(entry, history.provider)


def _is_goodbye(entry: Entry) -> bool:
    return isinstance(entry, Said) and entry.kind is UserKind.HUMAN and entry.text.strip().lower() in _GOODBYES


def _is_thing(entry: Entry, history: History) -> bool:
    if isinstance(entry, (Usage, Thought)):
        return False
    if isinstance(entry, Said):
        return entry.kind not in _OF_THE_HARNESS
    if isinstance(entry, Notice):
        return is_api_error(entry, history.provider) or is_interruption(entry, history.provider)
    return not (isinstance(entry, Message) and entry.text in AGENTS[history.provider].no_messages)


def _by_response(history: History, last: Call | Message) -> SessionEnding:
    """Return how a session ended whose last thing is a response or a result of its calls."""
    done = (entry for entry in reversed(history.entries) if isinstance(entry, (Call, Message)))
    from_last = dropwhile(lambda entry: entry is not last, done)
    together = takewhile(lambda entry: entry is last or of_one_response(entry, last), from_last)
    calls = [entry for entry in reversed(list(together)) if isinstance(entry, Call)]
    if unanswered := [call for call in calls if is_unanswered(call, history.provider)]:
        if asking := next(filter(asks_human, unanswered), None):
            question = asked(asking.arguments).name
            reason = f"{tool_named(asking.tool)} asked the human, who didn't answer"
            return _ended("question_left", f"{reason}: {quoted(question, _SHOWN)}" if question else reason, asking)
        return _ended("tool_left", f"the log ends at {named(unanswered[-1])}, without its result", unanswered[-1])
    if isinstance(last, Message):
        if (question := question_in(last.text)) is not None:
            return _ended("question_left", f"its last message asks the human: {quoted(question, _SHOWN)}", last)
        return _ended("finished", "the model had the last word", last)
    if any(call.tool in AGENTS[history.provider].tools.answering for call in calls):
        return _ended("finished", f"the model gave its answer with {tool_named(last.tool)}", last)
    if stopped := next((call for call in reversed(calls) if call.outcome in _STOPPED), None):
        how = "refused" if stopped.outcome is Outcome.REJECTED else "interrupted"
        return _ended("interrupted", f"the human {how} {tool_named(stopped.tool)}, and nothing came after it", stopped)
    return _ended("unknown", f"the model said nothing after the result of {tool_named(last.tool)}", last)


def _failed_at_last(history: History) -> Call | None:
    """Return the last call of the last attempt that counts, if that attempt failed."""
    calls = reversed(history.calls)
    last = next((call for call in calls if not is_passed_over(call)), None)
    if last is None or not last.failed:
        return None
    same = takewhile(lambda call: of_one_response(call, last), calls)
    return last if Attempt([last, *same], after_human=False).failed else None


def _refused_after(failed: Call, history: History) -> bool:
    """Whether the human refused what the model wanted to do after a failure, and nothing came after that."""
    last = history.calls[-1]
    spoken = any(message.event_index > last.event_index for message in history.messages)
    return last is not failed and last.outcome is Outcome.REJECTED and not spoken


def _failure(call: Call) -> str:
    """Return the tool that failed, and its error."""
    told = signature_of(call.result)
    return tool_named(call.tool) + (f": {quoted(told.line, _SHOWN)}" if told else "")


# -- checks ----------------------------------------------------------------------------------------

_COMMAND, _ERROR = 60, 100
_RUNS = (LandmarkKind.TEST_RUN, LandmarkKind.BUILD)


@detector("Outcome")
def find_failing_check(history: History) -> Iterator[Finding]:
    """The last test run, build or linter of the session failed because of the code, not the machine; none of its kind
    passed after it, and the session didn't end on a failure.
    """
    if history.at_work or ending_of(history).ending == "error_left":
        return
    left = _left_failing(history)
    if not left:
        return
    kind, last = max(left.items(), key=lambda one: one[1].event_index)
    error = signature_of(last.result)
    yield Finding.of(
        "Warning",
        f"The last {kind} failed: {quoted(command_of(last) or '', _COMMAND)}"
        + (f", {quoted(error.line, _ERROR)}" if error else ""),
        (last.evidence,),
        last.turn,
        count=len(left),
    )


def _left_failing(history: History) -> dict[Kind, Call]:
    """Return the last check of each kind, if it failed."""
    left: dict[Kind, Call] = {}
    if not any(call.failed for call in history.calls):
        return left
    for call in history.calls:
        kinds = kinds_of(call) if call.outcome in (Outcome.OK, Outcome.FAILED) else ()
        if not kinds:
            continue
        if call.outcome is Outcome.OK or _passed(call):
            for kind in kinds:
                left.pop(kind, None)
                if kind == "test run":
                    left.pop("build", None)  # what is tested was built
        elif not is_probe(call) and not _is_of_the_machine(call):
            left |= dict.fromkeys(kinds, call)
    return left


def _is_of_the_machine(call: Call) -> bool:
    error = signature_of(call.result)
    return OF_THE_MACHINE.search(call.result if error is None else error.line) is not None


def _passed(call: Call) -> bool:
    """Whether the tests and builds of a command that failed passed, as what it printed says: the rest of it failed."""
    if "linter" in kinds_of(call):
        return False  # whose verdict isn't known apart
    found = landmarks(attempts(command_of(call) or ""), call.result, call.outcome)
    runs = [landmark for landmark in found if landmark.kind in _RUNS]
    return bool(runs) and all(landmark.verdict is Verdict.PASSED for landmark in runs)


# -- todos -----------------------------------------------------------------------------------------

_AGAIN = "(?:re-?|manually |fully |finally )?"
_TESTS = r"tests?\b(?! (?:accounts?|data|doubles?|fixtures?|helpers?|users?)\b)"
_CHECKING = later(
    "|".join(
        (
            _AGAIN + r"(?:testing|verify)\b",
            _AGAIN + _TESTS,
            _AGAIN + r"check\b(?! (?:box|constraint|list|out)| in\b(?!.*\b(?:app|browser)\b))",
            _AGAIN + r"validate\b(?! (?:(?:all|the|user) )*(?:arguments|e-?mails?|inputs?|requests?|uploads?)\b)",
            r"confirm\b(?! (?:button|dialog|modal|prompt|screen)\b)",
            r"try\b(?!\W{0,3}(?:catch|except|finally)\b)",
            r"(?:end-to-end|e2e|final|manual|regression|smoke|visual) (?:tests?|testing|checks?|verification)\b",
            r"(?:re-?)?run\b.{0,60}\b(?:tests?|suite|specs|pytest|lint\w*|type[- ]?check\w*|checks)\b(?! server)",
            r"(?:build|compile|format) (?:and|&) .{0,40}\b(?:tests?|lint|check)\b|lint\b|type-?check\b",
            r"(?:ensure|make sure)\b.{0,60}\bpass(?:es)?\b",
            r".{0,60}\b(?:testen|überprüfen|tests? laufen lassen)\W*\Z",
            r"(?:vérifier|tester|valider|(?:re)?lancer les tests|exécuter les tests)\b",
            r"(?:verificar|comprobar|probar|(?:ejecutar|correr|pasar) (?:las |los )?(?:pruebas|tests))\b",
            r".{0,60}(?:テスト|検証|動作確認)を?(?:実行|行う|する)|.{0,60}を確認(?:する)?\W*\Z",
            r"(?:运行|执行|跑).{0,20}测试|(?:测试|检查|验证|确认)(?!框|数据|用例)",
        )
    ),
    re.IGNORECASE,
)
"""Things to do that check the work: in English, German, French, Spanish, Japanese, Chinese."""


_TESTING = later(
    rf"{_AGAIN}(?:testing\b|{_TESTS})"
    r"|(?:end-to-end|e2e|final|manual|regression|smoke) (?:tests?|testing)\b"
    r"|(?:re-?)?run\b.{0,60}\b(?:tests?|suite|specs)\b",
    re.IGNORECASE,
)
"""Those of them that can't be done by reading."""

_SERVING = later(
    r"\b(?:npm|pnpm|yarn|bun)(?: run)? (?:dev|start|serve|preview)\b|\bvite\b|\bhttp\.server\b|\bserve\b", re.IGNORECASE
)
"""Commands that only start a server."""


@detector("Outcome")
def find_open_checks(history: History) -> Iterator[Finding]:
    """The model had the last word although a test or check on its own list was still open, and it ran nothing that
    could be one after it last changed that list; or it ticked off a test without having run anything that could be one
    since it last changed the list; starting a server doesn't count.
    """
    left = todos(history)
    checks = [what for what in left.open if _CHECKING.match(what)] if left else []
    is_left = left is not None and bool(checks) and ending_of(history).ending == "finished"
    if (
        left is not None
        and is_left
        and (len(left.open) < left.of or any(call.writes or writes_by_shell(call) for call in history.calls))
        and not _runs_anything(history, left.event_index, None)
    ):
        yield Finding.of(
            "Warning",
            f"The model finished with {len(left.open)} of {left.of} items on its own list still open, "
            f"among them the check {quoted(checks[0])}",
            (left.event_index,),
            count=len(checks),
        )
    ticked = [one for one in ticked_off(history) if _TESTING.match(one.text)]
    ticked = [one for one in ticked if not _runs_anything(history, one.since, one.event_index)]
    if ticked:
        yield Finding.of(
            "Warning",
            f"The model ticked off {counted(len(ticked), 'test')} on its own list without running anything "
            f"that could be a test: {quoted(ticked[0].text)}",
            [one.event_index for one in ticked],
        )


def _runs_anything(history: History, after: int, before: int | None) -> bool:
    """Whether something was run between two events that may have been a check."""
    between = (
        call for call in history.calls if call.event_index > after and (before is None or call.event_index < before)
    )
    return any(map(_may_check, between))


def _may_check(call: Call) -> bool:
    command = command_of(call)
    if command is not None:
        return not only_reads(call) and _SERVING.search(command) is None
    return not (only_reads(call) or asks_human(call) or keeps_list(call) or call.writes)


# -- corrections -----------------------------------------------------------------------------------

_MANY_CORRECTIONS = 3
_CORRECTION_CHARS = 160


@detector("Outcome", version=2)
def find_corrections(history: History) -> Iterator[Finding]:
    """The human refused a call, or said that the work was wrong, wasn't what was asked for, or should be undone."""
    found = corrections(history)
    if not found:
        return
    spoken = [one for one in found if not one.silent]
    said = f"The human refused {counted(len(found), 'call')} without a word{_before(history, found[0])}: "
    said += found[0].quote
    if spoken:
        shown = " and ".join(quoted(one.quote, _CORRECTION_CHARS // len(spoken[:2])) for one in spoken[:2])
        said = f"The human objected to the work {counted(len(found), 'time')}: {shown}"
    yield Finding.of(
        "Critical" if len(found) >= _MANY_CORRECTIONS else "Warning",
        said,
        [one.event_index for one in found],
        found[0].turn,
    )


def _before(history: History, refused: Correction) -> str:
    """Return a clause with the failed attempts just before a refused call, if there were any."""
    before = [attempt for attempt in counted_attempts(history) if attempt.last_event < refused.event_index]
    failed = len(list(takewhile(lambda attempt: attempt.failed, reversed(before))))
    return f", after {counted(failed, 'failed attempt')}" if failed else ""


# -- reviews ---------------------------------------------------------------------------------------

_PROBLEM_CHARS = 100


@detector("Outcome")
def find_review_problems(history: History) -> Iterator[Finding]:
    """A review by another model, such as one started by Codex's `/review`, found problems in what the model had
    made.
    """
    found = reviews(history)
    if not found:
        return
    problems = [problem for review in found for problem in review.problems]
    where = "A review" if len(found) == 1 else f"{len(found)} reviews"
    after = (call for call in history.calls if call.event_index > found[-1].event_index)
    went_on = any(call.outcome is Outcome.OK and changed_files(call) for call in after)
    yield Finding.of(
        "Info" if went_on else "Warning",
        f"{where} found {counted(len(problems), 'problem')} in what the model had made"
        f"{', and files were changed afterwards' if went_on else ''}: {quoted(problems[-1], _PROBLEM_CHARS)}",
        [review.event_index for review in found],
        found[0].turn,
        count=len(problems),
    )


# -- questions -------------------------------------------------------------------------------------

_NOBODY = later(
    r"\A\W*(?:No (?:response|answer|reply) (?:after|within|in) \d|(?:The )?(?:question|request) timed out"
    r"|Timed out (?:while )?waiting for (?:the )?(?:user|human|answer|response))",
    re.IGNORECASE,
)
"""How agents tell the model that nobody answered in time."""
_CODEX_ASKS, _CODEX_NOBODY = "request_user_input", later(r'\A\s*\{\s*"answers"\s*:\s*\{\s*\}\s*\}\s*\Z')
"""The tool of Codex that asks: after two minutes without an answer it returns none. (Gemini CLI has no such limit.)"""


@detector("Outcome")
def find_unanswered_question(history: History) -> Iterator[Finding]:
    """The model asked the human, nobody answered in time, and it went on without an answer."""
    found = [call for call in history.calls if _nobody_answered(call) and _went_on(call, history)]
    if not found:
        return
    question = asked(found[0].arguments).name
    yield Finding.of(
        "Warning",
        f"Nobody answered {counted(len(found), 'question')} in time, and the model went on without an answer"
        + (f": {quoted(question)}" if question else ""),
        [call.evidence for call in found],
        found[0].turn,
    )


def _nobody_answered(call: Call) -> bool:
    if not asks_human(call):
        return False
    silent = _CODEX_NOBODY if own_name(call.tool) == _CODEX_ASKS else _NOBODY
    return silent.search(call.result[:200]) is not None


def _went_on(question: Call, history: History) -> bool:
    """Whether the model did something before it got an answer, not only looked at things and asked again."""
    looked = False
    said = ""
    begin = bisect_right(history.entries, question.evidence, key=lambda entry: entry.event_index)
    for entry in islice(history.entries, begin, None):
        if entry.turn not in (None, question.turn):
            break
        if isinstance(entry, Message):
            said = entry.text
        elif isinstance(entry, Call) and entry.tool == question.tool:
            if not _nobody_answered(entry):
                return False
        elif isinstance(entry, Call):
            if not only_reads(entry):
                return True
            looked = True
    return looked and bool(said) and not asks_to_go_on(said)
