"""OpenCode's records, and what becomes of them."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from agtrace_indexer.events.drafts import Draft, LogState, Record, Retraction
from agtrace_indexer.providers.opencode import parser
from agtrace_indexer.providers.opencode.parser import known_as
from agtrace_schema.events import (
    Message,
    Notification,
    Outcome,
    Payload,
    Reasoning,
    TokenUsage,
    ToolCall,
    ToolResult,
    User,
    UserKind,
)

from tests.indexer.opencode_stories import START, Story, answer, session, text, tidal, tokens, tool, user


def records(story: Story) -> list[Record]:
    return list(parser.unroll(copy.deepcopy(story.export)) or ())


def live(given: list[Record], state: LogState | None = None) -> dict[str, Draft]:
    """The drafts that are left, by their keys."""
    state, left = state or LogState(), dict[str, Draft]()
    for record in given:
        for said in parser.drafts(record, state):
            if isinstance(said, Retraction):
                for key in said.keys:
                    del left[key]
            else:
                assert isinstance(said, Draft) and said.key is not None
                left[said.key] = said
    return left


def payloads(*messages: tuple[Record, list[Record]], **head: Any) -> list[Payload]:
    return [draft.payload for draft in live(records(Story(session(**head), list(messages)))).values()]


def results(*messages: tuple[Record, list[Record]]) -> list[ToolResult]:
    return [payload for payload in payloads(*messages) if isinstance(payload, ToolResult)]


def usage(**more: Any) -> TokenUsage:
    (found,) = [p for p in payloads(answer(1, **more)) if isinstance(p, TokenUsage)]
    return found


# --- what messages become ---


def test_a_response_becomes_reasoning_text_calls_results_and_tokens_in_one_step() -> None:
    drafts = [draft for key, draft in live(records(tidal())).items() if key.startswith(known_as("msg_010002abc"))]
    kinds = [type(draft.payload) for draft in drafts]
    assert kinds == [Reasoning, Message, ToolCall, ToolResult, ToolCall, ToolResult, Notification, TokenUsage]
    steps = {draft.step for draft in drafts if not isinstance(draft.payload, Notification)}
    assert steps == {"msg_010002abc"}
    assert [draft.timestamp for draft in drafts] == [START + at for at in (2100, 2300, 100, 350, 100, 350, 2000, 2900)]


def test_parts_that_only_repeat_are_left_out_and_counted() -> None:
    state = LogState()
    live(
        [{"info": answer(1)[0], "parts": [{"type": "step-start"}, {"type": "snapshot"}, {"type": "step-finish"}]}],
        state,
    )
    assert state.skipped == ["step-start", "snapshot", "step-finish"]


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (text("Mend it"), UserKind.HUMAN),
        (text("Called the Read tool", synthetic=True), UserKind.INJECTED),
        (text("The following tool was executed by the user", synthetic=True), UserKind.COMMAND),
        (text("A plugin says so", ignored=True), UserKind.NOTIFICATION),
        ({"type": "subtask", "command": "review", "prompt": "Look at it"}, UserKind.COMMAND),
    ],
)
def test_only_what_a_human_typed_is_a_humans(part: Record, kind: UserKind) -> None:
    assert [payload.kind for payload in payloads(user(1, part)) if isinstance(payload, User)] == [kind]


def test_the_texts_and_images_of_one_request_are_one_text() -> None:
    image = {"type": "file", "mime": "image/png", "filename": "moon.png", "url": "data:image/png;base64,AAAA"}
    assert payloads(user(1, text("Look"), image, text("at this"))) == [
        User("Look\nat this\n[image: image/png, 3 bytes]", UserKind.HUMAN)
    ]


def test_the_prompt_of_a_sub_agent_is_a_task_and_its_session_names_its_parent() -> None:
    state = LogState()
    head = session(2, parentID="ses_0001abc", title="Look for the moon (@explore subagent)")
    found = live(records(Story(head, [user(1, text("Find it"), of=2)])), state)
    assert [draft.payload for draft in found.values()] == [User("Find it", UserKind.TASK)]
    facts = state.sessions[""]
    assert (facts.kind, facts.parent_id, facts.agent_type, facts.description) == (
        "subagent", "ses_0001abc", "explore", "Look for the moon",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("title", "known"),
    [("Tides", "Tides"), ("New session - 2026-08-04T21:26:39.367Z", None), ("Child session - 2026-08-04T21:2", None)],
)
def test_a_title_that_nobody_chose_is_none(title: str, known: str | None) -> None:
    state = LogState()
    live(records(Story(session(title=title))), state)
    assert state.sessions[""].title == known


def test_the_text_of_a_compaction_is_a_summary_and_its_tokens_count() -> None:
    asked, summary, usage = payloads(
        user(1, {"type": "compaction", "auto": True}),
        answer(2, text("So far: tides."), summary=True, mode="compaction", agent="compaction"),
    )
    assert (asked, summary) == (
        Notification("compaction", "automatic"), User("So far: tides.", UserKind.COMPACTION_SUMMARY),
    )  # fmt: skip
    assert isinstance(usage, TokenUsage) and usage.output_tokens == 10


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        ({"name": "MessageAbortedError", "data": {"message": "Aborted"}}, "aborted", "Aborted"),
        (
            {"name": "APIError", "data": {"message": "overloaded", "statusCode": 529}},
            "error",
            "APIError 529: overloaded",
        ),
        ({"name": "ContextOverflowError", "data": {}}, "error", "ContextOverflowError"),
    ],
)
def test_what_ended_a_response_is_a_notification(error: Record, kind: str, said: str) -> None:
    notice = payloads(answer(1, text("Half"), error=error))[-1]
    assert notice == Notification(kind, said)


# --- tools ---


@pytest.mark.parametrize(
    ("part", "outcome", "code"),
    [
        (tool("bash", output="fine", metadata={"exit": 0}), Outcome.OK, 0),
        (tool("bash", output="no", metadata={"exit": 2}), Outcome.FAILED, 2),
        (
            tool("bash", output="x\n<bash_metadata>\nUser aborted the command\n", metadata={"exit": None}),
            Outcome.INTERRUPTED, None,
        ),
        (
            tool("bash", output="x\n<bash_metadata>\nexceeding timeout 120000 ms", metadata={"exit": None}),
            Outcome.FAILED, None,
        ),
        (tool("read", output="a = 1"), Outcome.OK, None),
        (tool("read", "error", error="File not found: gauge.py"), Outcome.FAILED, None),
        (tool("bash", "error", error="The user rejected permission to use this"), Outcome.REJECTED, None),
        (tool("question", "error", error="The user dismissed this question"), Outcome.REJECTED, None),
        (tool("bash", "error", error="The user has specified a rule which prevents you from"), Outcome.REJECTED, None),
        (tool("bash", "error", error="Tool execution aborted"), Outcome.INTERRUPTED, None),
        (tool("bash", "error", error="stopped", metadata={"interrupted": True}), Outcome.INTERRUPTED, None),
        (tool("invalid", input={"tool": "bash", "error": "no command"}, output="wrong"), Outcome.FAILED, None),
        (tool("tide", "ebbing", output="low"), Outcome.UNKNOWN, None),
    ],
)  # fmt: skip
def test_how_an_execution_ended(part: Record, outcome: Outcome, code: int | None) -> None:
    (result,) = results(answer(1, part))
    assert (result.outcome, result.exit_code) == (outcome, code)


def test_a_call_that_the_model_got_wrong_is_one_to_the_tool_that_it_meant() -> None:
    call = payloads(answer(1, tool("invalid", input={"tool": "bash", "error": "no"}, output="wrong")))[0]
    assert isinstance(call, ToolCall) and call.name == "bash"


@pytest.mark.parametrize("status", ["pending", "running"])
def test_what_runs_is_running_until_its_message_ends_or_the_model_goes_on(status: str) -> None:
    unfinished = {"time": {"created": START}}
    begun = answer(1, tool("bash", status), **unfinished)
    assert [result.outcome for result in results(begun)] == [Outcome.RUNNING]
    assert [result.outcome for result in results(begun, user(2, text("queued")))] == [Outcome.RUNNING]
    assert [result.outcome for result in results(begun, answer(2))] == [Outcome.INTERRUPTED]
    assert [result.outcome for result in results(answer(1, tool("bash", status)))] == [Outcome.INTERRUPTED]


def test_a_task_names_the_session_of_its_sub_agent_while_it_runs_and_by_its_output() -> None:
    running = tool("task", "running", metadata={"sessionId": "ses_0002abc"})
    done = tool("task", output="task_id: ses_0003abc (for resuming)\n\n<task_result>", call="call_2")
    assert [result.agent_id for result in results(answer(1, running, done))] == ["ses_0002abc", "ses_0003abc"]


def test_calls_with_the_same_id_of_the_provider_are_two_calls() -> None:
    found = results(answer(1, tool("read", call="0", output="a")), answer(2, tool("read", call="0", output="b")))
    assert len({result.call_id for result in found}) == 2


# --- tokens ---


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (tokens(100, 20, 5, read=7, written=3, total=130), 20),  # the total has the reasoning in the output
        (tokens(100, 20, 5, read=7, written=3, total=135), 25),  # the total adds it
        (tokens(100, 20, 5), 20),  # before 1.2 there is no total
        (tokens(100, 20, 0, total=120), 20),
    ],
)
def test_reasoning_is_counted_once_as_the_total_shows(given: Record, said: int) -> None:
    found = usage(tokens=given)
    assert (found.input_tokens, found.output_tokens, found.complete) == (100, said, True)
    assert [found.cache_read_tokens, found.cache_creation_5m_tokens] == [*given["cache"].values()]


def test_figures_of_a_message_and_of_its_step_count_once_and_those_of_the_step_if_there_are_no_others() -> None:
    step = {"type": "step-finish", "tokens": tokens(100, 10)}
    messages = [answer(1, step), answer(2, step, tokens=tokens(0, 0)), answer(3, step, step, tokens=None)]
    messages += [answer(4, step, step)]  # whose own figures are those of its last step
    counted = [p for p in payloads(*messages) if isinstance(p, TokenUsage)]
    assert [(found.input_tokens, found.output_tokens) for found in counted] == [*[(100, 10)] * 2, *[(200, 20)] * 2]


@pytest.mark.parametrize(
    ("row", "more"),
    [
        (tokens(350, 20, 5), [(150, 5, "sum")]),
        (tokens(150, 50), []),  # less, as rows of forks
        (tokens(900, 10), [(None, None, "sum")]),  # more, but less output
        (None, []),
    ],
)
def test_what_a_session_counts_more_than_its_messages_is_a_sum(row: Any, more: list[Any]) -> None:
    found = [p for p in payloads(answer(1), answer(2), tokens=row) if isinstance(p, TokenUsage)][2:]
    assert [(one.input_tokens, one.output_tokens, one.speed) for one in found] == more


@pytest.mark.parametrize("figures", [tokens(0, 0), None, "many", {"input": -1, "output": "x"}])
def test_a_response_without_figures_has_unknown_ones(figures: Any) -> None:
    found = usage(tokens=figures)
    assert (found.input_tokens, found.output_tokens, found.complete) == (None, None, False)


def test_what_a_humans_command_ran_is_no_response() -> None:
    shell = user(1, text("The following tool was executed by the user", synthetic=True))
    ran = answer(2, tool("bash", output="tide"), tokens=tokens(0, 0), parentID=shell[0]["id"])
    assert not [payload for payload in payloads(shell, ran) if isinstance(payload, TokenUsage)]


def test_a_price_of_nothing_is_a_subscriptions() -> None:
    assert (usage(cost=0).cost_usd, usage(cost=0.25).cost_usd) == (None, 0.25)


# --- changes ---


def test_only_what_changed_in_a_message_comes_again() -> None:
    begun, ended = (
        answer(1, text("I look"), tool("bash", "running")),
        answer(1, text("I look"), tool("bash", output="5")),
    )
    state = LogState()
    live([{"info": begun[0], "parts": begun[1]}], state)
    again = list(parser.drafts({"info": ended[0], "parts": ended[1]}, state))
    assert [type(draft.payload) for draft in again if isinstance(draft, Draft)] == [ToolResult]


def test_what_was_deleted_is_taken_back() -> None:
    state = LogState()
    given = records(tidal())
    assert live([*given, {"removed": [known_as(info["id"]) for info, _ in tidal().messages]}], state) == {}
    assert state.memory["messages"] == {}


def test_a_fork_has_the_events_of_its_original_under_new_ids() -> None:
    def identities(story: Story) -> list[str | None]:
        return [draft.identity for draft in live(records(story)).values()]

    forked = json.loads(json.dumps(tidal().export).replace("_01", "_77").replace("0001abc", "0077abc"))
    copy_of = Story(forked["info"], [(message["info"], message["parts"]) for message in forked["messages"]])
    assert copy_of.id != tidal().id
    assert identities(copy_of) == identities(tidal()) and len(identities(tidal())) > 10


def test_ids_that_were_blacked_out_are_no_ids() -> None:
    story = Story(session(parentID="REDACTED"), [user(1, text("One")), answer(2, text("Two")), user(3, text("Three"))])
    for info, parts in story.messages:
        info["id"] = "REDACTED"
        for part in parts:
            part["id"] = "REDACTED"
    state = LogState()
    found = [draft.payload for draft in live(records(story), state).values()]
    assert [payload.text for payload in found if isinstance(payload, (User, Message))] == ["One", "Two", "Three"]
    assert (state.sessions[""].kind, state.sessions[""].parent_id) == ("subagent", None)


# --- whatever comes ---


@pytest.mark.parametrize("document", [None, [], {}, {"info": {"id": "x"}, "messages": []}, {"info": {}, "messages": 7}])
def test_a_document_that_is_no_export_is_left_alone(document: Any) -> None:
    assert parser.unroll(document) is None
