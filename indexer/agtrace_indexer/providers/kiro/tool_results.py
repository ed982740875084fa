"""Results of tool executions: their outcome, and what the model was given.

A command that fails is a `success` whose `exit_status` isn't 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from agtrace_schema.events import Outcome, OutcomeSource, ToolResult
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.events.json_values import compact_json, fields, image_placeholder, items
from agtrace_indexer.events.strings import identifier

_CANCELLED = "Tool use was cancelled by the user"
"""What the agent writes as the results of calls that the user didn't let run."""

_EXIT = later(r"(?:exit (?:status|code): )?(-?[0-9]{1,10})")
_STOPPED = "signal: 2 (SIGINT)"
_OF_A_COMMAND = ("stdout", "stderr")


class Part(NamedTuple):
    """A part of what a tool returned: a text, or a JSON value."""

    kind: str
    data: Any


def parts_of(content: Any) -> list[Part]:
    """Return the parts of a result, which name their kind (`{"kind": "text", "data": ...}`) or are named by it."""
    return [_part(item) for item in items(content)]


def _part(item: Any) -> Part:
    told = fields(item)
    if isinstance(told.get("kind"), str):
        return Part(told["kind"], told.get("data"))
    for key, kind in (("Text", "text"), ("Json", "json"), ("Image", "image")):
        if key in told:
            return Part(kind, told[key])
    return Part("json", item)


def result_of(call_id: Any, status: Any, parts: list[Part]) -> ToolResult:
    """Read a result, by its status and by the exit status of a command in it."""
    said = "\n".join(filter(None, map(_written, parts)))
    status_text = next(filter(None, map(_exit_status, parts)), None)
    found = _EXIT.fullmatch(status_text) if status_text else None
    exit_code = int(found[1]) if found else None
    outcome, source = _outcome(str(status).lower(), said, status_text, exit_code)
    return ToolResult(identifier(call_id), said, outcome, source, exit_code)


def _outcome(status: str, said: str, ended: str | None, code: int | None) -> tuple[Outcome, OutcomeSource | None]:
    if status == "error":
        if said.startswith(_CANCELLED):
            return Outcome.REJECTED, OutcomeSource.TEXT
        return Outcome.FAILED, OutcomeSource.STRUCTURE
    if status != "success":
        return Outcome.UNKNOWN, None
    if ended == _STOPPED:
        return Outcome.INTERRUPTED, OutcomeSource.STRUCTURE
    return (Outcome.OK if ended is None or code == 0 else Outcome.FAILED), OutcomeSource.STRUCTURE


def _exit_status(part: Part) -> str | None:
    """Return how a command ended, if this is the output of one: `exit status: 1`, or `1` before 2.0."""
    ended = fields(part.data).get("exit_status") if part.kind == "json" else None
    return ended if isinstance(ended, str) else None


def _written(part: Part) -> str:
    if part.kind == "image":
        return picture(part.data)
    if isinstance(part.data, str):
        return part.data
    if _exit_status(part) is not None and all(isinstance(part.data.get(name), str) for name in _OF_A_COMMAND):
        return _printed(part.data)
    return "" if part.data is None else compact_json(part.data)


def _printed(output: Record) -> str:
    """Return what a command printed, as a text, and whatever else is said of it."""
    rest = {key: value for key, value in output.items() if key not in (*_OF_A_COMMAND, "exit_status")}
    parts = [*(output[name].removesuffix("\n") for name in _OF_A_COMMAND), output["exit_status"]]
    return "\n".join(filter(None, [*parts, compact_json(rest) if rest else ""]))


def picture(data: Any) -> str:
    """Return the placeholder of an image."""
    told = fields(data)
    source = told.get("source")
    content = next(iter(source.values()), None) if isinstance(source, dict) else source
    kind = told.get("format")
    return image_placeholder(f"image/{kind}" if isinstance(kind, str) else None, content)
