"""The models of agtrace's answers, which go inside the envelope of the answer contract.

All models are frozen, and fields that are None are left out when a model is serialized. The `README.md` next to
this package is generated from them.
"""

from __future__ import annotations

from typing import Any, Literal

from agtrace_schema.events import EventType, Outcome, Provider
from agtrace_schema.landmarks import LandmarkKind, Verdict
from agtrace_schema.model import Model

TurnOutcome = Literal["success", "partial", "failed", "unknown"]
Made = Literal["exact", "partial", "estimated", "unknown"]
"""How reliable a total is. exact: all figures are known; partial: some are missing; estimated: from list prices, or
from vanished logs that share responses with others; unknown: there is no figure."""


# -- list_sessions ---------------------------------------------------------------------------------


class Done(Model):
    """What a session did, in figures; the section `landmarks` lists it."""

    commits: int | None = None
    pull_requests: list[str] | None = None
    """The numbers of the last five that it opened."""
    releases: int | None = None
    last_tests: Verdict | None = None
    """How its last test run ended."""


class LandmarkItem(Model, array_like=True):
    """Something that a session did; get_event_details opens its event.

    It is written as a row, [event_index, kind, name, verdict, detail]: what is absent is null, or left out at the end.
    """

    event_index: int
    """The call that did it; for a compaction, or a pull request that is only linked, its notification."""
    kind: LandmarkKind
    name: str | None = None
    """Hash, number, branch, program, what was released or asked; absent if nothing tells."""
    verdict: Verdict | None = None
    """Absent for commits, branches and releases: those were created."""
    detail: str | None = None
    """Subject, address, counts or answer."""


class SessionItem(Model):
    """One session in a list."""

    id: str
    """The shortest prefix that is unique, at least 8 characters; every tool accepts it."""
    user: str | None = None
    """Who pushed it; only in a team's index."""
    provider: Provider
    project: str | None = None
    """The name of its project, which `project` filters by."""
    kind: str | None = None
    """Only for sessions other than main ones: subagent, fork, continuation."""
    parent_id: str | None = None
    title: str | None = None
    snippet: str | None = None
    start_time: str | None = None
    duration_seconds: int | None = None
    turn_count: int
    tool_calls: int
    failed_calls: int | None = None
    """Absent if the log doesn't say how the calls ended, as Cursor's doesn't."""
    total_tokens: int | None = None
    """Input, cache and output tokens, without copies; absent if the log has no figures."""
    tokens_made: Made | None = None
    cost_usd: float | None = None
    """US dollars; absent if no price is known."""
    cost_made: Made | None = None
    done: Done | None = None
    """Only if asked for with `fields`, or with the filter `commit` or `pr`."""
    landmarks: list[LandmarkItem] | None = None
    """The first three that make it one of a list by `commit` or `pr`: that commit, what was done with that request."""
    path_reads: int | None = None
    """Calls that read files with `path` in their path; like the next one only with the filter `path`."""
    path_writes: int | None = None
    copied_turns: int | None = None
    """Turns copied from an older session, where they are counted."""
    output_tokens: int | None = None
    """Like the next three, only in a list that is sorted by it."""
    failure_run: int | None = None
    """The longest run of tool calls that failed one after the other."""
    compactions: int | None = None
    edits: int | None = None
    """Calls that wrote files."""
    files: int | None = None
    """The files that they wrote."""


class SessionList(Model):
    """Payload of list_sessions."""

    sessions: list[SessionItem]


class ModelTotals(Model):
    """The usage of one model in a session or project."""

    model: str
    responses: int | None = None
    """Like the rest absent where the session's own figures are those of its only model."""
    total_tokens: int | None = None
    tokens: dict[str, int] | None = None
    """By kind, as in SessionStats; zeros are left out."""
    cost_usd: float | None = None
    cost_made: Made | None = None


# -- get_project_info ------------------------------------------------------------------------------


class ProjectItem(Model):
    """One project: a repository, or a folder that none is known of."""

    name: str
    """What `project` filters by: its name, or what else no other project has."""
    remote: str | None = None
    """Host, owner and name, in lower case."""
    made: str | None = None
    """How several folders were joined, the least sure of them: `remote` by the same remote, `shared` by commits or
    files that only one repository has, `name` by their names."""
    hash: str
    """Of the folder with the most sessions."""
    root_path: str | None = None
    """That folder; absent if only the hash is known (Gemini CLI)."""
    folders: list[str] | None = None
    """Its other folders: worktrees, clones, on other machines, under former names."""
    total_folders: int | None = None
    """The number of all its folders, if there are more than six."""
    session_count: int
    providers: list[Provider]
    failed_calls: int | None = None
    """Absent if none of its agents writes down how calls ended (Cursor)."""
    responses: int
    total_tokens: int | None = None
    tokens_made: Made | None = None
    cost_usd: float | None = None
    cost_made: Made | None = None
    last_activity: str | None = None


class ProjectList(Model):
    """Payload of get_project_info."""

    projects: list[ProjectItem]


# -- get_session_details ---------------------------------------------------------------------------


class Tokens(Model):
    """Tokens of model responses. Cache and reasoning figures are left out if zero, unknown figures always."""

    input: int | None = None
    """Uncached input."""
    cache_creation_5m: int | None = None
    cache_creation_1h: int | None = None
    cache_read: int | None = None
    output: int | None = None
    """All output, including reasoning."""
    reasoning: int | None = None


class Copied(Model):
    """The part of a session that repeats an older one: readable here, counted there."""

    turns: int
    events: int
    tool_calls: int
    failed_calls: int
    total_tokens: int


class WithChildren(Model):
    """Totals of a session and all sub-agents below it."""

    sessions: int
    tool_calls: int
    failed_calls: int | None = None
    total_tokens: int | None = None
    tokens_made: Made | None = None
    cost_usd: float | None = None
    cost_made: Made | None = None
    output_tokens: int | None = None


class SessionStats(Model):
    """Totals of a session, without its sub-agents and without copies."""

    total_turns: int
    total_events: int
    tool_calls: int
    failed_calls: int | None = None
    """Absent if the log doesn't say how the calls ended."""
    failed_by_text: int | None = None
    """How many of the first 200 of these only the text of an output tells of, such as an exit code; the log flags the
    others."""
    cancelled_calls: int | None = None
    """Further calls that the human refused or stopped, if any: no failures, though the section `failures` has them."""
    failure_run: int | None = None
    """The longest run of calls that failed, whatever was cancelled between them; like the next three absent if 0."""
    edits: int | None = None
    """Calls that wrote files."""
    compactions: int | None = None
    human_requests: int | None = None
    """In a sub-agent, also the task that it was given."""
    responses: int
    """Model responses (API calls) with token figures."""
    total_tokens: int | None = None
    tokens: dict[str, int] | None = None
    """By kind: input_tokens (uncached), cache_creation_5m_tokens, cache_creation_1h_tokens, cache_read_tokens,
    output_tokens, and reasoning_tokens, which are part of the output. Kinds missing from the log are absent."""
    tokens_made: Made | None = None
    tokens_outside_turns: int | None = None
    """The part of the total that belongs to no remaining turn: from rolled-back turns, or from before the first one."""
    incomplete_responses: int | None = None
    """Responses with only placeholder figures in the log, or none."""
    cost_usd: float | None = None
    cost_made: Made | None = None
    models: list[ModelTotals] | None = None
    """The three with the most tokens, if there was more than one model."""
    peak_context_tokens: int | None = None
    """The largest input of any response, cached or not."""
    context_window: int | None = None
    duration_seconds: int | None = None
    """From the first event to the last."""
    active_seconds: int | None = None
    """From each request to the last event of its turn, so without the user's pauses."""
    done: Done | None = None
    copied: Copied | None = None
    with_children: WithChildren | None = None


class ChildItem(Model):
    """A session that comes from another one."""

    id: str
    kind: str
    started_by: int | None = None
    """The event_index of the call that started it."""


class FailingTurns(Model):
    """The session's own turns (no copies) in which tool executions failed."""

    total: int
    turns: list[int]
    """The turn_index of the first twenty."""


class SessionHead(Model):
    """The facts about a session that session details begin with; at level turns, and of a single turn, only the id."""

    session_id: str
    user: str | None = None
    """Who pushed it; only in a team's index."""
    provider: Provider
    kind: str
    parent_id: str | None = None
    parent_missing: bool | None = None
    """True if the log names a parent that isn't indexed."""
    started_by: int | None = None
    """The event_index, in the parent, of the call that started this session."""
    children: list[ChildItem] | None = None
    """The first ten sessions that this one started, that were copied from it or that continue it."""
    total_children: int | None = None
    """The number of children, if there are more than ten."""
    agent_type: str | None = None
    description: str | None = None
    """The task a sub-agent was started for."""
    title: str | None = None
    project_hash: str | None = None
    root_path: str | None = None
    model: str | None = None
    version: str | None = None
    branch: str | None = None
    start_time: str | None = None
    end_time: str | None = None
    log: str | None = None
    """The file that the session was read from."""
    log_gone: bool | None = None
    """True if the file was deleted; the index keeps the session."""
    stats: SessionStats
    failing_turns: FailingTurns | None = None
    """At level summary, if there are any."""


class TurnOverview(Model):
    """One turn at level summary."""

    id: str
    """`turn-0`, `turn-1` and so on."""
    turn_index: int
    timestamp: str | None = None
    user_message: str
    user_event: int | None = None
    """The event_index of the request."""
    answer: tuple[int, str] | None = None
    """[event_index, beginning] of the turn's last message of the model; absent where `last_message` has it."""
    copied: bool | None = None
    """True if the whole turn was copied from an older session, which counts it."""
    step_count: int
    tool_calls: int
    failed_tools: int | None = None
    """Absent if the log doesn't say how the calls ended."""
    outcome: TurnOutcome
    stats: dict[str, int] | None = None
    """Totals by kind, as in `Tokens`: input_tokens, cache_read_tokens, output_tokens and so on."""
    tokens_incomplete: bool | None = None
    """True if some responses have only placeholder figures."""


class StepSummary(Model):
    """One step at level turns."""

    step_index: int
    first_event: int
    summary: str
    error: str | None = None
    """The line of an output that tells of the first failure."""
    tool_calls: int
    failed_tools: int | None = None
    """Absent if the log doesn't say how the calls ended."""
    tokens: Tokens | None = None
    context_tokens: int | None = None
    """The entire input of the step's last response, if it isn't what its tokens add up to."""
    tokens_incomplete: bool | None = None
    """True if the log has only placeholder figures."""
    reasoning: str | None = None


class TurnDetail(Model):
    """One turn at level turns; a long turn may continue on the next page."""

    turn_index: int
    user_message: str
    copied: bool | None = None
    """True if the whole turn was copied from an older session."""
    steps: list[StepSummary]
    outcome: TurnOutcome
    key_actions: list[str]


class Quote(Model):
    """The beginning of an event's text, at most 500 characters."""

    event_index: int
    text: str
    chars: int | None = None
    """Length of the whole text in characters, if it was cut."""


class CallQuote(Model):
    """The name and arguments of a tool call, with long values cut: at most 500 characters."""

    name: str
    arguments: Any
    """An object, as in the call; a text if the tool takes one or the object has too many keys."""
    chars: int | None = None
    """Length of all arguments as JSON in characters, if something was cut."""


class ResultQuote(Model):
    """The beginning of a tool's output, at most 500 characters."""

    content: str
    chars: int | None = None


class ToolExecution(Model):
    """A tool call with its result; either may be missing from the log."""

    call: CallQuote | None = None
    result: ResultQuote | None = None
    outcome: Outcome | None = None
    duration_ms: int | None = None
    """From the call to its result; absent if the user was asked in between."""
    call_event: int | None = None
    result_event: int | None = None
    agent: str | None = None
    """The id of the sub-agent session that this call started."""


class EventQuote(Model):
    """The beginning of a text in the user's role or of a notification, at most 500 characters."""

    event_index: int
    event_type: EventType
    kind: str | None = None
    text: str
    chars: int | None = None


class StepDetail(Model):
    """A step at level steps.

    A step that goes on, on the next page or with another message, appears again with the same step_index.
    Events that belong to no identifiable response have no step_index.
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
    """A turn at level steps, part by part in file order; events outside any turn have no turn_index."""

    turn_index: int | None = None
    user_message: str | None = None
    """The beginning of the request, at most 500 characters; absent if the turn is continued."""
    user_event: int | None = None
    copied: bool | None = None
    events: list[EventQuote] | None = None
    """Events of the turn outside its steps."""
    steps: list[StepDetail] | None = None


class Transcript(SessionHead):
    """Level full: the session as one text, in chunks that join to it.

    For every event in file order: a line `## event 12 · turn 0 step 3 · ToolCall Bash · ok · <time>`, then the
    text that get_event_details gives (for TokenUsage, its figures as one line of JSON), then a newline.
    """

    text: str


class ToolUse(Model):
    """How often a session called a tool, and how often the call failed."""

    name: str
    calls: int
    failed: int


class TouchedFile(Model):
    """A file named in calls of one session, and how many of them read or write it."""

    path: str
    """Relative to the project's root; in compare_sessions only if both sessions belong to one project."""
    reads: int
    writes: int


class FailedExecution(Model):
    """A tool execution that did not end well; get_event_details opens its events."""

    turn_index: int | None = None
    call_event: int
    result_event: int | None = None
    tool: str
    outcome: Outcome
    argument: str | None = None
    """The most telling argument of the call, such as its command or path."""
    quote: str
    """The human's own words, the line that tells of the failure, or the beginning of the output."""


class HumanRequest(Model):
    """A request of the human, or the task of a sub-agent."""

    event_index: int
    turn_index: int | None = None
    text: str
    """Its beginning, on one line."""


class SessionOverview(SessionHead):
    """Level summary."""

    landmarks: list[LandmarkItem] | None = None
    """The last six commits, pull requests, issues, releases and compactions, the last test run and build, and the last
    of each that failed."""
    total_landmarks: int | None = None
    """All landmarks, if there are more."""
    last_message: tuple[int, str] | None = None
    """[event_index, beginning] of the last message of the model: what it came to."""
    open_call: tuple[int, str, str] | None = None
    """[event_index, tool, text] of the call on which the log ends: nothing says what came of it."""
    turns: list[TurnOverview]


class SessionTurns(SessionHead):
    """Level turns."""

    turns: list[TurnDetail]


class SessionSteps(SessionHead):
    """Level steps."""

    turns: list[TurnSteps]


class SessionSections(SessionHead):
    """The sections that can be requested in addition to those of the head; totals if several are requested."""

    turns: list[TurnOverview]
    total_turns: int | None = None
    tools: list[ToolUse]
    total_tools: int | None = None
    files: list[TouchedFile]
    total_files: int | None = None
    failures: list[FailedExecution]
    total_failures: int | None = None
    landmarks: list[LandmarkItem]
    total_landmarks: int | None = None
    requests: list[HumanRequest]
    total_requests: int | None = None
    models: list[ModelTotals]
    total_models: int | None = None


# -- search_event_previews -------------------------------------------------------------------------


class EventPreview(Model):
    """One hit of a search; with `group_by`, the newest of its session (with order oldest, the oldest)."""

    session_id: str
    user: str | None = None
    """Who pushed it; this and the next fields stand there only with `group_by`."""
    provider: Provider | None = None
    title: str | None = None
    """Of the session, or the beginning of its first request."""
    start_time: str | None = None
    """Of the session."""
    hits: int | None = None
    """All hits in this session."""
    project: str | None = None
    """The name of its project; absent where `sessions` has it."""
    event_index: int
    timestamp: str | None = None
    event_type: EventType
    call_event: int | None = None
    """For a result: the event_index of its call."""
    result_event: int | None = None
    """For a call: the event_index of its result."""
    outcome: Outcome | None = None
    """Absent if it succeeded, and where there is none."""
    copied: bool | None = None
    """True if an older session has the same event and counts it."""
    rolled_back: bool | None = None
    """True if the session later went back to before this event, so that it is no part of its course."""
    error: str | None = None
    """For a call that failed: the line of its output that tells of the failure."""
    result: str | None = None
    """For any other call: its output, of a long one the first and the last line. Both are absent if the result is among
    the matches."""
    preview: dict[str, Any]
    """The preview, by event type: the text around the match."""
    payload: dict[str, Any] | None = None
    """All of it, by the deprecated search_events with `include_full_payload`."""


class FoundSession(Model):
    """A session that the words of a query are about, and what came of the best one."""

    session_id: str
    user: str | None = None
    """Who pushed it; only in a team's index."""
    provider: Provider
    project: str | None = None
    """The name of its project, which `project` filters by."""
    title: str
    landmarks: list[LandmarkItem] | None = None
    """Of the best session: the commits, pull requests and so on that are nearest to its best hit."""
    course: list[tuple[int, str, str]] | None = None
    """Of the best session: [event_index, who, beginning] of what the human asked, and of the last answer to it, in the
    turn of the best hit and the next ones, and of the last request; what is shown otherwise is left out."""
    last_message: tuple[int, str] | None = None
    """Of the best session: [event_index, beginning] of the last message of the model, what it came to."""
    open_call: tuple[int, str, str] | None = None
    """Of the best session: [event_index, tool, text] of the call on which its log ends, without a result."""
    seen: str | None = None
    """The call of this connection whose answer has what is left out here; get_session_details sends it again."""


class Worked(Model):
    """What worked in the end where a matching call had failed."""

    session_id: str
    failed: int
    """The event_index of the failure."""
    succeeded: int
    """That of the first later call of the same tool, with the same or nearly the same arguments, that succeeded."""
    text: str
    """What that call did."""
    command: tuple[int, str] | None = None
    """[event_index, command] of the last other command in between that changes something and succeeded."""
    changes: list[int] | None = None
    """The last calls in between that wrote files."""
    last_change: str | None = None


class SearchResult(Model):
    """Payload of search_event_previews."""

    worked: Worked | None = None
    """With order best: if a failure is among the best hits and was overcome."""
    nowhere: list[str] | None = None
    """The words of the query that no event holds."""
    lacking: list[str] | None = None
    """Of weak matches: further words of the query that stand nowhere in the best session."""
    matches: list[EventPreview]
    """In the order that `pagination` names. On the first page with order best, those of the best sessions, one session
    after the other; events that contain a rare query as a text come first."""
    sessions: list[FoundSession] | None = None
    """With order best: the sessions of these matches."""
    others: list[tuple[str, str, str]] | None = None
    """[session_id, date, title] of the next ones, whose matches are on the next pages."""


# -- run_sql ---------------------------------------------------------------------------------------


class Rows(Model):
    """What a statement found."""

    columns: list[str]
    rows: list[list[str | int | float | None]]
    """The values of each row; texts are cut to 500 characters."""


# -- get_event_details -----------------------------------------------------------------------------


class EventOrigin(Model):
    """The position of an event in the log of its session."""

    line: int
    byte_offset: int
    byte_length: int


class EventPlace(Model):
    """An event of another session; both fields are absent if that session isn't indexed."""

    session_id: str | None = None
    event_index: int | None = None


class Aftermath(Model):
    """What followed a failed tool execution: the first later call of the same tool that succeeded.

    Only the tool's next 400 calls are searched.
    """

    same_call: bool
    """Whether the arguments are the same; otherwise they only begin alike."""
    succeeded: int
    """The event_index of that call."""
    result_event: int | None = None
    failed_again: int | None = None
    """How often the same call failed again before that."""
    command: int | None = None
    """For a command: the event_index of the last other one in between that changes something and succeeded."""
    changes: list[int] | None = None
    """The last five calls in between that wrote files and did not fail."""
    last_change: str | None = None
    """What the last of them changed: the file, the lines that it added and those that it removed."""
    total_changes: int | None = None
    """The number of such calls, if there are more."""


class FailingLine(Model):
    """A line of output that reports a failure."""

    line: int
    """Counted from 1; start_line and end_line show the lines around it."""
    text: str
    """At most 200 characters of the line."""


class FailuresTold(Model):
    """The failures that a tool's output reports, if it is too long to be shown whole; the counts are exact."""

    failing_lines: int
    failed_tests: int
    """Each counted once."""
    verdict: str | None = None
    """The test runner's own summary: `60 failed, 940 passed in 3.21s`."""
    names: list[str] | None = None
    """The names of the failed tests."""
    lines: list[FailingLine] | None = None
    more: dict[str, int] | None = None
    """The number of names and lines not shown; `hint` is the call that shows them."""


class EventDetails(Model):
    """Payload of get_event_details."""

    session_id: str
    event_index: int
    timestamp: str | None = None
    event_type: EventType
    kind: str | None = None
    """For a user text: who or what wrote it; for a notification: its record type."""
    turn_index: int | None = None
    step_index: int | None = None
    outcome: Outcome | None = None
    duration_ms: int | None = None
    """For a tool execution: from call to result, unless the user was asked in between."""
    call_event: int | None = None
    """For a result: the event_index of its call."""
    result_event: int | None = None
    """For a call: the event_index of its result."""
    result: str | None = None
    """For a call: its output, of a long one the first and the last line, or the line that tells of its failure."""
    previous_event: int | None = None
    next_event: int | None = None
    superseded: bool | None = None
    """True if the log later replaced or retracted this event."""
    rolled_back: bool | None = None
    """True if the session later went back to before this event."""
    copy_of: EventPlace | None = None
    """The event of an older session that this one repeats; it is counted there."""
    started_session: str | None = None
    """For a call: the id of the session that it started."""
    later: Aftermath | None = None
    """For a failed execution: what followed it."""
    origin: EventOrigin
    failures: FailuresTold | None = None
    """With the first chunk of a long output, and with its digest."""
    payload: dict[str, Any]


class EventsAround(Model):
    """Payload of get_event_details with `around`: the events near one, a line each."""

    session_id: str
    last_event: int
    """The last event of the session: what comes after the lines, if anything does."""
    around: list[tuple[int, str, str]]
    """[event_index, who, text] in order: human, message, thought, the name of a tool, or the kind of another text; a
    call and its result are one line. Usage of tokens and events without a text are left out."""


# -- read_artifact ---------------------------------------------------------------------------------


class Artifact(Model):
    """Payload of read_artifact: the text behind a reference."""

    ref: str
    failures: FailuresTold | None = None
    text: str
    """For an event: its text; for a session: as at level full; for analysis and health: indented JSON."""


# -- envelope --------------------------------------------------------------------------------------


class Pagination(Model):
    """The page of a list."""

    order: str | None = None
    """What the list is sorted by, where that can be asked for."""
    total_in_page: int
    total_count: int | None = None
    """Absent if everything is on this page, or if counting would mean reading everything."""
    total_exact: bool | None = None
    next_cursor: str | None = None
    has_more: bool


class Chunk(Model):
    """A part of a long text. All chunks joined are the redacted canonical text, or the lines requested from it."""

    chunk_index: int
    total_chunks: int | None = None
    """Left out, like total_lines, if everything would have to be read to know it."""
    start_line: int
    end_line: int
    total_lines: int | None = None
    first_event: int | None = None
    """For a session's text: the first and the last event with text in the chunk."""
    last_event: int | None = None
    next_cursor: str | None = None


class Pruning(Model):
    """What became of a `context_focus_question`: whether the text has only the lines that it is about.

    Each run of others is a line `(N lines left out: A-B)`; start_line and end_line open it.
    """

    attempted: bool = False
    applied: bool = False
    fallback: bool = False
    """Whether the text is as it would be without a question because the attempt failed."""
    reason: str | None = None
    """Why there was nothing to do: disabled_or_unconfigured, input_too_large, not_prunable; no_question of
    `agtrace prune`."""
    error: str | None = None
    """Why it was attempted in vain: timeout; of a pruning service also http_error, invalid_response."""
    summary: str | None = None
    """The error or the reason in a few words."""
    kept_lines: int | None = None
    total_lines: int | None = None


class IndexState(Model):
    """The state of the index, if it isn't up to date."""

    state: Literal["catching_up", "building"]
    files_behind: int | None = None
    bytes_behind: int | None = None
    problem: str | None = None
    """Why the logs can't be indexed at the moment."""


ErrorCode = Literal[
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


class ErrorBody(Model):
    """An error, and what to do next."""

    code: ErrorCode
    message: str
    details: dict[str, Any]
    retryable: bool


class Truncation(Model):
    """What is missing from an answer that was made smaller to fit; `artifact_ref` and `hint` say how to get it."""

    reason: Literal["bytes", "digest", "focus"]
    shown: int | None = None
    """Of the items of the lists that were cut, or of the lines of a text."""
    total: int | None = None
    omitted_failures: int | None = None
    paths: list[str] | None = None
    """What was cut where: `steps[3].result: 500 of 18233 chars`."""
    more_paths: int | None = None


class Budget(Model):
    """The size of an answer, as a share of what it may take."""

    estimated_tokens: int
    budget_used: float
    budget_remaining: int


# -- get_reasoning_chain ---------------------------------------------------------------------------


class Thought(Model):
    """A piece of readable reasoning, in file order."""

    event_index: int
    turn_index: int | None = None
    step_index: int | None = None
    timestamp: str | None = None
    text: str
    """At most 1,000 characters; get_event_details has the whole text."""
    chars: int | None = None
    """Length of the whole text in characters, if `text` is cut."""
    next: str | None = None
    """The model's next action within the step: `calls Bash, Read x2` or `says ...`."""
    copied: bool | None = None
    """True if the log repeats it from another session's log."""


class ReasoningChain(Model):
    """Payload of get_reasoning_chain."""

    session_id: str
    turn_index: int | None = None
    total: int
    """All readable thoughts; exact on every page, as are the next two."""
    hidden: int
    """Thoughts that the log has no text of."""
    copied: int | None = None
    chain: list[Thought]
