"""The models of what commands report of many sessions: costs, lessons, who wrote a file, and of requests (metrics)."""

from __future__ import annotations

from typing import Literal

from agtrace_schema.answers import Made
from agtrace_schema.model import Model
from agtrace_schema.requests import CostBy


class Spent(Model):
    """What was spent on a day, in a project, by a model ...

    A kind of tokens that no log records is absent; the four kinds add up to the total.
    """

    group: str
    """A local day, the Monday of a week, or a month, as 2026-11-03, 2026-11-02 or 2026-11; or what `--project` or
    `--provider` takes; or the model's name. `unknown` if the log doesn't tell."""
    sessions: int
    """The sessions that spent something, each with its sub-agents; in the total, all that are meant."""
    input_tokens: int | None = None
    """Uncached input."""
    cache_write_tokens: int | None = None
    cache_read_tokens: int | None = None
    output_tokens: int | None = None
    """Reasoning is a part of it."""
    total_tokens: int | None = None
    tokens_made: Made | None = None
    """partial: at least so many."""
    cost_usd: float | None = None
    """Absent if no price is known, and with `--no-dollars`."""
    cost_made: Made | None = None
    """partial: at least so much."""


class Limit(Model):
    """What an agent's log says is left of a limit on its use."""

    agent: str
    hours: float
    """The length of the limit's window."""
    left_percent: float
    resets_at: str
    """When all of it is there again."""


class ModelTokens(Model):
    """Tokens of a model whose price isn't known."""

    model: str
    """`unknown` if the log doesn't tell."""
    tokens: int


class Costs(Model):
    """What was spent, by group: days, weeks, months and blocks in time order, others by cost."""

    selection: str
    """The filters, as a sentence."""
    by: CostBy
    groups: list[Spent]
    titles: dict[str, str] | None = None
    """By session: what each group was about."""
    total: Spent
    """The sum of the groups, but each session counts once."""
    unpriced: list[ModelTokens] | None = None
    """Tokens that aren't in the dollars; the models with the most first; absent if there are none."""
    faster: list[ModelTokens] | None = None
    """Tokens of faster processing that are in the dollars at the standard price: they cost at least that."""
    incomplete_responses: int
    """Responses whose log has no token figures, or only placeholders."""
    sessions_without_figures: int
    """Sessions in which, or in a sub-agent of which, a model answered but whose log has no figures at all."""
    sessions_not_understood: int
    """Sessions in whose logs something wasn't understood that may be usage: a line, a record, a field."""
    starts: int = 0
    """Mere starts of agents, which are no sessions, with figures; of a selection without project or agent."""
    start_tokens: int = 0
    """Their tokens, which are in no sum here."""
    prices: str | None = None
    """The list prices that were used, and the day of the newest; absent with `--no-dollars`, or if the logs have all
    costs."""
    limits: list[Limit] | None = None
    """What is left of limits that haven't begun anew since they were logged; absent if there are none."""
    behind: str | None = None
    """What the index is still missing, as a sentence; absent if it has all logs."""


class Lesson(Model):
    """A failure that came again and again."""

    what: str
    """The program with its subcommand."""
    error: str
    """The line of the output that says most."""
    times: int
    sessions: int
    """The sessions in which it failed."""
    overcome: int
    """How many of the failures were followed by a success at the same thing."""
    last: str | None = None
    """When it failed last (UTC)."""
    seconds: int
    """From each failure to the success that followed, at most half an hour each."""
    tokens: int
    tried: str
    """The command that failed."""
    how: Literal["instead", "before"]
    """instead: `worked` worked in its place; before: it worked after `worked`."""
    worked: str
    advice: str
    """A sentence for CLAUDE.md or AGENTS.md."""
    failed: str
    """`ax://event/<session>/<index>` of a failure."""
    succeeded: str
    """That of the call that worked."""


class Unsolved(Model):
    """A failure that came again and again, and that nothing is known to fix."""

    what: str
    """The program with its subcommand."""
    error: str
    times: int
    sessions: int
    failed: str
    """The newest one, as a reference (`ax://event/...`)."""
    succeeded: str | None = None
    """A call that succeeded after the newest one that anything did: the same one or a similar one."""


class Lessons(Model):
    """The lessons of some sessions."""

    selection: str
    """The filters, as a sentence."""
    sessions: int
    lessons: list[Lesson]
    """Those of the most sessions first."""
    unsolved: int
    """Failures that came as often, and that nothing fixed in the same way twice."""
    worst_unsolved: list[Unsolved]
    """The first of them, that of the most sessions first."""
    made_at: str | None = None


Sure = Literal["edit matches", "edit may match", "commit made by session", "only touched", "unknown"]
"""edit matches: a session's edit put the line there. edit may match: a session's edit replaced a text everywhere, and
the line has the new one, but may have had it before. commit made by session: a session made the commit that the line is
from. only touched: none of these is known, but the session wrote the file, or else read it. unknown: no session is
known."""

Last = Literal["edit", "use"]
"""edit: the last call that wrote the file. use: the last one that named it, where none is known to have written it."""


class WhySession(Model):
    """A session that has to do with a file."""

    id: str
    """The shortest prefix that is unique."""
    session_id: str
    title: str
    project: str | None = None
    provider: str
    at: str | None = None
    """When it made the edit or the commit, or last touched the file (UTC)."""
    turn_index: int | None = None
    request: str | None = None
    """The beginning of the request that opened the turn."""
    event: str | None = None
    """`ax://event/<session>/<index>` of the call."""
    tool: str | None = None
    last: Last | None = None
    """What the call is if it isn't known to have written the lines; absent for an edit or a commit that did."""
    resume: str | None = None
    """A shell command that continues the session, if the agent has one."""


class WhyCommit(Model):
    """The commit that a line is from, according to git."""

    hash: str
    author: str
    at: str | None = None
    """The author's date (UTC)."""
    subject: str


class WhyLines(Model):
    """Successive lines that have the same origin."""

    first_line: int
    last_line: int
    text: str
    """The lines as they are now, without secrets; long ones are cut."""
    sure: Sure
    session: WhySession | None = None
    commit: WhyCommit | None = None
    uncommitted: bool | None = None
    """True if the file is in a git repository and these lines aren't in its newest commit."""


class WhyFileSession(Model):
    """A session that wrote a file."""

    session: WhySession
    """With its last edit of the file."""
    edits: int
    """Its calls that wrote the file and didn't fail."""
    lines: int | None = None
    """Lines of the present file that it surely wrote; absent if that can't be known."""


class Why(Model):
    """Who wrote a file, or lines of it."""

    path: str
    total_lines: int | None = None
    lines: list[WhyLines] | None = None
    """If lines were asked for."""
    sessions: list[WhyFileSession] | None = None
    """If the whole file was asked for: newest first."""
    note: str | None = None
    """What can't be answered, and why."""


class Percentiles(Model):
    """The values that half, 95 % and 99 % of the requests don't exceed, and the largest one."""

    p50: float
    p95: float
    p99: float
    largest: float


class RequestFigures(Model):
    """The figures of some requests."""

    group: str | None = None
    """The tool, the client's name, the local day or hour that they have in common; None for all."""
    requests: int
    errors: int
    error_codes: dict[str, int]
    milliseconds: Percentiles | None = None
    bytes: Percentiles | None = None
    tokens: Percentiles | None = None
    """Estimated."""
    total_tokens: int
    paginated_share: float
    """The share of the requests that were answered with a page of a list."""
    chunked_share: float
    """The share that was answered with a chunk of a long text."""
    summarized_share: float
    """The share that asked for a digest of a long text (`mode`)."""
    pruned_share: float
    cut_share: float
    """The share of the answers without parts that no cursor continues."""
    oversized: int
    """Answers that didn't fit in the form they were asked for."""
    oversized_asked_bytes: int
    """The sizes of these as they were asked for, added up."""
    oversized_bytes: int
    """The sizes of these as they were sent, added up."""
    stale: int
    """Answers from an index that was still behind the logs."""


class RequestMetrics(Model):
    """The figures of the requests of a period."""

    since: str | None = None
    """What was asked for, as is `until`."""
    until: str | None = None
    first: str | None = None
    """When the first of these requests was answered; likewise the last one."""
    last: str | None = None
    total: RequestFigures
    groups: list[RequestFigures]
    """By what was asked for, those with most requests first; days and hours in their order."""
    recorded: int
    """All requests in the telemetry file, which keeps as many days as `telemetry.keep_days` says."""
    dropped: int | None = None
    """Requests that this server couldn't record; None without a server."""


class ArmFigures(Model):
    """The requests on one side of a comparison of answers with and without protection."""

    arm: str
    """`protected` or `unprotected`."""
    connections: int
    requests: int
    requests_per_connection: float
    """How many calls a connection came to: smaller answers that need more calls show here."""
    errors: int
    error_share: float
    bytes: Percentiles
    """Of the answers that were sent."""
    tokens: Percentiles


class AbComparison(Model):
    """Answers with protection beside answers without."""

    since: str | None = None
    until: str | None = None
    arms: list[ArmFigures]
