"""`agtrace report`: the selected sessions, their totals, what got better or worse, and the output."""

from __future__ import annotations

import json
import re
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.index.opening import write_lock
from agtrace_schema.analysis import Report, SessionEnding
from msgspec import convert
from rich.cells import cell_len

from agtrace.render.report import report as print_report
from agtrace.report.wording import ENDINGS
from agtrace.settings import load
from tests.agtrace import health_reports
from tests.agtrace.asking import ClaudeLog, claude_log
from tests.agtrace.terminal import agtrace, agtrace_here, index_here
from tests.conftest import SAMPLES

DAY = 86_400
MONDAY = 1_704_067_200  # 2024-01-01


def reported(*options: str | Path) -> dict[str, Any]:
    """The report as JSON, checked against its model."""
    said = agtrace_here("report", "--json", *options)
    assert said.code == 0, said
    found: dict[str, Any] = said.json()
    convert(found, Report)
    assert not any("timeline" in session for session in found["sessions"])
    return found


def session(folder: Path, number: int, *, day: int = 0, failures: int = 0, calls: int = 10, **more: Any) -> ClaudeLog:
    """A session of some calls, the first ones of which failed, that begins on a day after 2024-01-01."""
    log = claude_log(folder, f"{number:08x}-0000-4000-8000-{number:012x}", **more)
    log.clock = MONDAY + day * DAY + number * 60
    log.prompt(f"task {number}: count the buoys of every harbour")
    for call in range(calls):
        log.call("Bash", {"command": f"count {call}"}, f"no such harbour: {call}", failed=call < failures)
    return log.say("Done: every harbour is counted.")


def ids(report: dict[str, Any]) -> list[str]:
    """The sessions of a report."""
    return sorted(session["session_id"] for session in report["sessions"])


# -- which sessions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", [None, "claude_code", "codex", "gemini"])
def test_the_sums_are_those_of_the_list_of_sessions(indexed: Path, provider: str | None) -> None:
    options = ["--provider", provider] if provider else []
    listed = agtrace_here("sessions", "--kind", "all", "--limit", "50", "--json", *options).json()["data"]["sessions"]
    report = reported(*options)
    figures = report["figures"]
    for name in ("tool_calls", "failed_calls", "total_tokens"):
        total = sum(item.get(name) or 0 for item in listed)
        assert total == figures[name] == sum(item.get(name) or 0 for item in report["sessions"]), name
    cost = pytest.approx(sum(item.get("cost_usd") or 0 for item in listed), abs=0.001)
    assert figures["cost_usd"] == cost == sum(day.get("cost_usd") or 0 for day in report["days"])
    assert figures["total_tokens"] == sum(day["total_tokens"] for day in report["days"])
    assert figures["total_tokens"] == sum(model["total_tokens"] for model in report["models"])
    assert figures["tool_calls"] == sum(tool["calls"] for tool in report["tools"])
    assert figures["failed_calls"] == sum(tool["failed"] for tool in report["tools"])
    assert figures["sessions"] == len(report["sessions"]) == sum(figures["endings"].values())
    assert figures["scored"] == sum(report["scores"])


def test_sub_agents_are_rolled_up_into_the_session_that_started_them(indexed: Path) -> None:
    listed = agtrace_here("sessions", "--kind", "all", "--limit", "50", "--json").json()["data"]["sessions"]
    kinds = [item.get("kind", "main") for item in listed]
    report = reported()
    assert "subagent" in kinds and len(report["sessions"]) == len(kinds) - kinds.count("subagent")
    (surge,) = (one for one in report["sessions"] if one["session_id"] == "e97a4b06")
    own = next(item for item in listed if item["id"] == "e97a4b06")
    agent = next(item for item in listed if item.get("parent_id") == "e97a4b06")
    assert surge["total_tokens"] == own["total_tokens"] + agent["total_tokens"]
    assert surge["tool_calls"] == own["tool_calls"] + agent["tool_calls"]
    assert [one["session_id"] for one in surge["agents"]] == [agent["id"]]
    assert not any(one["session_id"].startswith("agent-7e19") for one in report["sessions"])


def test_a_sub_agent_stands_for_itself_where_the_log_of_its_parent_is_not_there(tmp_path: Path) -> None:
    shutil.copy(next(SAMPLES.rglob("agent-c41d9be7.jsonl")), tmp_path)
    index_here(tmp_path / "agent-c41d9be7.jsonl")
    (alone,) = reported()["sessions"]
    assert alone["kind"] == "subagent" and alone["total_tokens"] > 0


def test_a_session_is_in_the_period_in_which_it_began(tmp_path: Path) -> None:
    for number in range(4):
        session(tmp_path / "logs", number, day=number)
    index_here(tmp_path / "logs")
    assert ids(reported("--since", "2024-01-02", "--until", "2024-01-03")) == ["00000001", "00000002"]
    days = [day["day"] for day in reported()["days"]]
    assert days == ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"]


def test_what_tells_no_time_is_in_no_period(tmp_path: Path) -> None:
    session(tmp_path / "logs", 1)
    claude_log(tmp_path / "logs", "0badc0de-0000-4000-8000-000000000001").write("user", "when?", timestamp=None)
    index_here(tmp_path / "logs")
    whole, period = reported(), reported("--since", "2024-01-01")
    assert (ids(whole), whole["undated"]) == (["00000001", "0badc0de"], 1)
    assert (ids(period), period["undated"]) == (["00000001"], 1)
    assert "1 without a time left out" in agtrace_here("report", "--since", "2024-01-01").out


def test_a_wrong_clock_tells_no_time_and_moves_no_half(tmp_path: Path) -> None:
    for number in range(4):
        session(tmp_path / "logs", number, day=number)
    index_here(tmp_path / "logs")
    right = reported()
    for number, year in enumerate(("0001", "1970", "2100")):
        log = session(tmp_path / "logs", 10 + number)
        text = log.path.read_text()
        log.path.write_text(re.sub(r'"2024-(?=\d\d-\d\dT)', f'"{year}-', text))
    index_here(tmp_path / "logs")
    report = reported("--html", tmp_path / "page.html")
    assert (report["undated"], report["figures"]["sessions"]) == (3, 7)
    assert [report[name] for name in ("days", "compared", "before", "later")] == [
        right[name] for name in ("days", "compared", "before", "later")
    ]
    assert "3 sessions without a time: not shown here" in (tmp_path / "page.html").read_text()
    assert len(reported("--until", "2200-01-01")["sessions"]) == 4
    listed = {item["id"]: item["start_time"] for item in agtrace_here("sessions", "--json").json()["data"]["sessions"]}
    assert listed["0000000a"].startswith("0001-01-01T")
    assert agtrace("sessions", TZ="America/New_York").code == 0


def test_the_worst_session_stands_first_and_those_without_a_score_last(tmp_path: Path) -> None:
    for number, failures in enumerate((0, 9, 4)):
        session(tmp_path / "logs", number, failures=failures)
    claude_log(tmp_path / "logs", "0badc0de-0000-4000-8000-000000000001").prompt("hello").say("Hello!")
    index_here(tmp_path / "logs")
    report = reported()
    assert [one["session_id"] for one in report["sessions"]] == ["00000001", "00000002", "00000000", "0badc0de"]
    assert "score" not in report["sessions"][-1] and report["sessions"][-1]["unscored"]
    assert (report["tools"][0]["tool"], report["tools"][0]["failed"], report["tools"][0]["sessions"]) == ("Bash", 13, 2)


# -- better or worse -----------------------------------------------------------------------------------


def verdicts(report: dict[str, Any]) -> dict[str, str]:
    """What became of each measure."""
    return {change["what"]: change["verdict"] for change in report["changes"]}


def test_more_failures_than_in_the_period_before_are_worse(tmp_path: Path) -> None:
    for number in range(6):
        session(tmp_path / "logs", number, day=1, failures=number % 2)
        session(tmp_path / "logs", 10 + number, day=4, failures=7 + number % 2)
    index_here(tmp_path / "logs")
    report = reported("--since", "2024-01-04", "--until", "2024-01-06")
    assert report["figures"]["sessions"] == report["before"]["sessions"] == 6
    found = verdicts(report)
    assert found["failed tool calls"] == found["mean score"] == "worse"
    assert found["ended on an error"] == "same" and found["sessions"] == "neither"
    backwards = verdicts(reported("--until", "2024-01-02"))
    assert "worse" not in backwards.values()


def test_without_a_beginning_the_later_half_is_compared_with_the_earlier_one(tmp_path: Path) -> None:
    for number in range(6):
        session(tmp_path / "logs", number, day=number % 3, failures=7 + number % 2)
        session(tmp_path / "logs", 10 + number, day=9 - number % 3, failures=number % 2)
    index_here(tmp_path / "logs")
    report = reported()
    assert "the second half of the period, " in report["compared"]
    assert (report["before"]["sessions"], report["later"]["sessions"], report["figures"]["sessions"]) == (6, 6, 12)
    assert verdicts(report)["mean score"] == verdicts(report)["failed tool calls"] == "better"
    assert re.search(r"mean score +better ", agtrace_here("report").out)


def test_what_chance_would_change_as_well_is_the_same(tmp_path: Path) -> None:
    """One session of six fails wholly, then two do: the rate doubles, and that says nothing."""
    for number in range(6):
        session(tmp_path / "logs", number, day=1, failures=10 * (number < 1))
        session(tmp_path / "logs", 10 + number, day=9, failures=10 * (number < 2))
    index_here(tmp_path / "logs")
    report = reported()
    (rate,) = (change for change in report["changes"] if change["what"] == "failed tool calls")
    assert rate["now"] == pytest.approx(2 * rate["before"], abs=0.001) and rate["verdict"] == "same"


def test_few_sessions_are_no_reason_for_a_verdict(tmp_path: Path) -> None:
    for number in range(4):
        session(tmp_path / "logs", number, day=1)
        session(tmp_path / "logs", 10 + number, day=9, failures=9)
    index_here(tmp_path / "logs")
    report = reported()
    assert set(verdicts(report).values()) == {"neither"} and "no verdict" in report["compared"]


def test_where_all_sessions_began_at_once_nothing_is_compared(tmp_path: Path) -> None:
    session(tmp_path / "logs", 1)
    index_here(tmp_path / "logs")
    report = reported()
    assert report["changes"] == [] and "before" not in report and "compared" not in agtrace_here("report").out


# -- a build that fails --------------------------------------------------------------------------------


@pytest.fixture
def three(tmp_path: Path) -> None:
    """Two sessions with a score, one of them a bad one, and one without."""
    session(tmp_path / "logs", 1)
    session(tmp_path / "logs", 2, failures=10)
    claude_log(tmp_path / "logs", "0badc0de-0000-4000-8000-000000000001").prompt("hello").say("Hello!")
    index_here(tmp_path / "logs")


@pytest.mark.usefixtures("three")
def test_a_session_below_the_limit_fails_a_build_and_is_named() -> None:
    low, high = reported()["sessions"][0]["score"], reported()["sessions"][1]["score"]
    assert low < high
    said = agtrace_here("report", "--fail-under", low + 1)
    assert said.code == 1 and f"1 of 2 scored sessions are below {low + 1}: 00000002 ({low})\n" in said.err
    assert agtrace_here("report", "--fail-under", low).code == 0, "neither is below it, and no score fails nothing"


@pytest.mark.usefixtures("three")
def test_where_no_session_has_a_score_no_build_fails() -> None:
    said = agtrace_here("report", "--since", "2026-01-01", "--until", "2026-01-02", "--fail-under", "100")
    assert said.code == 0 and "none of these sessions has a score" in said.err


# -- how it leaves -------------------------------------------------------------------------------------


def test_the_page_is_written_whole_and_for_its_owner_alone(three: None, tmp_path: Path) -> None:
    page = tmp_path / "out" / "page.html"
    refused = agtrace_here("report", "--html", page)
    assert refused.code == 2 and str(page) in refused.err, "a folder isn't made"
    page.parent.mkdir()
    page.write_text("the page before")
    page.chmod(0o644)
    said = agtrace_here("report", "--html", page, "--fail-under", "90")
    assert said.code == 1 and f"page written to {page}\n" in said.err and "3 sessions" in said.out
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert page.read_text().lower().startswith("<!doctype html>")
    assert list(page.parent.iterdir()) == [page], "nothing beside it"
    assert agtrace_here("report", "--html", "-").out.lower().startswith("<!doctype html>")


def test_an_empty_selection_says_what_was_asked_and_what_to_do(indexed: Path) -> None:
    said = agtrace_here("report", "--provider", "gemini", "--until", "2020-01-01")
    assert said.code == 0
    assert said.out.startswith("No sessions\n0 sessions of Gemini CLI until 2020-01-01 23:59 UTC\n")
    assert "agtrace sessions" in said.out
    assert agtrace_here("report", "--until", "2020-01-01", "--markdown").out.startswith("## No sessions\n")


def test_without_any_log_the_report_is_empty_and_no_error() -> None:
    said = agtrace_here("report", "--fail-under", "50")
    assert said.code == 0 and said.out.startswith("No sessions\n") and "agtrace doctor" in said.out


@pytest.mark.usefixtures("three")
def test_an_index_that_lies_behind_is_said_on_every_way(database: Path) -> None:
    with write_lock(database):
        said, as_json, markdown = (agtrace_here("report", *way) for way in ([], ["--json"], ["--markdown"]))
    assert all("the index is catching up" in one.err for one in (said, as_json, markdown))
    assert "the index is catching up" in said.out and "the index is catching up" in markdown.out
    assert "the index is catching up" in as_json.json()["behind"]


def test_the_page_for_the_terminal_says_it_all_on_a_screen(indexed: Path) -> None:
    report, said = reported(), agtrace("report", COLUMNS="80")
    figures = report["figures"]
    first = said.out.splitlines()[0]
    assert first.startswith(f"{figures['sessions']} sessions: mean score {figures['mean_score']:g} of 100")
    for ending, count in figures["endings"].items():
        assert f" {ENDINGS[ending]} {count}" in said.out
    assert f"${figures['cost_usd']:,.2f}" in said.out
    for heading in ("how they ended", "tools that failed most", "findings", "worst sessions"):
        assert f"\n{heading}\n" in said.out
    found = report["detectors"][0]["detector"]
    worst = [one["session_id"] for one in report["sessions"] if found in one["detectors"]][:2]
    assert re.search(rf"^  {found.replace('_', ' ')} .* {' '.join(worst)} *$", said.out, re.MULTILINE)
    assert said.out.endswith(f"\nagtrace analyze {report['sessions'][0]['session_id']}\n")
    assert len(said.out.splitlines()) < 75


def much_wrong(folder: Path, session_id: str) -> None:
    """A session with more than fifty findings, the last one by a detector of its own."""
    log = claude_log(folder, session_id)
    log.clock = MONDAY
    for number in range(60):
        log.prompt(f"task {number}")
        for _ in range(4):
            harbour = f"{chr(97 + number // 26)}{chr(97 + number % 26)}"
            log.call("Bash", {"command": f"make {harbour}"}, f"error: no such harbour as {harbour}", failed=True)
    log.prompt("and now?").say("Shall I remove the old column?")


@pytest.mark.parametrize(("tools", "said"), [(5, []), (6, ["1 more tool"]), (7, ["2 more tools"])])
def test_what_is_left_out_is_counted_with_the_right_noun(tools: int, said: list[str], tmp_path: Path) -> None:
    log = claude_log(tmp_path / "home", f"{7:08x}-0000-4000-8000-000000000001").prompt("Try all of them.")
    for number in range(tools):
        log.call(f"mcp__tide__tool_{number}", {}, "no such station", failed=True)
    index_here(tmp_path / "home")
    assert re.findall(r"\.\.\. and (\d+ more tools?)", agtrace_here("report").out) == said


def test_a_session_with_more_findings_than_are_shown_keeps_one_of_every_detector(tmp_path: Path) -> None:
    much_wrong(tmp_path / "logs", "00000001-0000-4000-8000-000000000001")
    index_here(tmp_path / "logs")
    report = reported()
    (one,) = report["sessions"]
    assert len(one["insights"]) == 50 < one["total_insights"]
    assert {found["detector"] for found in one["insights"]} == set(one["detectors"])
    assert sum(one["detectors"].values()) == sum(one["severities"].values()) == one["total_insights"]
    assert {row["detector"]: row["findings"] for row in report["detectors"]} == one["detectors"]
    ranks = [("Critical", "Warning", "Info").index(found["severity"]) for found in one["insights"]]
    assert ranks == sorted(ranks)


def test_the_sub_agent_that_failed_stands_first(tmp_path: Path) -> None:
    parent = session(tmp_path / "logs", 1)
    folder = parent.path.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    for number, failures in enumerate((0, 9, 4)):
        log = session(tmp_path / "others", 10 + number, failures=failures)
        own = {"isSidechain": True, "agentId": f"{number:016x}", "sessionId": parent.session_id}
        lines = [json.dumps(json.loads(line) | own) for line in log.path.read_text().splitlines()]
        (folder / f"agent-{number:016x}.jsonl").write_text("\n".join(lines) + "\n")
    index_here(tmp_path / "logs")
    (one,) = reported()["sessions"]
    analyzed = agtrace_here("analyze", "00000001", "--json").json()["data"]
    for agents in (one["agents"], analyzed["agents"]):
        assert [agent["failed_calls"] for agent in agents] == [9, 4, 0]


def test_a_finding_that_a_person_calls_wrong_stays_away_also_from_a_new_index(tmp_path: Path) -> None:
    log = session(tmp_path / "logs", 1)
    log.call("Bash", {"command": "git push origin main"}, "! [rejected] main -> main (fetch first)", failed=True)
    index_here(tmp_path / "logs")

    def told(*more: str) -> list[str]:
        found = agtrace_here("analyze", "00000001", "--json", *more).json()["data"]
        return [one["detector"] for one in found["insights"]]

    every = told()
    assert every and told("--wrong", "1") == every[1:]
    for file in load().database.parent.glob("index.sqlite3*"):
        file.unlink()
    index_here(tmp_path / "logs")
    assert told() == every[1:] and reported()["sessions"][0]["total_insights"] == len(every) - 1
    assert told("--wrong", "0") == every
    assert agtrace_here("analyze", "00000001", "--wrong", "99").code == 2


def test_a_command_to_paste_has_nothing_that_a_shell_would_obey(tmp_path: Path) -> None:
    much_wrong(tmp_path / "logs", "a;reboot $(id)")
    index_here(tmp_path / "logs")
    *_, command = agtrace_here("report").out.splitlines()
    assert re.fullmatch("agtrace analyze id-[0-9a-f]{5}", command)
    analyzed = agtrace_here(*command.split()[1:]).out
    assert (
        re.search("every finding: agtrace show ax://analysis/id-[0-9a-f]{5}\n", analyzed) and "reboot" not in analyzed
    )


@pytest.mark.parametrize("columns", [40, 80])
def test_how_sessions_ended_is_seen_without_colours(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    endings = [SessionEnding(ending=ending, reason="so it is") for ending in ENDINGS]
    print_report(health_reports.around([health_reports.session(ending=ending) for ending in endings]))
    bar, *legend = capsys.readouterr().out.partition("\nhow they ended\n")[2].partition("\n\n")[0].splitlines()
    named = "|".join(ENDINGS.values())
    marks = re.findall(rf"(\S) (?:{named}) 1\b", "\n".join(legend))
    assert len(marks) == len(set(marks)) == len(ENDINGS)
    assert list(dict.fromkeys(bar.strip())) == marks and cell_len(bar.rstrip()) == min(columns, 78)


# -- timelines -----------------------------------------------------------------------------------------


def test_a_timeline_keeps_what_failed_and_counts_what_it_leaves_out(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", "00000001-0000-4000-8000-000000000001")
    log.clock = MONDAY
    log.prompt("count the waves")
    for call in range(1_200):
        log.call("Bash", {"command": f"wave {call}"}, "", failed=call % 100 == 50)
    log.write("assistant", [{"type": "text", "text": "Overloaded"}], isApiErrorMessage=True)
    index_here(tmp_path / "logs")
    found = timeline_of("00000001")
    kinds = [entry.kind for entry in found.entries]
    assert len(kinds) == 2_000 and found.left_out == 1 + 1_200 * 2 + 1 - 2_000
    assert sum(bool(entry.failed) for entry in found.entries) == 12
    assert kinds.count("turn") == 1 and kinds.count("api_error") == 1
    assert [entry.start for entry in found.entries] == sorted(entry.start for entry in found.entries)
    turn = next(entry for entry in found.entries if entry.kind == "turn")
    assert (turn.start, turn.end, turn.name) == (0, 7 * 2_401, "count the waves")


def test_a_timeline_shows_sub_agents_and_how_the_window_filled(indexed: Path) -> None:
    found = timeline_of("e97a4b06")
    (agent,) = (entry for entry in found.entries if entry.kind == "agent")
    assert agent.name.startswith("agent-a3") and 0 < agent.start < agent.end
    assert found.context and found.context_window
    details = agtrace_here("show", "e97a4b06", "--sections", "stats", "--json").json()["data"]["stats"]
    assert max(point.tokens for point in found.context) == details["peak_context_tokens"]


def timeline_of(session_id: str) -> Any:
    """The timeline that the HTML page gets."""
    from agtrace.commands.report import Filters, made

    report, _ = made(Filters(), timelines=True)
    (found,) = (one.timeline for one in report.sessions if one.session_id == session_id)
    return found


def test_a_session_has_its_place_among_the_others_once_there_are_enough(tmp_path: Path) -> None:
    for number in range(1, 11):
        session(tmp_path / "logs", number, failures=number)
    index_here(tmp_path / "logs")
    found = reported()["sessions"]
    places = {one["score"]: one["percentile"] for one in found}
    assert places[max(places)] > places[min(places)] == 0
    assert all("percentile" not in one for one in reported("--until", "2020-01-01")["sessions"])
