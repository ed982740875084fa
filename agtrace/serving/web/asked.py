"""What an address asks for: filters of lists, periods, pages. Raises `Problem` for what can't be meant."""

from __future__ import annotations

from typing import Literal, cast

from agtrace_indexer.index.questions.sessions import SessionFilters
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.requests import CostBy
from msgspec import Struct
from starlette.datastructures import QueryParams

from agtrace.problems import InvalidParameter
from agtrace.report.selection import Selection
from agtrace.report.web.pages import GROUPS, SORTS, Behind, behind_in
from agtrace.sessions.sorting import Order
from agtrace.text.lines import repeated
from agtrace.tools.tool import Context

PERIODS = {
    "": "any time", "today": "today", "yesterday": "since yesterday", "7d": "7 days", "30d": "30 days",
    "90d": "90 days", "365d": "a year",
}  # fmt: skip
"""The periods that filters offer, as a time understood by `--since`."""

_LONGEST = 200

Which = Literal["main", "subagent", "all"]


class Asked(Struct, frozen=True):
    """The filters in an address, as typed; empty for none."""

    agent: str = ""
    project: str = ""
    since: str = ""
    until: str = ""
    query: str = ""
    failures: str = ""
    kind: str = ""
    sort: str = ""
    by: str = ""

    @classmethod
    def of(cls, given: QueryParams) -> Asked:
        """Read the query of an address. Raises `InvalidParameter` for an agent, order or group that doesn't exist."""
        found = cls(**{name: given.get(name, "").strip()[:_LONGEST] for name in cls.__struct_fields__})
        for name, value, allowed in (
            ("agent", found.agent, [*AGENTS]), ("sort", found.sort, [*SORTS]), ("by", found.by, [*GROUPS]),
            ("kind", found.kind, ["main", "subagent", "all"]),
        ):  # fmt: skip
            if value and value not in allowed:
                raise InvalidParameter(
                    name, f"{name}: expected one of {', '.join(allowed)}, got {repeated(value, 60)!r}"
                )
        return found

    @property
    def given(self) -> dict[str, str]:
        """The filters that aren't empty, as an address has them."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name))}

    @property
    def filtering(self) -> int:
        """How many of them leave something out."""
        return len(self.given.keys() - {"sort", "by"})

    @property
    def order(self) -> Order:
        """The order of the sessions."""
        return cast(Order, self.sort or "active")

    @property
    def group(self) -> CostBy:
        """The groups of what was spent."""
        return cast(CostBy, self.by or "day")

    def filters(self, context: Context) -> SessionFilters:
        """Return the filters of a list of sessions. Raises `Problem` for a project or a time that isn't understood."""
        kind = self.kind or "main"
        period = context.period(self.since or None, self.until or None)
        return SessionFilters(
            provider=self.agent or None,
            projects=context.projects(self.project or None),
            since=period.since,
            until=period.until,
            query=self.query or None,
            kind=None if kind == "all" else kind,
            has_failures=True if self.failures else None,
        )

    def selection(self, context: Context) -> Selection:
        """Return the sessions and the period whose costs are meant. Raises `Problem` as `filters` does."""
        period = context.period(self.since or None, self.until or None)
        return Selection(
            provider=self.agent or None,
            project=self.project or None,
            projects=context.projects(self.project or None),
            since=period.since,
            until=period.until,
        )


def behind(given: QueryParams) -> Behind | None:
    """Return where the page before ended; None on the first one. Raises `InvalidParameter`."""
    written = given.get("after", "")
    found = behind_in(written)
    if written and found is None:
        raise InvalidParameter("after", "after: not a place in this list")
    return found


def number(given: str, name: str) -> int:
    """Read a number that isn't negative. Raises `InvalidParameter`."""
    if not given.isascii() or not given.isdigit() or len(given) > 15:
        raise InvalidParameter(name, f"{name}: expected a number, got {repeated(given, 60)!r}")
    return int(given)
