"""The limits of known clients: no client cuts an answer again."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from agtrace.answers.log import silent
from agtrace.answers.service import Service
from agtrace.answers.telemetry.recorder import Origin
from agtrace.settings import ABSOLUTE_MAX_BYTES
from agtrace.settings.limits import most_bytes
from tests.agtrace.asking import Asker, claude_log


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("codex-mcp-client", 11_900),
        ("gemini-cli-mcp-client", 39_100),
        ("gemini-cli-mcp-client-agtrace", 39_100),
        ("claude-code", 49_100),
        ("Claude-Code", 49_100),
        ("claude-codec", ABSOLUTE_MAX_BYTES),
        ("my-claude-code", ABSOLUTE_MAX_BYTES),
        ("", ABSOLUTE_MAX_BYTES),
        (None, ABSOLUTE_MAX_BYTES),
    ],
)
def test_a_client_is_known_by_the_name_it_gives_itself(name: str | None, most: int) -> None:
    assert most_bytes(name) == most


@pytest.mark.parametrize(
    ("setting", "asked", "client", "largest"),
    [
        (102_400, 90_000, 32_000, 32_000),
        (102_400, 20_000, 32_000, 20_000),
        (12_000, 90_000, 32_000, 12_000),
        (102_400, 90_000, ABSOLUTE_MAX_BYTES, 90_000),
    ],
)
def test_the_smallest_of_setting_request_and_client_holds(
    tmp_path: Path, setting: int, asked: int, client: int, largest: int
) -> None:
    output = "\n".join(f"{number:03} {'潮' * 300}" for number in range(200))
    claude_log(tmp_path / "logs", "b16e7e47-13ae-41a6-a6df-f287e0552835").call("Bash", {"command": "tides"}, output)
    asker = Asker(tmp_path / "data", tmp_path / "logs", most=setting)
    settings = replace(asker.settings, clients={"tern": client})
    arguments = {"session_id": "b16e7e47", "event_index": 1, "max_bytes": asked}
    given = Service(settings, log=silent).ask("get_event_details", arguments, Origin("tern"))
    assert largest * 0.8 < len(given.text.encode()) <= largest
    assert given.value["chunk"]["next_cursor"]
