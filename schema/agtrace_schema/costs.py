"""The models of `agtrace cost`: what was spent, by day, week, month, project, model or agent."""

from __future__ import annotations

from agtrace_schema.answers import Made
from agtrace_schema.model import Model
from agtrace_schema.requests import CostBy


class Spent(Model):
    """What was spent on a day, in a project, by a model ...

    A kind of tokens that no log records is absent; the four kinds add up to the total.
    """

    group: str
    """A day (UTC), the Monday of a week, or a month, as 2026-11-03, 2026-11-02 or 2026-11; or what `--project` or
    `--provider` takes; or the model's name. `unknown` if the log doesn't tell."""
    sessions: int
    """The sessions that spent something, each with its sub-agents."""
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


class ModelTokens(Model):
    """Tokens of a model whose price isn't known."""

    model: str
    """`unknown` if the log doesn't tell."""
    tokens: int


class Costs(Model):
    """What was spent, by group: days, weeks and months in time order, others by cost."""

    selection: str
    """The filters, as a sentence."""
    by: CostBy
    groups: list[Spent]
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
    prices: str | None = None
    """The list prices that were used, and the day of the newest; absent with `--no-dollars`, or if the logs have all
    costs."""
    behind: str | None = None
    """What the index is still missing, as a sentence; absent if it has all logs."""
