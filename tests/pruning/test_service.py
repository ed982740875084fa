"""`agtrace pruner`, as a client sees it that was written for SWE-Pruner."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agtrace.terminal import agtrace_here
from tests.conftest import keep_rules
from tests.pruning.driving import server

TEXT = "\n\n".join(
    f"def step_{number}(things):\n    for thing in things:\n        thing.move({number})\n    return things"
    for number in range(60)
)
WANTED = "def wait(seconds):\n    # the default timeout of every request\n    return seconds or 30"
CODE = f"{TEXT}\n\n{WANTED}\n\n{TEXT}\n"
QUESTION = "Which default timeout does a request have?"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, compiled_rules: Path) -> Iterator[str]:
    """The service on a free port."""
    data = tmp_path_factory.mktemp("service")
    keep_rules(compiled_rules, data)
    command = [sys.executable, "-m", "agtrace", "pruner", "--http", "127.0.0.1:0"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, env={**os.environ, "AGTRACE_DATA_DIR": str(data)}
    ) as process:
        assert process.stderr is not None
        listening = json.loads(process.stderr.readline())
        yield listening["url"]
        process.terminate()
        assert process.wait(10) == 0


def posted(url: str, body: bytes, **headers: str) -> tuple[int, Any]:
    """The status and the JSON that a request is answered with."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error) if error.headers["Content-Type"] == "application/json" else None


def test_it_answers_with_the_fields_of_the_original(url: str) -> None:
    asked = {"query": QUESTION, "code": CODE, "threshold": 0.5, "always_keep_first_frags": False}
    status, reply = posted(url, json.dumps(asked).encode())
    assert status == 200 and reply["error_msg"] is None and 0 <= reply["score"] <= 1
    assert WANTED in reply["pruned_code"] and len(reply["pruned_code"]) < len(CODE) / 2
    assert reply["left_token_cnt"] < reply["origin_token_cnt"] == reply["model_input_token_cnt"]
    lines = CODE.removesuffix("\n").split("\n")
    shown = [line for line in reply["pruned_code"].split("\n") if not line.startswith("(filtered ")]
    assert shown == [lines[number - 1] for number in reply["kept_frags"]]
    gaps = [int(line.split()[1]) for line in reply["pruned_code"].split("\n") if line.startswith("(filtered ")]
    assert sum(gaps) + len(shown) == len(lines)


def test_what_it_cannot_shorten_comes_back_whole(url: str) -> None:
    status, reply = posted(url, json.dumps({"query": QUESTION, "code": "one line"}).encode())
    assert status == 200 and reply["pruned_code"] == "one line" and reply["kept_frags"] == [1]


@pytest.mark.parametrize("body", [b"", b"nonsense", b"[]", b'{"query": "x"}', b'{"query": 1, "code": "x"}'])
def test_what_it_cannot_read_is_refused(url: str, body: bytes) -> None:
    status, reply = posted(url, body)
    assert status == 422 and reply["detail"]


def test_too_much_is_refused_before_it_is_read(url: str) -> None:
    assert posted(url, json.dumps({"query": "x", "code": "x" * 5_000_000}).encode())[0] == 413


def test_no_page_of_the_web_reaches_it_by_a_name_of_its_own(url: str) -> None:
    body = json.dumps({"query": "x", "code": "y"}).encode()
    assert posted(url, body, Host="attacker.example")[0] == 421
    assert posted(url, body, Origin="https://attacker.example")[0] == 403


def test_the_server_of_tools_can_ask_it(url: str, tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE)
    with server(tmp_path, AGTRACE_PRUNER__ENDPOINT=url) as running:
        answer = running.call("read", {"file_path": "code.py", "context_focus_question": QUESTION})
        assert WANTED in answer.text and "(filtered " in answer.text
        assert answer.about["pruning"]["applied"] and answer.about["pruning"]["total_lines"] == CODE.count("\n")


@pytest.mark.thorough
def test_it_listens_on_loopback_only() -> None:
    said = agtrace_here("pruner", "--http", "0.0.0.0:0")
    assert said.code == 2 and "can be reached from other machines" in said.err
