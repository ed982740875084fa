"""The models of what went wrong in a session (analyze_session), and in many of them (`agtrace report`)."""

from __future__ import annotations

from typing import Literal

from agtrace_schema.answers import Done, Made
from agtrace_schema.events import Provider
from agtrace_schema.landmarks import LandmarkKind, Verdict
from agtrace_schema.model import Model
from agtrace_schema.reports import Lesson, Spent

Severity = Literal["Critical", "Warning", "Info"]
Lens = Literal["Failures", "Loops", "TokenUsage", "Time", "Outcome"]
Ending = Literal["finished", "question_left", "error_left", "tool_left", "interrupted", "abandoned", "unknown"]
"""How a session ended. `finished` means that the model had the last word, not that it succeeded."""

Part = Literal["corrections", "outcome", "checks", "failures"]


# -- one session -----------------------------------------------------------------------------------


class Evidence(Model):
    """An event that supports a finding."""

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
    """The rule in docs/health.md behind the finding."""
    version: int
    """The version of that rule."""
    message: str
    count: int
    """The number of things the message is about; exact, even if little evidence is listed."""
    session_id: str | None = None
    """The sub-agent it was found in; absent if it is the session itself."""
    evidence: list[Evidence]
    """At most five."""


class ScorePart(Model):
    """The points that one aspect of a session's health costs."""

    part: Part
    lost: int
    """Points."""
    of: int
    """The most it can cost; all parts together make 100."""
    why: str


class SessionEnding(Model):
    """How a session ended, and the reason for that verdict."""

    ending: Ending
    reason: str
    event_index: int | None = None


class TimeSpent(Model):
    """Where the time of a session went, in seconds; unknown figures are absent."""

    tools_seconds: int | None = None
    """While tools were running; parallel executions count once."""
    model_seconds: int | None = None
    """While the model was thinking and writing."""
    human_seconds: int | None = None
    """While the session waited for the user."""
    unknown_seconds: int | None = None
    """Gaps of more than two hours within a turn: the machine was asleep, or nobody was there."""


class Share(Model):
    """A share of the tokens of a session."""

    name: str
    """A turn's number, a tool, a file or a sub-agent's id."""
    tokens: int


class TokenShares(Model):
    """Where the tokens of a session went, largest shares first."""

    turns: list[Share]
    """Input and output of a turn's responses; name is the turn_index."""
    tools: list[Share]
    """Estimated: what the results of a tool added to the context, at four characters a token."""
    files: list[Share]
    """Also estimated: the results of executions that read the file."""
    agents: list[Share] | None = None
    """Sub-agents, according to their own logs."""


class SessionFigures(Model):
    """Counts that are no findings; those that are 0 are absent."""

    api_errors: int | None = None
    """Errors of the model's API, those that the agent retried by itself included."""
    unanswered_calls: int | None = None
    """Calls without a result, although the session went on."""
    compactions: int | None = None
    cache_missed_tokens: dict[str, int] | None = None
    """Tokens that weren't read from the cache although they could have been, by the reason that the log names."""
    cache_missed_usd: float | None = None
    """What that cost more than reading them."""


class AgentHealth(Model):
    """A sub-agent of a session."""

    session_id: str
    score: int | None = None
    findings: int
    tool_calls: int
    failed_calls: int | None = None
    """Absent if the log doesn't say how the calls ended."""


class Analysis(Model):
    """Payload of analyze_session."""

    session_id: str
    score: int | None = None
    """0 to 100, including sub-agents; 100 is a session without a fault. Absent if too little is known."""
    unscored: str | None = None
    """Why there is no score."""
    parts: list[ScorePart]
    own_score: int | None = None
    """The score without sub-agents, if there are any."""
    ending: SessionEnding
    done: Done | None = None
    """What it did, without its sub-agents."""
    insights: list[Insight]
    time: TimeSpent | None = None
    token_shares: TokenShares | None = None
    figures: SessionFigures | None = None
    """Without its sub-agents."""
    agents: list[AgentHealth] | None = None
    """Worst score first, unscored ones last."""
    total_agents: int | None = None
    """The number of sub-agents, if not all are shown."""
    summary: dict[str, dict[str, int]]
    """event_counts by type, outcomes by kind."""


# -- many sessions: `agtrace report` ---------------------------------------------------------------


class TimelineEntry(Model):
    """A piece of a session's timeline; times are in seconds since the session began."""

    kind: Literal["turn", "step", "tool", "agent", "compaction", "api_error"]
    start: float
    end: float
    event_index: int
    name: str | None = None
    """The beginning of the request, the tool, or the sub-agent's id."""
    turn_index: int | None = None
    """For a turn."""
    failed: bool | None = None


class ContextPoint(Model):
    """How full the context window was after a response."""

    at: float
    """Seconds since the session began."""
    tokens: int


class Timeline(Model):
    """What happened when. Entries that are too many for a report are left out and counted in `left_out`."""

    entries: list[TimelineEntry]
    context: list[ContextPoint]
    context_window: int | None = None
    left_out: int | None = None


class ReportedSession(Model):
    """A session in a report, including its sub-agents."""

    session_id: str
    provider: Provider
    kind: str
    project: str | None = None
    """The name by which its project can be asked for."""
    title: str
    """Its title, or else the beginning of its first request."""
    start_time: str | None = None
    duration_seconds: int | None = None
    active_seconds: int | None = None
    ending: SessionEnding
    score: int | None = None
    percentile: int | None = None
    """How many of a hundred scored sessions of the report score lower, at least 1 if any does; absent if these are
    fewer than ten."""
    unscored: str | None = None
    parts: list[ScorePart]
    turns: int
    tool_calls: int
    failed_calls: int
    total_tokens: int | None = None
    tokens_made: Made | None = None
    cost_usd: float | None = None
    cost_made: Made | None = None
    model: str | None = None
    agents: list[AgentHealth] | None = None
    """Worst score first, unscored ones last."""
    insights: list[Insight]
    """Worst first; at most 50, including the worst one of every detector."""
    total_insights: int
    detectors: dict[str, int]
    """The number of findings of each detector, all counted."""
    severities: dict[Severity, int]
    """The same by severity."""
    time: TimeSpent | None = None
    timeline: Timeline | None = None
    """Only in the HTML report."""


class ReportedDay(Model):
    """A local day of a report, with the sessions that began on it."""

    day: str
    sessions: int
    endings: dict[Ending, int]
    mean_score: float | None = None
    total_tokens: int
    cost_usd: float | None = None


class ReportedTool(Model):
    """A tool across all sessions of a report."""

    tool: str
    calls: int
    failed: int
    sessions: int
    """Sessions in which it failed."""


class ReportedModel(Model):
    """A model's usage on one day."""

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
    """The figures used to compare two periods."""

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
    corrections: int
    """How often the human corrected the work."""
    sessions_corrected: int
    sessions_with_loops: int
    total_tokens: int
    tokens_made: Made | None = None
    cost_usd: float | None = None
    cost_made: Made | None = None


class Change(Model):
    """The change of a figure since the previous period."""

    what: str
    before: float
    now: float
    unit: Literal["points", "share", "sessions", "tokens", "dollars"] = "sessions"
    """share: a fraction of 1."""
    verdict: Literal["better", "worse", "same", "neither"]
    """neither: more or less of it is neither good nor bad, or there are too few sessions to tell."""


class ReportedDeeds(Model):
    """What the sessions of a report did, of one kind of landmark."""

    kind: LandmarkKind
    count: int
    failed: int
    """Test runs and builds that failed."""
    sessions: int
    """The sessions, including their sub-agents, that have any."""


class Report(Model):
    """The health of many sessions."""

    selection: str
    """The selected sessions, as a sentence."""
    figures: Figures
    before: Figures | None = None
    """The previous period of the same length; if no start was given, the earlier half of the time."""
    later: Figures | None = None
    """If `before` is the earlier half: the later one, compared with it."""
    compared: str | None = None
    """The two periods that are compared, as a sentence."""
    changes: list[Change]
    scores: list[int]
    """The number of sessions with a score of 0 to 9, 10 to 19, ... 90 to 100."""
    days: list[ReportedDay]
    tools: list[ReportedTool]
    models: list[ReportedModel]
    detectors: list[ReportedDetector]
    deeds: list[ReportedDeeds]
    undated: int
    """Sessions in no period, because the log has no time, or one before 2010 or after 2099."""
    sub_agents: int = 0
    """Sub-agents that count with the sessions that started them, and not as sessions."""
    lessons: list[Lesson]
    """What keeps failing, and what worked: the first of `agtrace lessons`."""
    sessions: list[ReportedSession]
    """Worst first, unscored ones last."""
    versions: dict[str, int]
    """The version of each detector."""
    new_secrets: str | None = None
    """What is to be done about tokens of a known form that weren't in any session before, as a sentence."""
    made_at: str | None = None
    behind: str | None = None
    """What the index is still missing, as a sentence; absent if it has all logs."""


class WorkRequest(Model):
    """What a session was asked."""

    at: str | None = None
    turn_index: int
    text: str
    """Its first line."""


class Deed(Model):
    """A commit, pull request or release."""

    kind: LandmarkKind
    name: str | None = None
    """Hash, number, or what was released."""
    verdict: Verdict | None = None
    """Absent for what was created."""
    detail: str | None = None


class WorkedSession(Model):
    """What a session did, with its sub-agents."""

    session_id: str
    provider: str
    title: str
    sub_agents: int
    requests: list[WorkRequest]
    done: list[Deed]
    last_tests: Verdict | None = None
    """How the last test run of the period ended."""
    left_open: SessionEnding | None = None
    """If it ended in the period, and not finished."""


class WorkedProject(Model):
    """What was done in a project."""

    project: str
    sessions: list[WorkedSession]
    spent: Spent | None = None


class Worklog(Model):
    """What was done in a period, by project."""

    selection: str
    """The period and the filters, as a sentence."""
    projects: list[WorkedProject]
    """Those that spent most come first."""
    spent: Spent
    lacking: list[str]
    """What the figures lack, as sentences."""
    behind: str | None = None
    """As in `Costs`."""
