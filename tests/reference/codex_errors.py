"""Count Codex tool calls, results and failures without agtrace: `python codex_errors.py FILE...`.

Written from the description of the format and from reading logs, in the plainest way: the whole
file at once, two passes, string splitting. It shares no code and no approach with the provider.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

CALLS = {
    "function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call",
    "image_generation_call", "tool_call",
}  # fmt: skip
OUTPUTS = {"function_call_output", "custom_tool_call_output", "tool_search_output", "tool_result"}
ENDS = {"exec_command_end", "patch_apply_end", "mcp_tool_call_end", "dynamic_tool_call_response"}
FAILURES = [
    "apply_patch verification failed", "execution error", "failed in sandbox", "command failed in sandbox",
    "sandbox error", "unsupported call", "unsupported custom tool call", "failed to parse function arguments",
    "tool call error", "exec_command failed", "write_stdin failed", "view_image failed", "unable to locate image at ",
]  # fmt: skip


class Counts(NamedTuple):
    """The counts of one file."""

    records: int
    calls: int
    results: int
    failed: int


def count(path: Path) -> Counts:
    """Count one rollout file."""
    records = read(path)
    payloads = [payload(record) for record in records]
    kinds = [item_kind(record, inner) for record, inner in zip(records, payloads, strict=True)]
    carried = any(kind in CALLS for kind in kinds)
    calls = results = failed = 0
    ended: dict[Any, dict[str, Any]] = {}
    for kind, inner in zip(kinds, payloads, strict=True):
        calls += kind in CALLS
        if kind in ENDS and carried:
            ended[inner.get("call_id")] = inner
        elif kind in ENDS:
            calls, results, failed = calls + 1, results + 1, failed + event_failed(inner)
        elif kind in OUTPUTS or kind == "image_generation_call":
            results += 1
            end = ended.pop(inner.get("call_id"), None)
            failed += output_failed(inner, end)
    return Counts(len(records), calls, results, failed)


def read(path: Path) -> list[dict[str, Any]]:
    """Return all JSON objects of the file; broken lines are left out."""
    data = path.read_bytes()
    if path.suffix == ".zst":
        import zstandard

        data = zstandard.ZstdDecompressor().stream_reader(data).read()
    whole = decode(data.decode("utf-8", "replace"))
    if isinstance(whole, dict) and isinstance(whole.get("items"), list):
        return [whole["session"], *whole["items"]]
    lines = [decode(line) for line in data.decode("utf-8", "replace").split("\n")]
    return [line for line in lines if isinstance(line, dict)]


def decode(line: str) -> Any:
    """Return the JSON value of a text; None if it isn't JSON."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def payload(record: dict[str, Any]) -> dict[str, Any]:
    """Return the payload of an enveloped record, or else the record."""
    inner = record.get("payload")
    return inner if isinstance(inner, dict) else record


def item_kind(record: dict[str, Any], inner: dict[str, Any]) -> str:
    """Return the type of the item or event, judged by its fields if a fixture leaves it out."""
    if "type" in inner:
        return str(inner["type"])
    if record.get("type") == "response_item" and "call_id" in inner:
        return "function_call_output" if "output" in inner else "function_call"
    return ""


def output_failed(item: dict[str, Any], end: dict[str, Any] | None) -> bool:
    """Whether this output is a failure; a refusal or an interruption isn't."""
    output = item.get("output")
    if item.get("type") == "tool_result":
        result = item.get("result")
        return isinstance(result, dict) and result.get("exitCode") not in (None, 0)
    if isinstance(output, dict) and isinstance(output.get("success"), bool):
        return not output["success"]
    said = as_text(output)
    if "running with" in said.split("Output:")[0]:
        return False
    if end is not None:
        return event_failed(end)
    return text_failed(said) or item.get("status") == "failed"


def as_text(output: Any) -> str:
    """Return the texts of an output, joined."""
    if isinstance(output, dict):
        output = output.get("content") or [output]
    if isinstance(output, list):
        return "\n".join(str(part.get("text", "")) for part in output if isinstance(part, dict))
    return output if isinstance(output, str) else ""


def text_failed(said: str) -> bool:
    """Decide from the text: JSON with metadata, a header above `Output:`, or a known phrase at the start."""
    document = decode(said) if said.startswith("{") else None
    if isinstance(document, dict) and isinstance(document.get("metadata"), dict):
        return bool(document["metadata"].get("exit_code", 0))
    header = said.split("\nOutput:")[0].split("\n")
    if header[0].startswith("Exit code: "):
        return header[0] != "Exit code: 0"
    if header[0].startswith(("Command: ", "Chunk ID: ", "Wall time: ")):
        exits = [line for line in header if line.startswith("Process exited with code ")]
        return bool(exits) and exits[-1] != "Process exited with code 0"
    if header[0].startswith("Script failed"):
        return True
    if header[0].startswith("Script completed"):
        printed = [decode(line) for line in said.split("\n") if line.startswith("{")]
        return any(isinstance(one, dict) and one.get("exit_code", 0) != 0 for one in printed)
    refused = "rejected by user" in header[0] or 'message: "Rejected(' in said
    return not refused and said.startswith(tuple(FAILURES))


def event_failed(event: dict[str, Any]) -> bool:
    """Decide from an `*_end` event."""
    result = event.get("result")
    if isinstance(result, dict):
        good = result.get("Ok")
        return "Err" in result or (isinstance(good, dict) and good.get("isError") is True)
    if "success" in event:
        return event["success"] is False
    return event.get("status") == "failed" or ("status" not in event and event.get("exit_code", 0) != 0)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        sys.stdout.write("\t".join(map(str, (name, *count(Path(name))))) + "\n")
