"""What a client of the official SDK gets is what the schema of the tool says, and an `McpResponse` or an `McpError`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from agtrace_schema.answers import SessionList
from agtrace_schema.wire import McpError, McpResponse
from mcp.client import Client
from pydantic import ValidationError

from agtrace.serving import server
from agtrace.settings import load
from agtrace.settings.live import Live
from agtrace.tools import TOOLS
from tests.agtrace.asking import read

LARGE = "d41f7a52"
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("list_sessions", {}),
    ("list_sessions", {"path": "store.py", "commit": "any", "fields": "id,title"}),
    ("get_project_info", {"limit": 1}),
    ("run_sql", {"sql": "SELECT tool, count(*) FROM tool_calls GROUP BY 1"}),
    ("get_session_details", {"sessionId": LARGE}),
    *(("get_session_details", {"session_id": LARGE, "detail_level": level}) for level in ("turns", "steps", "full")),
    ("get_session_details", {"session_id": LARGE, "sections": ["session", "stats", "tools", "landmarks", "models"]}),
    ("get_session_details", {"session_id": LARGE, "max_bytes": 2_048}),
    ("analyze_session", {"session_id": LARGE, "include_loops": True}),
    ("compare_sessions", {"id1": LARGE, "id2": "01a11132"}),
    ("search_event_previews", {"query": "locked database"}),
    ("search_event_previews", {"query": "locked", "order": "newest", "limit": 2}),
    ("search_event_previews", {"query": "locked", "group_by": "session"}),
    ("get_event_details", {"session_id": LARGE, "eventIndex": 110, "startLine": 1, "endLine": 2}),
    ("get_event_details", {"session_id": LARGE, "event_index": 110, "around": 3}),
    ("get_event_details", {"session_id": LARGE, "event_index": 110, "mode": "minimal"}),
    ("read_artifact", {"ref": "ax://health"}),
    ("get_reasoning_chain", {"session_id": LARGE, "turn_index": 0}),
]
REFUSED: list[tuple[str, dict[str, Any]]] = [
    *((name, {"no_such_argument": 1}) for name in TOOLS),
    ("get_session_details", {"session_id": "zzzzzzzz"}),
    ("list_sessions", {"cursor": "x"}),
]


def test_every_answer_fits_the_schema_of_its_tool_and_its_model(indexed: Path) -> None:
    asked = [*ASKED, *REFUSED]

    async def ask() -> tuple[dict[str, Any], list[Any]]:
        async with Client(server.make_server(Live.fixed(load()))) as client:
            listed = await client.list_tools()
            return {tool.name: tool.output_schema for tool in listed.tools}, [
                await client.call_tool(*one) for one in asked
            ]

    schemas, results = anyio.run(ask)
    assert {name for name, _ in ASKED} == schemas.keys()
    for one, result in zip(asked, results, strict=True):
        jsonschema.validate(result.structured_content, schemas[one[0]], jsonschema.Draft202012Validator)
        found = read(one[0], json.dumps(result.structured_content))
        assert isinstance(found, McpError) == result.is_error == (one in REFUSED), one


def test_a_client_reads_an_answer_as_objects_and_notices_what_is_none(indexed: Path) -> None:
    budget = {"estimated_tokens": 1, "budget_used": 0.1, "budget_remaining": 9}
    answer: dict[str, Any] = {
        "summary": "Found 1 session", "success": True, "data": {"sessions": [{"id": "fb3cff44", "turn_count": 3}]},
        "pagination": {"total_in_page": 1, "next_cursor": None, "has_more": False}, "budget": budget,
    }  # fmt: skip
    found = McpResponse[SessionList].model_validate(answer)
    assert found.data.sessions[0].turn_count == 3 and found.pagination and not found.pagination.has_more
    for wrong in ({"success": False}, {"more": 1}, {"data": {"sessions": [{"id": 3}]}}, {"data": {"projects": []}}):
        with pytest.raises(ValidationError):
            McpResponse[SessionList].model_validate(answer | wrong)
