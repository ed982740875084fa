"""Mutated requests: arguments by their schemas, cursors, references, addresses, frames."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from agtrace.serving.prompts import PROMPTS
from agtrace.tools import TOOLS
from agtrace.tools.arguments import input_schema
from tests.fuzz import odd, phrases
from tests.worlds import STRANGE, VALUES


class Asked(NamedTuple):
    """A line to send to the server."""

    frame: bytes
    id: int | None
    """The id under which an answer must come; None if none is required."""
    tool: str | None = None
    arguments: Mapping[str, Any] = {}


@dataclass(slots=True)
class Known:
    """Values learnt from answers, to use in requests and to spoil."""

    sessions: list[str] = field(default_factory=lambda: ["none"])
    projects: list[str] = field(default_factory=lambda: ["0"])
    cursors: list[tuple[str, dict[str, Any], str]] = field(default_factory=list)
    """(tool, arguments, cursor that continues them)"""


def request(number: int, known: Known, random: Random) -> Asked:
    """Return the next line for the server; `number` is its id."""
    kind = random.randrange(20)
    if kind < 13:
        return _call(number, *_arguments(known, random))
    if kind < 15:
        uri = _reference(known, random)
        return Asked(_frame(number, "resources/read", {"uri": uri}), number)
    if kind < 16:
        return Asked(_frame(number, "prompts/get", _prompt(random)), number)
    if kind < 17:
        params = random.choice((None, {}, {"cursor": "x"}, {"_meta": {"progressToken": 1}}, {"level": "debug"}))
        return Asked(_frame(number, random.choice(phrases.METHODS), params), None)
    return Asked(_spoiled_frame(number, known, random), None)


def _call(number: int, tool: str, arguments: Any) -> Asked:
    frame = _frame(number, "tools/call", {"name": tool, "arguments": arguments})
    is_object = isinstance(arguments, dict)
    return Asked(frame, number, tool if is_object else None, arguments if is_object else {})


def _frame(number: Any, method: str, params: Any) -> bytes:
    frame = {"jsonrpc": "2.0", "id": number, "method": method}
    return json.dumps(frame if params is None else {**frame, "params": params}).encode()


def _arguments(known: Known, random: Random) -> tuple[str, Any]:
    """Return a tool with valid arguments, some of them spoilt, or with a cursor that may not fit."""
    if known.cursors and random.random() < 0.2:
        return _with_cursor(known, random)
    tool = random.choice(list(TOOLS))
    schema = input_schema(TOOLS[tool].arguments)
    names = list(schema["properties"])
    optional = [name for name in names if name != "cursor" or random.random() < 0.1]
    chosen = {*schema.get("required", []), *random.sample(optional, random.randrange(min(4, len(optional)) + 1))}
    arguments: dict[str, Any] = {
        name: _value(name, schema["properties"][name], known, random) for name in sorted(chosen)
    }
    for _ in range(random.choice((0, 0, 0, 1, 2))):
        _spoil_arguments(arguments, names, random)
    if random.random() < 0.02:
        return tool, random.choice([[], None, "x", 7, [arguments], json.dumps(arguments)])
    return tool, arguments


def _value(name: str, schema: Mapping[str, Any], known: Known, random: Random) -> Any:
    """Return a valid or nearly valid value for an argument."""
    if name in ("session_id", "id1", "id2"):
        found = random.choice(known.sessions)
        return random.choice((found, found, found[:12], found[:4], f"ax://session/{found}", found.upper()))
    if name == "ref":
        return _reference(known, random)
    if name == "project":
        return random.choice(known.projects)[: random.choice((64, 64, 8, 1))]
    if name in ("since", "until"):
        return random.choice(
            ("2020-01-01", "9999d", "2026-12-31T10:00:00Z", "today", *phrases.MOMENTS[: random.randrange(20)])
        )
    if name in ("query", "pattern"):
        return random.choice((*phrases.REGEXES, *phrases.WORDS, *phrases.WORDS))
    if name in ("event_index", "turn_index"):
        return random.choice((*range(8), *range(4), random.randrange(40), -1, 2**53))
    if name == "cursor":
        return random.choice(known.cursors)[2] if known.cursors else None
    if "enum" in schema:
        return random.choice(schema["enum"])
    if schema.get("type") == "boolean":
        return random.random() < 0.7
    if schema.get("type") == "integer" or "maximum" in schema:
        edges = (schema.get("minimum", 0), schema.get("maximum", 100))
        inside = [random.randint(*edges), min(edges[0] + 2, edges[1])]
        return random.choice([*edges, *inside, *inside, *inside, random.choice((edges[0] - 1, edges[1] + 1))])
    return random.choice(VALUES.get(name, ["x"]))


def _spoil_arguments(arguments: dict[str, Any], names: list[str], random: Random) -> None:
    name = random.choice(names)
    match random.randrange(6):
        case 0:
            arguments[name] = random.choice(STRANGE)
        case 1:
            arguments[name] = random.choice((*odd.SCALARS[:18], *odd.TEXTS))
        case 2:
            arguments[random.choice((name.upper(), f"{name} ", "", "__class__", "潮", "x" * 3_000))] = 1
        case 3:
            arguments.pop(name, None)
        case 4:
            arguments[name] = [arguments.get(name), {"x": [None] * 50}]
        case _:
            arguments[name] = str(arguments.get(name)) * random.choice((1, 2, 500))


def _with_cursor(known: Known, random: Random) -> tuple[str, Any]:
    """Return a cursor with its own query or another one, of another tool, or spoilt."""
    tool, arguments, cursor = random.choice(known.cursors)
    arguments = {name: value for name, value in arguments.items() if name != "cursor"}
    match random.randrange(12):
        case 0:
            at = random.randrange(len(cursor))
            cursor = cursor[:at] + random.choice("aZ0-_.=~ \0é") + cursor[at + 1 :]
        case 1:
            cursor = cursor[: random.randrange(len(cursor))]
        case 2:
            cursor += random.choice(("=", "==", ".", cursor, "\n", "A" * 9_999))
        case 3:
            tool = random.choice(list(TOOLS))
        case 4:
            arguments[random.choice(["query", "session_id", "limit", "order", "since"])] = random.choice(("x", 3, None))
        case 5:
            head, _, tail = random.choice(known.cursors)[2].partition(".")
            cursor = f"{head}.{cursor.partition('.')[2]}" if random.random() < 0.5 else f"{tail}.{head}"
        case _:
            pass
    return tool, {**arguments, "cursor": cursor}


def _reference(known: Known, random: Random) -> str:
    found = random.choice(known.sessions)
    forms = (f"ax://session/{found}", f"ax://event/{found}/{random.randrange(30)}", f"ax://analysis/{found[:8]}")
    plain = random.choice(
        forms if random.random() < 0.6 else (*phrases.REFERENCES, f"ax://report/{random.choice(phrases.MOMENTS)}")
    )
    at = random.randrange(len(plain) + 1)
    return (
        plain
        if random.random() < 0.8
        else plain[:at] + random.choice(("%", "/", "\0", "潮", "..", "?", " ")) + plain[at:]
    )


def _prompt(random: Random) -> dict[str, Any]:
    prompt = random.choice(list(PROMPTS.values()))
    arguments: dict[str, Any] = {one.name: random.choice(("x", *odd.TEXTS)) for one in prompt.arguments}
    if random.random() < 0.3:
        arguments[random.choice(("x", *arguments))] = random.choice(STRANGE)
    return {"name": random.choice((prompt.name, prompt.name, prompt.name, "x", "", "潮" * 999)), "arguments": arguments}


def _spoiled_frame(number: int, known: Known, random: Random) -> bytes:
    """Return a message that has become invalid or a different one."""
    tool, arguments = _arguments(known, random)
    frame: Any = json.loads(_call(number, tool, arguments).frame)
    match random.randrange(5):
        case 0:
            odd.spoil(frame, [frame], random)
        case 1:
            frame["id"] = random.choice((None, "", "x" * 3_000, 1.5, -1, 2**70, [], {}, True, "1"))
        case 2:
            frame = random.choice(
                ([frame], [frame] * 3, [], {}, "x", None, 5, {"jsonrpc": "1.0"}, {"jsonrpc": "2.0", "id": 5})
            )
        case 3:
            frame["params"] = random.choice(
                ([], "x", 5, {}, {"name": 5}, {"arguments": {}}, {"name": tool, "_meta": 5})
            )
        case _:
            pass
    data = bytearray(odd.written(frame, random))
    if random.random() < 0.5 and data:
        for _ in range(random.choice((1, 1, 8))):
            data[random.randrange(len(data))] = random.choice(b'\0\xff\xc3"\\{}[],: \t\r0x')
    if random.random() < 0.1:
        del data[random.randrange(len(data) + 1) :]
    return bytes(data)
