"""The questions to an index with planted sessions: every tool, resource and prompt, and every command."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agtrace.answers.service import Service
from agtrace.serving.prompts import PROMPTS, prompt_text
from agtrace.settings.model import Settings
from tests.agtrace.asking import HOUR, YEAR
from tests.agtrace.terminal import agtrace_here
from tests.health.stories import DAY
from tests.health.writing import NOW
from tests.secrets.corpus import Case
from tests.secrets.planting import Planted
from tests.secrets.sieve import SHOWN

Told = tuple[str, str]
"""(where it was said, what was said)."""

_RARELY = 100
"""If at most one question in this many is asked about a session, lists aren't paged to their ends either."""

_LONG = 1_200
"""The most characters of a piece that is sent, as requests have limits of their own."""

_SECRET_ARGUMENTS: list[tuple[str, dict[str, Any]]] = [
    ("list_sessions", {"query": "?"}),
    ("list_sessions", {"path": "?"}),
    ("list_sessions", {"fields": ["?"]}),
    ("list_sessions", {"cursor": "?"}),
    ("list_sessions", {"since": "?"}),
    ("get_session_details", {"session_id": "?"}),
    ("get_session_details", {"session_id": "x", "detail_level": "?"}),
    ("get_session_details", {"session_id": "x", "turn_index": "?"}),
    ("get_event_details", {"session_id": "?", "event_index": 0}),
    ("get_event_details", {"session_id": "x", "event_index": "?"}),
    ("analyze_session", {"session_id": "?"}),
    ("compare_sessions", {"id1": "?", "id2": "x"}),
    ("get_reasoning_chain", {"session_id": "?"}),
    ("get_project_info", {"project": "?"}),
    ("read_artifact", {"ref": "?"}),
    ("read_artifact", {"ref": "ax://session/?"}),
    ("read_artifact", {"ref": "ax://report/?"}),
    ("search_event_previews", {"order": "newest", "query": "?"}),
    ("search_event_previews", {"query": "?", "group_by": "session"}),
    ("search_event_previews", {"query": "(?", "regex": True}),
    ("search_event_previews", {"order": "newest", "query": "x", "path": "?"}),
    ("search_event_previews", {"order": "newest", "query": "x", "tool": "?"}),
    ("search_event_previews", {"order": "newest", "query": "x", "project": "?"}),
    ("search_event_previews", {"order": "newest", "query": "x", "?": 1}),
    ("search_events", {"pattern": "?"}),
]
"""Calls with a secret (`?`) that an error, a hint or a summary may repeat."""


class Witness:
    """Asks what a server may be asked; about each session only one question in `every`, a different one each time."""

    def __init__(self, settings: Settings, planted: Sequence[Planted], every: int = 1) -> None:
        self._logged: list[str] = []
        self._answers = Service(
            settings,
            log=lambda record: self._logged.append(json.dumps(record)),
        )
        self._planted, self._every = planted, every
        with closing(sqlite3.connect(settings.database)) as connection:
            self._events_of = dict(connection.execute("SELECT uid, max(event_count) FROM session GROUP BY uid"))

    def everything(self) -> Iterator[Told]:
        """Yield the answers of tools and resources, then what the server logged meanwhile."""
        yield from self._lists()
        for number, planted in enumerate(self._planted):
            asked = [*self._of_session(planted), *(self._echoes(planted) if planted.case.secret else [])]
            for at, (name, arguments) in enumerate(asked):
                if (at + number) % self._every == 0:
                    yield from self._pages(name, arguments, most=3)
            yield from self._events(planted, number)
        yield "log lines", "\n".join(self._logged)

    def _lists(self) -> Iterator[Told]:
        for name, arguments in (
            ("list_sessions", {"limit": 50}),
            ("search_event_previews", {"query": "", "limit": 50, "group_by": "session"}),
            ("get_project_info", {"limit": 50}),
            ("read_artifact", {"ref": f"ax://report/{begun_since(whole=self._every < _RARELY)}"}),
            ("read_artifact", {"ref": "ax://health"}),
        ):
            yield from self._pages(name, arguments, most=50 if self._every < _RARELY else 3)

    def _of_session(self, planted: Planted) -> Iterator[tuple[str, dict[str, Any]]]:
        session = {"session_id": planted.session}
        for level in ("summary", "turns", "steps", "full"):
            yield "get_session_details", session | {"detail_level": level}
        yield "get_session_details", session | {"detail_level": "turns", "include_reasoning": True}
        for section in ("session", "children", "turns", "tools", "files", "failures", "models"):
            yield "get_session_details", session | {"sections": [section]}
        yield "get_reasoning_chain", session
        yield "analyze_session", session | {"include_failures": True, "include_loops": True}
        yield "compare_sessions", {"id1": planted.session, "id2": self._planted[0].session}
        yield "read_artifact", {"ref": f"ax://session/{planted.session}"}
        yield "read_artifact", {"ref": f"ax://analysis/{planted.session}"}
        yield "search_event_previews", session | {"query": "", "limit": 50}
        yield "search_event_previews", session | {"query": "error", "failed": True}
        yield "search_events", session | {"pattern": "", "limit": 50, "include_full_payload": True}

    def _echoes(self, planted: Planted) -> Iterator[tuple[str, dict[str, Any]]]:
        told = recognisable(planted.case)
        for name, arguments in _SECRET_ARGUMENTS:
            yield name, {_put(key, told): _put(value, told) for key, value in arguments.items()}

    def _events(self, planted: Planted, number: int) -> Iterator[Told]:
        """Yield the events of a session, each whole and as digests."""
        for index in range(self._events_of[planted.session]):
            for at, mode in enumerate((None, "minimal", "standard", "verbose")):
                if (index + at + number) % self._every == 0:
                    more = {} if mode is None else {"mode": mode}
                    arguments = {"session_id": planted.session, "event_index": index, **more}
                    yield f"get_event_details {mode or ''}", self._ask("get_event_details", arguments)
            if (index + number) % (4 * self._every) == 0:
                yield "read_artifact", self._ask("read_artifact", {"ref": f"ax://event/{planted.session}/{index}"})

    def found_by(self, planted: Planted, number: int | None = None) -> Iterator[str]:
        """Yield the searches for a secret or a part of it that find anything; with `number`, try only one of them."""
        searches = list(_searches(planted.case.pieces))
        for name, arguments in searches if number is None else [searches[number % len(searches)]]:
            value = self._answers.ask(name, arguments).value
            data = value.get("data", {})
            if data.get("matches") or data.get("sessions") or value.get("pagination", {}).get("total"):
                yield f"{name} {arguments}"

    def _pages(self, name: str, arguments: dict[str, Any], most: int) -> Iterator[Told]:
        for _ in range(most):
            text = self._ask(name, arguments)
            yield f"{name} {' '.join(arguments)}", text
            value = json.loads(text)
            cursor = value.get("pagination", {}).get("next_cursor") or value.get("chunk", {}).get("next_cursor")
            if cursor is None:
                return
            arguments = arguments | {"cursor": cursor}

    def _ask(self, name: str, arguments: dict[str, Any]) -> str:
        return self._answers.ask(name, arguments).text


def recognisable(case: Case) -> str:
    """Return a secret so that it is masked when repeated: with its surroundings if it has no form of its own."""
    return case.pieces[0] if case.is_token else case.text


def _searches(pieces: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield searches of every kind for a whole piece, its beginning, its middle and its end."""
    for piece in (piece[:_LONG] for piece in pieces[:2]):
        half = len(piece) // 2
        for part in dict.fromkeys([piece, piece[: max(half, SHOWN)], piece[half:][:SHOWN], piece[-SHOWN:]]):
            if part == piece or len(part) >= SHOWN:
                yield "search_event_previews", {"order": "newest", "query": part}
                yield "search_event_previews", {"query": re.escape(part), "regex": True}
                yield "list_sessions", {"query": part}


def _put(value: Any, told: str) -> Any:
    if isinstance(value, list):
        return [_put(item, told) for item in value]
    return value.replace("?", told) if isinstance(value, str) else value


# -- prompts and commands --------------------------------------------------------------------------


def of_prompts(planted: Sequence[Planted]) -> Iterator[Told]:
    """Yield the prompts with a secret in each argument."""
    for case in (planted.case for planted in planted):
        for prompt in PROMPTS.values():
            for argument in prompt.arguments or ():
                given = {each.name: "x" for each in prompt.arguments or () if each.required}
                try:
                    text = prompt_text(prompt, given | {argument.name: case.text})
                except Exception as error:  # noqa: BLE001  # what is refused is told to the client
                    text = str(error)
                yield f"prompt {prompt.name}", text


def of_commands(planted: Sequence[Planted], page: Path, *, whole: bool) -> Iterator[Told]:
    """Yield the output of commands about all sessions, and about these; the report is written to `page`.

    Without `whole` there is only one form of the report, about some sessions, as all would take seconds.
    """
    since = ["--since", begun_since(whole=whole)]
    forms: list[list[str]] = [["report"], ["report", "--json"], ["report", "--markdown"]] if whole else []
    for arguments in (
        ["sessions", "--limit", "50"],
        ["sessions", "--limit", "50", "--json"],
        ["search", "", "--limit", "50"],
        ["search", "", "--by-session", "--limit", "50", "--json"],
        ["report", "--html", str(page), *since],
        ["report", "--json", *since],
        *forms,
        ["watch", "--once", "--within", "9999d"],
        ["watch", "--json", "--within", "9999d"],
        ["doctor"],
        ["doctor", "--json"],
        ["lessons", "--json"],
        ["secrets", "--limit", "9999"],
        ["secrets", "--limit", "9999", "--json"],
    ):
        yield from _run(arguments)
    yield "report page", page.read_text("utf-8")
    for number, each in enumerate(planted):
        for arguments in _of_session(each, planted[number - 1]):
            yield from _run(arguments)


def _of_session(planted: Planted, other: Planted) -> Iterator[list[str]]:
    session, told = planted.session, recognisable(planted.case)
    for level in ("summary", "turns", "steps", "full"):
        yield ["show", session, "--level", level]
    yield ["show", session, "--thinking", "--json"]
    yield ["show", session, "--sections", "failures,files,tools"]
    yield ["show", f"{session}:0"]
    yield ["show", f"{session}:5", "--mode", "minimal", "--json"]
    yield ["show", f"ax://session/{session}"]
    yield ["analyze", session]
    yield ["compare", session, other.session]
    yield ["search", "", "--session", session]
    for arguments in (
        ["search"], ["search", "--json"], ["search", "x", "--project"], ["sessions", "--query"],
        ["sessions", "--since"], ["show"], ["read"], ["analyze"], ["report", "--project"], ["setup"],
    ):  # fmt: skip
        yield [*arguments, *(["--"] if arguments[-1] in ("show", "search", "read", "analyze", "setup") else []), told]


def begun_since(*, whole: bool) -> str:
    """Return a time since which all sessions began, or the newest of them."""
    return datetime.fromtimestamp(NOW - DAY - (YEAR if whole else HOUR), UTC).isoformat().replace("+00:00", "Z")


def _run(arguments: Sequence[str]) -> Iterator[Told]:
    said = agtrace_here(*arguments)
    yield f"agtrace {arguments[0]} {' '.join(word for word in arguments[1:] if word.startswith('--'))}", said.out
    yield f"stderr of agtrace {arguments[0]}", said.err
