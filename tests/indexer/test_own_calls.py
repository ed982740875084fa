"""Agents' calls to agtrace itself, and their results, are marked:search finds itself."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.events import commands
from agtrace_indexer.parallel import pool
from agtrace_indexer.providers.registry import TOOLS as KNOWN
from agtrace_indexer.run import index
from agtrace_schema import own_tools
from agtrace_schema.events import Json, ToolCall

from agtrace.tools import TOOLS
from tests.agtrace.asking import Asker, ClaudeLog, claude_log


def is_own(call: ToolCall) -> bool:
    return commands.is_own(call, commands.shell_command(call.name, call.arguments, KNOWN), KNOWN)


ONE = "aaaaaaaa-0000-4000-8000-000000000001"
SEARCH = "mcp__agtrace__search_event_previews"
MARKED = [None, True, True, None, None, True, True, None]
"""Of the events that `asking` writes, but for the figures of tokens: which are own."""


def asking(log: ClaudeLog) -> ClaudeLog:
    """A session that asks agtrace twice, by its tool and by its command, and works beside it."""
    log.prompt("find the tide").call(SEARCH, {"query": "tide"}, "Found 1 event")
    log.call("Bash", {"command": "ls agtrace"}, "search.py").call("Bash", {"command": "agtrace search tide"}, "1 hit")
    return log.say("here it is")


def marks(database: Path) -> list[bool | None]:
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT own FROM event ORDER BY session_id, event_index").fetchall()
    return [None if own is None else bool(own) for (own,) in rows]


@pytest.mark.parametrize(
    "name",
    [
        SEARCH,
        "mcp__plugin_agtrace_agtrace__list_sessions",
        "agtrace.get_event_details",
        "agtrace__compare_sessions",
        "mcp_agtrace_get_reasoning_chain",
        "get_session_details",
    ],
)
def test_a_tool_of_agtrace_is_known_by_every_name_that_an_agent_gives_it(name: str) -> None:
    assert is_own(ToolCall("c", name, {}))


def test_every_tool_of_the_server_is_known() -> None:
    assert set(TOOLS) <= set(own_tools.TOOLS)


@pytest.mark.parametrize("name", ["mcp__github__list_sessions", "mcp__agtrace__make_coffee", "Read", "", "agtrace"])
def test_other_tools_are_not_agtrace(name: str) -> None:
    assert not is_own(ToolCall("c", name, {"command": "agtrace search tide"}))


ASKS: list[Json] = [
    "agtrace",
    "agtrace search tide | head",
    "cd /srv/tidepool && agtrace search 'tide && gauge'",
    "cd '/srv/tide pool'; cd docs\nagtrace show aaaaaaaa",
    "AGTRACE_DATA_DIR=/tmp/x LANG= agtrace sessions",
    "env A=1 agtrace search x",
    "uvx agtrace search x",
    "uvx --from agtrace==1.2 agtrace search x",
    "pipx run agtrace search x",
    "uv run agtrace search x",
    "python3 -m agtrace search x",
    "/usr/bin/python3.12 -m agtrace search x",
    ".venv/bin/agtrace search x",
    ["bash", "-lc", "cd /srv && agtrace search x"],
    ["agtrace", "search", "x"],
]
OTHERS: list[Json] = [
    "grep -r agtrace .",
    "cd agtrace && make",
    "cat agtrace/search/question.py",
    "python -m agtrace_indexer.parallel.worker",
    "pip install agtrace",
    "uvx ruff check agtrace",
    "echo agtrace search",
    "make test; agtrace search x",
    ["bash", "-lc", "ls agtrace"],
    {"deep": "agtrace search"},
    7,
    None,
]


@pytest.mark.parametrize("command", ASKS, ids=str)
def test_a_command_that_begins_with_agtrace_asks_it(command: Json) -> None:
    assert is_own(ToolCall("c", "Bash", {"command": command}))
    assert is_own(ToolCall("c", "exec_command", {"cmd": command}))
    assert is_own(ToolCall("c", "shell", command))


@pytest.mark.parametrize("command", OTHERS, ids=str)
def test_a_command_that_only_names_agtrace_does_not_ask_it(command: Json) -> None:
    assert not is_own(ToolCall("c", "Bash", {"command": command}))
    assert not is_own(ToolCall("c", "local_shell", command))


def test_calls_and_results_are_marked_also_where_the_result_comes_with_a_later_run(
    tmp_path: Path, database: Path
) -> None:
    lines = asking(claude_log(tmp_path / "logs", ONE)).path.read_bytes().splitlines(keepends=True)
    index(database, [str(tmp_path / "logs")])
    assert marks(database) == MARKED
    growing = tmp_path / "growing" / "log.jsonl"
    growing.parent.mkdir()
    for number in range(len(lines)):
        growing.write_bytes(b"".join(lines[: number + 1]))
        index(tmp_path / "second.sqlite3", [str(growing.parent)])
    assert marks(tmp_path / "second.sqlite3") == MARKED


def test_workers_mark_them_too(tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        asking(claude_log(tmp_path / "logs", f"{ONE[:-1]}{number}"))
    monkeypatch.setattr(pool, "LEAST", 1)
    monkeypatch.setattr(pool, "cores", lambda: 2)
    index(database, [str(tmp_path / "logs")])
    assert marks(database) == 3 * MARKED


def codex_log(folder: Path) -> None:
    """A Codex log with a call to agtrace, whose namespace stands beside the name."""
    call = {"type": "function_call", "call_id": "c1", "namespace": "mcp__agtrace__", "name": "list_sessions"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "Found 3 sessions"}
    records: list[tuple[str, dict[str, Any]]] = [
        ("session_meta", {"id": ONE, "timestamp": "2026-03-08T09:30:00Z", "cwd": "/p", "originator": "codex_cli_rs"}),
        ("response_item", {**call, "arguments": "{}"}),
        ("response_item", output),
    ]
    folder.mkdir()
    (folder / f"rollout-2026-03-08T09-30-00-{ONE}.jsonl").write_text(
        "".join(
            json.dumps({"timestamp": "2026-03-08T09:30:00Z", "type": kind, "payload": payload}) + "\n"
            for kind, payload in records
        )
    )


def test_a_namespace_of_codex_is_part_of_the_name(tmp_path: Path, database: Path) -> None:
    codex_log(tmp_path / "logs")
    index(database, [str(tmp_path / "logs")])
    assert marks(database).count(True) == 2


def test_search_leaves_them_out(tmp_path: Path) -> None:
    asking(claude_log(tmp_path / "logs", ONE))
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    found = asker.ask("search_event_previews", order="newest", query="tide")
    assert [match["event_type"] for match in found["data"]["matches"]] == ["User"]
    assert asker.ask("search_event_previews", order="newest", query="1 hit")["data"] == {"matches": []}
