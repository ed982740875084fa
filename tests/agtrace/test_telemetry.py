"""Telemetry by itself: the alert and its clock, old requests, a full queue, percentiles."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from agtrace_schema.model import dump
from agtrace_schema.requests import RequestOutcome, RequestsBy

from agtrace.answers.status import OversizedAlert
from agtrace.answers.telemetry import store
from agtrace.answers.telemetry.recorder import Recorder, _Writer
from agtrace.answers.telemetry.store import Request, RequestFilter, metrics
from agtrace.problems import TelemetryUnavailable
from tests.agtrace.asking import Asker, claude_log
from tests.agtrace.terminal import agtrace, agtrace_here

DAY = 24 * 3600
NOW = 1_790_000_000.0
ONE = Request(
    at=round(NOW * 1000), tool="list_sessions", request_id="0badc0de", client="tester", client_version="1",
    protocol="2026-07-28", transport="stdio", outcome="ok", ms=5.0, tokens=500, asked_bytes=2_000, bytes=2_000,
    items=10, attempt=1, paginated=True, chunked=False, summarized=False, pruned=False, cut=False,
    index_state="ready",
)  # fmt: skip


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time = NOW

    def __call__(self) -> float:
        return self.time


def test_six_percent_of_answers_that_do_not_fit_are_an_alert_and_four_are_none() -> None:
    for percent, alerts in ((4, 0), (5, 0), (6, 1)):
        alert = OversizedAlert(Clock())
        noted = [alert.note("list_sessions", oversized=number >= 100 - percent) for number in range(100)]
        assert len(list(filter(None, noted))) == alerts and alert.on is bool(alerts)


def test_an_alert_names_the_worst_tools_and_is_told_once_in_five_minutes() -> None:
    clock = Clock()
    alert = OversizedAlert(clock)
    tools = ["a", "b", "b", "c", "c", "c", "d", "d", "d", "d"]
    told = [alert.note(tool, oversized=True) for tool in tools + tools]
    assert [number for number, record in enumerate(told) if record] == [19]  # fewer than 20 are no share
    assert told[19] == {
        "event": "alert.oversized_rate", "level": "warning", "share": 1.0, "requests": 20,
        "tools": {"d": 8, "c": 6, "b": 4},
    }  # fmt: skip
    clock.time += 299
    assert alert.note("a", oversized=True) is None and alert.on
    clock.time += 2
    assert alert.note("a", oversized=True) is None and not alert.on  # the window is clean: two requests
    assert [bool(alert.note("a", oversized=True)) for _ in range(18)] == [False] * 17 + [True]


def test_requests_of_more_than_thirty_days_ago_go(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "telemetry.sqlite3"
    store.append(path, [ONE._replace(at=ONE.at - days * DAY * 1000) for days in (0, 1, 29, 31, 400)])
    recorder = Recorder(path, now=clock)
    recorder.record(ONE)
    recorder.close(5)
    assert store.count(path) == 4
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_full_queue_drops_and_counts(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "nowhere" / "telemetry.sqlite3", most=5)
    for _ in range(5):
        recorder.record(ONE)
    recorder.close(5)
    assert recorder.dropped == 5  # there is no such folder
    stuck = Recorder(tmp_path / "telemetry.sqlite3", most=5)
    stuck._writer = _Writer(stuck)  # it never starts
    for _ in range(8):
        stuck.record(ONE)
    assert stuck.dropped == 3


def test_nothing_is_lost_between_threads_that_record(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "telemetry.sqlite3", now=Clock())

    def record() -> None:
        for _ in range(1_000):
            recorder.record(ONE)

    threads = [threading.Thread(target=record) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.close(30)
    assert recorder.dropped == 0 and store.count(tmp_path / "telemetry.sqlite3") == 4_000


def test_percentiles_are_values_that_occurred(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.sqlite3"
    assert metrics(path, RequestFilter()).total.milliseconds is None
    store.append(path, [ONE._replace(ms=float(number)) for number in range(1, 201)])
    found = metrics(path, RequestFilter()).total.milliseconds
    assert found is not None
    assert dump(found) == {"p50": 100.0, "p95": 190.0, "p99": 198.0, "largest": 200.0}


def test_requests_are_grouped_and_chosen_by_how_they_ended(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.sqlite3"
    late = ONE._replace(at=ONE.at + DAY * 1000, client=None, outcome="session_not_found", index_state="building")
    large = ONE._replace(tool="read_artifact", asked_bytes=9_000, chunked=True, cut=True, paginated=False)
    store.append(path, [ONE, late, large])
    groups: dict[RequestsBy, dict[str, int]] = {
        "tool": {"list_sessions": 2, "read_artifact": 1}, "client": {"tester": 2, "unknown": 1},
        "day": {"2026-09-21": 2, "2026-09-22": 1}, "hour": {"2026-09-21T14:00": 2, "2026-09-22T14:00": 1},
    }  # fmt: skip
    for by, counts in groups.items():
        assert {group.group: group.requests for group in metrics(path, RequestFilter(by=by)).groups} == counts
    outcomes: dict[RequestOutcome, int] = {
        "ok": 2, "error": 1, "oversized": 1, "chunked": 1, "paginated": 2, "cut": 1,
    }  # fmt: skip
    for outcome, count in outcomes.items():
        assert metrics(path, RequestFilter(outcome=outcome)).total.requests == count
    total = metrics(path, RequestFilter()).total
    assert (total.requests, total.errors, total.stale, total.oversized_asked_bytes) == (3, 1, 1, 9_000)
    assert metrics(path, RequestFilter(since=ONE.at + 1)).total.requests == 1


def test_a_client_s_name_is_masked_like_any_text(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    recorder = Recorder(tmp_path / "t.sqlite3", now=Clock())
    recorder.record(ONE._replace(client=token))
    recorder.close(5)
    assert store.count(tmp_path / "t.sqlite3") == 1 and token.encode() not in (tmp_path / "t.sqlite3").read_bytes()
    assert token not in str(dump(metrics(tmp_path / "t.sqlite3", RequestFilter(by="client"))))


def test_a_file_that_is_no_database_can_not_be_asked_and_is_replaced_by_the_next_request(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.sqlite3"
    path.write_bytes(b"nothing that SQLite knows " * 400)
    with pytest.raises(TelemetryUnavailable, match="you can delete it"):
        metrics(path, RequestFilter())
    said: list[Mapping[str, Any]] = []
    recorder = Recorder(path, now=Clock(), log=said.append)
    recorder.record(ONE)
    recorder.record(ONE)
    recorder.close(5)
    assert metrics(path, RequestFilter()).total.requests == 2
    assert said == [{"event": "telemetry.replaced", "level": "warning", "file": str(path)}]


# -- `agtrace metrics` -----------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with two requests."""
    monkeypatch.setenv("AGTRACE_DATA_DIR", str(tmp_path))
    store.append(tmp_path / "telemetry.sqlite3", [ONE, ONE._replace(at=ONE.at + 60_000)])
    return tmp_path


def test_what_can_not_be_asked_is_a_mistake_that_is_named(data: Path) -> None:
    for options, told in (
        (["--tool", "nope"], "'list_sessions'"),
        (["--since", "1d", "--until", "2d"], "until: '2d' is before since, '1d'"),
        (["--ab", "--by", "client"], "--by can't be combined with --ab"),
    ):
        said = agtrace_here("metrics", *options)
        assert said.code == 2 and told in said.err


def test_the_period_is_told_and_why_there_is_nothing_to_tell(data: Path, tmp_path: Path) -> None:
    assert agtrace_here("metrics", TZ="UTC").out.startswith("2 requests, 0 errors, 2026-09-21 ")
    assert "No matching requests in this period." in agtrace_here("metrics", "--since", "1d").out
    assert "No matching requests in this period." in agtrace_here("metrics", "--tool", "read_artifact").out
    assert "No matching requests in this period." in agtrace_here("metrics", "--tool", "bash").out
    (tmp_path / "telemetry.sqlite3").unlink()
    assert "No request is recorded yet: `agtrace setup`" in agtrace_here("metrics").out
    off = agtrace_here("metrics", AGTRACE_TELEMETRY="0")
    assert off.code == 0 and "nothing is recorded now: the setting telemetry.enabled is off" in off.err


def test_estimates_are_compared_with_the_tokens_that_a_model_counted(data: Path) -> None:
    """1,600 characters are estimated at 480 tokens; a second answer beside one can't be told from it."""
    log = claude_log(data / "logs", "0badc0de-0000-4000-8000-000000000001").prompt("Look it up.").used(100, 20)
    log.call("mcp__agtrace__search_event_previews", {"query": "x"}, "hit " * 400).used(520, 9)
    for _ in range(2):
        log.call("mcp__agtrace__list_sessions", {}, "hit " * 400)
    log.used(1_400, 5)
    Asker(data, data / "logs")
    assert agtrace_here("metrics", "--estimates", "--json").json() == {"answers": 1, "median": 1.2, "close": 1.0}
    assert "1 answers in logs" in agtrace_here("metrics", "--estimates").out


def test_versions_of_a_client_are_one_client(data: Path) -> None:
    store.append(data / "telemetry.sqlite3", [ONE._replace(client_version=version) for version in ("2", None)])
    (group,) = agtrace_here("metrics", "--by", "client", "--json").json()["groups"]
    assert (group["group"], group["requests"]) == ("tester", 4)


@pytest.mark.parametrize("columns", [40, 80])
def test_a_comparison_has_a_column_for_each_side_and_a_line_for_each_figure(data: Path, columns: int) -> None:
    sides = [ONE._replace(arm=arm, connection=arm) for arm in ("protected", "unprotected")]
    store.append(data / "telemetry.sqlite3", sides)
    lines = agtrace("metrics", "--ab", COLUMNS=str(columns)).out.splitlines()
    assert lines[0].split() == ["protected", "unprotected", "answers"]
    assert "2,000        2,000  bytes" in "\n".join(lines)
    assert all(len(line) <= columns for line in lines)


def test_a_narrow_table_still_says_what_a_row_is_about(data: Path) -> None:
    assert "list_sessions" in agtrace("metrics", COLUMNS="40").out
