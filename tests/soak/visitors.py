"""Visitors: MCP clients that explore as agents do while the logs change.

Most have a server of their own over stdio; some share one over HTTP.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import anyio
import orjson
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from benchmarks.ground import AGTRACE, Machine
from tests.soak.conversation import Conversation, Seen

LONGEST_ANSWER = 60.0
"""Seconds after which an answer counts as missing."""

LONGEST_LAG = 20.0
"""Seconds within which a new line must be found by a repeated question."""

LONGEST_END = 2.0
"""The most seconds that a server may take to end after its client; then the SDK would kill it."""

OWN = "00000000"
"""The beginning of the ids of the sessions that visitors write."""

_AGAIN = 0.1


@dataclass(slots=True)
class Visitor:
    """One client."""

    number: int
    machine: Machine
    random: Random
    seen: Seen
    ended: Callable[[], bool]
    pause: float
    """Seconds between two questions, on average."""
    term: float | None = None
    """Seconds that it stays with a server; None until the end."""
    url: str | None = None
    """The address of the server over HTTP; None if it has a server of its own."""
    pid: int | None = None
    """The process id of its own server."""
    servers: int = 0
    _killed: bool = False
    _written: int = 0

    @property
    def name(self) -> str:
        """The name of its current server, or its own."""
        return f"server {self.number}.{self.servers}" if self.url is None else f"client {self.number}"

    @property
    def log(self) -> Path:
        """The file for its servers' stderr."""
        return self.machine.folder / f"server-{self.number}.log"

    async def stay(self) -> None:
        """Ask until the end; if there is a term, with one server after another, every second one killed."""
        while not self.ended():
            self._killed = False
            try:
                async with self._over_http(self.url) if self.url else self._over_stdio() as talk:
                    await self._visit(talk)
            except Exception as error:  # noqa: BLE001  # a client's boundary: whatever it is, it is told in the end
                if not self._killed:
                    self.seen.troubles.append(f"{self.name} was lost: {error!r}")
                    await anyio.sleep(1)
            finally:
                self.pid = None

    @asynccontextmanager
    async def _over_http(self, url: str) -> AsyncIterator[Conversation]:
        async with Client(url, read_timeout_seconds=LONGEST_ANSWER) as client:
            yield Conversation(self.name, client, self.seen)

    @asynccontextmanager
    async def _over_stdio(self) -> AsyncIterator[Conversation]:
        self.servers += 1
        noted = self.machine.folder / f"server-{self.number}.pid"
        noted.unlink(missing_ok=True)
        command = ["-c", 'echo $$ > "$0" && exec "$@"', str(noted), AGTRACE, "mcp"]
        server = StdioServerParameters(command="/bin/sh", args=command, env=self.machine.environment)
        with self.log.open("a") as log:
            async with Client(stdio_client(server, log), read_timeout_seconds=LONGEST_ANSWER) as client:
                await client.list_tools()
                self.pid = int(noted.read_text())
                yield Conversation(self.name, client, self.seen)
                left = time.monotonic()
        took = time.monotonic() - left
        self.seen.note("server's end", took)
        if took > LONGEST_END:
            self.seen.troubles.append(f"{self.name} took {took:.1f} s to end")

    async def _visit(self, talk: Conversation) -> None:
        """Ask for as long as it stays; then every second server with a term is killed."""
        ways = (self._list, self._search, self._search, self._open, self._unfold, self._judge, self._read, self._append)
        leaves = time.monotonic() + self.term if self.term else float("inf")
        while not self.ended() and time.monotonic() < leaves:
            await self.random.choice(ways)(talk)
            await anyio.sleep(self.random.uniform(0, 2 * self.pause))
        if self.term and self.servers % 2 == 0 and self.pid:
            self._killed = True
            os.kill(self.pid, signal.SIGKILL)
            await talk.ask("list_sessions")

    # -- ways to look around ---------------------------------------------------------------------------

    async def _list(self, talk: Conversation) -> None:
        """List the sessions, page by page, and the projects.

        A session moves within the list if its beginning turns out to be another session's, or its own after all.
        """
        given = {"limit": self.random.choice((5, 20, 50)), **self._filters()}
        await talk.pages(
            "list_sessions", lambda data: [(item["id"], item.get("start_time")) for item in data["sessions"]],
            self.pause, **given,
        )  # fmt: skip
        if self.random.random() < 0.3:
            await talk.ask("get_project_info")

    async def _search(self, talk: Conversation) -> None:
        """Search for matches page by page, and read one of them whole; or search for sessions."""
        given = self._query() | self._filters()
        tool = "search_event_previews"
        if "group_by" in given:
            await talk.pages(tool, lambda data: [item["session_id"] for item in data["sessions"]], self.pause, **given)
            return
        matches = await talk.pages(
            tool, _shown, self.pause, **given,
        )  # fmt: skip
        if matches:
            session, event = self.random.choice(matches)
            await talk.chunks("get_event_details", session_id=session, event_index=event)

    def _query(self) -> dict[str, Any]:
        """Return a query: a word, a piece of one, two words, a pattern, or everything."""
        word, other = self.random.sample(list(self.seen.words), 2)
        return self.random.choice(
            (
                {"query": word},
                {"query": word[1:-1]},
                {"query": f"{word} {other}", "words": self.random.choice(("event", "turn"))},
                {"query": rf"\b{word}\w+ \w+", "regex": True},
                {"query": word, "group_by": "session"},
                {"query": word, "order": "oldest", "failed": True},
                {"query": "", "path": word[:4].lower()},
            )
        )

    async def _open(self, talk: Conversation) -> None:
        """Read the first event of a session."""
        await talk.chunks("get_event_details", session_id=self._session(), event_index=0, **self._digest())

    async def _unfold(self, talk: Conversation) -> None:
        """Read a session at some level, and its reasoning."""
        session, level = self._session(), self.random.choice(("summary", "turns", "steps", "full"))
        await talk.chunks("get_session_details", session_id=session, detail_level=level)
        await talk.pages(
            "get_reasoning_chain", lambda data: [thought["event_index"] for thought in data["chain"]], self.pause,
            session_id=session,
        )  # fmt: skip

    async def _judge(self, talk: Conversation) -> None:
        """Analyse a session, and compare it with another."""
        one, other = self._session(), self._session()
        await talk.ask("analyze_session", session_id=one, include_loops=True)
        if not (one.startswith(other) or other.startswith(one)):
            await talk.ask("compare_sessions", id1=one, id2=other)

    async def _read(self, talk: Conversation) -> None:
        """Read artifacts, by the tool and as resources."""
        session = self._session()
        refs = (f"ax://session/{session}", f"ax://analysis/{session}", f"ax://event/{session}/0", "ax://report/7d")
        await talk.chunks("read_artifact", ref=self.random.choice(refs), **self._digest())
        await talk.read("ax://health")

    async def _append(self, talk: Conversation) -> None:
        """Write a line, and search for it until it is found."""
        text = f"visitor{self.number}wrote{self._written}"
        self._written += 1
        began = time.monotonic()
        self._write(text)
        while (value := await talk.ask("search_event_previews", order="newest", query=text, limit=1)) and not value[
            "data"
        ]["matches"]:
            if time.monotonic() - began > LONGEST_LAG:
                talk.trouble(f"{text} was not found within {LONGEST_LAG:.0f} s")
                break
            await anyio.sleep(_AGAIN)
        self.seen.note("until found", time.monotonic() - began)

    def _write(self, text: str) -> None:
        """Append a prompt to the log of this visitor."""
        uid = str(UUID(int=self.number, version=4))
        record = {
            "type": "user", "uuid": str(UUID(int=self.random.getrandbits(128), version=4)), "parentUuid": None,
            "sessionId": uid, "cwd": "/home/mira/visitors", "version": "2.1.212",
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
            "message": {"role": "user", "content": text},
        }  # fmt: skip
        folder = self.machine.folder / "home" / ".claude" / "projects" / "-home-mira-visitors"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{uid}.jsonl").open("ab") as log:
            log.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))

    def _session(self) -> str:
        return self.random.choice(self.seen.sessions)

    def _filters(self) -> dict[str, Any]:
        return self.random.choice(({}, {}, {"provider": self.random.choice(("claude_code", "codex", "gemini"))}))

    def _digest(self) -> dict[str, Any]:
        return self.random.choice(({}, {"mode": self.random.choice(("minimal", "standard", "verbose"))}))


def _shown(data: dict[str, Any]) -> list[tuple[str, int]]:
    """Return the events that an answer to a search shows: matches, and the best events of the best sessions."""
    best = data.get("best", {"sessions": []})["sessions"]
    hits = [(session["session_id"], event) for session in best for event, _, _ in session["hits"]]
    return [(match["session_id"], match["event_index"]) for match in data.get("matches", ())] + hits
