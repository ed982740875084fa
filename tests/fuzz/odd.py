"""JSON values that no agent writes, and ways to write a record with them as bytes."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

from tests.indexer.strange import places

_RAW = re.compile(r'"@raw:([a-z]+):(\d+)@"')
_TWICE = "@twice@"

IDS = frozenset(
    {
        *("uuid", "parentUuid", "sessionId", "session_id", "id", "call_id", "callId", "tool_use_id", "requestId"),
        *("messageId", "leafUuid", "logicalParentUuid", "agentId", "turn_id", "forked_from_id", "parent_thread_id"),
        *("toolUseID", "parentToolUseID", "process_id", "$rewindTo", "promptId", "toolUseId", "thread_id"),
    }
)
"""Keys whose values name something."""

TIMES = frozenset({"timestamp", "ts", "startTime", "lastUpdated", "started_at", "start_time", "completed_at"})

WORDS = (
    *("type", "role", "content", "message", "payload", "text", "name", "input", "arguments", "output", "usage"),
    *("user", "assistant", "system", "summary", "model", "tool_use", "tool_result", "thinking", "response_item"),
    *("event_msg", "session_meta", "turn_context", "compacted", "function_call", "function_call_output", "reasoning"),
    *("token_count", "user_message", "agent_message", "gemini", "info", "error", "$set", "$rewindTo", "messages"),
    *("tokens", "toolCalls", "status", "result", "success", "thread_rolled_back", "num_turns", "isMeta", "isSidechain"),
    *("isCompactSummary", "toolUseResult", "custom_tool_call", "local_shell_call", "item_completed", "thoughts"),
)
"""Keys and values that are meaningful to a provider."""

MOMENTS: tuple[Any, ...] = (
    *("", "now", "1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", "2026-02-30T00:00:00Z"),
    *("2026-10-01T10:00:00", "2026-10-01 10:00:00+14:00", "2026-10-01T10:00:00.123456789Z", "2026-10-01T24:00:00Z"),
    *("2026-10-01T10:00:60Z", "٢٠٢٦-10-01T10:00:00Z", "20261001T100000Z", "2026-W40-1", "-2026-10-01T10:00:00Z"),
    *(0, -1, 1_790_000_000, 1_790_000_000_000, 1_790_000_000_000_000, 2**63, -(2**63), 1e300, 1.5, True, None, [], {}),
)

TEXTS = (
    *("", " ", "\n", "\0", "\x1b[31m", "\u202e", "\u200b", "\ud800", "\ufeff", "\ufffd", "e\u0301" * 50, "潮" * 300),
    *("👩‍👩‍👧‍👦" * 40, "x" * 70_000, "a b " * 9_000, "../../etc/passwd", "ax://session/x", "'; DROP TABLE session; --"),
    *("<system-reminder>", "<command-name>/clear</command-name>", "<user_instructions>", "<environment_context>"),
    *("Exit code: 99999999999999999999", "Process running with session ID 7", "Process exited with code -1"),
    *("Chunk ID: x\nWall time: 1e999 seconds\n", '{"output":"","metadata":{"exit_code":1e400}}', "%s%n{0}\\u0000"),
    *("[Request interrupted by user]", "API Error: 529", "<turn_aborted>", "Script running with cell ID 0"),
    *(
        "\r\n" * 200,
        "data:image/png;base64," + "A" * 3_000,
        "\\" * 999,
        '"' * 999,
        "/" * 5_000,
        "-" * 3_000 + "=" * 3_000,
    ),
)

SCALARS: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**30, 10**400),
    *(0.5, -0.0, 1e300, float("inf"), float("-inf"), float("nan"), 5e-324, [], {}, [[]], [{}], {"": ""}, [None] * 99),
    *({"type": "text", "text": "x"}, [{"type": "text", "text": 5}], {"type": None}, {"text": {"text": ["x"]}}),
)


def value(random: Random) -> Any:
    """Return something strange."""
    kind = random.randrange(10)
    if kind < 4:
        return random.choice(SCALARS)
    if kind < 7:
        return random.choice(TEXTS)
    if kind < 8:
        return random.choice(WORDS)
    return nested(random) if kind < 9 else random.choice(MOMENTS)


def nested(random: Random) -> Any:
    """Return nested arrays or objects, 1 to 10,000 deep, or a number with very many digits."""
    kind = random.choice(("arrays", "objects", "both", "digits", "exponent", "wide"))
    return f"@raw:{kind}:{int(10 ** random.uniform(0, 4))}@"


def written(record: Any, random: Random) -> bytes:
    """Return a record as one line of JSON, in one of the ways in which JSON can be written."""
    try:
        text = json.dumps(
            record,
            ensure_ascii=random.random() < 0.3,
            separators=random.choice([(",", ":"), (",", ":"), (", ", ": "), (" , ", "\t:  ")]),
        )
    except (ValueError, RecursionError):
        text = '{"type":"user"'
    text = _RAW.sub(lambda found: _raw(found[1], int(found[2])), text).replace(_TWICE, "")
    return text.encode("utf-8", "surrogatepass")


def _raw(kind: str, size: int) -> str:
    """Return JSON that `json` itself couldn't write."""
    match kind:
        case "arrays":
            return "[" * size + "]" * size
        case "objects":
            return '{"a":' * size + "0" + "}" * size
        case "both":
            return '[{"type":' * size + '"text"' + "}]" * size
        case "digits":
            return "9" * size
        case "exponent":
            return f"1e{size}"
        case _:
            return "[" + "0," * size + "0]"


def spoil(record: Any, others: list[Any], random: Random) -> str:
    """Change a record in one place; return what was done. `others` are records of the same log."""
    found = list(places(record))
    if not found:
        return "nothing"
    named = [(holder, key) for holder, key in found if key in IDS or key in TIMES]
    ways = (_drop, _retype, _rename, _wrap, _unwrap, _twice, _swap, _borrow, _name, _time, _add, _append, _number)
    way = random.choice(ways)
    place = random.choice(named if named and way in (_name, _time) else found)
    way(*place, found, others, random)
    return way.__name__.strip("_")


Places = list[tuple[Any, Any]]


def _drop(holder: Any, key: Any, found: Places, others: list[Any], random: Random) -> None:
    del holder[key]


def _retype(holder: Any, key: Any, found: Places, others: list[Any], random: Random) -> None:
    holder[key] = value(random)


def _rename(holder: Any, key: Any, found: Places, others: list[Any], random: Random) -> None:
    content = holder.pop(key)
    if isinstance(holder, dict):
        holder[random.choice([*WORDS, str(key).upper(), f"{key} ", "", "\0"])] = content


def _wrap(holder: Any, key: Any, found: Places, others: list[Any], random: Random) -> None:
    for _ in range(random.choice((1, 1, 2, 40))):
        holder[key] = [holder[key]] if random.random() < 0.5 else {random.choice(WORDS): holder[key]}


def _unwrap(holder: Any, key: Any, found: Places, others: list[Any], random: Random) -> None:
    inner = holder[key]
    if isinstance(inner, (dict, list)) and inner:
        holder[key] = random.choice(list(inner.values()) if isinstance(inner, dict) else inner)
    else:
        holder[key] = str(inner)


def _twice(holder: Any, key: Any, found: Places, others: list[Any], random: Random) -> None:
    if isinstance(holder, dict):
        holder[f"{_TWICE}{key}"] = random.choice([holder[key], value(random)])


def _swap(holder: Any, key: Any, found: Places, others: list[Any], random: Random) -> None:
    other, at = random.choice(found)
    if not (isinstance(other[at], (dict, list)) or isinstance(holder[key], (dict, list))):
        holder[key], other[at] = other[at], holder[key]


def _borrow(holder: Any, key: Any, found: Places, others: list[Any], random: Random) -> None:
    """Take the value of the same key, or any value, from another record."""
    there = list(places(random.choice(others))) if others else []
    alike = [(other, at) for other, at in there if at == key] or there
    if alike:
        other, at = random.choice(alike)
        holder[key] = json.loads(json.dumps(other[at]))


def _name(holder: Any, key: Any, found: Places, others: list[Any], random: Random) -> None:
    """Give a thing the id of another one."""
    names = [other[at] for one in others for other, at in places(one) if at in IDS and isinstance(other[at], str)]
    holder[key] = random.choice(names or ["x"])


def _time(holder: Any, key: Any, found: Places, others: list[Any], random: Random) -> None:
    holder[key] = random.choice(MOMENTS)


def _add(holder: Any, key: Any, found: Places, others: list[Any], random: Random) -> None:
    if isinstance(holder, dict):
        holder[random.choice(WORDS)] = value(random)
    else:
        holder.insert(random.randrange(len(holder) + 1), value(random))


def _append(holder: Any, key: Any, found: Places, others: list[Any], random: Random) -> None:
    """Put something strange into a text."""
    if isinstance(holder[key], str):
        at = random.randrange(len(holder[key]) + 1)
        holder[key] = holder[key][:at] + random.choice(TEXTS) + holder[key][at:]
    else:
        holder[key] = value(random)


def _number(holder: Any, key: Any, found: Places, others: list[Any], random: Random) -> None:
    if isinstance(holder[key], (int, float)):
        number = holder[key]
        broken = number + 0.5 if abs(number) < 2**63 else 0.5  # a larger one may be too large for a float
        holder[key] = random.choice([-number, number * 1_000_003, str(number), broken, 2**63])
    else:
        holder[key] = random.choice((0, -1, 2**63))
