"""How a session ended, and the calls that never got a result.

The ending is decided by the last thing that anybody did, whatever the harness wrote afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import dropwhile, takewhile

from agtrace_indexer.landmarks.questions import question_landmark
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.analysis import Ending, SessionEnding
from agtrace_schema.events import Outcome, Provider, UserKind

from agtrace.health.facts.actions import (
    asks_human,
    call_label,
    error_text,
    is_api_error,
    is_interruption,
    is_passed_over,
    only_reads,
    quoted,
    tool_named,
)
from agtrace.health.facts.causes import cause_of
from agtrace.health.facts.questions import question_in
from agtrace.health.history import (
    Call,
    Entry,
    History,
    Message,
    Notice,
    Thought,
    Usage,
    UserText,
    derived,
    of_one_response,
)

_SHOWN = 120
_OF_THE_HARNESS = frozenset(
    {UserKind.COMMAND, UserKind.INJECTED, UserKind.NOTIFICATION, UserKind.COMPACTION_SUMMARY}
)  # a command is answered by the harness, so it isn't a request
_GOODBYES = frozenset("exit quit /exit /quit :q q bye goodbye logout thanks perfect great".split())  # noqa: SIM905
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
        cause = cause_of(failed, history)
        why = f": {quoted(cause.line, _SHOWN)}" if cause else ""
        return _ended("error_left", f"the last tool call failed ({call_label(failed)}{why})", failed)
    if last is None:
        return _ended("unknown", "nobody asked for anything, and the model did nothing")
    if history.continued:
        return _ended("finished", "the human approved the plan, which another session carries out", last)
    if isinstance(last, (Call, Message)):
        return _by_response(history, last)
    if is_interruption(last, history.provider):
        return _ended("interrupted", "the human interrupted the model, and nothing came after it", last)
    if _was_queued(last, history):
        return _ended("finished", "the last request had been queued, and was answered before it was logged", last)
    if not history.messages and not history.calls:
        return _ended("unknown", "the log has no answer at all", last)
    return _ended("abandoned", "the last request was never answered", last)


def _was_queued(last: Entry, history: History) -> bool:
    """Whether the model spoke after the human had queued the text of this request while it worked."""
    said = last.text if isinstance(last, UserText) else None
    queued = next((one for one in history.notices if one.text == said and one.kind.startswith("queue-operation")), None)
    return queued is not None and any(queued.event_index < one.event_index for one in history.messages)


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


def _ended(ending: Ending, reason: str, entry: Entry | None = None) -> SessionEnding:
    if entry is None:
        return SessionEnding(ending=ending, reason=reason)
    return SessionEnding(ending=ending, reason=reason, event_index=shown_by(entry))


def _last_thing(history: History) -> Entry | None:
    """Return the last thing that the human, the model or a tool did, or that stopped them.

    Who says goodbye asks for nothing, and what stops the answer to that stops no work.
    """
    things = (entry for entry in reversed(history.entries) if _is_thing(entry, history))
    done = last = next(things, None)
    while done is not None and not isinstance(done, (Call, Message)) and is_interruption(done, history.provider):
        done = next(things, None)
    goodbye = (
        isinstance(done, UserText) and done.kind is UserKind.HUMAN and done.text.strip(" \n.!").lower() in _GOODBYES
    )
    return next(things, None) if goodbye else last


def _is_thing(entry: Entry, history: History) -> bool:
    if isinstance(entry, (Usage, Thought)):
        return False
    if isinstance(entry, UserText):
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
            question = question_landmark(asking.arguments).name
            reason = f"{tool_named(asking.tool)} asked the human, who didn't answer"
            return _ended("question_left", f"{reason}: {quoted(question, _SHOWN)}" if question else reason, asking)
        return _ended("tool_left", f"the log ends at {call_label(unanswered[-1])}, without its result", unanswered[-1])
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
    last = next((call for call in calls if not is_passed_over(call) and not (call.failed and only_reads(call))), None)
    if last is None or not last.failed:
        return None
    same = takewhile(lambda call: of_one_response(call, last), calls)
    return last if all(call.failed or only_reads(call) or is_passed_over(call) for call in same) else None


def _refused_after(failed: Call, history: History) -> bool:
    """Whether the human refused what the model wanted to do after a failure, and nothing came after that."""
    last = history.calls[-1]
    spoken = any(message.event_index > last.event_index for message in history.messages)
    return last is not failed and last.outcome is Outcome.REJECTED and not spoken


def unanswered(history: History) -> Iterator[Call]:
    """Yield the calls that never got a result and weren't interrupted, after which the session went on."""
    waiting: list[Call] = []  # of one response: the next response shows that the session went on
    for entry in history.entries:
        if isinstance(entry, (UserText, Notice)) and is_interruption(entry, history.provider):
            waiting = []
        elif (isinstance(entry, UserText) and entry.opens_turn) or (
            isinstance(entry, (Call, Message, Thought)) and waiting and not _goes_with(entry, waiting[0])
        ):
            yield from waiting
            waiting = []
        if isinstance(entry, Call):
            if entry.result_event == entry.event_index:
                waiting = waiting[1:]  # a result that doesn't say whose it is
            elif is_unanswered(entry, history.provider):
                waiting.append(entry)


def _goes_with(entry: Call | Message | Thought, waiting: Call) -> bool:
    """Whether an entry belongs to the response of a call, or is a result without a call."""
    if isinstance(entry, Call) and entry.result_event == entry.event_index:
        return True
    return of_one_response(waiting, entry)
