"""What telemetry records of a request to the pruning server: figures and codes, as of every other request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import mcp_types as types

from agtrace.answers.telemetry.request import Origin, Request
from agtrace.shaping.shape import estimated_tokens


def request_of(result: types.CallToolResult, origin: Origin, *, tool: str, at: float, ms: float) -> Request:
    """Return the record of an answer; `at` is when it was given, in seconds since 1970 UTC."""
    texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
    about: Mapping[str, Any] = json.loads(texts[-1])
    size = sum(len(text.encode()) for text in texts)
    return Request(
        at=round(1000 * at),
        tool=tool,
        request_id=about["request_id"],
        client=origin.client,
        client_version=origin.client_version,
        protocol=origin.protocol,
        transport=origin.transport,
        outcome=about["error"]["code"] if "error" in about else "ok",
        ms=round(ms, 2),
        tokens=estimated_tokens(sum(map(len, texts))),
        asked_bytes=max(size, about["raw_bytes"]),
        bytes=size,
        items=None,
        attempt=1,
        paginated=False,
        chunked=False,
        summarized=False,
        pruned=about["pruning"]["applied"],
        cut="truncation" in about,
        index_state="ready",
        connection=origin.connection_digest,
    )
