"""Every way of a request through its states, driven through the running server, over stdio and over HTTP."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agtrace.pruning.states import EVENTS
from tests.conftest import keep_rules
from tests.depth import THOROUGH
from tests.pruning.driving import Answer, Server, server
from tests.pruning.misbehaving import PrunerOfATest, pruning

TIMEOUT_MS = 1_000
QUESTION = "Which line says how long the server waits?"
TEXT = "".join(f"line {number} of a file that is about nothing in particular\n" for number in range(200))


class Driven(NamedTuple):
    """A server and the pruner that it asks."""

    server: Server
    pruner: PrunerOfATest
    folder: Path

    def read(self, text: str = TEXT, question: str | None = QUESTION) -> Answer:
        """Let it read a file with this text."""
        (self.folder / "file.txt").write_text(text)
        asked = {} if question is None else {"context_focus_question": question}
        return self.server.call("read", {"file_path": "file.txt", **asked})

    def set(self, **settings: Any) -> None:
        """Change settings of the running server."""
        lines = {"endpoint": self.pruner.url, "timeout_ms": TIMEOUT_MS, **settings}
        text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items())
        fresh = self.folder / "fresh.toml"
        fresh.write_text(f"[pruner]\n{text}")
        os.replace(fresh, self.folder / "config.toml")

    def events(self, answer: Answer, *ending: str) -> list[dict[str, Any]]:
        """Return the events of a request, each with exactly its fields; wait for the last one."""
        id = answer.about["request_id"] if "result" in answer.message else answer.refusal["data"]["request_id"]
        self.server.until(lambda: ending[-1] in self.server.of_request(id))
        found = [record for record in self.server.events if record.get("request_id") == id]
        assert tuple(record["event"] for record in found) == ending
        for record in found:
            assert tuple(record) == ("event", "at", *EVENTS[record["event"]])
        return found

    def events_of_new_requests(self, before: int) -> list[dict[str, Any]]:
        """Return the events after the first so many, of requests that begin there: an earlier one's last is late."""
        known = {record.get("request_id") for record in self.server.events[:before]}
        return [record for record in self.server.events[before:] if record.get("request_id") not in known]


@pytest.fixture(scope="module", params=["stdio", "http"] if THOROUGH else ["http"])
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, compiled_rules: Path
) -> Iterator[Driven]:
    """A server for all tests of this module."""
    folder = tmp_path_factory.mktemp(request.param)
    keep_rules(compiled_rules, folder / "data")
    with pruning() as pruner:
        (folder / "config.toml").write_text("")
        variables = {"AGTRACE_DATA_DIR": str(folder / "data"), "AGTRACE_CONFIG": str(folder / "config.toml")}
        with server(folder, http=request.param == "http", **variables) as running:
            yield Driven(running, pruner, folder)


@pytest.fixture
def driven(shared: Driven) -> Iterator[Driven]:
    """The server, with a pruner that behaves."""
    shared.pruner.status, shared.pruner.reply, shared.pruner.silent = 200, {"pruned_code": "kept"}, False
    shared.pruner.asked.clear()
    shared.set()
    yield shared
    shared.pruner.silent = False
    shared.pruner.over.set()
    shared.pruner.over.clear()


BEFORE = ("tool.request_received", "tool.exec_start", "tool.exec_ok")
ASKED = (*BEFORE, "pruner.call_start")
RAW = "tool.respond_ok"


def test_without_a_question_a_file_comes_as_it_is(driven: Driven) -> None:
    answer = driven.read(question=None)
    assert answer.text == TEXT
    assert answer.about["pruning"] == {
        "attempted": False, "applied": False, "fallback": False, "reason": "no_question",
    }  # fmt: skip
    received, started, done, responded = driven.events(answer, *BEFORE, RAW)
    assert received["tool"] == started["tool"] == "read"
    assert done["bytes"] == answer.about["raw_bytes"] == len(TEXT) and done["duration_ms"] >= 0
    assert responded["mode"] == "raw"
    assert driven.pruner.asked == []


@pytest.mark.parametrize(
    ("tool", "arguments", "fields"),
    [
        ("read", {}, ["file_path"]),
        ("read", {"file_path": 1, "start_line": "2"}, ["file_path", "start_line"]),
        ("read", {"file_path": "a", "radius": 501, "around_line": 3}, ["radius"]),
        ("bash", {"command": "true", "timeout_ms": 99}, ["timeout_ms"]),
        ("bash", {"command": "true", "shell": "zsh"}, ["shell"]),
        ("grep", {"pattern": "a", "patterns": ["b"]}, ["arguments"]),
        ("grep", {"pattern": "a", "max_matches": 1_001, "context_lines": -1}, ["context_lines", "max_matches"]),
        ("read", {"file_path": "a", "context_focus_question": "x" * 2_001}, ["context_focus_question"]),
        ("read", {"file_path": "a", "start_line": 5, "end_line": 4}, ["arguments"]),
        ("read", {"file_path": "a", "start_line": 5, "around_line": 4}, ["arguments"]),
        ("read", {"file_path": "a", "radius": 4}, ["arguments"]),
        ("read", {"file_path": "a\0b"}, ["file_path"]),
        ("bash", {"command": "ls", "env": {"A=B": "1"}}, ["env"]),
        ("grep", {"patterns": ["a"] * 51}, ["patterns"]),
        ("write", {"file_path": "a"}, ["name"]),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_every_error(
    driven: Driven, tool: str, arguments: dict[str, Any], fields: list[str]
) -> None:
    answer = driven.server.call(tool, arguments)
    assert answer.refusal["code"] == -32602
    assert sorted(one["field"] for one in answer.refusal["data"]["errors"]) == fields
    refused = driven.events(answer, "tool.request_received", "tool.request_invalid")[-1]
    assert sorted(refused["validation_errors"]) == [field if field != "shell" else "(unknown)" for field in fields]


@pytest.mark.parametrize("body", [b"{nonsense", b"[1, 2", b"\xff\xfe", b'"a text"'])
def test_what_is_no_message_is_refused_and_the_next_request_is_answered(driven: Driven, body: bytes) -> None:
    before = len(driven.server.events)
    assert driven.server.exchanged(body)["error"]["code"] in (-32700, -32600, -32602)
    driven.server.until(lambda: driven.events_of_new_requests(before))
    (failed,) = driven.events_of_new_requests(before)
    assert failed["event"] == "tool.request_parse_failed" and failed["error"] and failed["request_id"]
    assert driven.read(question=None).text == TEXT


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "exit_code"),
    [
        ("read", {"file_path": "nowhere.txt"}, "ENOENT", None),
        ("read", {"file_path": "."}, "EISDIR", None),
        ("read", {"file_path": "/dev/null"}, "not_regular", None),
        ("bash", {"command": "echo some; exit 3"}, "nonzero_exit", 3),
        ("bash", {"command": "kill -9 $$"}, "nonzero_exit", -signal.SIGKILL),
        ("bash", {"command": "true", "cwd": "nowhere"}, "ENOENT", None),
        ("grep", {"pattern": "("}, "bad_pattern", None),
        ("grep", {"pattern": "a", "paths": ["nowhere"]}, "ENOENT", None),
    ],
)
def test_a_tool_that_fails_says_why_and_what_it_gave(
    driven: Driven, tool: str, arguments: dict[str, Any], code: str, exit_code: int | None
) -> None:
    answer = driven.server.call(tool, {**arguments, "context_focus_question": QUESTION})
    assert answer.is_error and answer.about["error"]["code"] == code and answer.about.get("exit_code") == exit_code
    failed = driven.events(answer, "tool.request_received", "tool.exec_start", "tool.exec_failed")[-1]
    assert failed["error_code"] == code and failed["duration_ms"] >= 0
    assert failed["error"] == (code if exit_code is None else f"exit code {exit_code}")
    assert failed["exit_code"] == exit_code
    assert ("some" in answer.text) == (exit_code == 3)
    assert driven.pruner.asked == []


def test_a_question_about_a_command_that_fails_is_answered_with_its_error(driven: Driven) -> None:
    (driven.folder / "build.log").write_text(TEXT + "src/net/socket.cc:88:14: error: no member named 'fd'\n" + TEXT)
    asked = {"context_focus_question": "Why did the build of the socket fail?"}
    answer = driven.server.call("bash", {"command": "cat build.log; exit 2", **asked})
    assert answer.is_error and answer.about["exit_code"] == 2 and answer.about["pruning"]["applied"]
    assert "error: no member named 'fd'" in answer.text and len(answer.text) < len(TEXT) / 2
    assert "lines left out" in answer.text and driven.pruner.asked == []
    kept = driven.server.call("read", {"file_path": answer.about["ref"]})
    assert kept.text == (driven.folder / "build.log").read_text()


def test_the_reference_of_a_range_has_the_numbers_of_the_file(driven: Driven) -> None:
    driven.set(endpoint="builtin")
    lines = [f"line {number} of a file that is about nothing in particular" for number in range(1, 401)]
    lines[299] = "the timeout decides how long the server waits"
    (driven.folder / "file.txt").write_text("\n".join(lines))
    asked = {"context_focus_question": QUESTION}
    answer = driven.server.call("read", {"file_path": "file.txt", "start_line": 201, "end_line": 390, **asked})
    first, last = map(int, re.findall(r"left out: (\d+)-(\d+)", answer.text)[0])
    assert first >= 201
    gap = driven.server.call("read", {"file_path": answer.about["ref"], "start_line": first, "end_line": last})
    assert gap.text.split("\n") == lines[first - 1 : last]
    outside = driven.server.call("read", {"file_path": answer.about["ref"], "start_line": 391})
    assert outside.is_error and "201 to 390" in outside.text


def test_a_key_that_is_read_in_part_is_masked(driven: Driven) -> None:
    body = [f"MIIEpAIBAAKCAQEA{number:02d}abcDEF0123456789+/abcDEF0123456789xyz" for number in range(24)]
    lines = [
        "# a key",
        "-----BEGIN RSA PRIVATE KEY-----",
        *body,
        "-----END RSA PRIVATE KEY-----",
        "after it",
        "the end",
    ]
    (driven.folder / "key.pem").write_text("\n".join(lines))
    for place in ({"start_line": 3, "end_line": 20}, {"around_line": 12, "radius": 5}, {"start_line": 20}):
        answer = driven.server.call("read", {"file_path": "key.pem", **place})
        assert "MIIEpAIBAAKCAQEA" not in answer.text and "[redacted: private-key]" in answer.text
    assert driven.server.call("read", {"file_path": "key.pem", "start_line": 28}).text == "after it\nthe end"


def test_a_pruned_text_with_a_line_that_is_too_long_is_not_empty(driven: Driven) -> None:
    driven.pruner.reply = {"pruned_code": f"first {60_000 * 'q'}\nsecond\nERROR: it broke"}
    answer = driven.read(TEXT + 70_000 * "q")
    assert answer.text.startswith("first qqq") and "second\nERROR: it broke" in answer.text


@pytest.mark.parametrize(
    "params", [{"name": "read", "arguments": "x"}, {"arguments": {}}, {"name": 5}, {"name": "read", "arguments": [1]}]
)
def test_a_call_that_the_protocol_does_not_allow_is_noted(driven: Driven, params: dict[str, Any]) -> None:
    before = len(driven.server.events)
    assert driven.server.ask("tools/call", params)["error"]["code"] == -32602
    driven.server.until(lambda: len(driven.events_of_new_requests(before)) >= 2)
    assert [record["event"] for record in driven.events_of_new_requests(before)] == [
        "tool.request_received",
        "tool.request_invalid",
    ]


def test_an_id_that_is_used_twice_at_a_time_confuses_nothing(driven: Driven) -> None:
    if driven.server.port:
        pytest.skip("over HTTP each request has a connection of its own")
    before = len(driven.server.events)
    for id, command in ((7, "until [ -e go ]; do :; done"), ("7", "true"), (7, "touch go")):
        params = {"name": "bash", "arguments": {"command": command}}
        driven.server.sent(json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).encode())
    for _ in range(3):
        driven.server.received()
    (driven.folder / "go").unlink()

    def ended() -> bool:
        return [record["event"] for record in driven.server.events[before:]].count("tool.respond_ok") == 3

    driven.server.until(ended)


def test_a_command_that_takes_too_long_is_ended(driven: Driven) -> None:
    answer = driven.server.call("bash", {"command": "echo some; exec tail -f /dev/null", "timeout_ms": 200})
    assert answer.is_error and answer.about["error"]["code"] == "timeout" and "some" in answer.text
    late, failed = driven.events(
        answer, "tool.request_received", "tool.exec_start", "tool.exec_timeout", "tool.exec_failed"
    )[-2:]
    assert late["timeout_ms"] == 200 and failed["error_code"] == "timeout"


DIFF = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"


@pytest.mark.parametrize(
    ("settings", "text", "reason"),
    [
        ({"enabled": False}, TEXT, "disabled_or_unconfigured"),
        ({"endpoint": "none"}, TEXT, "disabled_or_unconfigured"),
        ({"max_prune_input_bytes": 2_000}, TEXT, "input_too_large"),
        ({}, "", "not_prunable"),
        ({}, "\n\n", "not_prunable"),
        ({}, DIFF, "not_prunable"),
    ],
)
def test_where_a_pruner_is_not_asked_a_text_stays_as_it_is(
    driven: Driven, settings: dict[str, Any], text: str, reason: str
) -> None:
    driven.set(**settings)
    answer = driven.read(text)
    assert answer.text == text and answer.about["pruning"]["reason"] == reason
    driven.events(answer, *BEFORE, RAW)
    assert driven.pruner.asked == []


@pytest.mark.parametrize(
    "reply",
    [
        {"pruned_code": "line 7\n(filtered 3 lines)", "code": TEXT},
        {"content": "line 7\n(filtered 3 lines)"},
        {"text": "line 7\n(filtered 3 lines)", "pruned_code": None, "content": 3},
        {
            "score": 0.91,
            "pruned_code": "line 7\n(filtered 3 lines)",
            "token_scores": [[f"token{number}", 0.123456789] for number in range(20_000)],
            "kept_frags": [7],
            "origin_token_cnt": 900,
            "left_token_cnt": 3,
            "model_input_token_cnt": 1_000,
            "error_msg": None,
        },
    ],
    ids=["pruned_code", "content", "text", "SWE-Pruner"],
)
def test_a_question_gets_what_the_pruner_keeps(driven: Driven, reply: dict[str, Any]) -> None:
    driven.pruner.reply = reply
    answer = driven.read()
    assert answer.text == "line 7\n(filtered 3 lines)"
    assert answer.about["pruning"] == {
        "attempted": True, "applied": True, "fallback": False, "kept_lines": 1, "total_lines": 200,
    }  # fmt: skip
    called, ok, responded = driven.events(answer, *ASKED, "pruner.call_ok", RAW)[-3:]
    assert called["endpoint"] == f"{driven.pruner.url}/prune" and responded["mode"] == "pruned"
    assert ok["pruned_bytes"] == len(answer.text) and ok["duration_ms"] >= 0
    assert driven.pruner.questions == [{"code": TEXT, "query": QUESTION}] and driven.pruner.paths[-1] == "/prune"


def test_the_built_in_pruner_leaves_a_text_whole_that_the_question_does_not_tell_apart(driven: Driven) -> None:
    driven.set(endpoint="builtin")
    answer = driven.read(question="zebra quagga okapi")
    assert answer.text == TEXT
    assert answer.about["pruning"]["reason"] == "not_prunable" and answer.about["pruning"]["attempted"]
    assert driven.events(answer, *ASKED, "pruner.call_ok", RAW)[-1]["mode"] == "raw"


def test_a_pruner_that_is_silent_costs_no_more_than_its_time(driven: Driven) -> None:
    driven.pruner.silent = True
    answer = driven.read()
    assert answer.text == TEXT
    assert answer.about["pruning"] | {"summary": ""} == {
        "attempted": True, "applied": False, "fallback": True, "error": "timeout", "summary": "",
    }  # fmt: skip
    late, failed, responded = driven.events(answer, *ASKED, "pruner.timeout", "pruner.call_failed", RAW)[-3:]
    assert late["timeout_ms"] == TIMEOUT_MS and failed["reason"] == "timeout" and responded["mode"] == "raw"
    assert failed["duration_ms"] >= TIMEOUT_MS


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9", "http://nowhere.invalid/prune", "http://[::", "http://:0"])
def test_a_pruner_that_is_not_there_leaves_the_output_as_it_is(driven: Driven, endpoint: str) -> None:
    driven.set(endpoint=endpoint)
    answer = driven.read()
    assert answer.text == TEXT and answer.about["pruning"]["error"] in ("http_error", "timeout")


UNUSABLE: list[Any] = [
    b"", b"not JSON", b"[]", b"null", b"{}", b'{"pruned_code": 3}', b'{"code": "an echo"}', b'{"pruned_code": ""}',
    b'{"pruned_code": "  \\n"}', {"pruned_code": "(filtered 3 lines)"}, {"pruned_code": TEXT + "more"},
    {"pruned_code": "x", "error_msg": "out of memory"}, b"\xff\xfe", b"[" * 100_000, 100,
]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "reply", "error"),
    [
        *((status, b"", "http_error") for status in (301, 404, 500)),
        *((200, reply, "invalid_response") for reply in UNUSABLE),
    ],
    ids=str,
)
def test_a_pruner_whose_reply_cannot_be_used_leaves_the_output_as_it_is(
    driven: Driven, status: int, reply: Any, error: str
) -> None:
    driven.set(timeout_ms=20_000)
    driven.pruner.status, driven.pruner.reply = status, reply
    answer = driven.read()
    assert answer.text == TEXT and answer.about["pruning"]["error"] == error
    wrong, failed, _ = driven.events(answer, *ASKED, f"pruner.{error}", "pruner.call_failed", RAW)[-3:]
    assert wrong.get("status") == status or wrong["error"]
    assert failed["reason"] == error


@pytest.mark.thorough
@pytest.mark.parametrize("last", ["pruner.call_failed", "pruner.call_ok"])
def test_an_answer_that_cannot_be_written_is_noted(driven: Driven, last: str) -> None:
    """The client leaves while the answer is being made, which takes a while: the text is long, and looked through."""
    if not driven.server.port:
        pytest.skip("over stdio the server ends with its client")
    (driven.folder / "file.txt").write_text(80 * TEXT)
    driven.set(timeout_ms=20_000)
    driven.pruner.reply = {"pruned_code": 79 * TEXT}
    driven.pruner.status = 500 if last == "pruner.call_failed" else 200
    arguments = {"file_path": "file.txt", "context_focus_question": QUESTION}
    call = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "read", "arguments": arguments}}

    def left_at_last() -> bool:
        before = len(driven.server.events)
        connection = driven.server.sent_over_http(json.dumps(call).encode())
        driven.server.until(lambda: last in [record["event"] for record in driven.server.events[before:]])
        connection.close()
        ends = ("tool.respond_failed", "tool.respond_ok")
        driven.server.until(lambda: driven.server.events[-1]["event"] in ends)
        return [record["event"] for record in driven.server.events[-2:]] == [last, "tool.respond_failed"]

    assert any(left_at_last() for _ in range(20))
    assert driven.read(question=None).text == TEXT


@pytest.mark.parametrize("at", ["tool.exec_start", "pruner.call_start"])
def test_a_client_that_leaves_ends_its_request_and_what_it_runs(driven: Driven, at: str) -> None:
    if not driven.server.port:
        pytest.skip("over stdio the server ends with its client")
    driven.set(timeout_ms=20_000)
    driven.pruner.silent = True
    before = len(driven.server.events)
    command = "exec tail -f /dev/null" if at == "tool.exec_start" else f"cat {driven.folder / 'file.txt'}"
    (driven.folder / "file.txt").write_text(TEXT)
    params = {"name": "bash", "arguments": {"command": command, "context_focus_question": QUESTION}}
    call = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params}
    connection = driven.server.sent_over_http(json.dumps(call).encode())
    driven.server.until(lambda: at in [record["event"] for record in driven.server.events[before:]])
    connection.close()
    driven.server.until(lambda: driven.server.events[-1]["event"] == "tool.respond_failed")
    assert driven.server.events[-1]["error"] == "the client left"
    driven.pruner.silent = False
    assert driven.read(question=None).text == TEXT


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="needs prlimit")
def test_a_defect_ends_one_request_and_says_nothing_of_itself(tmp_path: Path) -> None:
    """The machine has no more memory for the server, which has little in reserve either."""
    (tmp_path / "file.txt").write_text(4_000 * TEXT)
    (tmp_path / "small.txt").write_text(TEXT)
    with server(tmp_path, MALLOC_ARENA_MAX="1") as running:
        running.call("read", {"file_path": "small.txt"})
        pid = running.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_AS)
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
        enough_for_an_error = pages * resource.getpagesize() + 10 * 1024 * 1024
        resource.prlimit(pid, resource.RLIMIT_AS, (enough_for_an_error, before[1]))
        answer = running.call("read", {"file_path": "file.txt"})
        resource.prlimit(pid, resource.RLIMIT_AS, before)
        reasons = ("MemoryError", "can't start new thread")  # whichever comes first
        assert answer.refusal["code"] == -32603 and not any(one in json.dumps(answer.message) for one in reasons)
        defect = running.awaited("tool.internal_error")
        assert defect["request_id"] == answer.refusal["data"]["request_id"]
        assert any(one in defect["stack"] for one in reasons)
        names = ["tool.request_received", "tool.exec_start", "tool.internal_error"]
        assert running.of_request(defect["request_id"]) == names
        assert running.call("read", {"file_path": "file.txt", "end_line": 200}).text == TEXT


def test_no_answer_is_larger_than_its_mode_allows(driven: Driven) -> None:
    text = "".join(f"行{number}：これは何についてでもない行です。ただの長い行です\n" for number in range(3_000))
    driven.pruner.reply = {"pruned_code": text[:-1]}
    for mode, most in (("minimal", 10_240), ("standard", 40_960), ("verbose", 102_400)):
        (driven.folder / "file.txt").write_text(text)
        for tool, asked in (
            ("read", {"file_path": "file.txt"}),
            ("bash", {"command": "cat file.txt"}),
            ("bash", {"command": "cat file.txt; exit 1"}),
            ("read", {"file_path": "file.txt", "context_focus_question": QUESTION}),
            ("bash", {"command": "cat file.txt; exit 1", "context_focus_question": "何についての行ですか 行70"}),
        ):
            answer = driven.server.call(tool, {**asked, "mode": mode})
            assert len(answer.text.encode()) <= most, (tool, asked, mode)


def test_requests_are_recorded_as_figures_without_texts(driven: Driven) -> None:
    driven.pruner.reply = {"pruned_code": "line 7"}
    answer = driven.read()
    file = driven.folder / "data" / "telemetry.sqlite3"

    def recorded() -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            found = "SELECT tool, outcome, pruned, bytes FROM request WHERE request_id = ?"
            return connection.execute(found, [answer.about["request_id"]]).fetchall()

    driven.server.until(file.exists)
    size = sum(len(block["text"].encode()) for block in answer.message["result"]["content"])
    assert driven.server.until(recorded) == [("read", "ok", 1, size)]
    assert QUESTION.encode() not in file.read_bytes() and b"file.txt" not in file.read_bytes()


@pytest.mark.thorough
def test_a_command_has_the_environment_of_the_server_s_client(driven: Driven) -> None:
    """agtrace lets pydantic load no plugins; that is nothing for the programs of others."""
    name = "PYDANTIC_DISABLE_PLUGINS"
    answer = driven.server.call("bash", {"command": f"printf %s ${{{name}-unset}}"})
    assert answer.text == os.environ.get(name, "unset")
