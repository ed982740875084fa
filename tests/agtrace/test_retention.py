"""What `agtrace doctor` says of agents that delete their logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.providers.provider import Retention
from agtrace_indexer.providers.registry import AGENTS

from tests.agtrace.live_logs import Claude, Gemini
from tests.agtrace.terminal import agtrace_here, index_here


def retention(agent: str, home: Path, settings: Any = None, **environment: str) -> Retention:
    """What is read of an agent's settings, which are written first."""
    folder = home / {"claude_code": ".claude", "gemini": ".gemini"}[agent]
    if settings is not None:
        folder.mkdir(exist_ok=True)
        text = settings if isinstance(settings, str) else json.dumps(settings)
        (folder / "settings.json").write_text(text)
    read = AGENTS[agent].retention
    assert read is not None
    (found,) = read()(environment, home)
    return found


@pytest.mark.parametrize(
    ("settings", "days", "is_set"),
    [
        (None, 30, False), ({}, 30, False), ({"cleanupPeriodDays": 7}, 7, True), ({"cleanupPeriodDays": 0}, 0, True),
        ({"cleanupPeriodDays": "7"}, 30, False), ({"cleanupPeriodDays": True}, 30, False), ("[1]", 30, False),
        ("{broken", 30, False), ({"cleanupPeriodDays": -1}, 30, False),
    ],
)  # fmt: skip
def test_claude_code_keeps_logs_for_30_days_unless_its_settings_say_otherwise(
    own_home: Path, settings: Any, days: float, is_set: bool
) -> None:
    found = retention("claude_code", own_home, settings)
    assert (found.days, found.certain, found.is_set) == (days, True, is_set)


def test_the_folder_that_claude_config_dir_names_has_settings_of_its_own(own_home: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "settings.json").write_text('{"cleanupPeriodDays": 365}')
    found = retention("claude_code", own_home, {"cleanupPeriodDays": 1}, CLAUDE_CONFIG_DIR=str(moved))
    assert (found.days, found.file) == (365, str(moved / "settings.json"))


@pytest.mark.parametrize(
    ("settings", "days", "certain"),
    [
        (None, 30, False),
        ({"general": {"sessionRetention": {"enabled": False}}}, None, True),
        ({"general": {"sessionRetention": {"enabled": True, "maxAge": "24h"}}}, 1, True),
        ({"general": {"sessionRetention": {"enabled": True, "maxAge": "2w"}}}, 14, True),
        ({"general": {"sessionRetention": {"enabled": True, "maxAge": "soon"}}}, 30, True),
        ({"general": {"sessionRetention": {"maxAge": "7d"}}}, 7, False),
        ({"general": []}, 30, False),
        ('{// a comment\n"general": {"sessionRetention": {"enabled": true, "maxAge": "9d"}} /* too */}', 9, True),
    ],
)
def test_gemini_s_retention_is_certain_only_where_it_is_switched_on_or_off(
    own_home: Path, settings: Any, days: float | None, certain: bool
) -> None:
    found = retention("gemini", own_home, settings)
    assert (found.days, found.certain) == (days, certain)


def test_a_hook_that_runs_agtrace_is_seen(own_home: Path) -> None:
    hooks = {"SessionStart": [{"hooks": [{"type": "command", "command": "/usr/bin/agtrace index"}]}]}
    assert retention("claude_code", own_home, {"hooks": hooks}).refreshed
    assert not retention("claude_code", own_home, {"hooks": {"Stop": [{"hooks": [{"command": "say done"}]}]}}).refreshed


@pytest.mark.parametrize(
    ("plugins", "is_on"), [({"agtrace@agtrace": True}, True), ({"agtrace@x": False}, False), (3, False)]
)
def test_our_plugin_runs_agtrace_where_it_is_enabled(own_home: Path, plugins: Any, is_on: bool) -> None:
    assert retention("claude_code", own_home, {"enabledPlugins": plugins}).refreshed is is_on


def doctor(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = agtrace_here("doctor", "--json").json()
    return found


def test_doctor_says_who_deletes_logs_and_how_to_keep_them(own_home: Path) -> None:
    Claude(own_home).asked("Run the tests.")
    Gemini(own_home).asked("Export the chart.")
    claude, gemini = doctor(own_home)["retention"]
    assert (claude["agent"], claude["settings"][0]["days"], claude["kept_fresh"]) == ("Claude Code", 30, False)
    assert "agtrace service --apply" in claude["advice"][0] and "set cleanupPeriodDays" in claude["advice"][0]
    assert gemini["advice"] == [], "nothing that isn't certain"
    text = agtrace_here("doctor")
    assert "Claude Code deletes them 30 days after their last change (cleanupPeriodDays isn't set in" in text.out
    assert text.code == 0, "that is no trouble with the index"


def test_doctor_advises_nothing_where_a_service_keeps_the_index_fresh(own_home: Path) -> None:
    Claude(own_home).asked("Run the tests.")
    unit = own_home / ".config" / "systemd" / "user" / "agtrace.service"
    unit.parent.mkdir(parents=True)
    unit.touch()
    (claude,) = doctor(own_home)["retention"]
    assert claude["kept_fresh"] and claude["advice"] == []


def test_doctor_counts_the_sessions_that_only_the_index_still_has(own_home: Path) -> None:
    kept, deleted = Claude(own_home, 1), Claude(own_home, 2)
    for log in (kept, deleted):
        log.asked("Run the tests.")
    index_here(own_home / ".claude" / "projects")
    deleted.path.unlink()
    (claude,) = doctor(own_home)["retention"]
    assert claude["deleted_sessions"] == 1
    assert "Claude Code has deleted the logs of 1 session that the index still has" in agtrace_here("doctor").out
