"""`agtrace watch` as a person sees it: the application, driven by keys, over logs that grow; and in a terminal."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.run import index
from textual.pilot import Pilot
from textual.widgets import OptionList

from agtrace.answers.activity_poller import ActivityPoller
from agtrace.commands.watch import _Source
from agtrace.render.tui import WatchApp
from agtrace.sessions.prices import load as load_prices
from agtrace.settings import load
from tests.agtrace.live_logs import Claude, Codex
from tests.agtrace.pseudo_terminal import SECONDS, in_terminal
from tests.agtrace.terminal import agtrace, agtrace_here

HOSTILE = "[red]red[/red] [@click=app.quit]x[/] \x1b[31mESC\x1b[0m \x1b]0;title\x07 [bold \u202e"

Watched = Callable[[Pilot[None], WatchApp], Coroutine[Any, Any, None]]


def watched(
    check: Watched, *, size: tuple[int, int] = (80, 24), session: str | None = None, within: float = 3600
) -> int:
    """Run the application until `check` is done; its exit code."""

    async def run() -> int:
        poller = ActivityPoller(load(), load_prices(None), within=within)
        with closing(poller):
            app = WatchApp(_Source(poller), session=session)
            async with app.run_test(size=size) as pilot:
                await check(pilot, app)
                app.exit(return_code=app.return_code or 0)
            return app.return_code or 0

    return asyncio.run(run())


def screen(app: WatchApp) -> str:
    """What is on the screen now, as text."""
    picture = app.export_screenshot()
    lines: dict[float, dict[float, str]] = {}
    for x, y, text in re.findall(r'<text[^>]*? x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', picture, re.DOTALL):
        lines.setdefault(float(y), {})[float(x)] = text
    found = "\n".join("".join(text for _, text in sorted(line.items())) for _, line in sorted(lines.items()))
    return re.sub(r"&#(\d+);", lambda code: chr(int(code[1])), found).replace("\xa0", " ").replace("&lt;", "<")


def below_the_head(shown: str) -> str:
    """The conversation on the screen: the head has the last message, too."""
    return shown.partition("────")[2]


async def until(pilot: Pilot[None], app: WatchApp, wanted: str | Callable[[str], bool]) -> str:
    """Wait until something is on the screen; what is there then."""
    end = time.monotonic() + SECONDS
    is_so = wanted if callable(wanted) else lambda text: str(wanted) in text
    while not is_so(shown := screen(app)):
        assert time.monotonic() < end, f"not there: {wanted}\n{shown}"
        await pilot.pause(0.08)
    return shown


def test_a_line_of_a_log_is_on_the_screen_as_it_is_written(own_home: Path) -> None:
    log = Claude(own_home, ago=0)
    log.asked("When does the tide ebb?")

    async def check(pilot: Pilot[None], app: WatchApp) -> None:
        await until(pilot, app, "thinking")
        for said in ("In two hours.", "No, in three."):
            log.says(said)
            shown = await until(pilot, app, said)
            assert "has answered" in shown and "tidepool" in shown and "1 waiting for you" in shown
            log.asked("Are you sure?")
            await until(pilot, app, "thinking")

    watched(check)


def test_enter_follows_a_session_and_escape_goes_back(own_home: Path) -> None:
    log, other = Claude(own_home, 1), Codex(own_home, 2, ago=60)
    log.asked("Run the tests.")
    log.calls("Bash", command="pytest -x")
    other.asked("How many rows?")

    async def check(pilot: Pilot[None], app: WatchApp) -> None:
        await until(pilot, app, lambda text: "Claude Code" in text and "Codex" in text)
        await pilot.press("enter")
        await until(pilot, app, lambda text: "pytest -x" in text and "no result yet" in text)
        log.returns("FAILED test_tides.py::test_ebb", failed=True)
        await until(pilot, app, lambda text: "pytest -x" in text and "failed" in below_the_head(text))
        shown = await until(pilot, app, "FAILED test_tides.py::test_ebb")
        assert "no result yet" not in shown
        log.says("One test fails.")
        await until(pilot, app, "One test fails.")
        await pilot.press("escape")
        await until(pilot, app, "2 sessions running")
        await pilot.press("down", "enter")
        shown = await until(pilot, app, lambda text: "How many rows?" in below_the_head(text))
        assert "Codex" in shown

    watched(check, size=(100, 30))


def test_a_session_named_is_followed_from_the_start(own_home: Path) -> None:
    log = Claude(own_home)
    log.asked("Run the tests.")
    index(load().database, [str(own_home)])

    async def check(pilot: Pilot[None], app: WatchApp) -> None:
        await until(pilot, app, lambda text: "Run the tests." in below_the_head(text))

    watched(check, session=log.uid)


def test_q_leaves_with_0_and_ctrl_c_with_130(own_home: Path) -> None:
    for key, code in (("q", 0), ("ctrl+c", 130)):

        async def check(pilot: Pilot[None], app: WatchApp, key: str = key) -> None:
            await until(pilot, app, "no session is running")
            await pilot.press(key)

        assert watched(check) == code


def test_nothing_in_a_log_acts_on_the_screen(own_home: Path) -> None:
    log = Claude(own_home)
    log.asked(HOSTILE)
    log.calls("Bash", command=f"echo {HOSTILE}")
    log.returns(f"Error: {HOSTILE}", failed=True)
    log.says(f"Said {HOSTILE}")

    async def check(pilot: Pilot[None], app: WatchApp) -> None:
        shown = await until(pilot, app, "has answered")
        assert "[red]red[/red] [@click=app.quit]x[/] ESC" in shown
        await pilot.press("enter")
        shown = await until(pilot, app, "Said [red]red[/red]")
        assert "\x1b" not in shown and "\u202e" not in shown and "title" not in shown
        assert app.return_code is None, "it still runs"

    watched(check, size=(140, 30))


@pytest.mark.thorough
def test_a_log_that_is_deleted_while_it_is_followed_leaves_what_was_read(own_home: Path) -> None:
    log = Claude(own_home)
    log.asked("Run the tests.")

    async def check(pilot: Pilot[None], app: WatchApp) -> None:
        await until(pilot, app, "thinking")
        await pilot.press("enter")
        await until(pilot, app, lambda text: "Run the tests." in below_the_head(text))
        log.path.unlink()
        shown = await until(pilot, app, "its log was deleted")
        assert "Run the tests." in below_the_head(shown)

    watched(check, size=(100, 24))


@pytest.mark.thorough
def test_an_index_that_is_made_again_or_gone_meanwhile_is_waited_for(own_home: Path) -> None:
    log = Claude(own_home)
    log.asked("Run the tests.")

    async def check(pilot: Pilot[None], app: WatchApp) -> None:
        await until(pilot, app, "thinking")
        for way in ("rebuilt", "deleted"):
            if way == "rebuilt":
                index(load().database, [], rebuild=True)
            else:
                for part in load().database.parent.glob("index.sqlite3*"):
                    part.unlink()
            log.says(f"All pass, {way}.")
            await until(pilot, app, f"All pass, {way}.")

    watched(check)


@pytest.mark.thorough
def test_where_none_is_running_the_latest_are_named(own_home: Path) -> None:
    log = Claude(own_home, ago=86_400)
    log.asked("Run the tests.")

    async def check(pilot: Pilot[None], app: WatchApp) -> None:
        shown = await until(pilot, app, "the latest:")
        assert "no session is running" in shown and "Run the tests." in shown

    watched(check)


@pytest.mark.thorough
def test_a_terminal_that_is_too_small_says_so_and_goes_on_when_it_has_grown(own_home: Path) -> None:
    Claude(own_home).asked("Run the tests.")

    async def check(pilot: Pilot[None], app: WatchApp) -> None:
        await until(pilot, app, "too small")
        await pilot.resize_terminal(60, 20)
        await until(pilot, app, "Run the tests.")

    watched(check, size=(18, 5))


@pytest.mark.thorough
def test_a_session_is_followed_at_its_end_until_somebody_scrolls(own_home: Path) -> None:
    log = Claude(own_home)
    log.asked("Count the tides of a year, and name each station between here and the estuary. " * 3)
    for number in range(60):
        log.says(f"Tide {number} was counted.")

    async def check(pilot: Pilot[None], app: WatchApp) -> None:
        await until(pilot, app, "tidepool")
        await pilot.press("enter")
        await until(pilot, app, lambda text: "Tide 59" in below_the_head(text))
        await pilot.press("up", "up", "up", "up")
        await until(pilot, app, lambda text: "Tide 59" not in below_the_head(text))
        log.says("And one more.")
        await until(pilot, app, lambda _: len(app.screen.query("#items > Static")) == 63)
        assert "And one more." not in below_the_head(screen(app))
        await pilot.press("G")
        await until(pilot, app, lambda text: "And one more." in below_the_head(text))
        log.says("The last one.")
        await until(pilot, app, lambda text: "The last one." in below_the_head(text))

    watched(check)


@pytest.mark.thorough
def test_the_cursor_stays_on_its_session_when_the_order_changes(own_home: Path) -> None:
    first, second = Claude(own_home, 1), Claude(own_home, 2, ago=50)
    first.asked("The first request.")
    second.asked("The second request.")

    async def check(pilot: Pilot[None], app: WatchApp) -> None:
        await until(pilot, app, "The second request.")
        await pilot.press("down")
        second.ago = 0
        second.says("Done.")
        await until(pilot, app, "Done.")
        option = app.screen.query_one(OptionList).highlighted_option
        assert option is not None and option.id == second.uid

    watched(check)


# -- printed once ----------------------------------------------------------------------------------


def test_once_and_json_print_the_same(own_home: Path) -> None:
    log = Claude(own_home)
    log.asked("When does the tide ebb?")
    log.says(f"In two hours. {HOSTILE}")
    text = agtrace_here("watch", "--once").out
    found = json.loads(agtrace_here("watch", "--json").out)
    assert "1 session running, 1 waiting for you" in text and "In two hours. [red]red[/red]" in text
    (session,) = found["sessions"]
    assert (session["session_id"], session["waits"], session["waits_for_you"]) == (log.uid, "answer", True)
    assert found["problem"] is None and found["recent"] == []


def test_within_says_how_long_ago_a_running_session_was_active(own_home: Path) -> None:
    Claude(own_home, ago=7200).asked("Run the tests.")
    assert agtrace_here("watch", "--json").json()["sessions"] == []
    assert len(agtrace_here("watch", "--json", "--within", "3h").json()["sessions"]) == 1
    assert agtrace_here("watch", "--within", "soon").code == 2


def test_a_call_without_a_result_is_idle_not_running_after_some_time(own_home: Path) -> None:
    for number, ago in ((1, 60), (2, 19 * 3600)):
        log = Claude(own_home, number, ago=ago)
        log.asked(f"Run the tests of part {number}.")
        log.calls("Bash", command=f"pytest part_{number}")
    text = agtrace_here("watch", "--once", "--within", "30h").out
    assert text.startswith("1 session running, 1 idle\n") and text.count("working, or asks permission") == 1
    idle = text[text.index("● idle") :]
    assert "(its last call has no result)  Bash pytest part_2" in idle and "19 h" in idle and "part_1" not in idle


def test_the_ids_of_the_sessions_printed_are_those_that_other_commands_take(own_home: Path) -> None:
    for number in (1, 2):
        Claude(own_home, number).asked(f"Run the tests of part {number}.")
    text = agtrace_here("watch", "--once").out
    ids = re.findall(r"● thinking  (\S+)  tidepool", text)
    assert len(ids) == 2 and all(f"part {id[7]}" in agtrace_here("show", id).out for id in ids)


@pytest.mark.thorough
def test_a_question_is_shown_for_a_day_though_its_session_does_nothing(own_home: Path) -> None:
    asks, answered, old = (Claude(own_home, number, ago=ago) for number, ago in ((1, 7200), (2, 7200), (3, 2 * 86_400)))
    for log, said in ((asks, "Shall I drop the table, or keep it?"), (answered, "Done."), (old, "Which of the two?")):
        log.asked("Mend the tide table.")
        log.says(said)
    text = agtrace_here("watch", "--once").out
    assert "no session is running, 1 waiting for you" in text
    assert "Shall I drop the table" in text and "Done." not in text and "Which of the two?" not in text
    assert max(map(len, agtrace("watch", "--once", COLUMNS="").out.splitlines())) < 200


# -- a real terminal -------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="has no pseudo-terminals")
@pytest.mark.parametrize(("columns", "environment"), [(80, {}), (140, {"NO_COLOR": "1"})])
def test_in_a_terminal_it_shows_what_goes_on_and_leaves_the_terminal_as_it_was(
    own_home: Path, columns: int, environment: dict[str, str]
) -> None:
    log = Claude(own_home, ago=0)
    log.asked("Which tide?")
    with in_terminal("watch", columns=columns, **environment) as terminal:
        terminal.until("Which tide?")
        log.says("Ebbing.")
        terminal.until("Ebbing.")
        terminal.press("q")
        assert terminal.end() == 0
    assert terminal.text.rindex("\x1b[?1049l") > terminal.text.rindex("Ebbing."), "the screen before is back"
    assert "\x1b[?25h" in terminal.text.rpartition("Ebbing.")[2], "the cursor is back"
    coloured = re.search(r"\x1b\[(?:\d+;)*3[1-6][;m]", terminal.text) is not None
    assert coloured == (not environment)


@pytest.mark.skipif(sys.platform == "win32", reason="has no pseudo-terminals")
@pytest.mark.parametrize(
    ("by", "code"), [pytest.param(signal.SIGTERM, 0, marks=pytest.mark.thorough), (signal.SIGINT, 130)]
)
def test_a_signal_ends_it_and_restores_the_terminal(own_home: Path, by: signal.Signals, code: int) -> None:
    with in_terminal("watch", columns=80) as terminal:
        terminal.until("no session is running")
        os.kill(terminal.pid, by)
        assert terminal.end() == code
    assert "\x1b[?1049l" in terminal.text and "Traceback" not in terminal.plain
