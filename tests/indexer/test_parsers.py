"""What holds for the parser of every agent: it never raises, may stop anywhere, and reads only its agent's logs."""

from __future__ import annotations

import copy
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path, PurePath
from typing import Any

import orjson
import pytest
from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.logs.discovery import LogFile
from agtrace_indexer.providers.goose import parser as goose
from agtrace_indexer.providers.registry import AGENTS, format_of, parser_of
from agtrace_schema.events import Notification, TokenUsage
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import LOGS, MORE_LOGS, SAMPLES
from tests.depth import THOROUGH, examples
from tests.indexer.opencode_stories import tidal
from tests.indexer.reading import check_stops, claims, log_files, records_of
from tests.indexer.strange import any_json, damage, places

AGENT_OF = {
    "antigravity": "antigravity",
    "antigravity-cli": "antigravity",
    "claude": "claude_code",
    "codex": "codex",
    "copilot": "copilot",
    "cursor": "cursor",
    "gemini": "gemini",
    "kiro": "kiro",
    "omp": "oh_my_pi",
    "openclaw": "openclaw",
    "pi": "pi",
    "qwen": "qwen",
}
"""The folders of agents' logs, whether they are samples or published."""

NOBODYS = (
    *("journal.jsonl", ".meta.json", "/wf_demo01.json", "session_branch.jsonl", "session_simple.jsonl"),
    *("session_toolcall.jsonl", "agents/codex/schema_drift.jsonl", "agent-resume-session.json", "projects.json"),
    *("019f0000-0000-7000-8000-000000000005.jsonl",),
)
"""Endings of the paths of files beside logs that hold no record of a session on a line of its own."""

LARGEST = 10**9 if THOROUGH else 200_000
"""Bytes: larger logs are read only in a thorough run."""


def agent_of(path: Path, root: Path) -> str | None:
    """The agent in whose folder a file is; None if it is of an agent that isn't read, or no log."""
    if path.name.endswith(NOBODYS) or str(path).endswith(NOBODYS):
        return None
    agents = [AGENT_OF[part] for part in path.relative_to(root).parts[:2] if part in AGENT_OF]
    return agents[-1] if agents else None


def logs_of(*roots: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of logs below these folders, each with its agent."""
    for root in roots:
        for path in sorted(root.rglob("*.json*")) if root.is_dir() else ():
            if (agent := agent_of(path, root)) is not None and path.is_file() and path.stat().st_size < LARGEST:
                yield agent, path


SAMPLED = [*logs_of(SAMPLES)]


@cache
def kept(agent: str) -> tuple[Record, ...]:
    """Records of an agent: of the samples, or of a made-up session if it keeps a database."""
    parser = parser_of(agent)
    match {"kilo": "opencode", "mimo_code": "opencode", "copilot_chat": "copilot"}.get(agent, agent):
        case "goose":
            return tuple(record for _, records in goose_sessions() for record in records)
        case "opencode":
            figures = {"tokens": {"input": 5, "output": 3, "cache": {"read": 1}}}
            row = {"row": {"id": "msg_1", "type": "assistant", "time_created": 1}, "data": {"content": [], **figures}}
            return (*(parser_of("opencode").unroll(copy.deepcopy(tidal().export)) or ()), row)
        case own:
            return tuple(record for of, path in SAMPLED if of == own for record in records_of(path, parser))


def goose_sessions() -> Iterator[tuple[str, list[Record]]]:
    """Yield the sessions of the sample database, as its source returns them."""
    database = SAMPLES / "goose" / "sessions" / "sessions.db"
    with closing(sqlite3.connect(f"file:{database}?immutable=1", uri=True)) as connection:
        ids = [id for (id,) in connection.execute("SELECT id FROM sessions")]
    for id in ids:
        found = LogFile(f"{database}/{id}", "", 0, 0, container=str(database))
        yield id, [orjson.loads(row.data) for row in goose.rows(found, None)]


@cache
def words(agent: str) -> tuple[str, ...]:
    """The keys and the short texts of an agent's records, which mean something to its parser."""
    found = {key for record in kept(agent) for _, key in places(record) if isinstance(key, str)}
    texts = (holder[key] for record in kept(agent) for holder, key in places(record))
    return tuple(sorted(found | {text for text in texts if isinstance(text, str) and len(text) < 24}))


# --- whatever a log contains ---

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.parametrize("agent", AGENTS)
@settings(relaxed, max_examples=examples(30))
@given(data=st.data())
def test_no_object_and_no_damaged_record_makes_a_parser_raise(agent: str, data: st.DataObject) -> None:
    """What it remembers can be stored between any two of them, and what follows is read as if it hadn't stopped."""
    parser, meaningful = parser_of(agent), st.sampled_from(words(agent))
    values, records = any_json(meaningful), list[Record]()
    for _ in range(data.draw(st.integers(1, 3))):
        if data.draw(st.booleans()):
            record: dict[str, Any] = data.draw(st.dictionaries(meaningful, values, max_size=6))
        else:
            record = copy.deepcopy(data.draw(st.sampled_from(kept(agent))))
            damage(record, data, values)
        records.append(record)
        parser.recognizes(record)
        for unrolled in parser.unroll(record) or ():
            list(parser.drafts(unrolled, parser.begin(PurePath("any.jsonl"))))
    check_stops(parser, [kept(agent)[0], *records, *kept(agent)[1:4], records[0]], PurePath("any.jsonl"))


@pytest.mark.parametrize("agent", sorted({*AGENT_OF.values()}))
def test_a_log_may_be_read_with_a_stop_between_any_two_records(agent: str) -> None:
    parser = parser_of(agent)
    for path in [path for of, path in (*SAMPLED, *logs_of(LOGS, MORE_LOGS)) if of == agent]:
        check_stops(parser, records_of(path, parser), path)


def test_a_session_of_a_database_may_be_read_with_a_stop_between_any_two_records() -> None:
    for _, records in goose_sessions():
        check_stops(parser_of("goose"), records, PurePath("sessions.db/x"))


UNKNOWN: list[tuple[str, Record, str]] = [
    ("antigravity", {"source": "NOBODY", "type": "GENERIC"}, "GENERIC"),
    ("claude_code", {"type": "user", "message": "error"}, "user"),
    ("codex", {"type": "event_msg", "payload": {"type": "new_event"}}, "event_msg/new_event"),
    ("codex", {"type": "response_item", "payload": {"type": "new_item"}}, "response_item/new_item"),
    ("cursor", {"role": "oracle", "message": {"content": []}}, "oracle"),
    ("gemini", {"what": 1}, "what"),
    ("goose", {"$goose": "new", "x": 1}, "$goose"),
    ("goose", {"role": "oracle"}, "oracle"),
    ("kiro", {"kind": "Checkpoint", "data": {}}, "Checkpoint"),
    ("opencode", {"info": {"id": "m1", "role": "moon"}}, "moon"),
    ("pi", {"type": "message", "message": {"role": "oracle"}}, "message.oracle"),
    ("qwen", {"type": "system", "subtype": "managed_event_v1"}, "system.managed_event_v1"),
    *((agent, {"a": 1}, "untyped") for agent in ("antigravity", "claude_code", "pi", "qwen")),
    ("claude_code", {"type": "assistant", "message": {"content": [{"type": "hologram"}]}}, "assistant.hologram"),
    ("cursor", {"role": "assistant", "message": {"content": [{"type": "canvas"}]}}, "assistant.canvas"),
    ("goose", {"role": "assistant", "content": [{"type": "chart"}]}, "assistant.chart"),
    ("kiro", {"kind": "AssistantMessage", "data": {"content": [{"kind": "map", "data": "x"}]}}, "AssistantMessage.map"),
    ("opencode", {"info": {"id": "m1", "role": "assistant"}, "parts": [{"type": "tide"}]}, "tide"),
]
"""An agent, a record that nobody knows or with a part that nobody knows, and its kind."""


@pytest.mark.parametrize(("agent", "record", "kind"), UNKNOWN, ids=lambda value: str(value)[:40])
def test_what_is_unknown_is_kept_and_counted(agent: str, record: Record, kind: str) -> None:
    parser, state = parser_of(agent), LogState()
    made = [said.payload for said in parser.drafts(copy.deepcopy(record), state) if isinstance(said, Draft)]
    kept = [payload for payload in made if isinstance(payload, Notification) and payload.kind == f"unknown/{kind}"]
    assert len(kept) == 1 and json.loads(kept[0].text) and state.unknown == [kind]


# --- whose log it is ---


def test_a_parser_claims_only_the_logs_of_its_agent() -> None:
    parsers = {agent: parser_of(agent) for agent in AGENTS if format_of(agent) == agent}
    for agent, path in SAMPLED:
        assert claims(path, parsers) == {format_of(agent)}, path
    for path in log_files():
        if path.stat().st_size < LARGEST:
            agent = agent_of(path, LOGS)
            assert claims(path, parsers) <= ({format_of(agent)} if agent else set()), path


# --- what wasn't understood ---

USAGE = (
    "usage", "tokens", "usageMetadata", "last_token_usage", "total_token_usage", "compactionTokensUsed", "tokenDetails",
)  # fmt: skip


def read_alone(agent: str, record: Record) -> tuple[bool, list[str]]:
    """Whether a record tells of tokens, and what in it isn't known."""
    parser = parser_of(agent)
    state = parser.begin(PurePath("any.jsonl"))
    said = list(parser.drafts(copy.deepcopy(record), state))
    return any(isinstance(one, Draft) and isinstance(one.payload, TokenUsage) for one in said), state.unknown


@pytest.mark.parametrize("agent", AGENTS)
def test_a_field_added_to_any_usage_object_or_a_figure_below_zero_is_noted(agent: str) -> None:
    for record in map(copy.deepcopy, kept(agent)):
        counts, before = read_alone(agent, record)
        assert not [kind for kind in before if kind.startswith("usage/")]
        for holder, key in list(places(record)) if counts else ():
            if key in USAGE and isinstance(usage := holder[key], dict):
                below_zero = [(name, -1) for name, figure in usage.items() if type(figure) is int][:1]
                for name, figure in (("brand_new_tokens", 7), *below_zero):
                    holder[key] = {**usage, name: figure}
                    assert any(kind.endswith(name) for kind in read_alone(agent, record)[1]), record
                holder[key] = usage


@pytest.mark.parametrize("agent", AGENTS)
def test_a_record_of_an_unknown_kind_is_noted(agent: str) -> None:
    for record in kept(agent):
        if isinstance(record.get("type"), str):
            assert read_alone(agent, {**record, "type": "brand-new"})[1], record
