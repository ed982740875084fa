"""What responses used: their token figures."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, NamedTuple

from agtrace_indexer.index.questions.conditions import OF_STEP
from agtrace_indexer.index.questions.rows import listed, rows
from agtrace_indexer.index.questions.tokens import TOKEN_COLUMNS, TokenCounts
from agtrace_indexer.index.questions.turns import Step

_FIGURES = f"u.event_index, u.model, u.response_id, u.complete, u.context_window, {TOKEN_COLUMNS}"


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
    kinds = len(TokenCounts._fields)
    return Figures._make((*columns[:-kinds], TokenCounts(*columns[-kinds:])))


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
