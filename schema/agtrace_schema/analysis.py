"""The models of what is wrong in a session (analyze_session), and in many of them (`agtrace report`)."""

from __future__ import annotations

from typing import Literal

from agtrace_schema.answers import Made, Model
from agtrace_schema.events import Provider

Severity = Literal["Critical", "Warning", "Info"]
Lens = Literal["Failures", "Loops", "TokenUsage", "Time", "Outcome"]
Ending = Literal["finished", "question_left", "error_left", "tool_left", "interrupted", "abandoned", "unknown"]
"""How a session ended. `finished` says that the model had the last word, not that it succeeded."""

Part = Literal["outcome", "failures", "loops", "context", "time"]


# -- one session -----------------------------------------------------------------------------------


class Evidence(Model):
    """An event that shows a finding."""

    event_index: int
    ref: str
    """`ax://event/<session>/<index>`: read_artifact opens it."""
    quote: str


class Insight(Model):
    """One finding."""

    turn_index: int | None = None
    severity: Severity
    lens: Lens
    detector: str
    """By which rule of docs/health.md it was found."""
    version: int
    """Of that rule."""
    message: str
    count: int
    """Of what the message is about; exact, however little evidence is named."""
    session_id: str | None = None
    """The sub-agent in which it was found; absent where it is the session itself."""
    evidence: list[Evidence]
    """At most five."""


class ScorePart(Model):
    """What one side of a session's health costs of its score."""

    part: Part
    lost: int
    """Points."""
    of: int
    """What it can cost at most; all parts together 100."""
    why: str


class SessionEnding(Model):
    """How a session ended, and why agtrace says so."""

    ending: Ending
    reason: str
    event_index: int | None = None


class TimeSpent(Model):
    """Where the time of a session went, in seconds; what isn't known is absent."""

    tools_seconds: int | None = None
    """While executions were running; those at the same time count once."""
    model_seconds: int | None = None
    """While the model was thinking and writing."""
    human_seconds: int | None = None
    """While the session waited for the human."""
    unknown_seconds: int | None = None
    """Gaps of more than two hours within a turn: the machine slept, or nobody was there."""


class Share(Model):
    """A share of the tokens of a session."""

    name: str
    """A turn's number, a tool, a file or a sub-agent's id."""
    tokens: int


class TokenShares(Model):
    """Where the tokens of a session went, the largest shares first."""

    turns: list[Share]
    """Input and output of the responses of a turn; name is the turn_index."""
    tools: list[Share]
    """Estimated: what the results of a tool put into the context, at four characters a token."""
    files: list[Share]
    """Estimated likewise: results of executions that read the file."""
    agents: list[Share] | None = None
    """Sub-agents, as their own logs have it."""


class AgentHealth(Model):
    """A sub-agent of a session."""

    session_id: str
    score: int | None = None
    findings: int
    tool_calls: int
    failed_calls: int


class Analysis(Model):
    """Payload of analyze_session."""

    session_id: str
    score: int | None = None
    """0 to 100, sub-agents rolled up; 100 is a session without a fault. Absent where too little is known."""
    unscored: str | None = None
    """Why there is no score."""
    parts: list[ScorePart]
    own_score: int | None = None
    """Without its sub-agents, where it has some."""
    ending: SessionEnding
    insights: list[Insight]
    time: TimeSpent | None = None
    token_shares: TokenShares | None = None
    agents: list[AgentHealth] | None = None
    """The worst score first, unscored ones last."""
    total_agents: int | None = None
    """How many sub-agents there are, where not all are shown."""
    summary: dict[str, dict[str, int]]
    """event_counts by type, outcomes by kind."""


# -- many sessions: `agtrace report` ---------------------------------------------------------------


class TimelineEntry(Model):
    """A piece of a session's timeline; times are seconds since the session began."""

    kind: Literal["turn", "step", "tool", "agent", "compaction", "api_error"]
    start: float
    end: float
    event_index: int
    name: str | None = None
    """The beginning of the request, the tool, or the sub-agent's id."""
    turn_index: int | None = None
    """Of a turn."""
    failed: bool | None = None


class ContextPoint(Model):
    """How full the context window was after a response."""

    at: float
    """Seconds since the session began."""
    tokens: int


class Timeline(Model):
    """What happened when; thinned out where there is too much for a report, which `left_out` counts."""

    entries: list[TimelineEntry]
    context: list[ContextPoint]
    context_window: int | None = None
    left_out: int | None = None


class ReportedSession(Model):
    """A session in a report, its sub-agents rolled up."""

    session_id: str
    provider: Provider
    kind: str
    project: str | None = None
    """The project's root, or the beginning of its hash."""
    title: str
    """Its title or the beginning of its first request."""
    start_time: str | None = None
    duration_seconds: int | None = None
    active_seconds: int | None = None
    ending: SessionEnding
    score: int | None = None
    unscored: str | None = None
    parts: list[ScorePart]
    turns: int
    tool_calls: int
    failed_calls: int
    total_tokens: int | None = None
    cost_usd: float | None = None
    cost_made: Made | None = None
    model: str | None = None
    agents: list[AgentHealth] | None = None
    """The worst score first, unscored ones last."""
    insights: list[Insight]
    """The worst first; at most 50, among them the worst one of every detector."""
    total_insights: int
    detectors: dict[str, int]
    """How many findings each detector has, all counted."""
    severities: dict[Severity, int]
    """Likewise by severity."""
    time: TimeSpent | None = None
    timeline: Timeline | None = None
    """Only in the HTML report."""


class ReportedDay(Model):
    """A day (UTC) of a report, by when its sessions began."""

    day: str
    sessions: int
    endings: dict[Ending, int]
    mean_score: float | None = None
    total_tokens: int
    cost_usd: float | None = None


class ReportedTool(Model):
    """A tool over all sessions of a report."""

    tool: str
    calls: int
    failed: int
    sessions: int
    """Sessions in which it failed."""


class ReportedModel(Model):
    """What a model used on a day."""

    day: str
    model: str
    total_tokens: int
    cost_usd: float | None = None


class ReportedDetector(Model):
    """How often a detector found something."""

    detector: str
    lens: Lens
    sessions: int
    findings: int
    critical: int


class Figures(Model):
    """The figures by which two periods are compared."""

    since: str | None = None
    until: str | None = None
    sessions: int
    scored: int
    mean_score: float | None = None
    median_score: int | None = None
    below_60: int
    endings: dict[Ending, int]
    tool_calls: int
    failed_calls: int
    failed_rate: float | None = None
    sessions_with_loops: int
    total_tokens: int
    cost_usd: float | None = None
    cost_made: Made | None = None


class Change(Model):
    """What got better or worse against the period before."""

    what: str
    before: float
    now: float
    unit: Literal["points", "share", "sessions", "tokens", "dollars"] = "sessions"
    """share: of 1."""
    verdict: Literal["better", "worse", "same", "neither"]
    """neither: more or less of it is no judgement, or there are too few sessions for one."""


class Report(Model):
    """The health of many sessions."""

    selection: str
    """What was looked at, as a sentence."""
    figures: Figures
    before: Figures | None = None
    """The period before, of the same length; where no beginning was asked for, the earlier half of the time."""
    later: Figures | None = None
    """Where `before` is the earlier half: the later one, with which it is compared."""
    compared: str | None = None
    """What is compared with what, as a sentence."""
    changes: list[Change]
    scores: list[int]
    """How many sessions have a score of 0 to 9, 10 to 19, ... 90 to 100."""
    days: list[ReportedDay]
    tools: list[ReportedTool]
    models: list[ReportedModel]
    detectors: list[ReportedDetector]
    undated: int
    """Sessions of which the log tells no time, or one before 2010 or after 2099: in no period."""
    sessions: list[ReportedSession]
    """The worst first; unscored ones last."""
    versions: dict[str, int]
    """Of each detector."""
    made_at: str | None = None
    behind: str | None = None
    """What the index doesn't hold yet, as a sentence; absent where it holds all logs."""
