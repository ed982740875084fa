"""What responses used: the token figures of single ones, and sums of sessions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from agtrace_indexer.index.ids import as_json
from agtrace_indexer.index.questions.conditions import COUNTED, OF_STEP, OWN_THEN
from agtrace_indexer.index.questions.events import Snapshot
from agtrace_indexer.index.questions.rows import listed, only, pairs, rows
from agtrace_indexer.index.questions.tokens import TOKEN_COLUMNS, TokenCounts
from agtrace_indexer.index.questions.turns import Step
from agtrace_indexer.index.sums import WHOLE_INPUT

_FIGURES = f"u.event_index, u.model, u.response_id, u.complete, u.context_window, {TOKEN_COLUMNS}"

_LARGEST_REQUEST = f"""
SELECT max({WHOLE_INPUT}), max(u.context_window) FROM token_usage u JOIN event e USING (session_id, event_index)
WHERE u.session_id = ? AND {COUNTED}
"""

_MODELS_THEN = f"""
SELECT coalesce(u.model, ''), min(u.event_index)
FROM event e JOIN token_usage u USING (session_id, event_index) WHERE {OWN_THEN} GROUP BY 1 ORDER BY 2
"""

_BY_MODEL = f"""
SELECT {{key}}, m.model, m.speed, m.context_class, m.told,
  sum(m.responses), sum(m.incomplete), sum(m.cost_usd), {", ".join(f"sum(m.{kind})" for kind in TokenCounts._fields)}
FROM model_usage m JOIN session s ON s.id = m.session_id WHERE {{condition}}
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, sum(m.responses) DESC, 2, 3, 4, 5
"""

_WITHOUT_FIGURES = """
SELECT {key}, count(*) FROM session s
WHERE {condition} AND s.responses = 0 AND s.copied_responses = 0
  AND EXISTS (SELECT 1 FROM turn t WHERE t.session_id = s.id AND t.step_count > 0 AND NOT t.copied) GROUP BY 1
"""

_COUNTED_TWICE = """
SELECT {key}, count(DISTINCT s.id) FROM session s JOIN file f ON f.id = s.file_id AND f.gone
JOIN kin k ON k.session_id = s.id JOIN session o ON o.id = k.other_id JOIN file g ON g.id = o.file_id AND NOT g.gone
WHERE {condition} GROUP BY 1
"""

_KINDS = len(TokenCounts._fields)


# -- single responses ------------------------------------------------------------------------------


class Figures(NamedTuple):
    """The figures of a response."""

    event_index: int
    """Of the event of type TokenUsage that tells them."""
    model: str | None
    response_id: str | None
    complete: int
    """0 where the log has only placeholders."""
    context_window: int | None
    tokens: TokenCounts


def _figures(*columns: Any) -> Figures:
    return Figures._make((*columns[:-_KINDS], TokenCounts(*columns[-_KINDS:])))


def figures(connection: sqlite3.Connection, session_row: int, indices: Iterable[int]) -> list[Figures]:
    """The figures that these events of a session tell, in file order."""
    sql = f"SELECT {_FIGURES} FROM token_usage u WHERE session_id = ? AND event_index IN {listed(indices)} ORDER BY 1"
    return list(rows(connection, _figures, sql, (session_row,)))


def of_step(connection: sqlite3.Connection, session_row: int, step: Step) -> list[Figures]:
    """The figures of a step, in file order."""
    sql = (
        f"SELECT {_FIGURES} FROM event e JOIN token_usage u USING (session_id, event_index) "
        f"WHERE {OF_STEP} ORDER BY e.event_index"
    )
    return list(rows(connection, _figures, sql, {**step._asdict(), "session": session_row}))


class LargestRequest(NamedTuple):
    """How much the largest request of a session gave its model to read."""

    tokens: int | None
    context_window: int | None
    """Of the model, as the log tells it."""


def largest_request(connection: sqlite3.Connection, session_row: int) -> LargestRequest:
    """The largest request of a session's own."""
    return only(connection, LargestRequest, _LARGEST_REQUEST, (session_row,))


def models_then(connection: sqlite3.Connection, session_row: int, then: Snapshot) -> dict[str, int]:
    """The models that a session had used, in that order, each with the event of its first figures.

    What has no name is called ''.
    """
    named = {"session": session_row, "last": then.last_event, "newest": then.newest_row}
    return pairs(connection, _MODELS_THEN, named)


# -- sums of sessions ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Among:
    """Which sessions are summed up, and by what: every session by itself, each project, or all together."""

    by: Literal["session", "project", "all"]
    sessions: tuple[int, ...] | None = None
    """The rows of sessions; None is every one."""
    projects: tuple[int, ...] | None = None
    """The rows of projects; None is every one."""
    newest: int | None = None
    """The mark of which sessions there were when a list was begun; None: there are all of them."""


class ModelSums(NamedTuple):
    """What responses used that are priced alike."""

    key: int
    """The row of the session or of the project; 0 where all are summed up together."""
    model: str
    """Empty where the log doesn't name it."""
    speed: str
    """Empty is standard."""
    context_class: int
    """How many of `codes.CONTEXT_CLASSES` the whole input of each request exceeds."""
    told: int
    """1 where the provider says what these responses cost."""
    responses: int
    incomplete: int
    """Responses of which the log holds only placeholder figures, or none."""
    cost_usd: float | None
    """What the provider says they cost."""
    tokens: TokenCounts


def _model_sums(*columns: Any) -> ModelSums:
    return ModelSums._make((*columns[:-_KINDS], TokenCounts(*columns[-_KINDS:])))


def by_model(connection: sqlite3.Connection, among: Among) -> Iterator[ModelSums]:
    """What sessions used, by key and by what is priced alike; the most used first."""
    return rows(connection, _model_sums, *_asked(_BY_MODEL, among))


def without_figures(connection: sqlite3.Connection, among: Among) -> dict[int, int]:
    """By key, how many sessions there are in which a model answered and whose log has no figures at all."""
    return pairs(connection, *_asked(_WITHOUT_FIGURES, among))


def counted_twice(connection: sqlite3.Connection, among: Among) -> dict[int, int]:
    """By key, how many sessions of vanished logs share events with logs that are there: these count in both."""
    return pairs(connection, *_asked(_COUNTED_TWICE, among))


def _asked(query: str, among: Among) -> tuple[str, dict[str, Any]]:
    """A query of sums with its key and its condition, and the arguments."""
    conditions: list[str] = []
    arguments: dict[str, Any] = {}
    for name, condition, given in (
        ("sessions", "s.id IN (SELECT value FROM json_each(:sessions))", among.sessions),
        ("projects", "s.project_id IN (SELECT value FROM json_each(:projects))", among.projects),
    ):
        if given is not None:
            conditions.append(condition)
            arguments[name] = as_json(given)
    if among.newest is not None:
        conditions.append("s.id <= :newest")
        arguments["newest"] = among.newest
    key = {"session": "s.id", "project": "s.project_id", "all": "0"}[among.by]
    return query.format(key=key, condition=" AND ".join(conditions) or "1"), arguments
