"""The models of what agtrace answers, inside the envelope of the answer contract.

Every model is frozen and leaves out what is None when it is serialized. `README.md` beside this
package is generated from them.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from agtrace_schema.events import EventType, Outcome, Provider, UserKind

TurnOutcome = Literal["success", "partial", "failed", "unknown"]
Severity = Literal["Critical", "Warning", "Info"]
Lens = Literal["Failures", "Loops", "TokenUsage"]


class Model(BaseModel):
    """A frozen part of an answer."""

    model_config = ConfigDict(frozen=True)


# -- list_sessions: data is {"sessions": [SessionItem]} --------------------------------------------


class SessionItem(Model):
    """One session in a list (R-110)."""

    id: str
    """As many characters as tell it apart, at least 8; every tool accepts it."""
    provider: Provider
    project_hash: str | None = None
    """8 characters; every tool accepts them."""
    kind: str | None = None
    """Only where it isn't a main session: subagent, fork."""
    parent_id: str | None = None
    title: str | None = None
    snippet: str | None = None
    start_time: str | None = None
    duration_seconds: int | None = None
    turn_count: int
    tool_calls: int
    failed_calls: int
    total_tokens: int | None = None
    """Input, cache and output together; absent where the log has no figures."""
    tokens_incomplete: bool | None = None
    """True where some responses have only placeholder figures."""


# -- get_project_info: data is {"projects": [ProjectItem]} -----------------------------------------


class ProjectItem(Model):
    """One project (R-111)."""

    hash: str
    root_path: str | None = None
    """Absent where only the hash is known (Gemini CLI)."""
    session_count: int
    providers: list[Provider]
    failed_calls: int
    last_activity: str | None = None


# -- get_session_details ---------------------------------------------------------------------------


class Tokens(Model):
    """Tokens of a turn or a step: input with caches, and output."""

    input: int
    output: int


class SessionStats(Model):
    """Sums of a session."""

    total_turns: int
    total_events: int
    tool_calls: int
    failed_calls: int
    total_tokens: int | None = None
    tokens_incomplete: bool | None = None
    duration_seconds: int | None = None


class SessionHead(Model):
    """What every level of session details says about the session."""

    session_id: str
    provider: Provider
    kind: str
    parent_id: str | None = None
    parent_missing: bool | None = None
    """True where the log names a parent that isn't indexed."""
    children: list[str] | None = None
    """Ids of the first ten sub-agents that this session started."""
    total_children: int | None = None
    """How many there are, where there are more than ten."""
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


class TurnOverview(Model):
    """One turn at level summary (R-112)."""

    id: str
    """`turn-0` and so on."""
    turn_index: int
    timestamp: str | None = None
    user_message: str
    user_event: int | None = None
    """The event_index of the request."""
    step_count: int
    tool_calls: int
    failed_tools: int
    stats: dict[str, int] | None = None
    """input_tokens, output_tokens."""


class StepSummary(Model):
    """One step at level turns."""

    step_index: int
    first_event: int
    summary: str
    tool_calls: int
    failed_tools: int
    tokens: Tokens | None = None
    reasoning: str | None = None


class TurnDetail(Model):
    """One turn at level turns; a long turn can be continued on the next page."""

    turn_index: int
    user_message: str
    steps: list[StepSummary]
    outcome: TurnOutcome
    key_actions: list[str]


# -- search_event_previews: data is {"matches": [EventPreview]} ------------------------------------


class EventPreview(Model):
    """One hit of a search (R-114)."""

    session_id: str
    event_index: int
    timestamp: str | None = None
    event_type: EventType
    turn_index: int | None = None
    outcome: Outcome | None = None
    preview: dict[str, Any]
    """The preview by type (R-114); the text around the match."""


# -- get_event_details -----------------------------------------------------------------------------


class EventOrigin(Model):
    """Where in the log an event stands."""

    file: str
    line: int
    byte_offset: int
    byte_length: int


class EventDetails(Model):
    """Payload of get_event_details (R-115)."""

    session_id: str
    event_index: int
    timestamp: str | None = None
    event_type: EventType
    kind: UserKind | str | None = None
    """Of a user text: whose it is; of a notification: its record type."""
    turn_index: int | None = None
    step_index: int | None = None
    outcome: Outcome | None = None
    call_event: int | None = None
    """On a result: the event_index of its call."""
    result_event: int | None = None
    """On a call: the event_index of its result."""
    previous_event: int | None = None
    next_event: int | None = None
    superseded: bool | None = None
    """True where the log later replaced or took back this event."""
    origin: EventOrigin
    payload: dict[str, Any]


# -- analyze_session -------------------------------------------------------------------------------


class Evidence(Model):
    """An event that shows a finding; get_event_details opens it."""

    event_index: int
    quote: str


class Insight(Model):
    """One finding (R-113)."""

    turn_index: int | None = None
    severity: Severity
    lens: Lens
    message: str
    count: int
    evidence: list[Evidence]


class Analysis(Model):
    """Payload of analyze_session."""

    session_id: str
    score: int
    """0 to 100; 100 is a session without findings."""
    insights: list[Insight]
    summary: dict[str, dict[str, int]]
    """event_counts by type, outcomes by kind."""


# -- envelope --------------------------------------------------------------------------------------


class Pagination(Model):
    """Of lists; absent when everything fits one first page (R-048)."""

    total_in_page: int
    total_count: int | None = None
    total_exact: bool | None = None
    next_cursor: str | None = None
    has_more: bool


class Chunk(Model):
    """Of a long text; all chunks joined are the redacted canonical text."""

    chunk_index: int
    total_chunks: int
    start_line: int
    end_line: int
    total_lines: int
    next_cursor: str | None = None


class IndexState(Model):
    """Only when the index isn't up to date."""

    state: Literal["catching_up", "building"]
    files_behind: int | None = None
    bytes_behind: int | None = None
    problem: str | None = None
    """Why the logs can't be indexed at the moment."""


class ErrorBody(Model):
    """What went wrong, and what to do next (R-118)."""

    code: Literal[
        "invalid_parameter",
        "invalid_cursor",
        "session_not_found",
        "ambiguous_session_prefix",
        "invalid_event_index",
        "invalid_range",
        "search_timeout",
        "index_unavailable",
        "internal_error",
    ]
    message: str
    details: dict[str, Any]
    retryable: bool
