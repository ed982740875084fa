"""How the answers of several databases are put together, question by question.

What isn't listed is a question about one thing, and asked of the database that has it (`several.py`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from heapq import merge
from itertools import chain
from typing import Any, cast

from agtrace_indexer.index.questions import sessions
from agtrace_indexer.index.questions.counts import CallGroup, TokenGroup
from agtrace_indexer.index.questions.projects import Project
from agtrace_indexer.index.questions.ranking import Size
from agtrace_indexer.index.questions.sessions import Counts, Neighbours, Session, SessionFilters
from agtrace_indexer.index.questions.state import Totals
from agtrace_indexer.index.questions.texts import ReadText, StoredEvent
from agtrace_indexer.index.questions.tokens import TokenCounts
from agtrace_indexer.index.questions.upkeep import ProviderTotals, RecordType
from agtrace_indexer.index.questions.upkeep import Totals as WholeTotals
from agtrace_indexer.index.questions.usage import ModelSums
from agtrace_indexer.texts.candidates import Narrowed, Places
from msgspec.structs import astuple, replace

from agtrace_team.several import Asking, by_place, mark_of

Together = Callable[[Asking], Any]


# -- what fits many questions ----------------------------------------------------------------------


def _first(asking: Asking) -> Any:
    """The answer of the first database that has one."""
    return next((found for found in asking.each() if found is not None), None)


def _any(asking: Asking) -> bool:
    return any(asking.each())


def _all(asking: Asking) -> bool:
    return all(asking.each())


def _sum(asking: Asking) -> int:
    return sum(asking.each())


def _sums(asking: Asking, kind: Callable[..., Any]) -> Any:
    """Sums of what has nothing but numbers."""
    return kind(*map(sum, zip(*(_columns(found) for found in asking.each()), strict=True)))


def _mark(asking: Asking) -> int:
    return mark_of({place: asking.raw(place) for place in asking.places()})


def _chained(asking: Asking) -> Iterator[Any]:
    return chain.from_iterable(asking.each())


def _listed(asking: Asking) -> list[Any]:
    return list(_chained(asking))


def _sorted(asking: Asking, key: Callable[[Any], Any]) -> list[Any]:
    """All rows in the order that one database has; at most as many as wanted."""
    return sorted(_chained(asking), key=key)[: asking.given.get("most")]


def _merged(asking: Asking, key: Callable[[Any], Any]) -> Iterator[Any]:
    """The same, read on demand."""
    return merge(*asking.each(), key=key)


def _by_row(asking: Asking) -> dict[int, Any]:
    """A mapping from row ids."""
    return {
        asking.several.up(row, place): asking.raised(value, place)
        for place in asking.places()
        for row, value in asking.raw(place).items()
    }


def _rows(asking: Asking) -> list[int]:
    return [asking.several.up(row, place) for place in asking.places() for row in asking.raw(place)]


def _row_set(asking: Asking) -> set[int]:
    return set(_rows(asking))


def _rows_of_one(asking: Asking) -> list[int]:
    """Row ids that the database of one thing answers."""
    return [asking.several.up(row, asking.place) for row in asking.raw(asking.place)]


def _added(asking: Asking) -> dict[Any, int]:
    """Numbers by what isn't a row id, added up."""
    found: dict[Any, int] = {}
    for one in asking.each():
        for key, number in one.items():
            found[key] = found.get(key, 0) + number
    return found


def _columns(row: Any) -> tuple[Any, ...]:
    return tuple(row) if isinstance(row, tuple) else astuple(row)


def _known(numbers: Iterable[float | None]) -> Any:
    """The sum of the numbers that are known; None if none is."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _grouped(rows: Iterable[Any], key: Callable[[Any], Hashable]) -> Iterator[list[Any]]:
    """The rows that have the same key, in the order of their first ones."""
    groups: dict[Hashable, list[Any]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    yield from groups.values()


# -- sessions --------------------------------------------------------------------------------------


def _start(session: Session) -> tuple[int, int]:
    return session.started_at or 0, session.id


def _latest(asking: Asking) -> Session | None:
    found = [one for one in asking.each() if one is not None]
    return max(found, key=lambda one: (one.kind not in ("subagent", "warmup"), one.ended_at or 0, one.id), default=None)


def _neighbours(asking: Asking) -> Neighbours:
    found = list(asking.each())
    befores, behinds = ([one for one in ids if one is not None] for ids in zip(*found, strict=True))
    return Neighbours(max(befores, default=None), min(behinds, default=None))


def _oldest_first(asking: Asking) -> list[Session]:
    return _sorted(asking, lambda one: (one.started_at is not None, *_start(one)))


def _page(asking: Asking) -> list[Session]:
    oldest_first = asking.given.get("oldest_first", False)
    pages = [asking.one(place, behind=_behind(asking, place, up=oldest_first)) for place in asking.places()]
    found = sorted(chain.from_iterable(pages), key=_start, reverse=not oldest_first)
    return found[: asking.given["most"]]


def _behind(asking: Asking, place: int, *, up: bool) -> tuple[int, int] | None:
    """Return the place in a list of one database behind which those lie that do so in the list of all."""
    if asking.given["behind"] is None:
        return None
    start, row = asking.given["behind"]
    number = asking.several.number
    return start, (row - place) // number if up else -((place - row) // number)


def _shared_events(asking: Asking) -> int:
    places = {asking.several.place_of(asking.given[name]) for name in ("one", "other")}
    return int(asking.one(places.pop())) if len(places) == 1 else 0


# -- sums by group ---------------------------------------------------------------------------------


def _groups(asking: Asking, kind: type[CallGroup | TokenGroup]) -> list[Any]:
    """Figures by group: the key of a project or a session is a row id."""
    found = [
        one._replace(key=_key(asking, asking.given["by"], one.key, place))
        for place in asking.places()
        for one in asking.raw(place)
    ]
    return [
        kind(group[0].key, *map(_known, zip(*(one[1:] for one in group), strict=True)))
        for group in _grouped(found, lambda one: one.key)
    ]


def _key(asking: Asking, by: str, key: Any, place: int) -> Any:
    if not isinstance(key, int) or by not in ("project", "session"):
        return key
    return asking.several.repository(key, place) if by == "project" else asking.several.up(key, place)


def _by_model(asking: Asking) -> Iterator[ModelSums]:
    by = asking.given["among"].by
    found = [
        replace(one, key=_key(asking, by, one.key, place)) for place in asking.places() for one in asking.raw(place)
    ]
    sums = map(_model_sums, _grouped(found, _priced))
    return iter(sorted(sums, key=lambda one: (one.key, -one.responses, *_priced(one)[1:])))


def _priced(one: ModelSums) -> tuple[Any, ...]:
    return one.key, one.model, one.speed, one.context_class, one.told


def _model_sums(group: list[ModelSums]) -> ModelSums:
    return replace(
        group[0],
        responses=sum(one.responses for one in group),
        incomplete=sum(one.incomplete for one in group),
        cost_usd=_known(one.cost_usd for one in group),
        tokens=TokenCounts(*map(_known, zip(*(one.tokens for one in group), strict=True))),
    )


def _by_key(asking: Asking) -> dict[int, int]:
    found: dict[int, int] = {}
    for place in asking.places():
        for key, number in asking.raw(place).items():
            among = _key(asking, asking.given["among"].by, key, place)
            found[among] = found.get(among, 0) + number
    return found


def _by_day(asking: Asking) -> Iterator[Any]:
    for place in asking.places():
        for one in asking.raw(place):
            yield one._replace(sums=replace(one.sums, key=asking.several.up(one.sums.key, place)))


# -- projects --------------------------------------------------------------------------------------


def _projects(asking: Asking) -> list[Project]:
    """The projects that all have, each once: those of several databases are known only when all are."""
    everything = {"behind": None, "most": 1 << 31}
    found = [_project(group) for group in _grouped(_each_project(asking, everything), lambda one: one.id)]
    behind = asking.given["behind"] or (1 << 62, 1 << 62)
    listed = sorted(
        (one for one in found if (one.last, one.id) < behind),
        key=lambda one: (one.last, one.id),
        reverse=True,
    )
    return [replace(one, total=len(found)) for one in listed[: asking.given["most"]]]


def _each_project(asking: Asking, other: Mapping[str, Any]) -> Iterator[Project]:
    return chain.from_iterable(asking.each(**other))


def _project(group: list[Project]) -> Project:
    return replace(
        group[0],
        sessions=sum(one.sessions for one in group),
        providers=tuple(dict.fromkeys(chain.from_iterable(one.providers for one in group))),
        failed_calls=sum(one.failed_calls for one in group),
        last=max(one.last for one in group),
    )


def _folders_of(asking: Asking) -> list[Any]:
    """The folders of a repository, those with the most sessions first, as one database has them."""
    found = list(asking.each())
    if sum(map(bool, found)) < 2:
        return list(chain.from_iterable(found))
    connection = cast(sqlite3.Connection, asking.several)
    newest = sessions.newest_row(connection)
    used = {
        one.id: sessions.count(connection, SessionFilters(projects=(one.id,)), newest=newest).sessions
        for one in chain.from_iterable(found)
    }
    return sorted(chain.from_iterable(found), key=lambda one: (-used[one.id], *_by_path(one)[:2]))


def _repositories(asking: Asking) -> dict[int, Any]:
    found: dict[int, Any] = {}
    for one in chain.from_iterable(answer.values() for answer in _each_repository(asking)):
        found.setdefault(one.id, one)
    return found


def _each_repository(asking: Asking) -> Iterator[dict[int, Any]]:
    for place in asking.places():
        yield {id: asking.raised(one, place) for id, one in asking.raw(place).items()}


def _called(asking: Asking) -> list[Any]:
    return [group[0] for group in _grouped(_sorted(asking, lambda one: one.id), lambda one: one.id)]


def _names(asking: Asking) -> list[tuple[int, str]]:
    return [(asking.several.repository(id, place), name) for place in asking.places() for id, name in asking.raw(place)]


def _by_path(one: Any) -> tuple[bool, str, str]:
    return one.root_path is None, one.root_path or "", one.hash


# -- events and their texts ------------------------------------------------------------------------


def _text_reader(asking: Asking) -> ReadText:
    readers = {place: asking.raw(place) for place in asking.places()}

    def read(event: Any) -> StoredEvent:
        place = asking.several.place_of(event.session_row)
        found: StoredEvent = asking.raised(readers[place](asking.lowered(event)), place)
        return found

    return read


def _with_texts(asking: Asking) -> list[StoredEvent]:
    wanted = list(asking.given["events"])
    found: dict[int, StoredEvent] = {}
    for place, numbers in by_place(asking.several, wanted):
        answer = asking.one(place, events=[asking.lowered(wanted[number]) for number in numbers])
        found |= zip(numbers, answer, strict=True)
    return [found[number] for number in range(len(wanted))]


# -- searches --------------------------------------------------------------------------------------


def _blocks(asking: Asking) -> Iterator[Any]:
    if asking.given["newest_first"]:
        return _merged(asking, lambda one: (-one.t1, -one.id))
    return _merged(asking, lambda one: (one.t0, one.id))


def _candidates(asking: Asking) -> Places | None:
    return _placed(asking, {place: asking.raw(place) for place in asking.places()})


def _candidates_of_all(asking: Asking) -> Narrowed:
    found = {place: asking.raw(place) for place in asking.places()}
    places = {place: one.places for place, one in found.items()}
    return Narrowed(_placed(asking, places), all(one.final for one in found.values()))


def _placed(asking: Asking, found: Mapping[int, Places | None]) -> Places | None:
    placed: dict[int, list[int] | None] = {}
    for place, places in found.items():
        if places is None:
            return None
        placed |= {asking.several.up(block, place): pieces for block, pieces in places.items()}
    return placed


def _size(asking: Asking) -> Size:
    found = list(asking.each())
    events = sum(one.events for one in found)
    return Size(events, sum(one.words * one.events for one in found) / events if events else 0)


def _asking(asking: Asking) -> dict[tuple[int, int], int]:
    several, found = asking.several, dict[tuple[int, int], int]()
    for place in asking.places():
        turns = [(several.down(row), turn) for row, turn in asking.given["turns"] if several.place_of(row) == place]
        answer = asking.raw(place, turns=turns)
        found |= {(several.up(row, place), turn): event for (row, turn), event in answer.items()}
    return found


# -- the index -------------------------------------------------------------------------------------


def _totals(asking: Asking) -> Totals:
    found = list(asking.each())
    newest = max((one.newest_event for one in found if one.newest_event is not None), default=None)
    return Totals(sum(one.sessions for one in found), sum(one.events for one in found), newest,
                  sum(one.logs for one in found))  # fmt: skip


def _masked_by(asking: Asking) -> str | None:
    found = set(asking.each())
    return found.pop() if len(found) == 1 else None


def _providers(asking: Asking) -> list[ProviderTotals]:
    return [_provider(group) for group in _grouped(_sorted(asking, lambda one: one.provider), lambda one: one.provider)]


def _provider(group: list[ProviderTotals]) -> ProviderTotals:
    versions = dict.fromkeys(chain.from_iterable((one.versions or "").split(",") for one in group))
    return group[0]._replace(
        files=sum(one.files for one in group),
        sessions=sum(one.sessions for one in group),
        warmups=sum(one.warmups for one in group),
        versions=",".join(filter(None, versions)) or None,
    )


def _record_types(asking: Asking) -> list[RecordType]:
    groups = _grouped(_chained(asking), lambda one: (one.type, one.provider))
    found = [
        group[0]._replace(records=sum(one.records for one in group), files=sum(one.files for one in group))
        for group in groups
    ]
    return sorted(found, key=lambda one: (-one.records, one.type))


def _most_shared(asking: Asking) -> list[Any]:
    return _sorted(asking, lambda one: (-one.events, one.uid))


# -- question by question --------------------------------------------------------------------------


def _ordered(key: Callable[[Any], Any]) -> Together:
    return lambda asking: _sorted(asking, key)


def _merging(key: Callable[[Any], Any]) -> Together:
    return lambda asking: _merged(asking, key)


def _summing(kind: Callable[..., Any]) -> Together:
    return lambda asking: _sums(asking, kind)


def _grouping(kind: type[CallGroup | TokenGroup]) -> Together:
    return lambda asking: _groups(asking, kind)


TOGETHER: Mapping[str, Together] = {
    "sessions.with_id": _first,
    "sessions.latest": _latest,
    "sessions.with_prefix": _ordered(lambda one: one.uid),
    "sessions.ids_with_prefix": _ordered(str),
    "sessions.count_with_prefix": _sum,
    "sessions.neighbours": _neighbours,
    "sessions.in_rows": _oldest_first,
    "sessions.of_repositories": _row_set,
    "sessions.newest_row": _mark,
    "sessions.of_provider": _ordered(_start),
    "sessions.page": _page,
    "sessions.starts": _by_row,
    "sessions.ends": _by_row,
    "sessions.count": _summing(Counts),
    "sessions.shared_events": _shared_events,
    "people.is_of_people": _all,
    "people.people_of": _by_row,
    "measures.of_sessions": _by_row,
    "counts.calls": _grouping(CallGroup),
    "counts.files": _chained,
    "counts.tokens": _grouping(TokenGroup),
    "texts.with_texts": _with_texts,
    "texts.text_reader": _text_reader,
    "usage.by_model": _by_model,
    "usage.by_day": _by_day,
    "usage.without_figures": _by_key,
    "usage.counted_twice": _by_key,
    "live.active": _ordered(lambda one: (-one.at, -one.id)),
    "live.newest": _ordered(lambda one: (-(one.ended_at or 0), -one.id)),
    "files.in_sessions": _by_row,
    "files.uses": _merging(lambda one: one.at),
    "landmarks.matching": _by_row,
    "landmarks.committers": _ordered(lambda one: one.at),
    "landmarks.deeds": _by_row,
    "landmarks.totals": _listed,
    "projects.page": _projects,
    "projects.folders": _ordered(_by_path),
    "projects.folders_of": _folders_of,
    "projects.repositories": _repositories,
    "projects.called": _called,
    "projects.names": _names,
    "state.totals": _totals,
    "state.is_built": _all,
    "state.masked_by": _masked_by,
    "matches.blocks": _blocks,
    "matches.sessions_of": _row_set,
    "matches.newest_event": _mark,
    "ranking.size": _size,
    "ranking.holding": _rows,
    "ranking.events": _chained,
    "ranking.count": _sum,
    "ranking.asking": _asking,
    "ranking.titled": _by_row,
    "candidates.candidates": _candidates,
    "candidates.candidates_of_all": _candidates_of_all,
    "histories.sub_agents": _rows_of_one,
    "reports.relatives": _merging(lambda one: one.id),
    "reports.projects": _ordered(_by_path),
    "reports.calls_by_tool": _chained,
    "upkeep.totals": _summing(WholeTotals),
    "upkeep.roots": _ordered(str),
    "upkeep.providers": _providers,
    "upkeep.sessions_gone": _added,
    "upkeep.logs": _ordered(lambda one: one.path),
    "upkeep.files_not_read": _ordered(lambda one: (one.status, one.path)),
    "upkeep.logs_partly_read": _ordered(lambda one: one.path),
    "upkeep.unreadable_lines": _ordered(lambda one: (one.path, one.line)),
    "upkeep.record_types": _record_types,
    "upkeep.held_by": _ordered(lambda one: (one.started_at is not None, one.started_at or 0)),
    "upkeep.also_in": _most_shared,
    "upkeep.told_in": _ordered(str),
    "upkeep.has_session": _any,
    "upkeep.files_of_project": _row_set,
}
"""The questions that more than one database is asked, or whose answers are row ids."""
