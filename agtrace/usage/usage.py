"""What sessions used: tokens by kind and model, and what that costs.

All totals are made of `model_usage`, whose rows leave out superseded figures and copies: a response
counts once, in one session. How a total was made is said beside it: `exact`, `partial` where the logs
hold no figures (or no price is known) for some responses, `estimated` where list prices were used, or
where vanished logs share responses with logs that are there, which then count in both.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agtrace_schema.answers import Made, ModelTotals

from agtrace.text.lines import LABEL, one_line
from agtrace.usage.prices import ModelUsage, PriceTable

KINDS = (
    "input_tokens",
    "cache_creation_5m_tokens",
    "cache_creation_1h_tokens",
    "cache_read_tokens",
    "output_tokens",
    "reasoning_tokens",
)
"""The kinds of tokens; reasoning is a part of the output, the others add up to the total."""

_ADDED = KINDS[:-1]
_EACH = "s.id"

_ROWS = f"""
SELECT {{key}} AS key, m.model, m.speed, m.context_class, m.told,
  sum(m.responses) AS responses, sum(m.incomplete) AS incomplete,
  {", ".join(f"sum(m.{kind}) AS {kind}" for kind in KINDS)}, sum(m.cost_usd) AS cost_usd
FROM model_usage m JOIN session s ON s.id = m.session_id WHERE {{condition}}
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, sum(m.responses) DESC, 2, 3, 4, 5
"""

_UNTOLD = """
SELECT {key} AS key, count(*) AS sessions FROM session s
WHERE {condition} AND s.responses = 0 AND s.copied_responses = 0
  AND EXISTS (SELECT 1 FROM turn t WHERE t.session_id = s.id AND t.step_count > 0 AND NOT t.copied) GROUP BY 1
"""

# Sessions of vanished logs that share events with logs that are there: what they share counts in both.
_SHARED = """
SELECT {key} AS key, count(DISTINCT s.id) AS sessions FROM session s JOIN file f ON f.id = s.file_id AND f.gone
JOIN kin k ON k.session_id = s.id JOIN session o ON o.id = k.other_id JOIN file g ON g.id = o.file_id AND NOT g.gone
WHERE {condition} GROUP BY 1
"""


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

    def add(self, row: sqlite3.Row, prices: PriceTable) -> None:
        """Add the responses of one row of `model_usage`."""
        for usage in (self, self.models.setdefault(row["model"] or "unknown", Usage())):
            usage.responses += row["responses"]
            usage.incomplete += row["incomplete"]
            for kind in KINDS:
                if row[kind] is not None:
                    usage.tokens[kind] = usage.tokens.get(kind, 0) + row[kind]
            usage._add_cost(row, prices)

    def include(self, other: Usage) -> None:
        """Add what another session used."""
        for name in ("responses", "incomplete", "dollars", "priced", "told", "untold", "shared"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for kind, tokens in other.tokens.items():
            self.tokens[kind] = self.tokens.get(kind, 0) + tokens
        for model, usage in other.models.items():
            self.models.setdefault(model, Usage()).include(usage)

    def _add_cost(self, row: sqlite3.Row, prices: PriceTable) -> None:
        """The provider's own figure where there is one, else list prices."""
        if row["told"]:
            self.dollars += row["cost_usd"]
            self.priced += row["responses"]
            self.told += row["responses"]
            return
        if all(row[kind] is None for kind in _ADDED):
            return
        figures = (row[kind] or 0 for kind in _ADDED)
        cost = prices.cost(
            ModelUsage(row["model"] or None, row["speed"] or None, row["context_class"], row["responses"], *figures)
        )
        if cost is not None:
            self.dollars += cost
            self.priced += row["responses"]


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


def usage_by(
    connection: sqlite3.Connection,
    prices: PriceTable,
    key: str,
    condition: str,
    arguments: Mapping[str, Any] | None = None,
) -> dict[Any, Usage]:
    """The usage of the sessions (alias s) that fulfil a condition, grouped by an SQL expression of s."""
    cursor = connection.cursor()
    cursor.row_factory = sqlite3.Row
    found: dict[Any, Usage] = defaultdict(Usage)
    for row in cursor.execute(_ROWS.format(key=key, condition=condition), arguments or {}):
        found[row["key"]].add(row, prices)
    for row in cursor.execute(_UNTOLD.format(key=key, condition=condition), arguments or {}):
        found[row["key"]].untold += row["sessions"]
    if key != _EACH:
        for row in cursor.execute(_SHARED.format(key=key, condition=condition), arguments or {}):
            found[row["key"]].shared += row["sessions"]
    return found


def usage_of(connection: sqlite3.Connection, prices: PriceTable, sessions: Iterable[int]) -> dict[int, Usage]:
    """The usage of each of these sessions, by itself."""
    ids = ", ".join(map(str, sessions))
    return usage_by(connection, prices, _EACH, f"s.id IN ({ids})")
