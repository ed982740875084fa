"""How a session ended: decided by the last thing that anybody did in it, whatever the harness wrote afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import dropwhile, takewhile

from agtrace_indexer.landmarks.questions import asked
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.analysis import Ending, SessionEnding, Severity
from agtrace_schema.events import Outcome, Provider, UserKind

from agtrace.health.facts.actions import Attempt, asks_human, is_passed_over
from agtrace.health.facts.api import error_text, is_api_error, is_interruption
from agtrace.health.facts.labels import named, quoted, tool_named
from agtrace.health.facts.questions import question_in
from agtrace.health.finding import Finding, detector
from agtrace.health.history import Call, Entry, History, Message, Notice, Said, Thought, Usage, of_one_response
from agtrace.text.signatures import signature_of

_SHOWN = 120
_OF_THE_HARNESS = frozenset(
    {UserKind.COMMAND, UserKind.INJECTED, UserKind.NOTIFICATION, UserKind.COMPACTION_SUMMARY}
)  # a command is answered by the harness, so it isn't a request
_GOODBYES = frozenset({"exit", "quit", "/exit", "/quit", ":q", "q", "bye", "logout"})
_STOPPED = frozenset({Outcome.REJECTED, Outcome.INTERRUPTED})


def ending_of(history: History) -> SessionEnding:
    """Return how a session ended, the reason for this verdict, and the event that shows it."""
    found: SessionEnding | None = history.derived.get("ending")
    if found is None:
        found = history.derived["ending"] = _ending_of(history)
    return found


def _ending_of(history: History) -> SessionEnding:
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


@detector("Outcome", "The session ends with a human request that the model never answered.", structural=True)
def find_abandoned(history: History) -> Iterator[Finding]:
    """Find a session that ends with a request without an answer."""
    yield from _finding(
        history, "abandoned", "Warning", "The session ends with a request that the model never answered"
    )


@detector(
    "Outcome",
    "The session ends with the model waiting for the human: it asked for something that it needs to continue; "
    "an offer after finished work doesn't count.",
)
def find_left_question(history: History) -> Iterator[Finding]:
    """Find a session that ends with the model waiting for the human; a sub-agent can't."""
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
    yield Finding(
        severity=severity,
        message=message.format(reason=found.reason),
        count=1,
        events=(found.event_index,),
        turn=None if last is None else last.turn,
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
    calls = _calls_with(last, history)
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


def _calls_with(last: Call | Message, history: History) -> list[Call]:
    """Return the calls of the response that this entry ends, in file order."""
    done = (entry for entry in reversed(history.entries) if isinstance(entry, (Call, Message)))
    from_last = dropwhile(lambda entry: entry is not last, done)
    together = takewhile(lambda entry: entry is last or of_one_response(entry, last), from_last)
    return [entry for entry in reversed(list(together)) if isinstance(entry, Call)]


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
