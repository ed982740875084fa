"""Requests that no client sends: each gets an answer within the contract or an error, and the server lives on."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agtrace.problems import Problem
from agtrace.serving.prompts import PROMPTS
from agtrace.serving.server import LARGEST_REQUEST
from agtrace.shaping.shape import Answer
from agtrace.tools import TOOLS
from agtrace.tools.arguments import input_schema
from tests.agtrace.asking import budget, check, check_shape, schema_of
from tests.conftest import SAMPLES, keep_rules
from tests.depth import depth
from tests.faults.serving import Server, line, serving
from tests.indexer.strange import places
from tests.worlds import STRANGE, VALUES

pytestmark = pytest.mark.thorough

FOUND = [json.loads(one) for one in (Path(__file__).with_name("requests.jsonl")).read_text().splitlines()]
"""Requests that once broke a law."""
CODES = frozenset(kind.code for kind in Problem.__subclasses__()) - {"internal_error"}
PYTHON = re.compile(
    r"Traceback \(most|object at 0x|site-packages|pydantic|validation error|NoneType|[a-z]+\.py\b|\b[A-Z]\w+Error\b|"
    r"Exception|unhashable|codec can't|positional argument"
)
"""The text of a Python exception."""

PINGS = itertools.count(2**41)
SESSION = "5be1c2d7-90f4-4a61-b1c8-7d20e6a4f315"
WORDS = (
    *(r"(a+)+$", r"((a{1,200}){1,200}){1,200}", "(?P<", "[", "\\", "(?=x)", r"(\w+)\1+$", "a{99999999}", "(?R)", "a**"),
    *("(?i)" * 500 + "a", "(" * 500 + "a" + ")" * 500, ".{0,60000}" * 9, "x" * 2_000, "|" * 900, "(?V1)[a--b]"),
    *(
        "ax:",
        "ax://[x]/",
        "ax://session/../../etc/passwd",
        "ax://event/x/-1",
        f"ax://event/{SESSION}/٣",
        "ax://analysis/",
    ),
    *(
        "ax://report/9999999d",
        "ax://report/10000-01-01",
        "ax://session/" + "x" * 5_000,
        "file:///etc/passwd",
        "http://[::1",
    ),
    *("today", "٣d", "1e9d", "99999999999999d", "2026-13-45", "0001-01-01T00:00:00+14:00", "2026-10-01T10:00:00+99:00"),
    *(
        "tide",
        "e",
        ".",
        "\n",
        "é",
        "ﬁ",
        "İ",
        "ß" * 999,
        '"',
        "潮",
        "x.y",
        f"{'A' * 60}.AAAA",
        SESSION.upper(),
        SESSION[:4],
    ),
)
"""Patterns, references, moments, cursors and words."""
SCALARS: tuple[Any, ...] = (
    True,
    0,
    -1,
    2**53 + 1,
    2**64,
    10**400,
    0.5,
    1e300,
    [],
    {},
    [[]],
    {"": ""},
    [None] * 99,
    "x" * 70_000,
)
METHODS = ("", "ping", "tools/list", "tools/call/", "resources/list", "resources/subscribe", "logging/setLevel",
           "completion/complete", "sampling/createMessage", "rpc.discover", "notifications/cancelled")  # fmt: skip

VALUE = st.one_of(st.sampled_from(WORDS), st.sampled_from(STRANGE), st.sampled_from(SCALARS))


@st.composite
def _calls(draw: st.DrawFn) -> tuple[str, Any]:
    """A tool with arguments of which some are valid."""
    name = draw(st.sampled_from(sorted(TOOLS)))
    properties = input_schema(TOOLS[name].arguments)["properties"]
    chosen = draw(st.sets(st.sampled_from(sorted(properties)), max_size=4))
    given = {argument: VALUES[argument][0] for argument in input_schema(TOOLS[name].arguments).get("required", [])}
    for argument in sorted(chosen):
        valid = VALUES.get(argument) or properties[argument].get("enum") or [5, True]
        given[argument] = draw(st.one_of(st.sampled_from(valid), VALUE))
    if draw(st.integers(0, 9)) == 0:
        given[draw(st.sampled_from(("", "__class__", "潮", "x" * 3_000, "Query ")))] = 1
    return "tools/call", {"name": name, "arguments": draw(st.sampled_from((given, given, given, given, [given], None)))}


REQUESTS = st.one_of(
    _calls(),
    _calls(),
    st.tuples(st.just("resources/read"), st.fixed_dictionaries({"uri": st.sampled_from(WORDS)})),
    st.tuples(
        st.just("prompts/get"),
        st.fixed_dictionaries(
            {
                "name": st.sampled_from([*PROMPTS, "x"]),
                "arguments": st.dictionaries(st.sampled_from(["id1", "session", "x"]), VALUE),
            }
        ),
    ),
    st.tuples(
        st.sampled_from(METHODS), st.sampled_from((None, {}, {"cursor": "x"}, {"_meta": {"progressToken": 1}}, [], 5))
    ),
)


@pytest.fixture(scope="module")
def server(compiled_rules: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that lives through the whole module, and has no defect to log."""
    folder = tmp_path_factory.mktemp("requests")
    keep_rules(compiled_rules, folder / "data")
    shutil.copytree(SAMPLES / "claude", folder / ".claude")
    environment = {"HOME": str(folder), "AGTRACE_DATA_DIR": str(folder / "data"), "AGTRACE_SEARCH_TIMEOUT_SECONDS": "1"}
    with serving(folder / "stderr", **environment) as server:
        server.greet()
        yield server
        server.ends()
        assert server.process.returncode == 0
    logged = [json.loads(record) for record in (folder / "stderr").read_text().splitlines()]
    assert [record for record in logged if record["event"] == "internal_error" or "trace" in record] == []


def said(server: Server, frame: bytes, awaited: int | None = None) -> Iterator[Any]:
    """Send a line; yield what is said until it is answered, or, if it may stay without an answer, a ping after it."""
    end = next(PINGS) if awaited is None else awaited
    server.send(frame.replace(b"\n", b" ") + b"\n" + (line("ping", end) if awaited is None else b""))
    for message in server.messages():
        yield message
        if message.get("id") == end:
            return
    raise AssertionError("the server has fallen silent")


def check_message(message: Any) -> str:
    """Check what is said to any line; return the words of an error."""
    assert message["jsonrpc"] == "2.0" and ("error" in message) != ("result" in message)
    if "error" not in message:
        return ""
    assert message["error"]["code"] != -32603, "an internal error"
    assert message["error"]["message"]
    return str(message["error"]["message"])


def check_call(server: Server, frame: dict[str, Any]) -> None:
    """Check the answer to a whole request, which must come and whose errors may quote it, but no exception."""
    params, sent = frame["params"], json.dumps(frame).encode()
    message = next(one for one in said(server, sent, frame["id"]) if one.get("id") == frame["id"])
    told = check_message(message)
    if frame["method"] == "tools/call" and isinstance(params["arguments"], dict) and not told:
        content, *_ = message["result"]["content"]
        answer = Answer(content["text"], message["result"]["structuredContent"], bool(message["result"].get("isError")))
        schema_of(params["name"]).validate(answer.value)
        check(answer, budget(params["name"], params["arguments"]))
        check_shape(params["name"], answer)
        if answer.is_error:
            assert answer.value["error"]["code"] in CODES
            told = answer.value["error"]["message"]
    assert [piece[0] for piece in PYTHON.finditer(told) if piece[0].encode() not in sent] == []


@settings(
    max_examples=depth(120, 5_000), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    asked=REQUESTS,
    number=st.integers(1, 2**40),
    spoilt=VALUE,
    random=st.randoms(use_true_random=False),
    is_whole=st.booleans(),
)
def test_no_mutation_of_a_request_breaks_a_law(
    server: Server, asked: tuple[str, Any], number: int, spoilt: Any, random: Random, is_whole: bool
) -> None:
    """It is sent as it is, or with one of its values or some of its bytes spoilt."""
    method, params = asked
    frame: Any = {"jsonrpc": "2.0", "id": number, "method": method, "params": deepcopy(params)}
    if is_whole and method in ("tools/call", "resources/read", "prompts/get"):
        check_call(server, frame)
        return
    holder, key = random.choice([*places(frame)])
    holder[key] = spoilt
    data = bytearray(json.dumps(frame).encode())
    for _ in range(random.choice((0, 0, 1, 8))):
        data[random.randrange(len(data))] = random.choice(b'\0\xff\xc3"\\{}[],: \t\r0x')
    for message in said(server, bytes(data[: LARGEST_REQUEST + 1])):
        check_message(message)


@pytest.mark.parametrize("frame", FOUND, ids=lambda frame: str(frame["id"]))
def test_requests_that_broke_a_law_are_answered(server: Server, frame: dict[str, Any]) -> None:
    """With an error that speaks of the request, and never with silence."""
    check_call(server, frame)
