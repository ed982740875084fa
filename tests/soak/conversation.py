"""Questions over MCP, and facts about the answers: their times, their errors, and what else to ask."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import orjson
from mcp import Client

OF_REPLACED = frozenset({"invalid_cursor", "invalid_event_index", "invalid_range", "session_not_found"})
"""Errors allowed about a session that was forgotten, or whose log was cut or replaced: its id may be another's."""

SHARED = frozenset({"ambiguous_session_prefix"})
"""Errors allowed about any session: an id is shown as short as possible, and a new one may begin like it later."""

SHORT = 8
"""The fewest characters of an id that are shown."""

_PAGES = 4
_WORD = re.compile(r"[^\W\d_]{4,16}")
_KNOWN_WORDS = 400
_KNOWN_SESSIONS = 300


class Called(NamedTuple):
    """One question or command, and its result."""

    what: str
    """The tool, `resource`, `until found`, `server's end` or a command."""
    milliseconds: float
    code: str = ""
    """The code of an allowed error; empty if there was an answer."""

    @property
    def of_a_client(self) -> bool:
        """Whether it is a question of a client."""
        return self.what not in ("until found", "server's end") and not self.what.startswith("agtrace ")


@dataclass(slots=True)
class Seen:
    """What all clients saw."""

    calls: list[Called] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    refused: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    """Errors and shared items, as sentences, allowed if something happened to a session whose id begins like this."""
    sessions: deque[str] = field(default_factory=lambda: deque(["0"], maxlen=_KNOWN_SESSIONS))
    words: deque[str] = field(default_factory=lambda: deque(["error", "test", "import"], maxlen=_KNOWN_WORDS))

    def learn(self, value: Any) -> None:
        """Remember words and ids from an answer, to ask about."""
        for match in value["data"].get("matches", ()):
            words = _WORD.findall(str(match.get("preview", "")))
            self.words.extend(words[:: max(1, len(words) // 5)])
            self.sessions.append(match["session_id"])
        listed = value["data"].get("sessions", ())
        self.sessions.extend(session.get("id") or session["session_id"] for session in listed)

    def note(self, what: str, seconds: float, code: str = "") -> None:
        """Count a question."""
        self.calls.append(Called(what, 1000 * seconds, code))


@dataclass(slots=True)
class Conversation:
    """A client and its server."""

    who: str
    client: Client
    seen: Seen

    async def ask(self, tool: str, **given: Any) -> Any:
        """Return the value of an answer; None for an allowed error."""
        began = time.monotonic()
        result = await self.client.call_tool(tool, given)
        value: Any = result.structured_content
        took = time.monotonic() - began
        if result.is_error:
            self.seen.note(tool, took, self._judged(tool, given, value["error"]))
            return None
        self.seen.note(tool, took)
        if "problem" in value.get("index", {}):
            self.trouble(f"{tool}: {value['index']['problem']}")
        self.seen.learn(value)
        return value

    async def pages(self, tool: str, items: Callable[[Any], list[Any]], pause: float, **given: Any) -> list[Any]:
        """Return the items of some pages, which mustn't overlap, though logs change in the pauses between them."""
        found: list[Any] = []
        for _ in range(_PAGES):
            value = await self.ask(tool, **given)
            if value is None:
                break
            found += items(value["data"])
            given["cursor"] = value.get("pagination", {}).get("next_cursor")
            if given["cursor"] is None:
                break
            await anyio.sleep(pause)
        twice = {item for item in found if found.count(item) > 1}
        if twice:  # unless its log was replaced: then another session got its id
            ids = (
                [given["session_id"]]
                if "session_id" in given
                else [item[0] if isinstance(item, tuple) else item for item in twice]
            )
            self._perhaps(f"{tool} {given}: on two pages: {sorted(map(str, twice))[:5]}", ids)
        return found

    async def chunks(self, tool: str, **given: Any) -> None:
        """Read some chunks of a long text."""
        for _ in range(_PAGES):
            value = await self.ask(tool, **given)
            following = (value or {}).get("chunk", {}).get("next_cursor")
            if following is None:
                return
            given["cursor"] = following

    async def read(self, uri: str) -> None:
        """Read a resource."""
        began = time.monotonic()
        await self.client.read_resource(uri, cache_mode="bypass")
        self.seen.note("resource", time.monotonic() - began)

    def trouble(self, sentence: str) -> None:
        """Note something that is wrong."""
        self.seen.troubles.append(f"{self.who}: {sentence}")

    def _perhaps(self, sentence: str, named: Iterable[Any]) -> None:
        """Note something that is allowed only if something happened to one of these sessions."""
        parts = (part for value in named for part in str(value).split("/"))
        self.seen.refused.append((sentence, frozenset(part[:SHORT] for part in parts if len(part) >= SHORT)))

    def _judged(self, tool: str, given: dict[str, Any], error: Any) -> str:
        """Return the code of an error, which is noted as trouble unless allowed; some are judged only in the end."""
        code = str(error["code"])
        sentence = f"{tool} {given}: {code}: {error['message']}"
        if code in OF_REPLACED:
            self._perhaps(sentence, given.values())
        elif code not in SHARED:
            self.trouble(sentence)
        return code


def said(log: Path) -> Iterator[str]:
    """Yield what a server shouldn't have written to stderr: anything except lines about answers and its start."""
    strange = []
    for line in log.read_bytes().splitlines():
        try:
            event = orjson.loads(line)["event"]
        except (orjson.JSONDecodeError, TypeError, KeyError):
            strange.append(line.decode(errors="replace"))
        else:
            if event in ("internal_error", "invalid_setting"):
                yield f"{log.name}: {line[:2000].decode(errors='replace')}"
    if strange:
        yield f"{log.name}: {len(strange)} lines that aren't JSON, the last is {strange[-1][:400]}"
