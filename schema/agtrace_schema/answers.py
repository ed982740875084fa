"""The models of what agtrace answers, inside the envelope of the answer contract.

Every model is frozen and leaves out what is None when it is serialized. `README.md` beside this
package is generated from them.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from agtrace_schema.events import EventType, Outcome, Provider, UserKind

TurnOutcome = Literal["success", "partial", "failed", "unknown"]
Made = Literal["exact", "partial", "estimated", "unknown"]
"""How a total was made: of all figures; while some are missing; of list prices, or of logs that vanished and share
responses with others; not at all."""


class Model(BaseModel):
    """A frozen part of an answer."""

    model_config = ConfigDict(frozen=True, defer_build=True)  # built when first used: 7 ms of a server's start


# -- list_sessions: data is {"sessions": [SessionItem]} --------------------------------------------


class SessionItem(Model):
    """One session in a list."""

    id: str
    """As many characters as tell it apart, at least 8; every tool accepts it."""
    provider: Provider
    project_hash: str | None = None
    """8 characters; every tool accepts them."""
    kind: str | None = None
    """Only where it isn't a main session: subagent, fork, continuation."""
    parent_id: str | None = None
    title: str | None = None
    snippet: str | None = None
    start_time: str | None = None
    duration_seconds: int | None = None
    turn_count: int
    tool_calls: int
    failed_calls: int
    total_tokens: int | None = None
    """Input, cache and output together, without copies; absent where the log has no figures."""
    tokens_made: Made | None = None
    cost_usd: float | None = None
    """US dollars; absent where no price is known."""
    cost_made: Made | None = None
    copied_turns: int | None = None
    """Turns that were copied from an older session; they count there."""


class ModelTotals(Model):
    """What one model used in a session or a project."""

    model: str
    responses: int
    total_tokens: int | None = None
    tokens: dict[str, int] | None = None
    """By kind, as in SessionStats; zero is left out."""
    cost_usd: float | None = None
    cost_made: Made | None = None


# -- get_project_info: data is {"projects": [ProjectItem]} -----------------------------------------


class ProjectItem(Model):
    """One project."""

    hash: str
    root_path: str | None = None
    """Absent where only the hash is known (Gemini CLI)."""
    session_count: int
    providers: list[Provider]
    failed_calls: int
    responses: int
    total_tokens: int | None = None
    tokens: dict[str, int] | None = None
    """By kind, as in SessionStats; zero is left out."""
    tokens_made: Made | None = None
    cost_usd: float | None = None
    cost_made: Made | None = None
    models: list[ModelTotals] | None = None
    """The three with the most tokens."""
    total_models: int | None = None
    """How many there are, where there are more."""
    last_activity: str | None = None


# -- get_session_details ---------------------------------------------------------------------------


class Tokens(Model):
    """Tokens of model responses; caches and reasoning only where they aren't zero, nothing where it is unknown."""

    input: int | None = None
    """Uncached input."""
    cache_creation_5m: int | None = None
    cache_creation_1h: int | None = None
    cache_read: int | None = None
    output: int | None = None
    """All output, reasoning included."""
    reasoning: int | None = None


class Copied(Model):
    """What a session repeats of an older one: it can be read here and counts there."""

    turns: int
    events: int
    tool_calls: int
    failed_calls: int
    total_tokens: int


class WithChildren(Model):
    """Sums of a session and of all sub-agents below it."""

    sessions: int
    tool_calls: int
    failed_calls: int
    total_tokens: int | None = None
    tokens_made: Made | None = None
    cost_usd: float | None = None
    cost_made: Made | None = None


class SessionStats(Model):
    """Sums of a session, without its sub-agents and without copies."""

    total_turns: int
    total_events: int
    tool_calls: int
    failed_calls: int
    responses: int
    """Model responses (API calls) with token figures."""
    total_tokens: int | None = None
    tokens: dict[str, int] | None = None
    """By kind: input_tokens (uncached), cache_creation_5m_tokens, cache_creation_1h_tokens, cache_read_tokens,
    output_tokens, and reasoning_tokens as a part of the output. A kind that the log doesn't tell is absent."""
    tokens_made: Made | None = None
    tokens_outside_turns: int | None = None
    """Those of the total that belong to no turn that is left: of turns that were rolled back, or before the first."""
    incomplete_responses: int | None = None
    """Responses of which the log holds only placeholder figures, or none."""
    cost_usd: float | None = None
    cost_made: Made | None = None
    models: list[ModelTotals] | None = None
    """The three with the most tokens, where there was more than one."""
    peak_context_tokens: int | None = None
    """The largest input of a response, cached or not."""
    context_window: int | None = None
    duration_seconds: int | None = None
    """From the first event to the last."""
    active_seconds: int | None = None
    """From each request to the last event of its turn: without the human's pauses."""
    copied: Copied | None = None
    with_children: WithChildren | None = None


class ChildItem(Model):
    """A session that comes from another one."""

    id: str
    kind: str
    started_by: int | None = None
    """The event_index of the call that started it."""


class FailingTurns(Model):
    """The turns of its own in which tool executions of a session failed."""

    total: int
    turns: list[int]
    """The first twenty by their turn_index."""


class SessionHead(Model):
    """What every level of session details says about the session."""

    session_id: str
    provider: Provider
    kind: str
    parent_id: str | None = None
    parent_missing: bool | None = None
    """True where the log names a parent that isn't indexed."""
    started_by: int | None = None
    """The event_index of the call, in the parent, that started this session."""
    children: list[ChildItem] | None = None
    """The first ten sessions that this one started, or that were copied from it or go on from it."""
    total_children: int | None = None
    """How many there are, where there are more than ten."""
    agent_type: str | None = None
    description: str | None = None
    """What a sub-agent was started for."""
    title: str | None = None
    project_hash: str | None = None
    root_path: str | None = None
    model: str | None = None
    version: str | None = None
    branch: str | None = None
    start_time: str | None = None
    end_time: str | None = None
    log: str | None = None
    """The file it was read from."""
    log_gone: bool | None = None
    """True where the file was deleted; the index keeps the session."""
    stats: SessionStats
    failing_turns: FailingTurns | None = None
    """At level summary, where there are any."""


class TurnOverview(Model):
    """One turn at level summary."""

    id: str
    """`turn-0` and so on."""
    turn_index: int
    timestamp: str | None = None
    user_message: str
    user_event: int | None = None
    """The event_index of the request."""
    copied: bool | None = None
    """True where all of it was copied from an older session, which counts it."""
    step_count: int
    tool_calls: int
    failed_tools: int
    outcome: TurnOutcome
    stats: dict[str, int] | None = None
    """Sums by kind, as `Tokens` has them: input_tokens, cache_read_tokens, output_tokens and so on."""
    tokens_incomplete: bool | None = None
    """True where some responses have only placeholder figures."""


class StepSummary(Model):
    """One step at level turns."""

    step_index: int
    first_event: int
    summary: str
    tool_calls: int
    failed_tools: int
    tokens: Tokens | None = None
    context_tokens: int | None = None
    """The whole input of the step's last response, cached or not: what filled the context window."""
    tokens_incomplete: bool | None = None
    """True where the log has only placeholder figures."""
    reasoning: str | None = None


class TurnDetail(Model):
    """One turn at level turns; a long turn can be continued on the next page."""

    turn_index: int
    user_message: str
    copied: bool | None = None
    """True where all of it was copied from an older session."""
    steps: list[StepSummary]
    outcome: TurnOutcome
    key_actions: list[str]


class Quote(Model):
    """The beginning of an event's text, at most 500 characters."""

    event_index: int
    text: str
    chars: int | None = None
    """Characters of the whole text, where it was cut."""


class CallQuote(Model):
    """What a tool was asked to do, with long values cut: at most 500 characters."""

    name: str
    arguments: Any
    """An object, as the call has it; a text where the tool takes one, or where the object has too many keys."""
    chars: int | None = None
    """Characters of all arguments as JSON, where something was cut."""


class ResultQuote(Model):
    """The beginning of what a tool gave back, at most 500 characters."""

    content: str
    chars: int | None = None


class ToolExecution(Model):
    """A tool call with its result; one of them is missing where the log lacks it."""

    call: CallQuote | None = None
    result: ResultQuote | None = None
    outcome: Outcome | None = None
    duration_ms: int | None = None
    """From the call to its result; absent where a human was asked."""
    call_event: int | None = None
    result_event: int | None = None
    agent: str | None = None
    """The id of the sub-agent session that this call started."""


class EventQuote(Model):
    """A text in the user's role or a notification: the beginning, at most 500 characters."""

    event_index: int
    event_type: EventType
    kind: str | None = None
    text: str
    chars: int | None = None


class StepDetail(Model):
    """A step at level steps.

    The same step_index appears again where the step goes on: on the next page, or with another message.
    Without a step_index it is what belongs to no response that the log tells apart.
    """

    step_index: int | None = None
    reasoning: Quote | None = None
    message: Quote | None = None
    tools: list[ToolExecution] | None = None
    tokens: Tokens | None = None
    context_tokens: int | None = None
    tokens_incomplete: bool | None = None
    usage_event: int | None = None
    """The event_index of the token figures."""


class TurnSteps(Model):
    """A turn at level steps, part by part in file order; without a turn_index: what belongs to no turn."""

    turn_index: int | None = None
    user_message: str | None = None
    """The beginning of the request, at most 500 characters; absent where the turn is continued."""
    user_event: int | None = None
    copied: bool | None = None
    events: list[EventQuote] | None = None
    """What happened in the turn beside its steps."""
    steps: list[StepDetail] | None = None


class Transcript(Model):
    """Level full: the session as one text, in chunks that join to it.

    For every event in file order: a line `## event 12 · turn 0 step 3 · ToolCall Bash · ok · <time>`, then the
    text that get_event_details gives (the figures of TokenUsage as one line of JSON), then a newline.
    """

    session_id: str
    text: str


class ToolUse(Model):
    """How often a session called a tool, and how often that failed."""

    name: str
    calls: int
    failed: int


class TouchedFile(Model):
    """A file that calls of one session name, with how many read and how many write it."""

    path: str
    """Below the project's root; in compare_sessions where both sessions are of one project."""
    reads: int
    writes: int


class FailedExecution(Model):
    """A tool execution that did not end well; get_event_details opens its events."""

    turn_index: int | None = None
    call_event: int
    result_event: int | None = None
    tool: str
    outcome: Outcome
    quote: str


class SessionOverview(SessionHead):
    """Level summary."""

    turns: list[TurnOverview]


class SessionTurns(SessionHead):
    """Level turns."""

    turns: list[TurnDetail]


class SessionSteps(SessionHead):
    """Level steps."""

    turns: list[TurnSteps]


class SessionSections(SessionHead):
    """The sections that can be asked for, beside those of the head; a total where several are asked for."""

    turns: list[TurnOverview]
    total_turns: int | None = None
    tools: list[ToolUse]
    total_tools: int | None = None
    files: list[TouchedFile]
    total_files: int | None = None
    failures: list[FailedExecution]
    total_failures: int | None = None
    models: list[ModelTotals]
    total_models: int | None = None


# -- search_event_previews: data is {"matches": [EventPreview]}, or {"sessions": [SessionMatches]} ----
# Beside them `own_left_out`, how many calls to agtrace itself and results of these were left out as far as the
# scan came, and `words`, [WordCount] where a text of several words was not found.


class EventPreview(Model):
    """One hit of a search."""

    session_id: str
    event_index: int
    timestamp: str | None = None
    event_type: EventType
    turn_index: int | None = None
    step_index: int | None = None
    call_event: int | None = None
    """On a result: the event_index of its call."""
    result_event: int | None = None
    """On a call: the event_index of its result."""
    outcome: Outcome | None = None
    copied: bool | None = None
    """True where an older session has the same event; it counts there."""
    preview: dict[str, Any]
    """The preview by type; the text around the match."""


class SessionMatches(Model):
    """A session with hits of a search."""

    session_id: str
    provider: Provider
    title: str | None = None
    snippet: str | None = None
    """The beginning of the first request, where there is no title."""
    project_hash: str | None = None
    start_time: str | None = None
    matches: int
    """The hits in this session."""
    matches_exact: bool | None = None
    """False where there was no time to count them all."""
    match: EventPreview
    """The newest hit; with order oldest, the oldest."""


class WordCount(Model):
    """In how many events a word of the query stands."""

    word: str
    events: int
    exact: bool
    """False where it may be more."""


# -- get_event_details -----------------------------------------------------------------------------


class EventOrigin(Model):
    """Where in the log an event stands."""

    file: str
    line: int
    byte_offset: int
    byte_length: int


class EventPlace(Model):
    """An event of another session; both are absent where that session isn't indexed."""

    session_id: str | None = None
    event_index: int | None = None


class Aftermath(Model):
    """What became of a tool execution that failed: the first later call of the same tool that succeeded.

    It is looked for among the next 400 calls of the tool.
    """

    same_call: bool
    """Whether its arguments are the same; else it begins alike."""
    succeeded: int
    """The event_index of that call."""
    result_event: int | None = None
    failed_again: int | None = None
    """How often the same call failed again before."""
    changes: list[int] | None = None
    """The calls in between that wrote files and did not fail: the last five."""
    total_changes: int | None = None
    """How many there are, where there are more."""


class FailingLine(Model):
    """A line of an output that tells of a failure."""

    line: int
    """From 1; start_line and end_line show what is around it."""
    text: str
    """At most 200 characters of it."""


class FailuresTold(Model):
    """What a tool's output tells of failures, where it doesn't fit whole: the counts are exact."""

    failing_lines: int
    failed_tests: int
    """Each counted once."""
    verdict: str | None = None
    """What the runner counted, in its words: `60 failed, 940 passed in 3.21s`."""
    names: list[str] | None = None
    """Of the failed tests."""
    lines: list[FailingLine] | None = None
    more: dict[str, int] | None = None
    """How many names and lines are not shown; `hint` is the call that shows them."""


class EventDetails(Model):
    """Payload of get_event_details."""

    session_id: str
    event_index: int
    timestamp: str | None = None
    event_type: EventType
    kind: UserKind | str | None = None
    """Of a user text: whose it is; of a notification: its record type."""
    turn_index: int | None = None
    step_index: int | None = None
    outcome: Outcome | None = None
    duration_ms: int | None = None
    """Of a tool execution: from call to result, where no human was asked."""
    call_event: int | None = None
    """On a result: the event_index of its call."""
    result_event: int | None = None
    """On a call: the event_index of its result."""
    previous_event: int | None = None
    next_event: int | None = None
    superseded: bool | None = None
    """True where the log later replaced or took back this event."""
    copy_of: EventPlace | None = None
    """The event of an older session that this one repeats; it counts there."""
    started_session: str | None = None
    """On a call: the id of the session that it started."""
    later: Aftermath | None = None
    """On a failed execution: what became of it."""
    origin: EventOrigin
    failures: FailuresTold | None = None
    """With the first chunk of a long output, and with a digest of one."""
    payload: dict[str, Any]


# -- read_artifact ---------------------------------------------------------------------------------


class Artifact(Model):
    """Payload of read_artifact: what a reference refers to, as text."""

    ref: str
    failures: FailuresTold | None = None
    text: str
    """Of an event: its text; of a session: as level full has it; of analysis and health: indented JSON."""


# -- envelope --------------------------------------------------------------------------------------


class Pagination(Model):
    """Of lists; absent when everything fits one first page."""

    total_in_page: int
    total_count: int | None = None
    total_exact: bool | None = None
    next_cursor: str | None = None
    has_more: bool


class Chunk(Model):
    """Of a long text; all chunks joined are the redacted canonical text, or the lines of it that were asked for."""

    chunk_index: int
    total_chunks: int | None = None
    """Left out, like total_lines, where knowing it means to read everything."""
    start_line: int
    end_line: int
    total_lines: int | None = None
    first_event: int | None = None
    """Of a session's text: the first and the last event of which the chunk has something."""
    last_event: int | None = None
    next_cursor: str | None = None


class IndexState(Model):
    """Only when the index isn't up to date."""

    state: Literal["catching_up", "building"]
    files_behind: int | None = None
    bytes_behind: int | None = None
    problem: str | None = None
    """Why the logs can't be indexed at the moment."""


class ErrorBody(Model):
    """What went wrong, and what to do next."""

    code: Literal[
        "invalid_parameter",
        "invalid_cursor",
        "session_not_found",
        "ambiguous_session_prefix",
        "invalid_event_index",
        "invalid_artifact_ref",
        "invalid_range",
        "search_timeout",
        "index_unavailable",
        "internal_error",
    ]
    message: str
    details: dict[str, Any]
    retryable: bool


# -- get_reasoning_chain: data is {"session_id", "turn_index", "total", "hidden", "copied", "chain": [Thought]} ------


class Thought(Model):
    """A piece of readable thinking, in file order."""

    event_index: int
    turn_index: int | None = None
    step_index: int | None = None
    timestamp: str | None = None
    text: str
    """At most 1,000 characters of it; get_event_details has all."""
    chars: int | None = None
    """Characters of all of it, where `text` is cut."""
    next: str | None = None
    """What the model did next within the step: `calls Bash, Read x2` or `says ...`."""
    copied: bool | None = None
    """True where the log repeats it from another session's."""
