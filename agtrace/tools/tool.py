"""What a tool is, what it is given, and what all tools share."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agtrace_schema.answers import Model

from agtrace.arguments import DEFAULT_LIMIT, Arguments
from agtrace.cursors import Cursors
from agtrace.index import Freshness
from agtrace.prices import PriceTable
from agtrace.problems import InvalidParameter
from agtrace.query import PROJECTS_BY_HASH
from agtrace.replies import Reply
from agtrace.times import moment

LIST_BYTES = 10_240
_LONG_LIST_BYTES = 20_480


@dataclass(frozen=True, slots=True)
class Context:
    """What a tool needs to answer."""

    connection: sqlite3.Connection
    """Within one read transaction: everything a tool reads is of one moment."""
    cursors: Cursors
    freshness: Freshness
    now: float
    """Seconds since 1970 UTC."""
    prices: PriceTable
    search_seconds: float
    """After which a search is stopped."""

    def check_project(self, project_hash: str | None) -> None:
        """Raise `InvalidParameter` for a hash that is the beginning of no project's."""
        if project_hash is None or self.freshness.state != "ready":
            return
        if self.connection.execute(PROJECTS_BY_HASH, {"hash": project_hash}).fetchone() is None:
            unknown = (
                f"project_hash: no project's hash begins with {project_hash[:60]!r}; get_project_info() lists them"
            )
            raise InvalidParameter("project_hash", unknown)

    def moment(self, field: str, text: str | None, *, end: bool = False) -> int | None:
        """Read a time in the arguments."""
        return None if text is None else moment(field, text, datetime.fromtimestamp(self.now, UTC), end=end)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as clients see it."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    answer: Callable[[Context, Any], Reply]


def unless_behind(summary: str, total: int, freshness: Freshness) -> str:
    """Never say that nothing was found while the index doesn't hold everything yet."""
    if freshness.state == "ready":
        return summary
    behind = "" if freshness.files_behind is None else f", {freshness.files_behind} files behind"
    if total:
        return f"{summary} so far (index {freshness.state.replace('_', ' ')}{behind})"
    return f"Nothing found yet: the index is {freshness.state.replace('_', ' ')}{behind}; ask again"


def list_budget(limit: int) -> int:
    """The bytes that a list may take: more are asked for with a higher limit."""
    return _LONG_LIST_BYTES if limit > DEFAULT_LIMIT else LIST_BYTES


def query_of(wanted: Arguments) -> dict[str, Any]:
    """The arguments as they identify a query."""
    return wanted.model_dump(mode="json", exclude_none=True, exclude_defaults=True)


def mark(time: int | None) -> int:
    """A time as a number of a cursor; 0 is none."""
    return 0 if time is None else time + (time >= 0)


def unmark(mark: int) -> int | None:
    """The time that `mark` wrote."""
    return None if mark == 0 else mark - (mark > 0)


def dump(model: Model) -> dict[str, Any]:
    """A model as JSON values, without what is unknown."""
    dumped: dict[str, Any] = model.model_dump(mode="json", exclude_none=True)
    return dumped


def dump_all(models: Iterable[Model]) -> list[dict[str, Any]]:
    """Models as JSON values."""
    return [dump(model) for model in models]
