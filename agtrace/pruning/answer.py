"""What an agent is given: the text itself, then one line of JSON about it.

The text comes first and plain, so that a model reads a file or an output as it is. What was left out is named by its
lines, and kept for a day under a reference that `read` takes as `file_path`.
"""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
from agtrace_schema.answers import Pruning
from agtrace_schema.model import dump
from agtrace_schema.requests import Mode
from msgspec import Struct

from agtrace.pruning.tools.output import Output
from agtrace.shaping.digest import Limits, cut_line, gather, of_mode
from agtrace.text.chunking import escaped_size
from agtrace.text.failing_lines import read
from agtrace.text.lines import without_controls

_OPENED = "`read` with the ref below as file_path, from start_line={gap} to end_line={end}, shows them, in parts"

_OPENED_OF_PRUNED = "`read` with the ref below as file_path shows the whole output"

USUAL_WIDTH = 2_000
"""Characters of a line unless the request names a mode: an agent may need all of a line to edit it."""


class Given(Struct, frozen=True):
    """A text as it fits into an answer."""

    text: str
    shown_lines: int
    is_cut: bool


def limits_of(mode: Mode | None) -> Limits:
    """Return the limits of a mode; without one, those of `standard` with longer lines."""
    return of_mode("standard")._replace(width=USUAL_WIDTH) if mode is None else of_mode(mode)


def fitted(text: str, limits: Limits, *, first_line: int = 1, failing: bool = True) -> Given:
    """Return a text within limits: its head and tail, and its failing lines; what is left out is named."""
    lines = text.removesuffix("\n").split("\n")
    told = read(lines) if failing else (None for _ in lines)
    found = gather(zip(lines, told, strict=False), limits, first=first_line).digest(limits.budget, _OPENED)
    return Given(found.text if found.shortened else text, found.lines, found.shortened)


def fitted_pruned(text: str, limits: Limits) -> Given:
    """Return a pruned text within limits: long lines cut, and of too many those that report failures, head and tail."""
    lines = [cut_line(line, limits.width) for line in text.split("\n")]
    whole = "\n".join(lines)
    if len(lines) <= limits.lines and len(whole) <= limits.chars and escaped_size(whole) <= limits.budget:
        return Given(whole, len(lines), False)
    found = gather(zip(lines, read(lines), strict=False), limits).digest(limits.budget, _OPENED_OF_PRUNED)
    return Given(found.text, found.lines, True)


def result(
    given: Given,
    *,
    request_id: str,
    tool: str,
    output: Output | None,
    raw_bytes: int,
    total_lines: int,
    pruning: Pruning,
    reference: str | None,
    error: dict[str, Any] | None = None,
) -> types.CallToolResult:
    """Return the answer to a request, as the protocol has it."""
    captured = output.truncated if output else None
    about = {
        "request_id": request_id,
        "tool": tool,
        "error": error,
        "exit_code": output.exit_code if output else None,
        "duration_ms": round(output.duration_ms, 1) if output else None,
        "stdout_bytes": output.stdout_bytes if output else 0,
        "stderr_bytes": output.stderr_bytes if output else 0,
        "raw_bytes": raw_bytes,
        "truncation": {"shown_lines": given.shown_lines, "total_lines": total_lines} if given.is_cut else None,
        "captured": {"kept_bytes": captured.kept_bytes, "total_bytes": captured.total_bytes} if captured else None,
        "pruning": dump(pruning),
        "ref": reference,
    }
    line = json.dumps({name: value for name, value in about.items() if value is not None}, ensure_ascii=False)
    texts = [types.TextContent(type="text", text=text) for text in (without_controls(given.text), line)]
    return types.CallToolResult(content=list(texts), is_error=error is not None)
