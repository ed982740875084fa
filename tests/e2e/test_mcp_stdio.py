"""The server as an agent uses it: the real process over stdio, called by the mcp package's client."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.from_thread import start_blocking_portal
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from agtrace.serving.server import INSTRUCTIONS
from agtrace.shaping.shape import Answer
from tests.agtrace.asking import budget, call_in, check, claude_log, text_of
from tests.conftest import SAMPLES, keep_rules

AGTRACE = str(Path(sys.executable).with_name("agtrace"))
TOOLS = [
    "list_sessions",
    "get_project_info",
    "run_sql",
    "get_session_details",
    "analyze_session",
    "compare_sessions",
    "search_event_previews",
    "get_event_details",
    "read_artifact",
    "get_reasoning_chain",
]

SECONDS = 300
"""A story that takes longer hangs."""


class Agent:
    """An agent that is connected to the server; every answer it gets is checked for the contract."""

    def __init__(self, client: Client, schemas: dict[str, dict[str, Any]]) -> None:
        self.client, self.calls, self.bytes = client, 0, 0
        self.schemas = {name: Draft202012Validator(schema) for name, schema in schemas.items()}

    async def call(self, name: str, **arguments: Any) -> Answer:
        """An answer or an error, as text and as structured content, which are the same."""
        result = await self.client.call_tool(name, arguments)
        assert result.content[0].type == "text"
        assert all(part.type == "resource_link" for part in result.content[1:])
        given = Answer(result.content[0].text, result.structured_content, bool(result.is_error))
        self.schemas[name].validate(given.value)
        check(given, budget(name, arguments))
        self.calls, self.bytes = self.calls + 1, self.bytes + len(given.text.encode())
        return given

    async def ask(self, name: str, **arguments: Any) -> dict[str, Any]:
        """An answer that must be one."""
        given = await self.call(name, **arguments)
        assert not given.is_error, given.text
        return given.value

    async def error(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The error of a call that must be refused."""
        given = await self.call(name, **arguments)
        assert given.is_error, given.text
        return given.value["error"]


Story = Callable[[Agent], Awaitable[None]]


@pytest.fixture
def tell(own_home: Path, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """Run a story with a server of its own, on the test's machine; gives what the server logged."""

    def run(story: Story, *, mode: str = "auto", **environment: str) -> list[dict[str, Any]]:
        variables = {name: os.environ[name] for name in ("HOME", "AGTRACE_DATA_DIR")} | environment
        server = StdioServerParameters(command=AGTRACE, args=["mcp"], env=variables)
        with (tmp_path / "stderr").open("w") as errors:

            async def connected() -> None:
                with anyio.fail_after(SECONDS):
                    async with Client(stdio_client(server, errors), mode=mode) as client:
                        listed = await client.list_tools()
                        await story(Agent(client, {tool.name: tool.output_schema or {} for tool in listed.tools}))

            anyio.run(connected)
        return [json.loads(line) for line in (tmp_path / "stderr").read_text().splitlines()]

    return run


def settle(home: Path) -> Path:
    """Put the sample sessions where the agents keep theirs."""
    for agent in ("claude", "codex", "gemini"):
        shutil.copytree(SAMPLES / agent, home / f".{agent}")
    return home


@pytest.fixture(scope="module")
def indexed(compiled_rules: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = settle(tmp_path_factory.mktemp("machine") / "home")
    keep_rules(compiled_rules, data_dir(home))
    variables = {**os.environ, "HOME": str(home), "AGTRACE_DATA_DIR": str(data_dir(home))}
    subprocess.run([AGTRACE, "index"], env=variables, capture_output=True, check=True)
    return home


@pytest.fixture(scope="module")
def tell_one(indexed: Path) -> Iterator[Callable[[Story], None]]:
    """Run a story that only reads, with the server of the module."""
    variables = {"HOME": str(indexed), "AGTRACE_DATA_DIR": str(data_dir(indexed))}
    server = StdioServerParameters(command=AGTRACE, args=["mcp"], env=variables)
    with (
        start_blocking_portal() as portal,
        Path(os.devnull).open("w") as errors,
        portal.wrap_async_context_manager(Client(stdio_client(server, errors))) as client,
    ):
        schemas = {tool.name: tool.output_schema or {} for tool in portal.call(client.list_tools).tools}
        yield lambda story: portal.call(story, Agent(client, schemas))


@pytest.fixture
def machine(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the sample sessions, which are indexed, for stories that only read."""
    monkeypatch.setenv("HOME", str(indexed))
    monkeypatch.setenv("AGTRACE_DATA_DIR", str(data_dir(indexed)))
    return indexed


def data_dir(home: Path) -> Path:
    return home.parent / "data"


# -- what a client sees --------------------------------------------------------------------------


async def check_list(agent: Agent) -> None:
    """See that only tools that read are listed, with both schemas."""
    tools = (await agent.client.list_tools()).tools
    assert [tool.name for tool in tools] == TOOLS
    for tool in tools:
        assert tool.description and tool.annotations and tool.annotations.read_only_hint
        Draft202012Validator.check_schema(tool.input_schema)
        Draft202012Validator.check_schema(tool.output_schema)
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema["type"] == "object"
    search = next(tool for tool in tools if tool.name == "search_event_previews").input_schema
    assert search["required"] == ["query"]
    assert search["properties"]["limit"]["maximum"] == 50
    assert search["properties"]["provider"] == {"type": "string"}
    assert len(search["properties"]["kind"]["enum"]) == 9
    assert agent.client.instructions == INSTRUCTIONS
    assert "search_event_previews" in INSTRUCTIONS[:250]


def test_only_tools_that_read_are_listed_with_both_schemas(tell_one: Callable[[Story], None]) -> None:
    tell_one(check_list)


def test_the_first_call_on_a_machine_without_an_index_finds_what_is_there(
    tell: Callable[..., Any], own_home: Path
) -> None:
    """While the index is being built an answer never says that nothing was found."""
    settle(own_home)

    async def story(agent: Agent) -> None:
        while True:
            given = await agent.call("search_event_previews", order="newest", query="database is locked")
            if given.is_error:
                assert given.value["error"]["retryable"], given.text
            elif "index" in given.value:
                assert not given.value["summary"].startswith("Found 0")
            else:
                break
        assert given.value["summary"] == "Found 10 events containing 'database is locked'"
        assert {match["session_id"] for match in given.value["data"]["matches"]} == {
            "d41f7a52", "01a11132", "ccde789b", "01a0a080",
        }  # fmt: skip

    tell(story)
    assert data_dir(own_home).stat().st_mode & 0o077 == 0, "the index is its owner's alone"


def test_on_an_empty_machine_every_list_is_empty_and_says_what_to_do(tell: Callable[..., Any]) -> None:
    """Asked in the older era of the protocol, in which the same is listed."""

    async def story(agent: Agent) -> None:
        await check_list(agent)
        for name, arguments in (
            ("list_sessions", {}),
            ("get_project_info", {}),
            ("search_event_previews", {"order": "newest", "query": "e"}),
        ):
            value = await agent.ask(name, **arguments)
            assert value["summary"].startswith("Found 0")
            assert value["pagination"]["next_cursor"] is None
        assert (await agent.error("analyze_session", session_id="fb3cff44"))["code"] == "session_not_found"

    tell(story, mode="legacy")


@pytest.mark.thorough
def test_a_line_that_is_appended_is_found_by_the_next_call(tell: Callable[..., Any], own_home: Path) -> None:
    log = claude_log(own_home / ".claude", "fb3cff44-13ae-41a6-a6df-f287e0552835").prompt("Where is the tide table?")

    async def story(agent: Agent) -> None:
        assert (await agent.ask("search_event_previews", order="newest", query="tide"))["summary"].startswith(
            "Found 1 "
        )
        log.say("The tide table is in docs/tides.md.")
        found = await agent.ask("search_event_previews", order="newest", query="docs/tides.md")
        assert [match["event_index"] for match in found["data"]["matches"]] == [1]
        claude_log(own_home / ".claude", "0a3cff44-13ae-41a6-a6df-f287e0552835").prompt("Another tide")
        assert (await agent.ask("list_sessions"))["summary"] == "Found 2 sessions"

    tell(story)


# -- refusals ------------------------------------------------------------------------------------

REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("list_sessions", {"limit": 51}, "invalid_parameter", "limit exceeds maximum of 50"),
    ("list_sessions", {"offset": 10}, "invalid_parameter", "unknown argument 'offset'"),
    ("list_sessions", {"since": "whenever"}, "invalid_parameter", "7d"),
    ("list_sessions", {"project_hash": "%"}, "invalid_parameter", "project"),
    ("search_event_previews", {}, "invalid_parameter", "query is missing"),
    ("search_event_previews", {"query": "e" * 2_001}, "invalid_parameter", "query"),
    ("search_event_previews", {"query": "e", "kind": "Output"}, "invalid_parameter", "did you mean output?"),
    ("get_session_details", {"session_id": "fb3cff44"}, "session_not_found", "Session not found: fb3cff44"),
    ("get_session_details", {"session_id": "01a1113"}, "ambiguous_session_prefix", "matches 2 sessions"),
    ("get_session_details", {"session_id": "e97a4b06", "turn_index": 6}, "invalid_range", "max: 5"),
    ("get_event_details", {"session_id": "e97a4b06", "event_index": 999}, "invalid_event_index", "max: 70"),
]
"""One of each kind; `tests/agtrace/test_arguments.py` has all that is said of arguments."""


def test_what_can_not_be_answered_is_an_error_that_says_what_to_do(tell_one: Callable[[Story], None]) -> None:
    """Every one with isError, its code and what was wrong; none of them ends the server."""

    async def story(agent: Agent) -> None:
        wrong = []
        for name, arguments, code, words in REFUSED:
            error = await agent.error(name, **arguments)
            if (
                error["code"] != code
                or words not in error["message"] + json.dumps(error["details"])
                or error["retryable"]
            ):
                wrong.append((name, arguments, error))
        assert wrong == []
        ambiguous = await agent.error("get_session_details", session_id="01a1113")
        assert ambiguous["details"] == {"prefix": "01a1113", "matches": ["01a11132", "01a11133"], "total": 2}
        beyond = await agent.error("get_event_details", session_id="e97a4b06", event_index=999)
        assert beyond["details"] == {"session_id": "e97a4b06", "requested_index": 999, "max_index": 70}
        field = await agent.error("search_event_previews", order="newest", query="e", tols="Bash")
        assert (field["details"]["field"], field["details"]["nearest"]) == ("tols", "tool")
        assert (await agent.ask("list_sessions"))["success"]

    tell_one(story)


def test_an_unknown_tool_is_an_error_of_the_protocol(tell_one: Callable[[Story], None]) -> None:

    async def story(agent: Agent) -> None:
        for name in ("list_session", ""):
            with pytest.raises(MCPError) as refused:
                await agent.client.call_tool(name, {"pattern": "e"})
            assert refused.value.error.code == -32602
        assert (await agent.ask("list_sessions"))["success"]

    tell_one(story)


def test_a_cursor_outlives_the_server_that_made_it(
    tell: Callable[..., Any], tell_one: Callable[[Story], None], machine: Path
) -> None:
    """Valid after a restart."""
    pages: list[dict[str, Any]] = []

    async def first(agent: Agent) -> None:
        pages.append(await agent.ask("list_sessions", limit=10, kind="all"))

    async def second(agent: Agent) -> None:
        pages.append(
            await agent.ask("list_sessions", limit=10, kind="all", cursor=pages[0]["pagination"]["next_cursor"])
        )

    tell_one(first)
    tell(second)
    ids = [item["id"] for page in pages for item in page["data"]["sessions"]]
    assert len(ids) == len(set(ids)) == 19


# -- settings ------------------------------------------------------------------------------------


def test_the_users_clamp_holds_for_every_answer(tell: Callable[..., Any], machine: Path) -> None:
    """AGTRACE_MAX_RESPONSE_BYTES, also for what was asked to be larger and for errors."""

    async def story(agent: Agent) -> None:
        asked: list[tuple[str, dict[str, Any]]] = [
            ("list_sessions", {"limit": 50}),
            ("get_project_info", {"limit": 50}),
            ("run_sql", {"sql": "SELECT * FROM events"}),
            ("get_session_details", {"session_id": "d41f7a52", "detail_level": "turns", "include_reasoning": True}),
            ("get_session_details", {"session_id": "e97a4b06"}),
            ("analyze_session", {"session_id": "d41f7a52", "include_loops": True}),
            ("search_event_previews", {"order": "newest", "query": "e", "limit": 50}),
            ("get_event_details", {"session_id": "d41f7a52", "event_index": 853, "max_bytes": 102_400}),
            ("get_session_details", {"session_id": "🌊" * 200}),
            ("get_session_details", {"session_id": "e97a4b06", "潮" * 900: 1}),
            ("search_event_previews", {"order": "newest", "query": "潮" * 3_000}),
        ]
        sizes = {
            f"{name} {arguments}"[:90]: len((await agent.call(name, **arguments)).text.encode())
            for name, arguments in asked
        }
        assert {call: size for call, size in sizes.items() if size > 2_048} == {}

    tell(story, AGTRACE_MAX_RESPONSE_BYTES="2048")


# -- the process ---------------------------------------------------------------------------------


def serve(environment: dict[str, str], lines: str) -> subprocess.CompletedProcess[str]:
    """Give the server these lines and close its input; who doesn't end by itself hangs."""
    return subprocess.run(
        [AGTRACE, "mcp"],
        input=lines,
        env={**os.environ, **environment},
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )


def message(method: str, number: int | None = None, **params: Any) -> str:
    """A line of the protocol; a notification where there is no number."""
    value = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(value if number is None else value | {"id": number}) + "\n"


HELLO = message(
    "initialize", 0, protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"}
) + message("notifications/initialized")


def test_the_process_ends_by_itself_when_its_input_ends(own_home: Path) -> None:
    run = serve({}, HELLO)
    assert run.returncode == 0
    assert json.loads(run.stdout)["result"]["serverInfo"]["name"] == "agtrace"


@pytest.mark.thorough
def test_the_process_ends_though_its_input_ends_before_the_answer(machine: Path) -> None:
    """A request in flight, an index half built: nothing holds the process."""
    run = serve({}, HELLO + message("tools/call", 1, name="search_event_previews", arguments={"query": "e"}))
    assert run.returncode == 0
    after = subprocess.run(
        [AGTRACE, "search", "database is locked", "--newest"], capture_output=True, text=True, timeout=300, check=False
    )
    assert after.returncode == 0
    assert "Found 10 events" in after.stdout


@pytest.mark.thorough
def test_stdout_carries_the_protocol_alone_and_stderr_lines_of_json(own_home: Path) -> None:
    """Nothing but protocol on stdout: also with logs that are broken, and with calls that are refused."""
    folder = own_home / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    (folder / "broken.jsonl").write_text('{"type": "user", "message"\nnot json\n')
    (folder / "binary.jsonl").write_bytes(bytes(range(256)))
    process = subprocess.Popen(
        [AGTRACE, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin and process.stdout
    process.stdin.write(HELLO + message("tools/list", 1))
    answered = []
    calls: list[tuple[str, Any]] = [
        ("list_sessions", {}),
        ("list_sessions", {"limit": 51}),
        ("search_event_previews", {"order": "newest", "query": "not json"}),
        ("search_event_previews", {"order": "newest", "query": '\ud800\n"\u0000'}),
        ("get_session_details", {"session_id": "nobody", "turn_index": 10**40}),
        ("no_such_tool", {}),
    ]
    for number, (name, arguments) in enumerate(calls, 2):
        process.stdin.write(message("tools/call", number, name=name, arguments=arguments))
    process.stdin.write("this is no protocol\n")
    process.stdin.write(message("notifications/progress"))  # of which the SDK warns
    process.stdin.write(message("tools/call", 99, name="get_project_info", arguments={}))
    process.stdin.flush()
    awaited = {0, 1, 2, 3, 4, 6, 7, 99}
    for line in process.stdout:
        answered.append(json.loads(line))
        if awaited <= {answer.get("id") for answer in answered}:
            break
    rest, errors = process.communicate(timeout=300)
    answered += [json.loads(line) for line in rest.splitlines()]
    assert all(answer["jsonrpc"] == "2.0" for answer in answered)
    assert awaited <= {answer.get("id") for answer in answered}
    logged = [json.loads(line) for line in errors.splitlines()]
    assert not [record for record in logged if record.get("event") == "internal_error"]
    assert process.returncode == 0


@pytest.mark.thorough
def test_every_answer_is_logged_with_its_tool_size_and_time(tell: Callable[..., Any], machine: Path) -> None:
    """Sizes and times, and no word of what was asked or found."""
    sizes = []

    async def story(agent: Agent) -> None:
        sizes.append(len((await agent.call("search_event_previews", order="newest", query="surge")).text.encode()))
        sizes.append(len((await agent.call("get_session_details", session_id="nobody")).text.encode()))

    logged = [record for record in tell(story) if record["event"] == "answer"]
    assert [(record["tool"], record["bytes"], record["ok"]) for record in logged] == [
        ("search_event_previews", sizes[0], True),
        ("get_session_details", sizes[1], False),
    ]
    assert all(record["ms"] >= 0 for record in logged)
    assert "surge" not in json.dumps(logged) and "nobody" not in json.dumps(logged)


def test_calls_that_arrive_together_are_all_answered(tell_one: Callable[[Story], None]) -> None:
    async def story(agent: Agent) -> None:
        summaries: list[str] = []

        async def search(query: str) -> None:
            summaries.append((await agent.ask("search_event_previews", order="newest", query=query))["summary"])

        async with anyio.create_task_group() as group:
            for number in range(12):
                group.start_soon(search, "database is locked" if number % 2 else "潮")
        assert len(summaries) == 12 and len(set(summaries)) == 2

    tell_one(story)


# -- a question to a long text ---------------------------------------------------------------------


@pytest.mark.thorough
def test_a_build_log_of_two_megabytes_answers_a_question_and_its_gaps_open(
    tell: Callable[..., Any], own_home: Path
) -> None:
    lines = [
        f"[{number:05}] Compiling gauge_{number % 313} (/build/crates/tides/src/harbour.rs)" for number in range(29_000)
    ]
    lines[9_000] = "error[E0308]: mismatched types: expected u32, found String"
    lines[20_000] = "warning: the linker ran out of memory and was started again"
    log = claude_log(own_home / ".claude", "fb3cff44-13ae-41a6-a6df-f287e0552835").prompt("Build it.")
    log.call("Bash", {"command": "make"}, "\n".join(lines), failed=True)
    question = "Did the linker run out of memory?"

    async def story(agent: Agent) -> None:
        found = await agent.ask("search_event_previews", order="newest", query="mismatched types")
        (place,) = [match for match in found["data"]["matches"] if match["event_type"] == "ToolResult"]
        event = {"session_id": place["session_id"], "event_index": place["event_index"]}
        given = await agent.call("get_event_details", **event, context_focus_question=question)
        assert len(given.text.encode()) <= 4_096 and given.value["pruning"]["applied"]
        content = text_of(given.value["data"]["payload"])
        assert lines[9_000] in content and lines[20_000] in content
        name, arguments = call_in(given.value["hint"])
        assert f"left out: {arguments['start_line']}-{arguments['end_line']})" in content
        opened = await agent.ask(name, **arguments)
        first = arguments["start_line"] - 1
        shown = text_of(opened["data"]["payload"]).removesuffix("\n").split("\n")
        assert shown == lines[first : first + len(shown)]
        error = await agent.error("get_event_details", **event, context_focus_question="")
        assert error["code"] == "invalid_parameter"

    logged = tell(story)
    assert "linker" not in json.dumps(logged), "the log of the server has no word of a question"
