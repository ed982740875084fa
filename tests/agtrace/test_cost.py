"""`agtrace cost`: sums by day, project, model ... equal to a scan over all events, to reports and to lists."""

from __future__ import annotations

import json
import re
import time
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from agtrace_schema.reports import Costs
from agtrace_schema.requests import CostBy
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from rich.cells import cell_len

from agtrace.report.costs import OVER_TIME, calendar
from agtrace.sessions.prices import ModelUsage, load
from agtrace.text.numbers import counted_sessions, dollars
from tests.agtrace.asking import Asker, ClaudeLog, claude_log
from tests.agtrace.live_logs import Codex
from tests.agtrace.terminal import agtrace_here, index_here
from tests.agtrace.test_usage import respond

ONE, TWO, THREE = (f"{letter * 8}-0000-4000-8000-00000000000{n}" for n, letter in enumerate("abc", 1))
GROUPS: tuple[CostBy, ...] = get_args(CostBy)
KINDS = ("input_tokens", "cache_write_tokens", "cache_read_tokens", "output_tokens")
DAY = 86_400


def cost(by: CostBy, *options: str) -> dict[str, Any]:
    """The answer as JSON, checked against its model and against itself: the total is the sum of the groups."""
    said = agtrace_here("cost", "--by", by, "--json", *options)
    assert said.code == 0, said
    found: dict[str, Any] = said.json()
    convert(found, Costs)
    groups, total = found["groups"], found["total"]
    for kind in (*KINDS, "total_tokens"):
        assert sum(group.get(kind, 0) for group in groups) == total.get(kind, 0), kind
    for spent in (*groups, total):
        assert sum(spent.get(kind, 0) for kind in KINDS) == spent.get("total_tokens", 0)
    summed = sum(group.get("cost_usd", 0) for group in groups)
    assert summed == pytest.approx(total.get("cost_usd", 0), abs=0.0001 * (len(groups) + 1))
    assert max((group["sessions"] for group in groups), default=0) <= total["sessions"]
    return found


def tokens(found: dict[str, Any]) -> dict[str, int]:
    return {group["group"]: group["total_tokens"] for group in found["groups"] if "total_tokens" in group}


@pytest.fixture
def asked(each: Asker, monkeypatch: pytest.MonkeyPatch) -> Asker:
    """The index of all sessions, as the one that commands use."""
    monkeypatch.setenv("AGTRACE_DATA_DIR", str(each.settings.data_dir))
    return each


# -- sums ------------------------------------------------------------------------------------------


def test_every_place_has_the_same_figures_of_a_home(asked: Asker) -> None:
    largest = max(asked.items("get_project_info", "projects", limit=50), key=lambda one: one["session_count"])["name"]
    for options in ([], ["--provider", "codex"], ["--project", largest]):
        report = agtrace_here("report", "--json", *options).json()
        figures, sub_agents = report["figures"], report["sub_agents"]
        listed = agtrace_here("sessions", "--kind", "all", "--json", *options).json()["summary"]
        assert listed.startswith(f"Found {counted_sessions(figures['sessions'], sub_agents)}")
        for by in GROUPS:
            total = cost(by, *options)["total"]
            assert (total["sessions"], total.get("total_tokens", 0)) == (figures["sessions"], figures["total_tokens"])
            assert (total.get("cost_usd"), total.get("cost_made")) == (
                figures.get("cost_usd"), figures.get("cost_made"))  # fmt: skip
    items = asked.items("list_sessions", "sessions", limit=50, kind="all")
    server, total = asked.answers.health().index, cost("agent")["total"]
    assert sum(item.get("total_tokens", 0) for item in items) == total["total_tokens"]
    assert server.sessions == total["sessions"] == len(items) - server.sub_agents
    assert f"{total['cost_usd']} cost_usd" in asked.ask("list_sessions", sort="cost")["summary"]
    since = ("--since", "2026-10-22")
    active = agtrace_here("report", "--json", *since).json()["figures"]["sessions"]
    assert f"Found {active} session" in agtrace_here("sessions", "--json", *since).json()["summary"]
    assert cost("day", *since)["total"]["sessions"] == active


def counted(where: str) -> dict[str, int]:
    """The tokens of each local day, as SQL counts them."""
    said = agtrace_here("sql", f"SELECT day, sum(total_tokens) AS spent FROM token_usage {where} GROUP BY 1", "--json")
    return {row["day"]: row["spent"] for row in map(json.loads, said.out.splitlines()) if row["spent"]}


def test_a_period_and_its_days_are_those_of_counted_tokens(asked: Asker) -> None:
    days = sorted(set(tokens(cost("day"))) - {"unknown"})
    first, last = days[len(days) // 3], days[2 * len(days) // 3]
    found = tokens(cost("day", "--since", first, "--until", last))
    assert found == counted(f"WHERE day BETWEEN '{first}' AND '{last}'")
    assert set(found) == {day for day in days if first <= day <= last}


# -- days ------------------------------------------------------------------------------------------


def at(moment: str, log: ClaudeLog) -> ClaudeLog:
    log.clock = int(datetime.fromisoformat(f"{moment}Z").timestamp())
    return log


def test_tokens_belong_to_the_local_day_on_which_they_were_spent_whenever_the_clock_changes(
    tmp_path: Path, berlin: None
) -> None:
    log = at("2026-10-24T21:50:00", claude_log(tmp_path / "logs", ONE)).prompt("q")  # Saturday, 23:50
    respond(log, input_tokens=10, output_tokens=1)
    respond(at("2026-10-24T22:10:00", log), input_tokens=100, output_tokens=2)  # a Sunday of 25 hours
    respond(at("2026-10-25T22:50:00", log), input_tokens=1000, output_tokens=3)
    respond(at("2026-10-31T23:10:00", log), input_tokens=10000, output_tokens=4)  # in November
    index_here(tmp_path / "logs")
    found = cost("day")
    assert tokens(found) == {"2026-10-24": 11, "2026-10-25": 1105, "2026-11-01": 10004}
    assert [group["sessions"] for group in found["groups"]] == [1, 1, 1] and found["total"]["sessions"] == 1
    assert tokens(cost("week")) == {"2026-10-19": 1116, "2026-10-26": 10004}
    assert tokens(cost("month")) == {"2026-10": 1116, "2026-11": 10004}
    assert counted("") == tokens(found)
    day = ("--since", "2026-10-25", "--until", "2026-10-25")
    assert tokens(cost("model", *day)) == {"claude-opus-4-5": 1105}
    assert cost("model", *day)["selection"].endswith("since 2026-10-25 00:00 until 2026-10-25 23:59 CEST")
    assert "local days, weeks from Monday" in agtrace_here("cost", "--by", "week").out


@given(st.dates(date(1970, 1, 1), date(2099, 12, 31)))
def test_every_day_is_in_the_month_of_its_name_and_in_the_week_of_the_monday_before(day: date) -> None:
    number = (day - date(1970, 1, 1)).days
    monday = date.fromisoformat(calendar("week", number))
    assert calendar("day", number) == day.isoformat() and calendar("month", number) == f"{day:%Y-%m}"
    assert monday.weekday() == 0 and timedelta() <= day - monday < timedelta(days=7)


def test_what_has_no_time_is_in_no_period_and_comes_last(tmp_path: Path) -> None:
    respond(at("2026-11-01T10:00:00", claude_log(tmp_path / "logs", ONE)).prompt("q"), input_tokens=1, output_tokens=1)
    respond(at("1971-01-01T10:00:00", claude_log(tmp_path / "logs", TWO)).prompt("q"), input_tokens=5, output_tokens=1)
    index_here(tmp_path / "logs")
    assert list(tokens(cost("day")).items()) == [("2026-11-01", 2), ("unknown", 6)]
    assert tokens(cost("day", "--until", "2026-12-01")) == {"2026-11-01": 2}


def test_a_block_is_five_hours_of_one_agent_and_a_session_is_named_by_its_title(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE).prompt("Draw the tide.")
    for hour, count in (("08:40", 1), ("12:59", 2), ("13:00", 4)):
        respond(at(f"2026-11-01T{hour}:00", log), input_tokens=count, output_tokens=0)
    index_here(tmp_path / "logs")
    assert tokens(cost("block")) == {"2026-11-01 08:00 Claude Code": 3, "2026-11-01 13:00 Claude Code": 4}
    assert cost("session")["titles"] == {ONE[:8]: "Draw the tide."}
    assert "aaaaaaaa    " in agtrace_here("cost", "--by", "session").out
    assert "agtrace cost --by session --since 2026-11-01 --until 2026-11-01" in agtrace_here("cost").out


def test_what_a_log_of_codex_says_is_left_of_a_limit_is_told_until_it_begins_anew(own_home: Path) -> None:
    log = Codex(own_home, 1)
    log.asked("Draw the tide.")
    windows = [{"used_percent": 22.5, "window_minutes": 300, "resets_at": time.time() + ahead} for ahead in (9e3, -1)]
    info = {"last_token_usage": {"input_tokens": 5}, "total_token_usage": {"input_tokens": 5}}
    log.event("token_count", info=info, rate_limits={"primary": windows[0], "secondary": windows[1]})
    assert [(one["hours"], one["left_percent"]) for one in cost("day")["limits"]] == [(5, 77.5)]
    assert "Codex: 78% of 5 hours left until" in agtrace_here("cost").out


# -- what is counted once, and what is lacking -----------------------------------------------------


def test_what_a_fork_copied_counts_once_and_on_its_day(tmp_path: Path) -> None:
    origin = respond(claude_log(tmp_path / "logs", ONE).prompt("q"), input_tokens=5, output_tokens=6)
    copy = origin.fork(TWO)
    copy.clock = origin.clock + DAY
    respond(copy, input_tokens=100, output_tokens=0)
    index_here(tmp_path / "logs")
    assert list(tokens(cost("day")).values()) == [11, 100]
    assert cost("agent")["total"]["sessions"] == 2


def test_a_model_without_a_price_is_named_and_the_total_is_at_least_the_rest(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE).prompt("q")
    respond(log, input_tokens=1_000_000, output_tokens=40_000)
    respond(log, "nobodys-model-9", input_tokens=7_000_000, output_tokens=10)
    index_here(tmp_path / "logs")
    found = cost("model")
    assert [group["group"] for group in found["groups"]] == ["claude-opus-4-5", "nobodys-model-9"], "by cost"
    assert found["groups"][1]["cost_made"] == "unknown" and "cost_usd" not in found["groups"][1]
    assert (found["total"]["cost_usd"], found["total"]["cost_made"]) == (6.0, "partial")
    assert found["unpriced"] == [{"model": "nobodys-model-9", "tokens": 7_000_010}]
    said = agtrace_here("cost", "--by", "model").out
    assert said.startswith("8.0M tokens, at least $6.00, 1 session\n")
    assert re.search(r"claude-opus-4-5 .* \$6\.00 *\n", said) and re.search(r"nobodys-model-9 .* \? *\n", said)
    assert "no price for 7.0M tokens of nobodys-model-9" in said and "dollars are estimates (list prices" in said


def test_faster_processing_without_a_price_of_its_own_counts_as_standard_and_is_at_least_that(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE).prompt("q")
    respond(log, "claude-sonnet-4-6", input_tokens=1_000_000, output_tokens=0)
    respond(log, "claude-sonnet-4-6", input_tokens=2_000_000, output_tokens=0, speed="fast")
    index_here(tmp_path / "logs")
    found = cost("model")
    standard = load(None).cost(ModelUsage("claude-sonnet-4-6", None, 3, 1, 1_000_000, 0, 0, 0, 0))
    assert standard is not None
    assert (found["total"]["cost_usd"], found["total"]["cost_made"]) == (pytest.approx(3 * standard), "partial")
    assert found["faster"] == [{"model": "claude-sonnet-4-6", "tokens": 2_000_000}] and "unpriced" not in found
    said = agtrace_here("cost", "--by", "model", COLUMNS="200").out
    assert "no price for the faster (fast, priority) processing of 2.0M tokens of claude-sonnet-4-6" in said


def test_a_cost_that_is_a_lower_bound_says_so_wherever_it_stands(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE).prompt("find the tide")
    respond(log, input_tokens=1_000_000, output_tokens=40_000)
    respond(log, "nobodys-model-9", input_tokens=7_000_000, output_tokens=10)
    index_here(tmp_path / "logs")
    commands = (["sessions"], ["projects"], ["search", "tide"], ["show", ONE, "--sections", "models"])
    for command in commands:
        assert "$6.00" in agtrace_here(*command).out, command
    for command in commands[:3]:
        assert "$6.00+" in agtrace_here(*command).out, command
    assert "at least $6.00 in all" in agtrace_here("sessions", "--sort", "cost").out


@pytest.mark.parametrize(
    ("cost", "shown"), [(None, ""), (0.0, "$0.00"), (0.0027, "<$0.01"), (0.005, "$0.01"), (1234.5, "$1,234.50")]
)
def test_dollars_are_shown_to_the_cent_and_less_is_not_nothing(cost: float | None, shown: str) -> None:
    assert dollars(cost) == shown


def test_a_log_without_figures_makes_the_tokens_a_lower_bound(tmp_path: Path) -> None:
    respond(claude_log(tmp_path / "logs", ONE).prompt("q"), input_tokens=5, output_tokens=6)
    claude_log(tmp_path / "logs", TWO).prompt("q").say("without figures")
    index_here(tmp_path / "logs")
    found = cost("day")
    assert (found["total"]["total_tokens"], found["total"]["tokens_made"]) == (11, "partial")
    assert found["sessions_without_figures"] == 1 and found["total"]["sessions"] == 2
    said = agtrace_here("cost").out
    assert said.startswith("at least 11 tokens, ") and "no token figures in the logs of 1 session" in said


def test_what_a_vanished_log_shares_with_another_counts_once(tmp_path: Path) -> None:
    origin = respond(claude_log(tmp_path / "logs", ONE).prompt("q"), input_tokens=5, output_tokens=6)
    origin.fork(TWO)
    index_here(tmp_path / "logs")
    origin.path.unlink()
    found = cost("agent")
    assert (found["total"]["total_tokens"], found["total"]["tokens_made"]) == (11, "exact")


# -- what is shown ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("indexed")
@pytest.mark.parametrize("by", GROUPS)
def test_without_dollars_nothing_is_about_money_and_the_most_tokens_come_first(by: CostBy) -> None:
    found = cost(by, "--no-dollars")
    assert not re.search("cost_|price", json.dumps(found))
    if by not in OVER_TIME:
        assert list(tokens(found).values()) == sorted(tokens(found).values(), reverse=True)
    said = agtrace_here("cost", "--by", by, "--no-dollars").out
    assert "$" not in said and "price" not in said and "dollars" not in said


@pytest.mark.usefixtures("indexed")
@pytest.mark.parametrize("columns", [40, 80, 140])
def test_the_table_fits_and_has_the_total_below_it(columns: int) -> None:
    for by in ("day", "model", "project"):
        said = agtrace_here("cost", "--by", by, COLUMNS=str(columns))
        assert [line for line in said.out.splitlines() if cell_len(line) > columns] == []
        assert "…" not in said.out and re.search(r"^total .*\$[\d.,]+", said.out, re.MULTILINE)


def test_without_any_log_nothing_was_spent() -> None:
    said = agtrace_here("cost")
    assert said.code == 0 and said.out.startswith("nothing was spent\n") and "agtrace doctor" in said.out
    found = cost("day")
    assert found["groups"] == [] and found["total"] == {"group": "total", "sessions": 0}


def test_an_unknown_project_is_an_error(indexed: Path) -> None:
    said = agtrace_here("cost", "--project", "nowhere-at-all")
    assert said.code != 0 and "no project matches" in said.err
