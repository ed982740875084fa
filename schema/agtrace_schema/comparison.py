"""The models of compare_sessions: two sessions side by side. Fields of the first end in _1, of the second in _2."""

from __future__ import annotations

from agtrace_schema.answers import Copied, Made, ModelTotals, TouchedFile, TurnOutcome
from agtrace_schema.events import Outcome, Provider
from agtrace_schema.model import Model


class FailedCall(Model):
    """A call that did not end well; get_event_details opens its result, or the call if there is no result."""

    event_index: int
    tool: str
    outcome: Outcome
    quote: str


class CallFailures(Model):
    """The number of calls that did not end well, and the first of these, failed ones before the others."""

    failed: int
    rejected: int
    interrupted: int
    examples: list[FailedCall]


class ComparedSession(Model):
    """One side of a comparison. Copies of another session's events count only in `copied`."""

    session_id: str
    provider: Provider
    kind: str
    title: str | None = None
    snippet: str | None = None
    """The first request, if there is no title."""
    project_hash: str | None = None
    root_path: str | None = None
    start_time: str | None = None
    duration_seconds: int | None = None
    """From the first to the last event of its own, copies excluded."""
    active_seconds: int | None = None
    """From each request to the last event of its turn."""
    outcome: TurnOutcome
    """How its last turn ended."""
    turns: int
    steps: int
    tool_calls: int
    failures: CallFailures
    responses: int
    """Model responses with token figures."""
    total_tokens: int | None = None
    tokens: dict[str, int] | None = None
    """By kind, as in SessionStats."""
    tokens_made: Made | None = None
    incomplete_responses: int | None = None
    """Responses with only placeholder figures in the log, or none."""
    cost_usd: float | None = None
    cost_made: Made | None = None
    models: list[ModelTotals]
    """The three with the most tokens."""
    total_models: int | None = None
    """The number of models, if there are more than three."""
    copied: Copied | None = None


class Relation(Model):
    """How two sessions are related; absent if they aren't."""

    summary: str
    started_by_event: int | None = None
    """The event_index, in the parent, of the call that started the child."""
    shared_events: int | None = None
    """The number of events that are identical in both logs."""


class ComparedTool(Model):
    """How often each session called a tool, and how often the calls failed."""

    name: str
    calls_1: int
    failed_1: int
    calls_2: int
    failed_2: int


class SharedFile(Model):
    """A file named in calls of both sessions."""

    path: str
    reads_1: int
    writes_1: int
    reads_2: int
    writes_2: int


class ComparedFiles(Model):
    """Files by the session whose calls name them, most written first; the totals are exact even if lists are cut."""

    total_only_in_1: int
    total_only_in_2: int
    total_in_both: int
    only_in_1: list[TouchedFile]
    only_in_2: list[TouchedFile]
    in_both: list[SharedFile]


class Comparison(Model):
    """Payload of compare_sessions."""

    differences: list[str]
    """The notable differences in a few words each, most important first."""
    relation: Relation | None = None
    session_1: ComparedSession
    session_2: ComparedSession
    total_tools: int
    tools: list[ComparedTool]
    """Most used first."""
    files: ComparedFiles
