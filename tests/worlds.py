"""Machines of certain kinds, each with logs that strain one limit of an answer, and every call to make there.

`python -m tests.worlds FOLDER` writes the logs of all worlds, for manual inspection.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agtrace.tools import TOOLS
from agtrace.tools.arguments import input_schema
from tests.agtrace.asking import ClaudeLog, claude_log

SESSION = "fb3cff44-13ae-41a6-a6df-f287e0552835"
OTHER = "0a51e7d2-6f0b-4c3e-9d88-1b7c2e4f9a60"
FAILING = 60
CASES = 1_000
HIDDEN_AT = 9_000
"""The line of `long_output` that reports a failure."""


@dataclass(frozen=True)
class World:
    """A kind of machine, with arguments for its calls."""

    name: str
    words: str
    """A text that is in the logs."""
    build: Callable[[Path], None] = field(repr=False)
    """Writes the logs below a home."""


def _log(home: Path, session: str = SESSION) -> ClaudeLog:
    return claude_log(home / ".claude", session)


def _both(home: Path, write: Callable[[ClaudeLog], Any]) -> None:
    """Write two sessions of the same kind, so that there is something to compare."""
    for session in (SESSION, OTHER):
        write(_log(home, session))


def _tiny(log: ClaudeLog) -> None:
    log.prompt("Where is the tide table?").say("In docs/tides.md.")


def _many(home: Path) -> None:
    for number in range(240):
        session = f"{(number * 2_654_435_761) % 2**32:08x}-0000-4000-8000-{number:012x}"
        log = _log(home, SESSION if number == 120 else OTHER if number == 121 else session)
        log.clock += number * 60
        log.prompt(f"Mend the tide gauge number {number} " + "and its neighbours " * (number % 12))
        log.call(
            "Bash",
            {"command": f"make gauge-{number}"},
            "error: no rule" if number % 3 else "done",
            failed=number % 3 > 0,
        )
        log.call("Edit", {"file_path": f"/home/mira/projects/tidepool/gauge_{number}.py", "new_string": "x" * 80}, "ok")
        log.say(f"Gauge {number} is {'still broken' if number % 3 else 'mended'}.")


def run_of_tests(cases: int = CASES, failing: int = FAILING) -> str:
    """Return what pytest -v prints about a run in which some tests fail, evenly spread."""
    every = cases // failing
    bad = [number for number in range(cases) if number % every == every - 1][:failing]
    ends = dict.fromkeys(bad, "FAILED")
    lines = [
        f"tests/test_tides.py::test_gauge_{number:04} {ends.get(number, 'PASSED')} [{number * 100 // cases:3}%]"
        for number in range(cases)
    ]
    for number in bad:
        lines += [f"___ test_gauge_{number:04} ___", f"    def test_gauge_{number:04}():", ">       assert level == 3",
                  "E       assert 4 == 3", f"tests/test_tides.py:{number}: AssertionError"]  # fmt: skip
    lines += [f"FAILED tests/test_tides.py::test_gauge_{number:04} - assert 4 == 3" for number in bad]
    lines.append(f"================= {failing} failed, {cases - failing} passed in 12.34s =================")
    return "\n".join(lines) + "\n"


def hidden_failure(lines: int = 10_000, at: int = HIDDEN_AT) -> str:
    """Return a long quiet output with one failure in it."""
    said = [f"[{number:05}] gauge {number % 97} reads {number * 7 % 300} cm" for number in range(1, lines + 1)]
    said[at - 1] = "FAILED tests/test_tides.py::test_neap_tide - assert 4 == 3"
    return "\n".join(said) + "\n"


def _outputs(log: ClaudeLog) -> None:
    log.prompt("Run all tests.")
    log.call("Bash", {"command": "pytest -v"}, run_of_tests(), failed=True)
    log.call("Bash", {"command": "make all"}, hidden_failure(), failed=True)
    log.say("Sixty tests fail, and one more.")


def _large_event(log: ClaudeLog) -> None:
    log.prompt("Print everything.").call(
        "Bash", {"command": "cat log"}, "".join(f"tide {n} of the year\n" for n in range(20_000))
    )


def _long_line(log: ClaudeLog) -> None:
    log.prompt("Print the bundle.").call("Bash", {"command": "cat bundle.js"}, "tide=" + "abcdefghij" * 100_000)


def _cjk(log: ClaudeLog) -> None:
    log.prompt("潮汐表在哪里？" * 200).say("在文档里。" * 500)
    log.call(
        "Bash", {"command": "印刷 潮汐 " * 60, "説明": "潮" * 400}, "失敗: 潮位計が壊れています\n" * 900, failed=True
    )
    log.write("assistant", [{"type": "thinking", "thinking": "潮汐" * 2_000, "signature": "s"}])


def _emoji(log: ClaudeLog) -> None:
    log.prompt("🌊" * 600 + " tide").say("👩‍👩‍👧‍👦 e\u0301 🇩🇪" * 300)
    log.call("Bash", {"command": "echo " + "🌊" * 300}, "🦀🐚\x1b[31m tide \x07\u202e\n" * 2_000, failed=True)


def _deep(log: ClaudeLog) -> None:
    value: Any = "the tide at the bottom"
    for level in range(30):
        value = {f"level {level}": value, "tide": level} if level % 3 else [value, {"tide": "x" * 200}]
    log.prompt("Go deep.")
    for name in ("mcp__tides__write", "Bash"):
        log.call(name, {"command": "dive", "tree": value}, [{"type": "text", "text": str(value)}])
    log.write("assistant", [{"type": "a new kind of block", "tree": value}]).raw({"type": "tide-report", "tree": value})


WORLDS = (
    World("empty", "tide", lambda home: None),
    World("tiny", "tide", lambda home: _both(home, _tiny)),
    World("many", "gauge", _many),
    World("outputs", "test_gauge", lambda home: _both(home, _outputs)),
    World("large_event", "tide", lambda home: _both(home, _large_event)),
    World("long_line", "tide", lambda home: _both(home, _long_line)),
    World("cjk", "潮汐", lambda home: _both(home, _cjk)),
    World("emoji", "🌊", lambda home: _both(home, _emoji)),
    World("deep", "tide", lambda home: _both(home, _deep)),
)

VALUES: dict[str, list[Any]] = {
    "session_id": [SESSION, SESSION[:8], f"ax://session/{SESSION}"],
    "id1": [SESSION],
    "id2": [OTHER[:8]],
    "event_index": [0, 1, 2, 3],
    "turn_index": [0, "turn-0"],
    "ref": [f"ax://session/{SESSION}", f"ax://event/{SESSION[:8]}/2", f"ax://analysis/{SESSION}", "ax://health"],
    "query": ["", "tide", "the tide no", "no such words anywhere"],
    "pattern": ["tide"],
    "sql": ["SELECT * FROM events", "SELECT * FROM findings", "SELECT 1 WHERE 0"],
    "project": ["0", "tidepool", "/home/mira/projects/tidepool"],
    "since": ["2020-01-01", "7d"],
    "until": ["2030-01-01T00:00:00Z"],
    "tool": ["Bash"],
    "path": ["gauge_", "nowhere"],
    "min_tokens": [0, 10**9],
    "commit": ["3fa9c21"],
    "model": ["claude"],
    "branch": ["main"],
    "pr": ["104"],
    "start_line": [1, 150, 9_000],
    "end_line": [1, 9_010],
    "group_by": ["session"],
    "fields": [["id", "title"], "id", ["stats", "turns.outcome"]],
    "context_focus_question": ["Which gauge reads the tide?", "zebra okapi"],
    "sections": [["stats"], "failures", "landmarks", ["turns", "tools", "files"]],
}
"""The values of arguments by name; enumerations, ranges and booleans take theirs from the schema."""

STRANGE: list[Any] = [
    None,
    "",
    " ",
    "x" * 3_000,
    "潮🌊\x00\u202e",
    -1,
    2**70,
    1.5,
    True,
    [],
    ["x"],
    {},
    {"x": {"y": 1}},
]
"""Values that no argument expects, and some accept."""

_TOGETHER = ("detail_level", "turn_index", "mode", "max_bytes", "order", "group_by")


def calls(world: World) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every tool with every value of every argument, one at a time, and those that shape an answer together."""
    for name in TOOLS:
        known = _values(name, world)
        needed = input_schema(TOOLS[name].arguments).get("required", [])
        base = {argument: known[argument][0] for argument in needed}
        yield name, base
        for argument, values in known.items():
            yield from ((name, {**base, argument: value}) for value in values)
        together = [argument for argument in _TOGETHER if argument in known]
        for chosen in itertools.product(*([None, *known[argument][:6]] for argument in together)):
            given = {argument: value for argument, value in zip(together, chosen, strict=True) if value is not None}
            if len(given) > 1:
                yield name, {**base, **given}


def strange_calls() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every tool with values that it can't accept."""
    for name, tool in TOOLS.items():
        schema = input_schema(tool.arguments)
        base = {argument: VALUES[argument][0] for argument in schema.get("required", [])}
        yield name, {}
        yield name, {**base, "no_such_argument": 1}
        for argument in schema["properties"]:
            yield from ((name, {**base, argument: value}) for value in STRANGE)


def _values(name: str, world: World) -> Mapping[str, list[Any]]:
    properties = input_schema(TOOLS[name].arguments)["properties"]
    known = {argument: _of(argument, schema, world) for argument, schema in properties.items()}
    return {argument: values for argument, values in known.items() if values}


def _of(argument: str, schema: Mapping[str, Any], world: World) -> list[Any]:
    """Return the values of an argument: by its name, or else by its schema."""
    if argument == "query":
        return [world.words, *VALUES["query"]]
    if argument in VALUES:
        return VALUES[argument]
    if "enum" in schema:
        return list(schema["enum"])
    if schema.get("type") == "boolean":
        return [True, False]
    if "maximum" in schema:
        least = schema.get("minimum", 1)  # missing if nobody would ask for less
        return [least, (least + schema["maximum"]) // 2, schema["maximum"]]
    return []


def main() -> None:
    """Write the logs of all worlds below a folder."""
    for world in WORLDS:
        world.build(Path(sys.argv[1]) / world.name)


if __name__ == "__main__":
    main()
