"""From a tool's name and arguments to its answer: check, refresh, read one snapshot, fit. Never raises."""

from __future__ import annotations

import json
import os
import sqlite3
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from agtrace_indexer.index.opening import one_moment
from agtrace_indexer.redact import load_key
from agtrace_schema.reports import RequestMetrics
from agtrace_schema.status import Health
from msgspec import Struct
from msgspec.structs import replace

from agtrace.answers.log import log_to_stderr
from agtrace.answers.status import Metrics, OversizedAlert, health
from agtrace.answers.telemetry.recorder import Observer, Origin, Recorder, request_of
from agtrace.answers.telemetry.store import Request, RequestFilter, metrics
from agtrace.index.reader import index_of
from agtrace.index.trouble import Freshness
from agtrace.problems import IndexUnavailable, InternalError, Problem, SearchTimeout, SettingError
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.prices import load as load_prices
from agtrace.settings.limits import Limits, limits, limits_for, most_bytes, stopped, use_limits
from agtrace.settings.live import Live
from agtrace.settings.model import Settings
from agtrace.shaping.cursors import Cursors
from agtrace.shaping.shape import Answer, answer, error_answer
from agtrace.text.lines import LABEL, one_line
from agtrace.text.next_call import call, with_arguments
from agtrace.times import iso
from agtrace.tools import ANSWERED
from agtrace.tools.arguments import Arguments, parse
from agtrace.tools.tool import Context, Tool

Found = TypeVar("Found")
Reader = Callable[[type[Arguments], Mapping[str, Any]], Arguments]

REFRESH_SECONDS = 3.0
"""How long a request waits for changed logs to be indexed; the rest is indexed in the background."""

_GLANCE_SECONDS = 0.3

_READING = "get_session_details"
"""The tool whose settings hold for a reader that asks for no tool."""

_LARGE = 10_240
"""Bytes; a larger answer than that is logged, unless its size was asked for."""
_SIZING = frozenset({"limit", "max_bytes"})
_NOBODY = Origin()


def _id() -> str:
    return os.urandom(6).hex()


class _Priced(Struct, frozen=True):
    """A price table, and the path of the user's that it was made with."""

    path: Path | None
    table: PriceTable


class Service:
    """Answers requests, for the MCP server and for the command line. Safe to use from several threads."""

    def __init__(
        self,
        settings: Settings,
        *,
        now: Callable[[], float] = time.time,
        refresh_seconds: float = REFRESH_SECONDS,
        log: Callable[[Mapping[str, Any]], None] | None = None,
        recorder: Recorder | None = None,
        observers: Sequence[Observer] = (),
        live: Live | None = None,
        read: Reader = parse,
    ) -> None:
        """Create answers; `recorder` and the other observers, if given, get the figures of each.

        `live`, if given, has the settings of each moment, of which `settings` are the first; `read` reads arguments.
        """
        self._parse = read
        self._live = live or Live.fixed(settings)
        self._recorder = recorder
        self._observers: tuple[Observer, ...] = (*([] if recorder is None else [recorder]), *observers)
        self._settings, self._now, self._refresh_seconds = settings, now, refresh_seconds
        self._log = log or log_to_stderr
        self.tools = ANSWERED
        self._index = index_of(settings)
        self._metrics, self._started = Metrics(OversizedAlert(now)), now()
        self._key: bytes | None = None
        self._spare_key = os.urandom(32)
        self._problem: str | None = None
        self._sent = Sent()
        self._live.tell(self._log)
        self._priced = _Priced(settings.prices, self._load_prices(settings.prices))

    def _load_prices(self, path: Path | None) -> PriceTable:
        """Return the price table; if the user's table can't be used, log that and return the built-in one."""
        self._problem = None
        try:
            return load_prices(path)
        except SettingError as error:
            self._problem = str(error)
            self._log({"event": "invalid_setting", "problem": self._problem})
            return load_prices(None)

    def _prices(self, settings: Settings) -> PriceTable:
        if settings.prices != self._priced.path:
            self._priced = _Priced(settings.prices, self._load_prices(settings.prices))
        return self._priced.table

    def ask(self, name: str, arguments: Mapping[str, Any], origin: Origin = _NOBODY, counted: bool = True) -> Answer:
        """Return the answer of a tool, or the error that says why there is none, as large as its client takes.

        `name` must be one of `tools`: an unknown tool is an error of the protocol. The settings that are in force now
        hold for this request until its answer is done. What isn't `counted` is a part of another answer, no request.
        """
        started = time.monotonic()
        held = limits_for(self._live.current.settings, name, origin.connection)
        with use_limits(held):
            most = min(most_bytes(origin.client, held.settings.clients), held.settings.max_response_bytes)
            sent = self._sent.before(origin.connection, name, arguments)
            result = self._ask(self.tools[name], arguments, most, sent)
            with suppress(Exception):  # counting answers must never cost one
                if not counted:
                    return result
                self._note(name, arguments, result, 1000 * (time.monotonic() - started), origin)
                if not stopped():  # nobody gets the answer to a cancelled request
                    self._sent.note(origin.connection, name, arguments, result.value.get("data", {}))
        return result

    def _note(self, name: str, arguments: Mapping[str, Any], given: Answer, ms: float, origin: Origin) -> None:
        size, id, held = len(given.text.encode()), _id(), limits()
        alert = self._metrics.record(name, arguments, given, size)
        request = request_of(name, arguments, given, origin, held, at=self._now(), ms=ms, id=id)
        self._observe(request, held)
        oversized = {} if given.asked_bytes is None else {"asked_bytes": given.asked_bytes}
        told: dict[str, Any] = {"level": "info", "at": iso(request.at), "request": id, "tool": name, "ms": round(ms, 1)}
        told |= {"request_bytes": len(json.dumps(arguments, default=dict)), "bytes": size, **oversized}
        told["decisions"] = [how for how in ("paginated", "chunked", "summarized", "pruned") if getattr(request, how)]
        self._log({"event": "answer", **told, "ok": not given.is_error})
        if size > _LARGE and not _SIZING & arguments.keys():
            self._log({"event": "large_answer", "level": "warning", "request": id, "tool": name, "bytes": size})
        if alert:
            self._log(alert)

    def _observe(self, request: Request, held: Limits) -> None:
        for observer in self._observers:
            if observer is self._recorder:
                if not held.settings.telemetry.enabled:
                    continue
                self._recorder.keep_days = held.settings.telemetry.keep_days
            with suppress(Exception):  # one that fails must not cost the others theirs
                observer.record(request)

    def health(self) -> Health:
        """Return the current figures, after a brief attempt to bring the index up to date."""
        try:
            freshness = self._index.refresh(_GLANCE_SECONDS)
        except Problem as problem:
            freshness = Freshness("building", problem=problem.message)
        try:
            with self._index.reader() as reader:
                return self._health(reader.connection, freshness)
        except IndexUnavailable:
            return self._health(None, replace(freshness, state="building"))
        except (sqlite3.Error, OSError) as error:
            why = self._index.explain(error)
            return self._health(None, Freshness("building", problem=why.message))

    def _health(self, connection: sqlite3.Connection | None, freshness: Freshness) -> Health:
        return health(
            connection,
            self._live.current,
            freshness,
            self._metrics,
            started=self._started,
            problem=self._problem,
            dropped=self.dropped(),
        )

    def _request_metrics(self, since: int | None) -> RequestMetrics:
        wanted = RequestFilter(since=since, by="tool")
        return metrics(self._settings.telemetry_file, wanted, self.dropped())

    def dropped(self) -> int | None:
        """Return the number of requests that couldn't be recorded; None if none is recorded."""
        is_on = self._live.current.settings.telemetry.enabled
        return self._recorder.dropped if self._recorder is not None and is_on else None

    def _ask(self, tool: Tool, arguments: Mapping[str, Any], most: int, sent: Known) -> Answer:
        user, arguments = self._user_in(arguments)
        with with_arguments(user=user):
            try:
                wanted = self._parse(tool.arguments, arguments)
                fresh = self._index.refresh(self._refresh_seconds)
                self._index.note(tool.name)
                return self._read(
                    lambda context: answer(tool.answer(replace(context, sent=sent), wanted), fresh, most), fresh, user
                )
            except Problem as problem:
                return error_answer(problem, most)
            except (sqlite3.Error, OSError) as error:
                return error_answer(SearchTimeout(0) if stopped() else self._index.explain(error), most)
            except Exception:  # noqa: BLE001  # the boundary: no exception's text reaches a client
                return error_answer(self._defect(), most)

    def _user_in(self, arguments: Mapping[str, Any]) -> tuple[str | None, Mapping[str, Any]]:
        """Take out whose sessions of a team's index are asked, which every tool takes there, and none elsewhere."""
        user = None if self._settings.asked is None else arguments.get("user")
        if not isinstance(user, str):
            return None, arguments
        return user, {name: value for name, value in arguments.items() if name != "user"}

    def _defect(self) -> Problem:
        """Return what an exception means that nothing else explains: damage to the index, or a defect, which is logged.

        If the index is damaged, an exception may say anything.
        """
        damaged = self._index.damage()
        if damaged is not None:
            return damaged
        defect = InternalError(_id())
        self._log({"event": "internal_error", **defect.details, "trace": traceback.format_exc()})
        return defect

    def read(self, work: Callable[[Context], Found], *, seconds: float = _GLANCE_SECONDS) -> Found:
        """Return what `work` finds in the index at one moment; changed logs are indexed for at most so many seconds.

        The settings that are in force now hold meanwhile. Raises `Problem`.
        """
        with use_limits(limits_for(self._live.current.settings, _READING)):
            try:
                freshness = self._index.refresh(seconds)
                self._index.note(_READING)
                return self._read(work, freshness)
            except Problem:
                raise
            except (sqlite3.Error, OSError) as error:
                raise self._index.explain(error) from error
            except Exception as error:  # the boundary, as above
                raise self._defect() from error

    def _read(self, work: Callable[[Context], Found], freshness: Freshness, user: str | None = None) -> Found:
        """Return what `work` finds; if the index seems damaged, it reads it once more."""
        try:
            return self._read_once(work, freshness, user)
        except sqlite3.DatabaseError as error:
            from agtrace_indexer.index.opening import is_damage

            if not is_damage(error):
                raise
        return self._read_once(work, freshness, user)  # its reader opens the index anew

    def _read_once(self, work: Callable[[Context], Found], freshness: Freshness, user: str | None) -> Found:
        cursors = self._cursors_here(user)
        with self._index.reader(user) as reader:
            connection = reader.connection
            with one_moment(connection):
                self._index.check_masks(connection)
                return work(
                    Context(
                        connection,
                        cursors,
                        freshness,
                        self._now(),
                        self._prices(limits().settings),
                        limits().settings.search_timeout_seconds,
                        lambda: self._health(connection, freshness),
                        self._request_metrics,
                    )
                )

    def _cursors_here(self, user: str | None) -> Cursors:
        """Return the maker of cursors; if no key can be stored, its cursors are valid in this process only."""
        if self._key is None:
            with suppress(OSError):
                self._key = load_key(self._settings.key_file)
        asked = self._settings.asked
        of = user if asked is None else f"{user or ''}@{asked}"
        return Cursors(self._key or self._spare_key, limits().settings.cursor_ttl_seconds, self._now, of)


# -- what was sent ------------------------------------------------------------------------------------

_CONNECTIONS, _EVENTS = 64, 2_000
"""The most connections that are remembered, and events of each: the last ones."""

Known: TypeAlias = Mapping[tuple[str, int], str]
"""(session as it was shown, event) -> the call whose answer has the text of it."""


class Sent:
    """What was sent in each connection.

    Safe to use from several threads: an answer is added by a single assignment. Of two that are added at once, one may
    go missing; then what it had is sent again.
    """

    def __init__(self) -> None:
        self._of: dict[str, Known] = {}

    def before(self, connection: str | None, tool: str, arguments: Mapping[str, Any]) -> Known:
        """Return what other calls than this one have sent: the same call has the same answer."""
        this = _call_text(tool, arguments)
        return {event: by for event, by in self._of.get(connection or "", {}).items() if by != this}

    def note(self, connection: str | None, tool: str, arguments: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        """Note the events in an answer."""
        if connection is not None:
            known = {**dict.fromkeys(_events(data), _call_text(tool, arguments)), **self._of.get(connection, {})}
            others = [(name, of) for name, of in [*self._of.items()] if name != connection][1 - _CONNECTIONS :]
            self._of = dict([*others, (connection, dict([*known.items()][:_EVENTS]))])


def _call_text(tool: str, arguments: Mapping[str, Any]) -> str:
    return one_line(call(tool, **arguments).written, 2 * LABEL)


def _events(data: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield session and event of what has its text in an answer: matches, and what is told of sessions."""
    yield from ((one["session_id"], one["event_index"]) for one in data.get("matches", ()) if "preview" in one)
    for about in (data, *data.get("sessions", ())):
        told = [about.get(name, ()) for name in ("landmarks", "course", "around")] + [[about.get("last_message")]]
        yield from ((about["session_id"], row[0]) for rows in told for row in rows if isinstance(row, list))
