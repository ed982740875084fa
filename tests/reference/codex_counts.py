"""Count the contents of a Codex rollout, without agtrace: `python -m tests.reference.codex_counts FILE...`.

Written from the description of the format and from reading logs: the whole file at once, first without what
a fork replays of its parent, then one question at a time. Nothing is imported from agtrace. Prints one JSON
object per file; all figures are counts, including those of tokens.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

CALLS = {
    "function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call",
    "image_generation_call", "tool_call",
}  # fmt: skip
OUTPUTS = {"function_call_output", "custom_tool_call_output", "tool_search_output", "tool_result"}
ENDS = {"exec_command_end", "patch_apply_end", "mcp_tool_call_end", "dynamic_tool_call_response"}
MODEL = CALLS | OUTPUTS | ENDS | {"reasoning", "agent_reasoning", "agent_message"}
NOT_TYPED = (
    "<environment_context>", "<user_instructions>", "# AGENTS.md instructions for ", "<INSTRUCTIONS>", "<turn_aborted>",
    "<subagent_notification>", "<recommended_plugins>", "<skill>", "<user_action>", "<user_shell_command>",
)  # fmt: skip
"""formats.md 2.2, Messages: texts in the user's role that nobody typed."""
PLAIN_FAILURES = re.compile(
    r"apply_patch verification failed|execution error|(command )?failed in sandbox|sandbox error"
    r"|unsupported (custom tool )?call|failed to parse function arguments|tool call error"
    r"|(exec_command|write_stdin|view_image) failed|unable to locate image at "
)
FORK_GAP_MS = 1000
"""Without turn ids, the replay ends where timestamps are further apart than this."""

Record = dict[str, Any]
TOKEN_KEYS = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")
"""The first includes the next two."""


class Usage(NamedTuple):
    """Tokens of a session; input without tokens read from or written to the cache, of which Codex has one kind."""

    input: int = 0
    cache_creation_5m: int = 0
    cache_creation_1h: int = 0
    cache_read: int = 0
    output: int = 0


class Counts(NamedTuple):
    """The counts of one file after the replay of its parent."""

    lines: int
    replayed: int
    tool_calls: int
    results: int
    failed: int
    rejected: int
    interrupted: int
    responses: int
    usage: Usage
    human: int
    turns: int


def count(path: Path) -> Counts:
    """Count one rollout."""
    found = records(path)
    replayed = replay_length(found)
    own = found[replayed:]
    ends = list(outcomes(own, carried=any(kind(record) in CALLS for record in found)))
    usage, responses = tokens(found[:replayed], own)
    asked = list(requests(own))
    return Counts(
        lines=len(found),
        replayed=replayed,
        tool_calls=sum(kind(record) in CALLS for record in own) + sum(end.is_call for end in ends),
        results=len(ends),
        failed=sum(end.outcome == "failed" for end in ends),
        rejected=sum(end.outcome == "rejected" for end in ends),
        interrupted=sum(end.outcome == "interrupted" for end in ends),
        responses=responses,
        usage=usage,
        human=len(asked),
        turns=len(asked) + any(map(speaks, own[: asked[0] if asked else None])),
    )


def records(path: Path) -> list[Record]:
    """Return all JSON objects of the file; broken lines are left out."""
    data = path.read_bytes()
    if path.suffix == ".zst":
        import zstandard

        data = zstandard.ZstdDecompressor().stream_reader(data).read()
    content = data.decode("utf-8", "replace")
    whole = parsed(content)
    if isinstance(whole, dict) and isinstance(whole.get("items"), list):
        return [whole["session"], *whole["items"]]
    lines = (parsed(line) for line in content.split("\n"))
    return [line for line in lines if isinstance(line, dict)]


def parsed(text: str) -> Any:
    """Return the JSON value of a text; None if it isn't JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def inner(record: Record) -> Record:
    """Return the payload of an enveloped line; a bare item is its own payload."""
    payload = record.get("payload")
    return payload if isinstance(payload, dict) else record


def kind(record: Record) -> str:
    """Return the type of an item or event, judged by its fields if a fixture leaves it out."""
    item = inner(record)
    if "type" in item and item is not record:
        return str(item["type"])
    if record.get("type") not in (None, "response_item"):
        return str(record["type"])
    if "call_id" in item:
        return "function_call_output" if "output" in item else "function_call"
    return "message" if "role" in item else ""


# --- the replayed part (formats.md 2.2, Sub-agents, forks; tests/known_bugs.md, 10 and 11) ---


def replay_length(found: list[Record]) -> int:
    """Return how many lines at the start repeat the parent: up to the first turn that isn't older than the session."""
    if not replays(found):
        return 0
    born = birth(inner(found[0]))
    starts = [(at, turn) for at, record in enumerate(found) if (turn := turn_time(record)) is not None]
    if not starts:
        return cluster(found)
    return next((at for at, turn in starts if turn >= born), len(found))


def replays(found: list[Record]) -> bool:
    """Whether the file begins with another thread's history: it names one, or another thread's meta comes second."""
    metas = [inner(record) for record in found[:2] if record.get("type") == "session_meta"]
    if not metas:
        return False
    return bool(metas[0].get("forked_from_id")) or (len(metas) == 2 and metas[0].get("id") != metas[1].get("id"))


def birth(meta: Record) -> int:
    """Return when the session began, in ms since 1970: from its id, a UUIDv7, or else its own timestamp."""
    made = uuid_time(meta.get("id"))
    return made if made is not None else stamp(meta) or 0


def turn_time(record: Record) -> int | None:
    """Return when the turn that starts on this line was made, in ms since 1970."""
    if record.get("type") == "turn_context" or kind(record) == "task_started":
        return uuid_time(inner(record).get("turn_id"))
    return None


def uuid_time(text: Any) -> int | None:
    """Return the milliseconds since 1970 in a UUIDv7."""
    digits = text.replace("-", "") if isinstance(text, str) else ""
    return int(digits[:12], 16) if re.fullmatch(r"[0-9a-f]{12}7[0-9a-f]{19}", digits) else None


def stamp(record: Record) -> int | None:
    """Return the time of a line in ms since 1970."""
    try:
        return round(datetime.fromisoformat(str(record.get("timestamp"))).timestamp() * 1000)
    except ValueError:
        return None


def cluster(found: list[Record]) -> int:
    """Return how many lines at the start have the time of the fork."""
    times = [stamp(record) or 0 for record in found]
    gaps = (at for at in range(1, len(times)) if times[at] - times[at - 1] >= FORK_GAP_MS)
    return next(gaps, len(found))


# --- tokens (formats.md 2.2, Tokens) ---


def tokens(replayed: list[Record], own: list[Record]) -> tuple[Usage, int]:
    """Return the session's tokens, the sum of the last values of each monotone run, and how many counts were new."""
    before = [total for record in replayed if (total := running_total(record)) is not None]
    base = last = before[-1] if before else NONE
    sums, news = NONE, 0
    for total in filter(None, map(running_total, own)):
        if sum(total) < sum(last):
            sums, base = added(sums, last, base), NONE
        news += total != last and any(total)
        last = total
    read, cached, stored, written = added(sums, last, base)
    return Usage(read - cached - stored, stored, 0, cached, written), news


Total = tuple[int, ...]
NONE: Total = (0, 0, 0, 0)


def running_total(record: Record) -> Total | None:
    """Return the figures of `TOKEN_KEYS` for the session so far, if this line has them."""
    info = inner(record).get("info") if kind(record) == "token_count" else None
    total = info.get("total_token_usage") if isinstance(info, dict) else None
    return tuple(total.get(key) or 0 for key in TOKEN_KEYS) if isinstance(total, dict) else None


def added(sums: Total, last: Total, base: Total) -> Total:
    """Return the sums including a run that went from base to last."""
    return tuple(so_far + end - start for so_far, end, start in zip(sums, last, base, strict=True))


# --- tools ---


class End(NamedTuple):
    """One tool execution that ended; is_call: only this event reports the call."""

    outcome: str
    is_call: bool = False


def outcomes(own: list[Record], carried: bool) -> Iterator[End]:
    """Yield every tool result; events count as results only in a log whose items have no calls."""
    told: dict[Any, Record] = {}
    for record in own:
        item = inner(record)
        if kind(record) in ENDS and not carried:
            yield End(event_outcome(item), is_call=True)
        elif kind(record) in ENDS:
            told[item.get("call_id")] = item
        elif kind(record) in OUTPUTS or kind(record) == "image_generation_call":
            yield End(output_outcome(item, told.pop(item.get("call_id"), None)))


def output_outcome(item: Record, event: Record | None) -> str:
    """Return how a call ended by its output, or by the event of the same call unless the tool is still running."""
    output, result = item.get("output"), item.get("result")
    if isinstance(result, dict) and "exitCode" in result:
        return "failed" if result["exitCode"] else "ok"
    if isinstance(output, dict) and isinstance(output.get("success"), bool):
        return "ok" if output["success"] else "failed"
    said = text_of(output)
    by_text = text_outcome(said)
    if event is not None and by_text != "running":
        return event_outcome(event)
    return by_text or ("failed" if item.get("status") == "failed" else "")


def text_of(output: Any) -> str:
    """Return the texts of an output, joined."""
    if isinstance(output, dict):
        output = output.get("content") or [output]
    if isinstance(output, list):
        return "\n".join(str(part.get("text", "")) for part in output if isinstance(part, dict))
    return output if isinstance(output, str) else ""


def text_outcome(said: str) -> str:
    """Return how a call ended by its output (formats.md 2.2, Tools and errors, 1 to 5); empty if it doesn't show."""
    whole = parsed(said) if said.startswith("{") else None
    if isinstance(whole, dict) and isinstance(whole.get("metadata"), dict):
        return "failed" if whole["metadata"].get("exit_code") else "ok"
    header = re.split(r"^Output:", said, maxsplit=1, flags=re.MULTILINE)[0]
    if said.startswith(("Exit code: ", "Command: ", "Chunk ID: ", "Wall time: ")):
        return header_outcome(header)
    if found := re.match(r"Script (completed|failed|running)", said):
        if found[1] == "completed" and re.search(r"^\{.*(?<!\\)\"exit_code\": ?[^0 ]", said, re.MULTILINE):
            return "failed"
        return {"completed": "ok", "failed": "failed", "running": "running"}[found[1]]
    first = said.split("\n")[0]
    if "rejected by user" in first or 'message: "Rejected(' in said:
        return "rejected"
    if "aborted by user" in first:
        return "interrupted"
    return "failed" if PLAIN_FAILURES.match(said) else ""


def header_outcome(header: str) -> str:
    """Return how a command ended by the lines above its output."""
    if re.search(r"^Process running with session ID", header, re.MULTILINE):
        return "running"
    codes = re.findall(r"^(?:Exit code:|Process exited with code) (-?\d+)", header, re.MULTILINE)
    if not codes:
        return "interrupted" if "aborted by user" in header else ""
    return "ok" if codes[-1] == "0" else "failed"


def event_outcome(event: Record) -> str:
    """Return how a call ended by its `*_end` event."""
    result = event.get("result")
    if isinstance(result, dict):
        good = result.get("Ok")
        return "failed" if "Err" in result or (isinstance(good, dict) and good.get("isError") is True) else "ok"
    if event.get("status") == "declined":
        return "rejected"
    if "success" in event:
        return "ok" if event["success"] else "failed"
    if "status" in event:
        return "failed" if event["status"] == "failed" else "ok"
    return "failed" if event.get("exit_code") else "ok"


# --- requests ---


def requests(own: list[Record]) -> Iterator[int]:
    """Yield the positions of requests. A request is in two streams, and counts once until the model does something."""
    waiting = None
    for at, record in enumerate(own):
        said = request(record)
        if speaks(record):
            waiting = None
        elif said is not None and said != waiting:
            waiting = said
            yield at


def request(record: Record) -> str | None:
    """Return the text that somebody typed, or that started a sub-agent."""
    item = inner(record)
    if record.get("type") == "event_msg" and kind(record) == "user_message":
        said = str(item.get("message") or "").strip()
    elif kind(record) == "item_completed" and item.get("item", {}).get("type") == "UserMessage":
        said = text_of(item["item"].get("content")).strip()
    elif kind(record) == "message" and item.get("role") == "user":
        said = text_of(item.get("content")).strip()
    else:
        return None
    return said if said and not said.startswith(NOT_TYPED) else None


def speaks(record: Record) -> bool:
    """Whether the model says or does something on this line."""
    return kind(record) in MODEL or (kind(record) == "message" and inner(record).get("role") == "assistant")


def printed(counts: Counts) -> dict[str, Any]:
    """Return the counts as JSON."""
    return {**counts._asdict(), "usage": counts.usage._asdict()}


if __name__ == "__main__":
    for name in sys.argv[1:]:
        sys.stdout.write(json.dumps({"file": name, **printed(count(Path(name)))}) + "\n")
