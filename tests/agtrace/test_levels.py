"""The levels of a session: what each shows is in the index, paging reaches the whole session, and each page fits."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from agtrace_indexer.redact import redact
from agtrace_indexer.texts.blocks import pack, unpack
from agtrace_schema.codes import EVENT_TYPE_CODES, OUTCOME_CODES

from agtrace.settings.limits import limits
from tests.agtrace.asking import Asker, ClaudeLog, claude_log, query
from tests.depth import THOROUGH

SURGE, LARGE, REWOUND = "e97a4b06", "d41f7a52", "338b9da1"
ONE = "aaaaaaaa-0000-4000-8000-000000000001"
MIDDLING = 150
"""Events of a session that is walked as a whole in the smallest answers; of a longer one some turns are."""
KINDS = ("input", "cache_creation_5m", "cache_creation_1h", "cache_read", "output", "reasoning")
TOKEN = "ghp_" + "abcDEF0123456789ghij" * 2


class Live(NamedTuple):
    """An event that isn't superseded, as it stands in the tables."""

    event_index: int
    type: str
    name: str | None
    turn: int | None
    step: int | None
    outcome: str | None
    link: int | None
    text: str
    heading: str
    """The line above it in the session's text."""


@pytest.fixture
def log(tmp_path: Path) -> ClaudeLog:
    """A log that a test writes itself."""
    return claude_log(tmp_path / "logs", ONE)


def asker_of(log: ClaudeLog) -> Asker:
    folder = log.path.parents[3]
    return Asker(folder / "index", folder / "logs")


def sessions(asker: Asker, most: int = 6, events: int = 10_000) -> list[str]:
    """The largest sessions of up to so many events, and those with turns that are copied or were taken back.

    Usually a third as many of the largest.
    """
    most = most if THOROUGH else -(-most // 3)
    found = query(
        asker, "SELECT uid FROM session WHERE event_count <= ? ORDER BY event_count DESC LIMIT ?", events, most
    )
    found += query(
        asker,
        "SELECT DISTINCT uid FROM session s JOIN turn t ON t.session_id = s.id WHERE t.copied "
        "OR s.turn_count < (SELECT max(turn_index) + 1 FROM turn WHERE session_id = s.id)",
    )
    return list(dict.fromkeys(uid for (uid,) in found))


_LIVE = """
SELECT e.event_index, e.type, n.text, t.turn_index, e.step_index, e.outcome, e.link, e.ts, e.copy_of,
  u.model, u.response_id, u.input_tokens, u.cache_creation_5m_tokens, u.cache_creation_1h_tokens, u.cache_read_tokens,
  u.output_tokens, u.reasoning_tokens, u.complete, u.context_window
FROM event e JOIN session s ON s.id = e.session_id LEFT JOIN name n ON n.id = e.name_id
LEFT JOIN turn t ON t.session_id = e.session_id AND t.turn_index = e.turn_index
LEFT JOIN token_usage u ON u.session_id = e.session_id AND u.event_index = e.event_index
WHERE s.uid = ? AND e.superseded_by IS NULL ORDER BY e.event_index
"""


def live(asker: Asker, uid: str) -> list[Live]:
    """The events of a session that nothing took back, read from the tables and blocks alone."""
    connection = sqlite3.connect(asker.settings.database)
    connection.row_factory = sqlite3.Row
    stored = dict(_stored(connection, uid))
    rows = connection.execute(_LIVE, (uid,)).fetchall()
    connection.close()
    return [_live(row, *stored[row["event_index"]]) for row in rows]


def _stored(connection: sqlite3.Connection, uid: str) -> Iterator[tuple[int, tuple[str, dict[str, Any]]]]:
    """By event_index: the text and the rest of every event, superseded ones too."""
    blocks = (
        "SELECT b.first_index, d.text FROM block b JOIN block_data d ON d.block_id = b.id "
        "JOIN session s ON s.id = b.session_id WHERE s.uid = ?"
    )
    for first, text in connection.execute(blocks, (uid,)):
        *bodies, rests = unpack(text).decode().split("\0")
        for number, rest in enumerate(json.loads(rests)):
            yield first + number, (bodies[number], rest or {})


def _live(row: sqlite3.Row, text: str, rest: dict[str, Any]) -> Live:
    index, kind, name, turn, step, outcome, link, ts, copy_of, *_ = row
    event_type = str(EVENT_TYPE_CODES[kind])
    ended = "unknown" if outcome is None and event_type == "ToolCall" else outcome
    ended = str(OUTCOME_CODES[ended]) if isinstance(ended, int) else ended
    if event_type == "ToolCall":
        text = json.dumps(rest.get("arguments"), ensure_ascii=False, indent=2)
    if event_type == "TokenUsage":
        figures = {key: row[key] for key in row.keys()[9:] if row[key] is not None}
        text = json.dumps(figures | {"complete": bool(row["complete"])}, ensure_ascii=False)
    place = "" if turn is None else f" · turn {turn}" + ("" if step is None else f" step {step}")
    what = f" · {event_type}" + (f" {one_line(name)}" if name else "")
    what += f" of event {link}" if event_type == "ToolResult" and link is not None else ""
    when = f" · {datetime.fromtimestamp(ts // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}" if ts else ""
    heading = (
        f"## event {index}{place}{what}{' · copied' * (copy_of is not None)}{f' · {ended}' if ended else ''}{when}"
    )
    return Live(index, event_type, name, turn, None if turn is None else step, ended, link, text, heading)


def one_line(name: str) -> str:
    line = " ".join(name.split())
    return line if len(line) <= 50 else line[:47] + "..."


def transcript(events: list[Live]) -> str:
    """The canonical text of a session: defined here once more."""
    return "".join(f"{redact(event.heading)}\n{redact(event.text)}\n" for event in events)


def full(asker: Asker, uid: str, **arguments: Any) -> str:
    """The text of a session, its chunks joined."""
    return "".join(page["data"]["text"] for page in chunks(asker, uid, **arguments))


def chunks(asker: Asker, uid: str, **arguments: Any) -> Iterator[dict[str, Any]]:
    yield from asker.pages(
        "get_session_details", session_id=uid, detail_level="full", **({"max_bytes": 32_000} | arguments)
    )


def step_turns(asker: Asker, uid: str, **arguments: Any) -> list[dict[str, Any]]:
    """The turns of level steps, its pages joined."""
    wanted = {"max_bytes": 32_000} | arguments
    return asker.items("get_session_details", "turns", session_id=uid, detail_level="steps", **wanted)


class Shown(NamedTuple):
    """An event as level steps shows it."""

    event_index: int
    turn: int | None
    step: int | None
    type: str
    text: str
    outcome: str | None = None


def shown(turns: list[dict[str, Any]]) -> list[Shown]:
    """Every event that level steps shows."""
    return [event for turn in turns for event in _shown_of_turn(turn)]


def _shown_of_turn(turn: dict[str, Any]) -> Iterator[Shown]:
    index = turn.get("turn_index")
    if "user_event" in turn:
        yield Shown(turn["user_event"], index, None, "User", turn["user_message"])
    for event in turn.get("events", []):
        yield Shown(event["event_index"], index, None, event["event_type"], event["text"])
    for step in turn.get("steps", []):
        place = (index, step.get("step_index"))
        for key, kind in (("reasoning", "Reasoning"), ("message", "Message")):
            if key in step:
                yield Shown(step[key]["event_index"], *place, kind, step[key]["text"])
        for tool in step.get("tools", []):
            if "call" in tool:
                yield Shown(tool["call_event"], *place, "ToolCall", tool["call"]["name"], tool["outcome"])
            if "result" in tool:
                yield Shown(tool["result_event"], *place, "ToolResult", tool["result"]["content"], tool["outcome"])
        if "usage_event" in step:
            yield Shown(step["usage_event"], *place, "TokenUsage", "")


def tools_of(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [tool for turn in turns for step in turn.get("steps", []) for tool in step.get("tools", [])]


def depth(value: Any) -> int:
    """Objects inside each other."""
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    return max(map(depth, value), default=0) if isinstance(value, list) else 0


# -- summary and turns ---------------------------------------------------------------------------


def test_the_tokens_of_turns_and_steps_are_those_of_their_responses(each: Asker) -> None:
    for uid in sessions(each):
        overview = each.items("get_session_details", "turns", session_id=uid)
        detail = each.items("get_session_details", "turns", session_id=uid, detail_level="turns")
        steps = [(turn["turn_index"], step) for turn in detail for step in turn["steps"]]
        usages = usages_of(each, uid)
        for turn in overview:
            of_turn = [usage for (index, _), found in usages.items() if index == turn["turn_index"] for usage in found]
            assert turn.get("stats", {}) == {f"{kind}_tokens": sum for kind, sum in sums(of_turn).items()}
            assert turn.get("tokens_incomplete", False) == (not all(usage["complete"] for usage in of_turn))
        for index, step in steps:
            of_step = usages.get((index, step["step_index"]), [])
            assert step.get("tokens", {}) == sums(of_step)
            assert step.get("tokens_incomplete", False) == (not all(usage["complete"] for usage in of_step))
            given = [of_step[-1][kind] for kind in KINDS[:4]] if len(of_step) > 1 else []
            assert step.get("context_tokens") == (sum(filter(None, given)) if set(given) - {None} else None)


def usages_of(asker: Asker, uid: str) -> dict[tuple[int | None, int | None], list[dict[str, Any]]]:
    """The live token figures of a session by (turn, step), in file order."""
    found: dict[tuple[int | None, int | None], list[dict[str, Any]]] = {}
    for event in live(asker, uid):
        if event.type == "TokenUsage":
            figures = json.loads(event.text)
            usage = {kind: figures.get(f"{kind}_tokens") for kind in KINDS} | {"complete": figures["complete"]}
            found.setdefault((event.turn, event.step), []).append(usage)
    return found


def sums(usages: list[dict[str, Any]]) -> dict[str, int]:
    known = {kind: [usage[kind] for usage in usages if usage[kind] is not None] for kind in KINDS}
    totals = {kind: sum(figures) for kind, figures in known.items() if figures}
    return {kind: total for kind, total in totals.items() if total or kind in ("input", "output")}


@pytest.mark.thorough
def test_the_pages_of_the_overviews_are_the_turns_and_steps_of_the_index(each: Asker) -> None:
    smaller = 10_000 if THOROUGH else 4 * MIDDLING  # the smallest answers take ten times as many calls
    for most, count, longest in ((2_048, 3, smaller), (10_240, 6, 10_000)):
        asker = each.with_most(most)
        for uid in sessions(each, count, longest):
            events = [event for event in live(each, uid) if event.turn is not None]
            overview = asker.items("get_session_details", "turns", session_id=uid)
            assert [turn["turn_index"] for turn in overview] == sorted({event.turn for event in events})
            detail = asker.items("get_session_details", "turns", session_id=uid, detail_level="turns")
            steps = [(turn["turn_index"], step["step_index"]) for turn in detail for step in turn["steps"]]
            assert steps == sorted({(event.turn, event.step) for event in events if event.step is not None})
            assert {turn["turn_index"] for turn in detail} == {event.turn for event in events}


# -- steps ---------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("most", [2_048, 32_000])
def test_walking_the_steps_shows_every_event_once_where_it_belongs(each: Asker, most: int) -> None:
    small = 10_000 if THOROUGH else 4 * MIDDLING
    for uid in sessions(each, 6) if most > 2_048 else sessions(each, 3, small):
        found = shown(step_turns(each, uid, max_bytes=most))
        expected = live(each, uid)
        assert Counter(event.event_index for event in found) == Counter(event.event_index for event in expected)
        places = {event.event_index: (event.turn, event.step, event.type) for event in expected}
        assert {event.event_index: (event.turn, event.step, event.type) for event in found} == places
        outcomes = {event.event_index: event.outcome for event in expected if event.outcome}
        assert {event.event_index: event.outcome for event in found if event.outcome} == outcomes


@pytest.mark.thorough
def test_what_the_steps_show_is_the_beginning_of_the_event(each: Asker) -> None:
    """500 characters of each text, control characters removed; `chars` tells how much there is."""
    for uid in sessions(each, 6):
        turns = step_turns(each, uid, max_bytes=102_400)
        found = {event.event_index: event for event in shown(turns)}
        for event in live(each, uid):
            text = found[event.event_index].text
            assert len(text) <= 500
            if event.type in ("Message", "Reasoning", "ToolResult", "Notification"):
                whole = re.sub(
                    r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", "", event.text
                )
                assert whole == text or (len(text) == 500 and text.endswith("...") and whole.startswith(text[:-3]))
        for arguments in (tool.get("call", {}).get("arguments") for tool in tools_of(turns)):
            text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
            assert len(arguments if isinstance(arguments, str) else text) <= 500


def test_a_step_shows_its_thought_message_executions_and_tokens(samples: Asker) -> None:
    turn = next(turn for turn in step_turns(samples, REWOUND) if turn.get("turn_index") == 2)
    assert turn["user_message"] == "Look at cli.py again: Pillow is imported there. Use Pillow, no new dependency."
    step = turn["steps"][1]
    (tool,) = step["tools"]
    assert list(step) == ["step_index", "tools", "tokens", "usage_event"]
    assert list(tool) == ["call", "result", "outcome", "call_event", "result_event"]
    assert (step["step_index"], tool["outcome"]) == (1, "failed")
    assert step["tokens"] == {"input": 680, "cache_read": 9500, "output": 29}
    assert tool["call"] == {
        "name": "run_shell_command",
        "arguments": {"command": "pytest -q tests/test_png.py", "description": "Run the PNG tests"},
    }
    assert list(tool["result"]) == ["content"]
    assert "1 failed, 2 passed" in tool["result"]["content"]
    assert turn["steps"][0]["reasoning"]["text"].startswith("Drawing with Pillow")
    assert turn["steps"][0]["message"]["text"] == "Right, Pillow is there. I will draw the chart with it."


def test_a_turn_that_was_taken_back_is_named_by_no_level(samples: Asker) -> None:
    for level in ("summary", "turns", "steps"):
        turns = samples.items("get_session_details", "turns", session_id=REWOUND, detail_level=level, max_bytes=15_000)
        assert {turn.get("turn_index") for turn in turns} - {None} == {0, 2}
    assert "turn 1 " not in full(samples, REWOUND)


def test_a_step_of_a_hundred_parallel_calls_is_walked_within_the_step(log: ClaudeLog) -> None:
    calls = [
        {"type": "tool_use", "id": f"toolu_{n}", "name": "Read", "input": {"file_path": f"/srv/tide/{n}.csv"}}
        for n in range(100)
    ]
    log.prompt("read them all").write("assistant", calls)
    for n in reversed(range(100)):
        log.write("user", [{"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": f"tide {n} {'潮' * 400}"}])
    log.say("done")
    asker = asker_of(log)
    for most in (2_048, 32_000):
        turns = step_turns(asker, ONE, max_bytes=most)
        tools = tools_of(turns)
        assert [tool["call"]["arguments"]["file_path"] for tool in tools] == [f"/srv/tide/{n}.csv" for n in range(100)]
        assert all(tool["result"]["content"].startswith(f"tide {n} ") for n, tool in enumerate(tools))
        assert {step["step_index"] for turn in turns for step in turn.get("steps", [])} == {0, 1}


@pytest.mark.parametrize("most", [2_048, *(pytest.param(most, marks=pytest.mark.thorough) for most in (2_500, 32_000))])
def test_no_part_is_too_large_for_a_page(log: ClaudeLog, most: int) -> None:
    deep: Any = "leaf"
    for level in range(30):
        deep = {f"level {level}": deep}
    odd: list[Any] = [
        {f"鍵{n}": "値" * 20 for n in range(60)}, {"text": "🌊" * 50_000}, deep, "plain 潮\n" * 900, [1] * 5_000, None,
        {"k" * 9_000: "v" * 9_000}, {"q": '"\\' * 900}, {"list": [{"a": "潮" * 70} for _ in range(40)]},
        {"鍵" * 58 + str(n): "値" * 58 for n in range(4)},
    ]  # fmt: skip
    log.prompt("潮" * 9_000)
    for arguments in odd:
        log.call("T" * 2_000, arguments, "結果\x1b[31m" * 2_000)
    asker = asker_of(log)
    pages = list(asker.pages("get_session_details", session_id=ONE, detail_level="steps", max_bytes=most))
    assert max(depth(page["data"]) for page in pages) <= 8
    found = shown([turn for page in pages for turn in page["data"]["turns"]])
    assert sorted(event.event_index for event in found) == [event.event_index for event in live(asker, ONE)]
    if most == 32_000:
        calls = [tool["call"] for tool in tools_of([turn for page in pages for turn in page["data"]["turns"]])]
        assert calls[1]["arguments"]["text"].endswith("🌊...")
        assert calls[1]["chars"] == len(json.dumps(odd[1], ensure_ascii=False, separators=(",", ":")))
        assert "leaf" in json.dumps(calls[2]["arguments"])
        assert calls[3]["arguments"].startswith("plain 潮\n")
        assert "arguments" not in calls[5]


# -- full ----------------------------------------------------------------------------------------


def test_the_chunks_of_a_session_join_to_its_canonical_text(each: Asker) -> None:
    for uid in sessions(each, 6):
        assert full(each, uid) == transcript(live(each, uid))


@pytest.mark.thorough
def test_a_chunk_says_which_lines_and_events_it_holds(each: Asker) -> None:
    """At most 200 lines; lines are counted from 1 over the whole text."""
    for uid in sessions(each, 4):
        before, events = "", live(each, uid)
        ends = {}
        for event in events:
            ends[event.event_index] = (start := len(transcript([event]))) + max(ends.values(), default=0)
            assert start
        for number, page in enumerate(chunks(each, uid)):
            text, chunk = page["data"]["text"], page.get("chunk")
            if chunk is None:
                assert number == 0 and text == transcript(events)
                return
            assert chunk["chunk_index"] == number
            assert chunk["start_line"] == before.count("\n") + 1
            assert text.count("\n") <= limits().chunk_lines
            first = next(index for index, end in ends.items() if end > len(before))
            before += text
            last = next(index for index, end in ends.items() if end >= len(before))
            assert (chunk["first_event"], chunk["last_event"]) == (first, last)
            assert chunk["end_line"] == before.count("\n") + (not before.endswith("\n"))


def test_the_text_of_a_turn_is_its_part_of_the_text(each: Asker) -> None:
    for uid in sessions(each, 4):
        events = live(each, uid)
        for index in sorted({event.turn for event in events if event.turn is not None})[:10]:
            expected = transcript([event for event in events if event.turn == index])
            assert full(each, uid, turn_index=index) == expected


# -- secrets -------------------------------------------------------------------------------------


def smuggle(asker: Asker, placeholder: str, secret: str) -> None:
    """Put a secret into the texts of the index, as a version that knew fewer forms of secrets left it there."""
    assert len(placeholder) == len(secret)
    connection = sqlite3.connect(asker.settings.database)
    for block, text in connection.execute("SELECT block_id, text FROM block_data").fetchall():
        changed = unpack(text).replace(placeholder.encode(), secret.encode())
        connection.execute("UPDATE block_data SET text = ? WHERE block_id = ?", (pack(changed), block))
    connection.commit()
    connection.close()


@pytest.mark.parametrize("before", [*range(440, 520, 20), 1_450, 1_480])
def test_no_cut_lets_a_part_of_a_secret_out(log: ClaudeLog, before: int) -> None:
    place = "_" * len(TOKEN)
    log.prompt("go").say("x" * before + f" {place} " + "y" * 3_000).call("Bash", {}, "z" * before + f"\n{place}\n")
    asker = asker_of(log)
    smuggle(asker, place, TOKEN)
    for level, most in (("steps", 32_000), ("steps", 2_048), ("full", 32_000), ("full", 2_048)):
        pages = asker.pages("get_session_details", session_id=ONE, detail_level=level, max_bytes=most)
        values = [page["data"] for page in pages]
        assert "ghp_" not in json.dumps(values)
        if level == "full":
            assert "".join(value["text"] for value in values).count("[redacted: github-token]") == 2


# -- budgets, hints, growth ----------------------------------------------------------------------


def gemini_message(number: int, text: str = "text") -> dict[str, Any]:
    kind = "gemini" if number % 2 else "user"
    content = f"{text} {number} " + "潮汐\n" * 300
    return {"id": f"m{number}", "timestamp": f"2026-11-01T10:00:{number:02}Z", "type": kind, "content": content}


@pytest.mark.parametrize("change", [{"$rewindTo": "m2"}, gemini_message(3, "another")])
def test_a_walk_goes_on_over_what_is_replaced_or_taken_back_meanwhile(tmp_path: Path, change: dict[str, Any]) -> None:
    head = {"sessionId": ONE, "projectHash": "ab" * 32, "startTime": "2026-11-01T10:00:00Z", "kind": "main"}
    path = tmp_path / "logs" / "session-1.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(record) + "\n" for record in [head, *map(gemini_message, range(8))]))
    asker = Asker(tmp_path / "index", tmp_path / "logs")
    before = live(asker, ONE)
    walks = [
        asker.pages("get_session_details", session_id=ONE, detail_level=level, max_bytes=2_500)
        for level in ("steps", "full")
    ]
    begun = [next(walk) for walk in walks]
    with path.open("a") as file:
        file.write(json.dumps(change) + "\n")
    asker.index()
    after = live(asker, ONE)
    assert not {event.event_index for event in before} <= {event.event_index for event in after}
    steps, chunks = ([first, *walk] for first, walk in zip(begun, walks, strict=True))
    turns = [turn for page in steps for turn in page["data"]["turns"]]
    assert sorted(event.event_index for event in shown(turns)) == [event.event_index for event in before]
    assert {turn["turn_index"] for turn in turns[2:] if "turn_index" in turn} <= {event.turn for event in after}
    joined = "".join(page["data"]["text"] for page in chunks)
    place = re.compile(r" · turn \d( step \d)?")
    assert place.sub("", joined) == place.sub("", transcript(before))
