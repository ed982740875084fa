"""Asking the index as the MCP server does: settings, rules for secrets, answers of tools, sessions by filters."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from agtrace.commands.errors import NoIndex, explanation_of, fail, tell
from agtrace.commands.printing import print_json

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from agtrace.answers.service import Service
    from agtrace.report.selection import Selection
    from agtrace.sessions.listing import Described
    from agtrace.sessions.prices import PriceTable
    from agtrace.settings.model import Settings
    from agtrace.shaping.shape import Answer


def usable(*, creates_index: bool = False) -> Settings:
    """Return the settings from the environment, and put the user's rules for secrets to use.

    A data folder that somebody chose and that isn't there is told, unless the index is to be made in it.
    Raises `SettingError` for a value that can't be used, and `UnusableRules` for such rules.
    """
    from agtrace_indexer.redact import use

    from agtrace.settings import load

    result = load(tell=tell)
    if not creates_index:
        _tell_if_absent(result.data_dir)
    use(result.data_dir)
    return result


@cache
def _tell_if_absent(data_dir: Path) -> None:
    """Say that a data folder that somebody chose isn't there: if its name is mistyped, all seems to be gone."""
    from agtrace.settings.environment import platform_data_dir
    from agtrace.text.lines import shown_path

    there = next((folder for folder in (data_dir, *data_dir.parents) if folder.exists()), data_dir)
    if there != data_dir and there.is_dir() and data_dir != platform_data_dir():
        tell(f"there is no data folder {shown_path(str(data_dir))} yet: a new index is made in it")


def with_index() -> Settings:
    """Return the settings, as `usable` does, for what is about one's own index. Raises `NoIndex` if there is none."""
    result = usable()
    if not result.database.exists():
        raise NoIndex
    return result


def open_index() -> sqlite3.Connection:
    """Return a connection to the index that is asked, as it is. Raises `NoIndex` if there is none, as `usable` does."""
    from agtrace.index.reader import opened

    found = usable()
    return opened(found if found.asked else with_index())


def refreshed(settings: Settings, seconds: float) -> None:
    """Bring one's own index up to date for at most so many seconds; say what it lacks then."""
    from agtrace.index.reader import Index

    freshness = Index(settings).refresh(seconds)
    if freshness.state != "ready":
        tell(state_sentence(freshness.state, freshness.files_behind, freshness.problem))


@cache
def answers() -> Service:
    """Return the object that answers requests, made once: a long text takes one request a chunk.

    Raises `SettingError` for prices that can't be used; a server continues without them.
    """
    from agtrace.answers.log import silent
    from agtrace.answers.service import Service
    from agtrace.sessions.prices import load as load_prices
    from agtrace.tools.arguments import parse_options

    found = usable()
    load_prices(found.prices)
    return Service(found, refresh_seconds=10, log=silent, read=parse_options)


def ask(tool: str, arguments: dict[str, Any]) -> Answer:
    """Return a tool's answer, as the MCP server would give it; an error ends the process with its message."""
    given = {name: value for name, value in arguments.items() if value is not None}
    if "project" in given:
        given["project"] = _known_project(given["project"])
    answer = answers().ask(tool, given)
    if answer.is_error:
        error = answer.value["error"]
        found = explanation_of(error["code"], error["message"], answer.value.get("hint"), error["details"])
        fail(found.message, found.code, *found.more)
    if "index" in answer.value:
        state = answer.value["index"]
        tell(state_sentence(state["state"], state.get("files_behind"), state.get("problem")))
    return answer


def _known_project(name: str) -> str:
    """Return how the index, as it is, knows a project that a person names: as named, or a clone by its remote."""
    from contextlib import closing, suppress

    from agtrace.sessions.projects import known_as

    with suppress(NoIndex), closing(open_index()) as connection:
        return known_as(connection, name)
    return name


def list_answer(tool: str, wanted: dict[str, Any], key: str, *, everything: bool) -> Answer:
    """Return a list as one answer: as many items as `limit` says, or all, however many pages of the tool that takes.

    `key` is that of the list.
    """
    most, limit = usable().max_page_size, wanted.get("limit")
    left = sys.maxsize if everything else limit or 0
    answer = ask(tool, wanted | {"limit": min(left, most) or None})
    data, found = answer.value["data"], list(answer.value["data"][key])
    about = {one.get("session_id"): one for one in data.get("sessions", ())}
    while len(found) < left and (cursor := answer.value.get("pagination", {}).get("next_cursor")):
        answer = ask(tool, wanted | {"limit": min(left - len(found), most), "cursor": cursor})
        found += answer.value["data"].get(key, [])
        about = {one.get("session_id"): one for one in answer.value["data"].get("sessions", ())} | about
    more = {"sessions": [*about.values()]} if "sessions" in data else {}
    return replace(answer, value={**answer.value, "data": {**data, **more, key: found}})


_IDS = ("id", "session_id", "parent_id")
"""The fields of a list's items that name sessions."""


def print_list(tool: str, wanted: dict[str, Any], key: str, *, everything: bool) -> Answer:
    """Print a list as JSON: the tool's answer, or every item with whole ids on a line; return the first answer."""
    following = pages(tool, wanted | ({"limit": usable().max_page_size} if everything else {}))
    first = next(following)
    if not everything:
        print_json(first.value)
        return first
    for answer in chain([first], following):
        items = answer.value["data"].get(key, [])
        whole = described({item[name] for item in items for name in _IDS if name in item})
        for item in items:
            item |= {name: whole[item[name]].session_id for name in _IDS if item.get(name) in whole}
            sys.stdout.write(f"{json.dumps(item, ensure_ascii=False)}\n")
    return first


def described(ids: Iterable[str]) -> dict[str, Described]:
    """Return what a person wants to know of sessions that an answer names, by their ids there."""
    from contextlib import closing

    from agtrace.index.reader import opened
    from agtrace.sessions.listing import described
    from agtrace.sessions.prices import load as load_prices

    settings = usable()
    with closing(opened(settings)) as connection:
        return described(connection, load_prices(settings.prices), ids)


def state_sentence(state: str, files_behind: int | None, problem: str | None) -> str:
    """Describe, in a sentence, what an index that isn't ready lacks."""
    if problem is not None:
        return f"{problem}; the answer covers only what was indexed before"
    files = f", {files_behind} files to go" if files_behind is not None else ""
    covered = "the answer covers only what is indexed so far (`agtrace index` completes it)"
    return f"the index is {state.replace('_', ' ')}{files}: {covered}"


def pages(tool: str, wanted: dict[str, Any], answer: Answer | None = None) -> Iterator[Answer]:
    """Yield an answer, then the ones that its cursors lead to."""
    answer = answer or ask(tool, wanted)
    while True:
        yield answer
        pages, chunk = answer.value.get("pagination"), answer.value.get("chunk")
        following = (pages or chunk or {}).get("next_cursor")
        if not following:
            return
        question = wanted.get("context_focus_question") if pages else None
        answer = ask(tool, {**wanted, "cursor": following, "context_focus_question": question})


_REFRESH_SECONDS = 10
"""Seconds that a command waits for changed logs to be indexed."""


class Filters(Struct, frozen=True):
    """The filters of sessions, as typed."""

    project: str | None = None
    provider: str | None = None
    since: str | None = None
    until: str | None = None


class Selected(NamedTuple):
    """A snapshot of the index, and the sessions in it that are meant."""

    connection: sqlite3.Connection
    selection: Selection
    now: float
    """Seconds since 1970 UTC."""
    prices: PriceTable
    lacking: str | None
    """What the index doesn't have yet, as a sentence."""


@contextmanager
def selected(filters: Filters) -> Iterator[Selected]:
    """Bring the index up to date, and yield the sessions that these filters leave, on a snapshot of it.

    What it lacks is told in the end.
    """
    from agtrace_indexer.index.opening import one_moment

    from agtrace.index.reader import index_of
    from agtrace.report.selection import Selection
    from agtrace.sessions.prices import load as load_prices
    from agtrace.sessions.projects import known_as, resolved
    from agtrace.times import period

    now = time.time()
    settings = usable()
    asked = period(filters.since, filters.until, datetime.fromtimestamp(now))
    prices = load_prices(settings.prices)
    index = index_of(settings)
    fresh = index.refresh(_REFRESH_SECONDS)
    index.note("report")
    lacking = None if fresh.state == "ready" else state_sentence(fresh.state, fresh.files_behind, fresh.problem)
    with index.reader() as reader, one_moment(reader.connection):
        project = None if filters.project is None else known_as(reader.connection, filters.project)
        selection = Selection(
            provider=filters.provider,
            project=project,
            projects=None if project is None else resolved(reader.connection, project),
            since=asked.since,
            until=asked.until,
        )
        yield Selected(reader.connection, selection, now, prices, lacking)
    if lacking:
        tell(lacking)


def text_asked(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a long text as arguments of a tool."""
    first, last = asked["lines"] or (None, None)
    return {
        "start_line": first, "end_line": last, "mode": asked["mode"], "cursor": asked["cursor"],
        "context_focus_question": asked["focus"],
    }  # fmt: skip


def print_text(tool: str, wanted: dict[str, Any], *, as_json: bool) -> Answer:
    """Print a text from this chunk to its end; return the first chunk's answer."""
    following = pages(tool, wanted)
    answer = next(following)
    if as_json:
        print_json(answer.value)
    else:
        from agtrace.render.text import text_body, text_head, text_rest

        text_head(answer.value)
        text_body(answer.value)
        for chunk in following:
            text_body(chunk.value)
        text_rest(answer.value, answer.next_calls)
    return answer
