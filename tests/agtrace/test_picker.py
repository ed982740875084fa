"""Bare `agtrace`: a picker of sessions at a terminal, driven by keys; the help elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widgets import OptionList

from agtrace.answers.log import silent
from agtrace.answers.service import Service
from agtrace.commands.pick import _Source
from agtrace.render.picker import Choice, Picker
from agtrace.settings import load
from tests.agtrace.pseudo_terminal import in_terminal
from tests.agtrace.terminal import agtrace
from tests.agtrace.test_watch_app import until

Driven = Callable[[Pilot[Choice], Any], Coroutine[Any, Any, None]]


def picked(drive: Driven, *, size: tuple[int, int] = (120, 30)) -> Choice | None:
    """What is chosen by keys, over the index that commands use."""

    async def run() -> Choice | None:
        app = Picker(_Source(Service(load(), refresh_seconds=0, log=silent)))
        async with app.run_test(size=size) as pilot:
            await drive(pilot, app)
        return app.return_value

    return asyncio.run(run())


def test_typing_searches_all_sessions_and_enter_reads_the_best(indexed: Path) -> None:
    async def drive(pilot: Pilot[Any], app: Any) -> None:
        await until(pilot, app, "tidepool")
        await pilot.press(*"lock file")
        await until(pilot, app, lambda shown: "lockfile" in shown or "lock file" in shown.partition("\n")[2])
        await pilot.press("enter")

    chosen = picked(drive)
    assert chosen is not None and chosen.command == "show"
    assert agtrace("show", chosen.session_id, "--level", "summary").code == 0


def test_in_the_list_letters_are_commands_and_the_conversation_follows_the_cursor(indexed: Path) -> None:
    async def drive(pilot: Pilot[Any], app: Any) -> None:
        await until(pilot, app, "turn ")
        await pilot.press("down", "down")
        assert app.query_one(OptionList).highlighted == 1
        await pilot.press("y")
        await until(pilot, app, "copied ")
        await pilot.press("r")

    chosen = picked(drive)
    assert chosen is not None and chosen.command == "resume" and chosen.session_id


def test_what_nothing_is_about_lists_nothing_and_escape_chooses_nothing(indexed: Path) -> None:
    async def drive(pilot: Pilot[Any], app: Any) -> None:
        await until(pilot, app, "tidepool")
        await pilot.press(*"zzqqxx")
        shown = await until(pilot, app, "nothing was found")
        assert "tidepool" not in shown
        await pilot.press("enter")
        assert app.is_running
        await pilot.press("escape")

    assert picked(drive, size=(60, 20)) is None


def test_without_a_terminal_bare_agtrace_prints_the_help(indexed: Path) -> None:
    said = agtrace()
    assert "Find and read:" in said.out and said.code == 2


def test_at_a_terminal_a_session_is_read_and_left_for_the_list(indexed: Path) -> None:
    with in_terminal(columns=120, PAGER="less") as terminal:
        terminal.until("type to search")
        terminal.press("locked\r")
        terminal.until("turn 0")
        terminal.text = ""
        terminal.press("q")
        terminal.until("claude_code")
        terminal.press("\x1b")
        assert terminal.end() == 0
