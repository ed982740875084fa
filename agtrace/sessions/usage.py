"""Token usage of sessions, by kind and model, and its cost.

All totals come from `model_usage`, whose rows leave out superseded figures and copies: a response
counts once, in one session. Each total says how it was made: `exact`; `partial` if the logs have no
figures (or no price is known) for some responses; `estimated` if list prices were used, or if logs
that are gone share responses with logs that still exist, which then count in both.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable

from agtrace_indexer.index.questions import usage
from agtrace_indexer.index.questions.turns import TokenCounts
from agtrace_indexer.index.questions.usage import Among, ModelSums
from agtrace_schema.answers import Made, ModelTotals
from msgspec import Struct, field
from msgspec.structs import replace

from agtrace.sessions.prices import ModelUsage, PriceTable
from agtrace.text.lines import LABEL, one_line

KINDS = TokenCounts._fields
"""The kinds of tokens; reasoning is part of the output, the others add up to the total."""

_ADDED = KINDS[:-1]


class Usage(Struct):
    """Sums over responses."""

    responses: int = 0
    incomplete: int = 0
    """Responses with only placeholder figures in the log, or none."""
    tokens: dict[str, int] = field(default_factory=dict)
    """By kind; a kind that no log records is absent."""
    dollars: float = 0.0
    priced: int = 0
    """Responses that have a cost."""
    unpriced: int = 0
    """Tokens whose price isn't known."""
    faster: int = 0
    """Tokens of faster processing whose price isn't known: they are in the dollars at the standard one, the least."""
    told: int = 0
    """Responses whose cost is recorded in the log."""
    untold: int = 0
    """Sessions in which a model answered but whose log has no figures at all."""
    shared: int = 0
    """Sessions whose logs are gone and whose responses may also be counted in logs that still exist."""
    models: dict[str, Usage] = field(default_factory=dict)

    @property
    def total(self) -> int | None:
        """All tokens; None if no log has figures."""
        return sum(self.tokens.get(kind, 0) for kind in _ADDED) if self.tokens else None

    @property
    def known_tokens(self) -> dict[str, int] | None:
        """Tokens by kind, without kinds that have none; None if all have none."""
        return {kind: self.tokens[kind] for kind in KINDS if self.tokens.get(kind)} or None

    @property
    def tokens_made(self) -> Made | None:
        """How the total of tokens was made; None if no model answered."""
        if not self.tokens:
            return "unknown" if self.responses or self.untold else None
        if self.incomplete or self.untold:
            return "partial"
        return "estimated" if self.shared else "exact"

    @property
    def cost(self) -> float | None:
        """US dollars; None if no response has a price."""
        return round(self.dollars, 4) if self.priced or self.faster else None

    @property
    def cost_made(self) -> Made | None:
        """How the cost was made; None if no model answered."""
        if self.cost is None:
            return "unknown" if self.responses or self.untold else None
        if self.priced < self.responses or self.incomplete or self.untold:
            return "partial"
        return "exact" if self.told == self.responses and not self.shared else "estimated"

    def by_model(self, most: int) -> list[ModelTotals]:
        """Return the models with the most tokens, largest first."""
        ranked = sorted(self.models.items(), key=lambda item: -(item[1].total or 0))
        return [model_totals(name, usage) for name, usage in ranked[:most]]

    def add(self, used: ModelSums, prices: PriceTable) -> None:
        """Add responses with the same rates."""
        for sums in (self, self.models.setdefault(used.model or "unknown", Usage())):
            sums.responses += used.responses
            sums.incomplete += used.incomplete
            for kind, tokens in used.tokens._asdict().items():
                if tokens is not None:
                    sums.tokens[kind] = sums.tokens.get(kind, 0) + tokens
            sums._add_cost(used, prices)

    def include(self, other: Usage) -> None:
        """Add the usage of another session."""
        for name in ("responses", "incomplete", "dollars", "priced", "unpriced", "faster", "told", "untold", "shared"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for kind, tokens in other.tokens.items():
            self.tokens[kind] = self.tokens.get(kind, 0) + tokens
        for model, sums in other.models.items():
            self.models.setdefault(model, Usage()).include(sums)

    def _add_cost(self, used: ModelSums, prices: PriceTable) -> None:
        """Add the cost recorded in the log, if any, else list prices."""
        if used.told:
            self.dollars += used.cost_usd or 0
            self.priced += used.responses
            self.told += used.responses
            return
        added = used.tokens[: len(_ADDED)]
        if all(tokens is None for tokens in added):
            return
        figures = [tokens or 0 for tokens in added]
        usage = ModelUsage(used.model or None, used.speed or None, used.context_class, used.responses, *figures)
        cost = prices.cost(usage)
        if cost is not None:
            self.dollars += cost
            self.priced += used.responses
        elif used.speed == "fast" and (least := prices.cost(replace(usage, speed=None))) is not None:
            self.dollars += least
            self.faster += sum(figures)
        else:
            self.unpriced += sum(figures)


def model_totals(name: str, usage: Usage) -> ModelTotals:
    """Return the usage of one model."""
    return ModelTotals(
        model=one_line(name, LABEL),
        responses=usage.responses,
        total_tokens=usage.total,
        tokens=usage.known_tokens,
        cost_usd=usage.cost,
        cost_made=usage.cost_made,
    )


def usage_by(connection: sqlite3.Connection, prices: PriceTable, among: Among) -> dict[int, Usage]:
    """Return the usage of some sessions, summed by `among.by`."""
    found: dict[int, Usage] = defaultdict(Usage)
    for used in usage.by_model(connection, among):
        found[used.key].add(used, prices)
    for key, sessions in usage.without_figures(connection, among).items():
        found[key].untold += sessions
    if among.by != "session":
        for key, sessions in usage.counted_twice(connection, among).items():
            found[key].shared += sessions
    return found


def usage_of(connection: sqlite3.Connection, prices: PriceTable, sessions: Iterable[int]) -> dict[int, Usage]:
    """Return the usage of each of these sessions."""
    return usage_by(connection, prices, Among("session", sessions=tuple(sessions)))
