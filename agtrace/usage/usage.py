"""What sessions used: tokens by kind and model, and what that costs.

All totals are made of `model_usage`, whose rows leave out superseded figures and copies: a response
counts once, in one session. How a total was made is said beside it: `exact`, `partial` where the logs
hold no figures (or no price is known) for some responses, `estimated` where list prices were used, or
where vanished logs share responses with logs that are there, which then count in both.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from agtrace_indexer.index.questions import usage
from agtrace_indexer.index.questions.tokens import TokenCounts
from agtrace_indexer.index.questions.usage import Among, ModelSums
from agtrace_schema.answers import Made, ModelTotals

from agtrace.text.lines import LABEL, one_line
from agtrace.usage.prices import ModelUsage, PriceTable

KINDS = TokenCounts._fields
"""The kinds of tokens; reasoning is a part of the output, the others add up to the total."""

_ADDED = KINDS[:-1]


@dataclass(slots=True)
class Usage:
    """Sums over responses."""

    responses: int = 0
    incomplete: int = 0
    """Responses of which the log holds only placeholder figures, or none."""
    tokens: dict[str, int] = field(default_factory=dict)
    """By kind; a kind that no log tells is absent."""
    dollars: float = 0.0
    priced: int = 0
    """Responses that have a cost."""
    told: int = 0
    """Responses whose cost the provider itself told."""
    untold: int = 0
    """Sessions in which a model answered and whose log has no figures at all."""
    shared: int = 0
    """Sessions of vanished logs whose responses may count a second time in logs that are there."""
    models: dict[str, Usage] = field(default_factory=dict)

    @property
    def total(self) -> int | None:
        """All tokens; None where no log has figures."""
        return sum(self.tokens.get(kind, 0) for kind in _ADDED) if self.tokens else None

    @property
    def known_tokens(self) -> dict[str, int] | None:
        """Tokens by kind, without those of which there are none."""
        return {kind: self.tokens[kind] for kind in KINDS if self.tokens.get(kind)} or None

    @property
    def tokens_made(self) -> Made | None:
        """How the total of tokens was made."""
        if not self.tokens:
            return "unknown" if self.responses or self.untold else None
        if self.incomplete or self.untold:
            return "partial"
        return "estimated" if self.shared else "exact"

    @property
    def cost(self) -> float | None:
        """US dollars; None where no response has a price."""
        return round(self.dollars, 4) if self.priced else None

    @property
    def cost_made(self) -> Made | None:
        """How the cost was made."""
        if not self.priced:
            return "unknown" if self.responses or self.untold else None
        if self.priced < self.responses or self.incomplete or self.untold:
            return "partial"
        return "exact" if self.told == self.responses and not self.shared else "estimated"

    def by_model(self, most: int) -> list[ModelTotals]:
        """The models with the most tokens."""
        ranked = sorted(self.models.items(), key=lambda item: -(item[1].total or 0))
        return [model_totals(name, usage) for name, usage in ranked[:most]]

    def add(self, used: ModelSums, prices: PriceTable) -> None:
        """Add responses that are priced alike."""
        for sums in (self, self.models.setdefault(used.model or "unknown", Usage())):
            sums.responses += used.responses
            sums.incomplete += used.incomplete
            for kind, tokens in used.tokens._asdict().items():
                if tokens is not None:
                    sums.tokens[kind] = sums.tokens.get(kind, 0) + tokens
            sums._add_cost(used, prices)

    def include(self, other: Usage) -> None:
        """Add what another session used."""
        for name in ("responses", "incomplete", "dollars", "priced", "told", "untold", "shared"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for kind, tokens in other.tokens.items():
            self.tokens[kind] = self.tokens.get(kind, 0) + tokens
        for model, sums in other.models.items():
            self.models.setdefault(model, Usage()).include(sums)

    def _add_cost(self, used: ModelSums, prices: PriceTable) -> None:
        """The provider's own figure where there is one, else list prices."""
        if used.told:
            self.dollars += used.cost_usd or 0
            self.priced += used.responses
            self.told += used.responses
            return
        added = used.tokens[: len(_ADDED)]
        if all(tokens is None for tokens in added):
            return
        figures = (tokens or 0 for tokens in added)
        cost = prices.cost(
            ModelUsage(used.model or None, used.speed or None, used.context_class, used.responses, *figures)
        )
        if cost is not None:
            self.dollars += cost
            self.priced += used.responses


def model_totals(name: str, usage: Usage) -> ModelTotals:
    """What one model used."""
    return ModelTotals(
        model=one_line(name, LABEL),
        responses=usage.responses,
        total_tokens=usage.total,
        tokens=usage.known_tokens,
        cost_usd=usage.cost,
        cost_made=usage.cost_made,
    )


def usage_by(connection: sqlite3.Connection, prices: PriceTable, among: Among) -> dict[int, Usage]:
    """The usage of some sessions, by the key that they are summed up by."""
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
    """The usage of each of these sessions, by itself."""
    return usage_by(connection, prices, Among("session", sessions=tuple(sessions)))
