"""OpenTelemetry of a running server: what reaches a collector, and that nothing else depends on one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.agtrace.asking import claude_log
from tests.agtrace.test_start import RUN, loaded_by
from tests.e2e.collector import Collector, collecting, values
from tests.e2e.test_http import listening
from tests.e2e.test_telemetry import MARKER, SECONDS, machine, over_stdio, recorded
from tests.faults.serving import HELLO, call, line, serving

__all__ = ["machine"]

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
NOBODY = "http://127.0.0.1:9"
SESSION = "0badc0de-0000-4000-8000-000000000001"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"

HIDDEN = """
import sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter", "opentelemetry.proto")):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Finder())
"""
"""Python runs it first in every process: it hides what the extra installs."""


async def everything(client: Client) -> None:
    """Ask with the marker wherever a client chooses the text."""
    await client.call_tool("list_sessions", {"query": MARKER})
    await client.call_tool("search_event_previews", {"query": MARKER, "project": MARKER})
    await client.call_tool("get_session_details", {"session_id": MARKER})
    await client.read_resource(f"ax://event/{SESSION}/0")
    for wrong in (
        lambda: client.call_tool(MARKER, {}),
        lambda: client.read_resource(f"ax://session/{MARKER}"),
        lambda: client.get_prompt(MARKER, {}),
    ):
        with pytest.raises(MCPError):
            await wrong()


def _say(*requests: bytes, home: Path, **environment: str) -> tuple[bytes, float, list[dict[str, Any]]]:
    """Send requests, one after the other's answer; return the answers, the seconds of the end, and the log."""
    log, said = home / "said", b""
    with serving(log, HOME=str(home), **environment) as server:
        server.send(HELLO)
        stream = server.process.stdout
        assert stream
        for request in (b"", *requests):
            server.send(request)
            said += stream.readline()
        took = server.ends()
        said += stream.read()
    return said, took, list(map(json.loads, log.read_text().splitlines()))


def _by_name(collector: Collector) -> dict[str, tuple[Any, dict[str, Any]]]:
    """The last span of each name, with its attributes."""
    return {span.name: (span, values(span.attributes)) for span in collector.spans}


# -- what is sent ----------------------------------------------------------------------------------


def test_over_stdio_spans_and_figures_carry_the_conventions_names(machine: Path, tmp_path: Path) -> None:
    with collecting() as collector:
        over_stdio(everything, machine, tmp_path / "data", **{ENDPOINT: collector.url, "OTEL_SERVICE_NAME": "mine"})
    spans = _by_name(collector)
    span, told = spans["tools/call list_sessions"]  # the first message of a client without a handshake
    assert span.kind == span.SPAN_KIND_SERVER and told.pop("jsonrpc.request.id").isdecimal()
    assert told == {
        "mcp.method.name": "tools/call", "mcp.protocol.version": "2026-07-28", "network.transport": "pipe",
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "list_sessions",
    }  # fmt: skip
    span, told = spans["tools/call get_session_details"]
    assert (told["error.type"], told["agtrace.error.code"]) == ("tool_error", "session_not_found")
    assert span.status.code == span.status.STATUS_CODE_ERROR and not span.status.message
    assert spans["resources/read"][1]["mcp.method.name"] == "resources/read"
    assert len(collector.spans) == len({span.span_id for span in collector.spans})
    points = collector.points
    tools = {attributes.get("gen_ai.tool.name") for attributes, _ in points["mcp.server.operation.duration"]}
    assert tools == {None, "list_sessions", "search_event_previews", "get_session_details"}
    answered = sum(point.count for _, point in points["agtrace.response.size"])
    assert answered == len(recorded(tmp_path / "data")) == 5
    assert sum(point.sum for _, point in points["agtrace.response.size"]) == sum(
        row.bytes for row in recorded(tmp_path / "data")
    )
    assert "agtrace.response.tokens" in points
    assert collector.resources[0]["service.name"] == "mine" and collector.resources[0]["service.version"]


def test_over_http_they_name_the_transport_and_the_session(machine: Path) -> None:
    with collecting() as collector:
        with listening(machine, **{ENDPOINT: collector.url}) as server:

            async def story() -> None:
                with anyio.fail_after(SECONDS):
                    async with server.client("legacy", "claude-code") as client:
                        await everything(client)

            anyio.run(story)
        told = _by_name(collector)["tools/call list_sessions"][1]
        assert told["network.transport"] == "tcp" and told["network.protocol.name"] == "http"
        assert told["network.protocol.version"] == "1.1" and told["mcp.session.id"].startswith("claude-code.")
        assert "initialize" in _by_name(collector)
        assert {attributes["agtrace.client"] for attributes, _ in collector.points["agtrace.response.size"]} == {
            "claude-code"
        }
        assert MARKER.encode() not in collector.sent


def test_nothing_that_a_client_wrote_or_a_log_says_is_sent(machine: Path, tmp_path: Path) -> None:
    meta = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "tracestate": f"vendor={MARKER}", "baggage": MARKER}
    with collecting() as collector:
        over_stdio(everything, machine, tmp_path / "data", **{ENDPOINT: collector.url})
        hello = json.loads(HELLO.splitlines()[0])
        hello["params"]["clientInfo"] = {"name": MARKER, "version": MARKER}
        _say(
            json.dumps(hello).encode() + b"\n",
            line("tools/call", 1, name="list_sessions", arguments={"query": MARKER}, _meta=meta),
            json.dumps({"jsonrpc": "2.0", "id": MARKER, "method": MARKER, "params": {}}).encode() + b"\n",
            call(2, "read_artifact", ref=f"ax://session/{MARKER}"),
            line("tools/call", 3, name={MARKER: MARKER}),
            home=machine, **{ENDPOINT: collector.url},
        )  # fmt: skip
    assert b"list_sessions" in collector.sent and b"agtrace.response.size" in collector.sent
    assert MARKER.encode() not in collector.sent and SESSION.encode() not in collector.sent
    assert str(machine).encode() not in collector.sent and str(tmp_path).encode() not in collector.sent
    followed = [span for span in collector.spans if span.trace_id.hex() == TRACE]
    assert [span.name for span in followed] == ["tools/call list_sessions"], "it belongs to the client's trace"


def test_only_what_is_asked_for_is_sent(machine: Path, tmp_path: Path) -> None:
    async def story(client: Client) -> None:
        await client.call_tool("list_sessions", {})

    for variables, paths in (
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "/v1/traces"}, {"/v1/traces"}),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "/v1/metrics"}, {"/v1/metrics"}),
        ({ENDPOINT: "/", "OTEL_SDK_DISABLED": "true"}, set()),
    ):
        with collecting() as collector:
            given = {name: collector.url + value if value[0] == "/" else value for name, value in variables.items()}
            over_stdio(story, machine, tmp_path / "data", **given)
            assert {path for path, _ in collector.bodies} == paths


def test_to_the_console_they_are_lines_on_stderr(machine: Path) -> None:
    said, _, log = _say(
        call(1, "list_sessions"), home=machine, OTEL_TRACES_EXPORTER="console", OTEL_METRICS_EXPORTER="console"
    )
    assert [message["id"] for message in map(json.loads, said.splitlines())] == [0, 1]
    assert "tools/call list_sessions" in [record.get("name") for record in log]
    assert [record for record in log if "resource_metrics" in record]


# -- what doesn't depend on it ---------------------------------------------------------------------


def _quiet(variables: Mapping[str, str], home: Path) -> tuple[bytes, float, list[dict[str, Any]]]:
    """Ask for answers in which there is no time."""
    asked = [call(1, "list_sessions", query=MARKER), call(2, "get_event_details", session_id="0badc0de", event_index=0)]
    asked += [call(3, "get_session_details", session_id=MARKER), line("resources/read", 4, uri=f"ax://event/{MARKER}")]
    (home / "said").unlink(missing_ok=True)
    return _say(*asked, home=home, **variables)


@pytest.mark.parametrize("slow", [False, True], ids=["dead", "slow"])
def test_a_collector_that_does_not_answer_changes_no_answer_and_delays_no_end(machine: Path, slow: bool) -> None:
    _quiet({}, machine)  # indexes
    without, _, _ = _quiet({}, machine)
    often = {"OTEL_BSP_SCHEDULE_DELAY": "20", "OTEL_METRIC_EXPORT_INTERVAL": "50"}
    with collecting(slow=True) as collector:
        endpoint = collector.url if slow else NOBODY
        with_it, took, log = _quiet({ENDPOINT: endpoint, **often}, machine)
        assert bool(collector.bodies) == slow
    assert with_it == without and len(without.splitlines()) == 5
    assert took < 1 + 3  # a second, on a machine that runs other tests beside
    told = [record for record in log if record["event"] not in ("answer", "large_answer")]
    assert len(told) <= 1 and all(record["level"] in ("warning", "error") for record in told)


def test_without_variables_nothing_of_it_is_loaded(tmp_path: Path, own_home: Path) -> None:
    claude_log(own_home / ".claude", SESSION).prompt("hello")
    asked = HELLO + call(1, "list_sessions") + line("resources/read", 2, uri="ax://health")
    for variables, loads in (({}, False), ({ENDPOINT: NOBODY}, True)):
        ended = subprocess.run(
            [*RUN, "mcp"],
            input=asked,
            env={**os.environ, **variables},
            capture_output=True,
            timeout=SECONDS,
            check=True,
        )
        assert ended.stdout.count(b'"result"') == 3
        loaded = loaded_by(ended.stderr.decode())
        parts = {".".join(name.split(".")[:2]) for name in loaded if name.startswith("opentelemetry.")}
        assert ({"opentelemetry.sdk", "opentelemetry.exporter", "opentelemetry.proto"} <= parts) is loads
        assert ("agtrace.serving.otel.sending" in loaded) is loads
        if not loads:
            assert parts & {"opentelemetry.sdk", "opentelemetry.exporter", "opentelemetry.proto"} == set()


def test_without_the_extra_one_line_says_so_and_answers_are_as_ever(machine: Path, tmp_path: Path) -> None:
    (tmp_path / "hiding").mkdir()
    (tmp_path / "hiding" / "sitecustomize.py").write_text(HIDDEN)
    hidden = {"PYTHONPATH": str(tmp_path / "hiding")}
    seen = subprocess.run(
        [sys.executable, "-c", "import opentelemetry.sdk"], env=hidden, capture_output=True, check=False
    )
    assert b"ModuleNotFoundError" in seen.stderr
    _quiet({}, machine)  # indexes
    without, _, log = _quiet(hidden, machine)
    assert {record["event"] for record in log} == {"answer"}
    with_it, _, log = _quiet({**hidden, ENDPOINT: NOBODY}, machine)
    assert with_it == without
    (told,) = [record for record in log if record["event"] != "answer"]
    assert (told["event"], told["level"]) == ("opentelemetry", "warning") and "agtrace[otel]" in told["problem"]


def test_variables_that_can_not_be_used_are_one_line_and_cost_no_answer(machine: Path) -> None:
    said, _, log = _say(
        call(1, "list_sessions"), home=machine, **{ENDPOINT: NOBODY, "OTEL_METRIC_EXPORT_INTERVAL": "0"}
    )
    assert json.loads(said.splitlines()[1])["result"]
    (told,) = [record for record in log if record["event"] != "answer"]
    assert told["event"] == "opentelemetry" and "interval" in told["problem"]
