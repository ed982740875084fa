"""The server ends with its client, whatever it is doing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import keep_rules
from tests.faults import ending
from tests.faults.ending import Ground
from tests.faults.serving import AGTRACE, HELLO, SECONDS, call, line, serving

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def ground(compiled_rules: Path, tmp_path_factory: pytest.TempPathFactory) -> Ground:
    folder = tmp_path_factory.mktemp("ending")
    keep_rules(compiled_rules, folder / "data")
    return ending.ground(folder)


@pytest.mark.parametrize("story", ending.STORIES, ids=lambda story: story.__name__)
def test_no_process_of_the_server_outlives_its_client(story: Callable[[Ground], float], ground: Ground) -> None:
    """A search may take longer than is waited for here."""
    story(ground)
    assert "Traceback" not in (ground.folder / "stderr").read_text()


def test_what_is_nearly_answered_when_the_input_ends_is_still_answered(ground: Ground) -> None:
    """A shell's pipe closes the input behind the last question."""
    with serving(ground.folder / "stderr", **ground.environment) as server:
        server.greet()
        server.send(call(1, "list_sessions"))
        server.answer(1)
        server.send(call(2, "list_sessions"))
        assert server.process.stdin
        server.process.stdin.close()
        assert server.answer(2)["result"]["structuredContent"]["success"]


def test_what_was_asked_before_the_server_was_there_is_answered(ground: Ground) -> None:
    """`cat requests | agtrace mcp`: the pipe is closed before anybody reads it."""
    said = subprocess.run(
        [AGTRACE, "mcp"], input=HELLO + line("tools/list", 1), capture_output=True, timeout=SECONDS, check=False,
        env=ground.environment,
    )  # fmt: skip
    assert said.returncode == 0
    assert [json.loads(answer)["id"] for answer in said.stdout.splitlines()] == [0, 1]


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_without_a_pipe_to_speak_through_it_ends_with_a_sentence(closed: str, own_home: Path) -> None:
    command = ["sh", "-c", f'exec "$0" mcp {closed}', AGTRACE]
    ended = subprocess.run(command, input=HELLO, capture_output=True, timeout=SECONDS, check=False)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert ended.stderr == b"agtrace: stdin and stdout must be open: clients talk to the server through them\n"
