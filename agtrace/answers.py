"""From a tool's name and arguments to its answer: check, refresh, read in one moment, fit. Never raises."""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from agtrace.arguments import parse
from agtrace.cursors import Cursors, load_key
from agtrace.index import Freshness, Index
from agtrace.prices import PriceTable
from agtrace.prices import load as load_prices
from agtrace.problems import IndexUnavailable, InternalError, Problem, SettingError
from agtrace.replies import Reply
from agtrace.settings import Settings
from agtrace.shape import Answer, answer, error_answer
from agtrace.tools import TOOLS
from agtrace.tools.tool import Context, Tool

REFRESH_SECONDS = 3.0
"""How long a request waits for changed logs to be indexed; what isn't done by then goes on beside."""


class Answers:
    """Answers requests, one at a time, for the MCP server and for the command line."""

    def __init__(
        self,
        settings: Settings,
        *,
        now: Callable[[], float] = time.time,
        refresh_seconds: float = REFRESH_SECONDS,
        log: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        self._settings, self._now, self._refresh_seconds = settings, now, refresh_seconds
        self._log = log or _log_to_stderr
        self._index = Index(settings)
        self._turn = threading.Lock()
        self._cursors: Cursors | None = None
        self._prices = self._load_prices()

    def _load_prices(self) -> PriceTable:
        """The price table; a user's table that can't be used is said in the log, and the built-in one serves."""
        try:
            return load_prices(self._settings.prices)
        except SettingError as error:
            self._log({"event": "invalid_setting", "problem": str(error)})
            return load_prices(None)

    def ask(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Give the answer of a tool, or the answer that says why there is none.

        `name` must be one of `TOOLS`: an unknown tool is the protocol's own error.
        """
        started = time.monotonic()
        with self._turn:
            given = self._ask(TOOLS[name], arguments)
        took = round(1000 * (time.monotonic() - started), 1)
        self._log(
            {"event": "answer", "tool": name, "ms": took, "bytes": len(given.text.encode()), "ok": not given.is_error}
        )
        return given

    def _ask(self, tool: Tool, arguments: Mapping[str, Any]) -> Answer:
        try:
            wanted = parse(tool.arguments, arguments)
            freshness = self._index.refresh(self._refresh_seconds)
            reply = self._read(tool, wanted, freshness)
            return answer(reply, freshness, self._settings.max_response_bytes)
        except Problem as problem:
            return error_answer(problem, self._settings.max_response_bytes)
        except (sqlite3.Error, OSError) as error:
            unreadable = IndexUnavailable(f"the index can't be read ({error})", "Run: agtrace doctor")
            return error_answer(unreadable, self._settings.max_response_bytes)
        except Exception:  # noqa: BLE001  # the boundary: no exception's text reaches a client
            defect = InternalError(uuid.uuid4().hex[:12])
            self._log({"event": "internal_error", **defect.details, "trace": traceback.format_exc()})
            return error_answer(defect, self._settings.max_response_bytes)

    def _read(self, tool: Tool, wanted: Any, freshness: Freshness) -> Reply:
        if self._cursors is None:
            self._cursors = Cursors(load_key(self._settings.key_file), self._settings.cursor_ttl_seconds, self._now)
        connection = self._index.connection
        connection.execute("BEGIN")
        try:
            context = Context(
                connection,
                self._cursors,
                freshness,
                self._now(),
                self._prices,
                self._settings.search_timeout_seconds,
            )
            return tool.answer(context, wanted)
        finally:
            connection.rollback()  # also where SQLite ended the transaction itself


def _log_to_stderr(record: Mapping[str, Any]) -> None:
    """One JSON line on stderr: stdout belongs to the protocol."""
    with suppress(OSError, ValueError):  # a log that nobody reads any more costs no answer
        sys.stderr.write(json.dumps(record) + "\n")
        sys.stderr.flush()


def silent(record: Mapping[str, Any]) -> None:
    """Log nothing but defects."""
    if record["event"] == "internal_error":
        _log_to_stderr(record)
