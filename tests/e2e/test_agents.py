"""Claude Code, Codex CLI and Gemini CLI themselves, offline: their connection, and what their models are shown.

A model of ours (`model_server`) makes each agent call our tools. What it is shown must be what the server sent
according to the recorder in front of it (`clients.machine`): nothing lost, nothing cut.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agtrace.serving.server import INSTRUCTIONS
from agtrace.settings.limits import most_bytes
from agtrace.tools import TOOLS
from agtrace.tools.arguments import input_schema
from agtrace.upkeep import agents
from tests.agtrace.asking import claude_log
from tests.e2e.agents import AGENTS, Agent, CodexCli
from tests.e2e.clients import CODEX, exchanged, machine, require, run
from tests.e2e.model_server import Call, ModelServer, Offered, Result

PLAIN = "aaaa1111-13ae-41a6-a6df-f287e0552835"
WIDE = "bbbb2222-13ae-41a6-a6df-f287e0552835"
"""Sessions larger than any answer: of letters that take one byte, and of such that take three."""
LINES = 150
"""How many events they have before the last one, which is one long line."""

ORDINARY = [
    Call("list_sessions", {"limit": 3}),
    Call("get_project_info", {}),
    Call("run_sql", {"sql": "SELECT tool, count(*) FROM tool_calls GROUP BY 1"}),
    Call("search_event_previews", {"order": "newest", "query": "database is locked", "limit": 20}),
    Call("get_session_details", {"session_id": "d41f7a52", "detail_level": "turns", "include_reasoning": True}),
    Call("analyze_session", {"session_id": "d41f7a52", "include_loops": True}),
    Call("compare_sessions", {"id1": "d41f7a52", "id2": "e97a4b06"}),
    Call("get_reasoning_chain", {"session_id": "d41f7a52", "limit": 50}),
    Call("read_artifact", {"ref": "ax://session/e97a4b06"}),
]
LARGE = [
    Call("get_session_details", {"session_id": PLAIN, "detail_level": "full", "max_bytes": 102_400}),
    Call("get_session_details", {"session_id": WIDE, "detail_level": "full", "max_bytes": 102_400}),
    Call("get_event_details", {"session_id": PLAIN, "event_index": LINES, "max_bytes": 102_400}),
    Call("get_event_details", {"session_id": WIDE, "event_index": LINES, "max_bytes": 102_400}),
]
WRONG = [
    Call("get_session_details", {"session_id": "nobody"}),
    Call("get_event_details", {"session_id": PLAIN, "event_index": 999}),
]
CALLS = ORDINARY + LARGE + WRONG
"""Every tool is among them."""


@dataclass(frozen=True)
class Run:
    """What came of a run: what the model knew and was shown, what the server was asked and sent, and its figures."""

    offered: list[Offered]
    shown: list[Result]
    exchanged: list[tuple[dict[str, Any], dict[str, Any]]]
    requests: list[dict[str, Any]]
    metrics: dict[str, dict[str, Any]]
    """What `agtrace metrics` says of the run, by tool, by client and by day."""


@pytest.fixture(scope="module", params=AGENTS, ids=lambda agent: agent.setup)
def agent(request: pytest.FixtureRequest) -> Agent:
    """Each agent in turn, if it is installed."""
    require(request.param.client)
    return request.param


@pytest.fixture(autouse=True)
def named(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> None:
    """Every test names its agent's version."""
    if "agent" in request.fixturenames:
        agent, versions = request.getfixturevalue("agent"), request.getfixturevalue("versions")
        record_property("client", versions(agent.client))


@pytest.fixture(scope="module")
def driven(agent: Agent, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run of the agent, in which the model makes all calls."""
    return drive(agent, tmp_path_factory.mktemp("home"), CALLS)


def drive(agent: Agent, home: Path, calls: list[Call]) -> Run:
    """Let the agent's model make these calls on a machine with the sample sessions and the large ones."""
    machine(home)
    agent.prepare(home)
    for session_id, word in ((PLAIN, "tide "), (WIDE, "潮汐 ")):
        log = claude_log(home / ".claude", session_id)
        for _ in range(LINES):
            log.say(word * 120)
        log.say(word * 30_000)
    added = run(["agtrace", "setup", agent.setup, "--apply"], home)
    assert added.returncode == 0, added.stderr
    with ModelServer(agent.wire, calls) as model:
        ended = agent.drive(home, model)
    assert ended.returncode == 0, ended.stdout[-2_000:] + ended.stderr[-2_000:]
    assert model.unknown == [], "the agent asked for more than a model"
    assert "internal_error" not in (home / "log").read_text()
    told = {by: run(["agtrace", "metrics", "--by", by, "--json"], home) for by in ("tool", "client", "day")}
    metrics = {by: json.loads(said.stdout) for by, said in told.items()}
    return Run(model.offered, model.seen, exchanged(home), model.requests, metrics)


def test_setup_connects_the_agent_and_can_be_repeated(agent: Agent, tmp_path: Path) -> None:
    """The command that `agtrace setup` runs, and the agent's own health check."""
    home = machine(tmp_path / "machine")
    agent.prepare(home)
    for _ in range(2):
        added = run(["agtrace", "setup", agent.setup, "--apply"], home)
        assert added.returncode == 0, added.stdout + added.stderr
    tried = (agent.connected(home) for _ in range(10))  # agents give a server some seconds to start
    assert next((found for found in tried if found), []) == ["agtrace"]


def test_setup_takes_the_server_out_again_and_leaves_others(agent: Agent, tmp_path: Path) -> None:
    home, known = machine(tmp_path / "machine"), agents.AGENTS[agent.setup]()
    agent.prepare(home)
    path = agents.config_path(known, home, {})
    run(["agtrace", "setup", agent.setup, "--apply"], home)
    added = path.read_text(encoding="utf-8")
    path.write_text(added.replace('"agtrace"', '"other"').replace("mcp_servers.agtrace", "mcp_servers.other"))
    assert run(["agtrace", "setup", agent.setup, "--apply"], home).returncode == 0
    for said in ("", "nothing to do"):
        done = run(["agtrace", "setup", agent.setup, "--remove", "--apply"], home)
        assert done.returncode == 0 and said in done.stdout, done.stdout + done.stderr
    left = path.read_text(encoding="utf-8")
    assert agents.entry_in(known, left) is None and "other" in known.read_servers(left)


def test_the_environment_of_an_entry_arrives_and_stays(agent: Agent, tmp_path: Path) -> None:
    """Also where setup is repeated without it."""
    home, known = machine(tmp_path / "machine"), agents.AGENTS[agent.setup]()
    agent.prepare(home)
    data = {"AGTRACE_DATA_DIR": str(home / "data of mine")}
    for environment in (data, {}):
        added = run(["agtrace", "setup", agent.setup, "--apply"], home, **environment)
        assert added.returncode == 0, added.stdout + added.stderr
        entry = agents.entry_in(known, agents.config_path(known, home, {}).read_text(encoding="utf-8"))
        assert entry is not None and entry["env"] == data
    tried = (agent.connected(home) for _ in range(10))  # agents give a server some seconds to start
    assert next((found for found in tried if found), []) == ["agtrace"]


def test_the_settings_that_setup_shows_connect_the_agent(agent: Agent, tmp_path: Path) -> None:
    """For who writes them by hand."""
    home = machine(tmp_path / "machine")
    agent.prepare(home)
    known = agents.AGENTS[agent.setup]()
    path = agents.config_path(known, home, {})
    entry = known.write_snippet(str(home / "bin" / "agtrace"), {})
    shown = run(["agtrace", "setup", agent.setup], home).stdout
    assert str(path) in shown and entry in shown
    if path.exists():
        entry = json.dumps(json.loads(path.read_text()) | json.loads(entry))
    path.write_text(entry)
    tried = (agent.connected(home) for _ in range(10))  # agents give a server some seconds to start
    assert next((found for found in tried if found), []) == ["agtrace"]


def test_the_model_is_shown_what_the_server_sent(agent: Agent, driven: Run) -> None:
    """Every answer and every error is JSON, whole, and both copies are the same."""
    assert [(asked["name"], asked["arguments"]) for asked, _ in driven.exchanged] == CALLS
    assert len(driven.shown) == len(CALLS)
    for shown, (_, sent) in zip(driven.shown, driven.exchanged, strict=True):
        assert json.loads(sent["content"][0]["text"]) == sent["structuredContent"]
        assert agent.unwrapped(shown) == sent["structuredContent"]


def test_the_largest_answers_are_as_large_as_the_agent_takes_them_and_are_not_cut(agent: Agent, driven: Run) -> None:
    """Clamped by the client's name; what doesn't fit is continued by the cursor."""
    for call in LARGE:
        _, sent = driven.exchanged[CALLS.index(call)]
        size = len(sent["content"][0]["text"].encode())
        assert agent.limit - 1_000 < size <= agent.limit, sent["content"][0]["text"][:600]
        shown = driven.shown[CALLS.index(call)].text
        assert agent.unwrapped(driven.shown[CALLS.index(call)])["chunk"]["next_cursor"]
        around = len(shown.encode()) - size
        assert agent.limit + around <= agent.takes, "an answer as large as it may be would be cut"


def test_an_error_shows_the_model_its_code_its_message_and_the_next_step(agent: Agent, driven: Run) -> None:
    shown = [driven.shown[CALLS.index(call)] for call in WRONG]
    nobody, beyond = [agent.unwrapped(result) for result in shown]
    assert nobody["error"]["code"] == "session_not_found"
    assert "nobody" in nobody["error"]["message"]
    assert "list_sessions" in nobody["hint"]
    assert beyond["error"]["code"] == "invalid_event_index"
    assert beyond["error"]["details"]["max_index"] == LINES
    assert beyond["hint"]
    assert [result.marked_as_error for result in driven.shown] == [
        agent.marks_errors and call in WRONG for call in CALLS
    ]


def test_agtrace_metrics_counts_the_run_by_tool_by_client_and_by_day(agent: Agent, driven: Run) -> None:
    for by, found in driven.metrics.items():
        assert found["total"]["requests"] == len(CALLS) == sum(group["requests"] for group in found["groups"])
        assert found["total"]["error_codes"] == {"invalid_event_index": 1, "session_not_found": 1}
        assert found["total"]["milliseconds"]["p50"] > 0, by
    counted = Counter(call.tool for call in CALLS)
    assert {group["group"]: group["requests"] for group in driven.metrics["tool"]["groups"]} == counted
    sent = [len(answer["content"][0]["text"].encode()) for _, answer in driven.exchanged]
    assert driven.metrics["tool"]["total"]["bytes"]["largest"] == max(sent)
    (client,) = driven.metrics["client"]["groups"]
    assert most_bytes(client["group"]) == agent.limit


def test_the_model_knows_every_tool_with_its_parameters(
    agent: Agent, driven: Run, versions: Callable[[Any], str], record_property: Callable[[str, object], None]
) -> None:
    """In 8,192 bytes of names, descriptions and input schemas, as the agent passes them on."""
    offered = {tool.name.removeprefix("mcp__agtrace__").removeprefix("mcp_agtrace_"): tool for tool in driven.offered}
    tools = TOOLS
    assert offered.keys() == tools.keys() == {call.tool for call in CALLS}
    for name, tool in tools.items():
        assert offered[name].description == tool.description
        schema, theirs = input_schema(tool.arguments), offered[name].schema
        assert theirs.get("required", []) == schema.get("required", [])
        for parameter, wanted in schema["properties"].items():
            assert _essential(theirs["properties"][parameter]) == _essential(wanted), (name, parameter)
    whole = sum(map(_size, offered.values()))
    ours = sum(_size(_without_additions(tool, input_schema(tools[name].arguments))) for name, tool in offered.items())
    record_property("client", f"{versions(agent.client)}: {len(offered)} tools, {ours} bytes, with its own {whole}")
    assert ours <= 8_192


def test_the_model_is_told_what_agtrace_is_for(agent: Agent, driven: Run) -> None:
    """The essential of the instructions stands in their first 250 characters: Codex shows no more before a search."""
    first = INSTRUCTIONS.split("\n")[0]
    assert any(first in text for request in driven.requests for text in _texts(request))


def test_answers_to_default_arguments_are_whole_for_any_model_of_codex(
    tmp_path: Path, versions: Callable[[Any], str], record_property: Callable[[str, object], None]
) -> None:
    """Codex cuts the answers to a model that it doesn't know much earlier."""
    require(CODEX)
    record_property("client", versions(CODEX))
    codex = CodexCli("a-model-of-their-own")
    calls = [
        Call("get_event_details", {"session_id": PLAIN, "event_index": LINES}),
        Call("get_event_details", {"session_id": WIDE, "event_index": LINES}),
        Call("search_event_previews", {"order": "newest", "query": "e"}),
    ]
    came = drive(codex, tmp_path / "machine", calls)
    assert len(came.shown) == len(calls)
    for shown, (_, sent) in zip(came.shown, came.exchanged, strict=True):
        assert codex.unwrapped(shown) == sent["structuredContent"]


def _size(tool: Offered) -> int:
    schema = json.dumps(tool.schema, ensure_ascii=False, separators=(",", ":"))
    return len(f"{tool.name}{tool.description}{schema}".encode())


def _essential(parameter: dict[str, Any]) -> dict[str, Any]:
    """What every agent passes on: Codex drops limits and defaults, and writes a constant as an enum."""
    values = parameter.get("enum", [parameter["const"]] if "const" in parameter else None)
    return {"enum": values, **{key: parameter.get(key) for key in ("type", "description", "items")}}


def _without_additions(tool: Offered, ours: dict[str, Any]) -> Offered:
    """The tool without the parameters that the client gives every tool."""
    known = {name: schema for name, schema in tool.schema["properties"].items() if name in ours["properties"]}
    return tool._replace(schema={**tool.schema, "properties": known})


def _texts(value: Any) -> list[str]:
    """Every string in a JSON value."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for part in inner for text in _texts(part)]
