"""Counts by group: equal to a scan over all events, and to the sums of lists."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
from agtrace_schema.codes import OUTCOME_CODE, TYPE_CODE
from agtrace_schema.events import EventType, Outcome
from agtrace_schema.requests import CountOf, GroupBy, columns

from tests.agtrace.asking import Asker, ClaudeLog, claude_log, query
from tests.conftest import SAMPLES

GROUPS: tuple[GroupBy, ...] = get_args(GroupBy)
OF_TOKENS: tuple[GroupBy, ...] = ("project", "agent", "model", "day", "session")
FAILED = OUTCOME_CODE[Outcome.FAILED]


class Called(NamedTuple):
    """A call that counts, and where it was made."""

    session: int
    event_index: int
    tool: str
    failed: bool | None
    """None if it isn't known how it ended."""
    day: str
    agent: str
    kind: str


def called(asker: Asker) -> list[Called]:
    found = query(
        asker,
        "SELECT e.session_id, e.event_index, coalesce(n.text, 'unknown'), "
        "CASE WHEN e.outcome != ? THEN e.outcome IS ? END, "
        "coalesce(date(nullif(e.ts, 0) / 1000, 'unixepoch'), 'unknown'), s.provider, s.kind "
        "FROM event e JOIN session s ON s.id = e.session_id LEFT JOIN name n ON n.id = e.name_id "
        "WHERE e.type = ? AND e.superseded_by IS NULL AND e.copy_of IS NULL AND s.kind != 'warmup'",
        OUTCOME_CODE[Outcome.UNKNOWN],
        OUTCOME_CODE[Outcome.FAILED],
        TYPE_CODE[EventType.TOOL_CALL],
    )
    return [Called(*row) for row in found]


def scanned(calls: list[Called], by: GroupBy) -> list[list[Any]]:
    """The rows of a group, in order of their labels, counted one call after the other."""
    groups: dict[str, list[Called]] = defaultdict(list)
    for one in calls:
        groups[getattr(one, by)].append(one)
    rows = []
    for label, group in sorted(groups.items()):
        known = [one.failed for one in group if one.failed is not None]
        rows.append([label, len(group), sum(known) if known else None, len({one.session for one in group})])
    return rows


def counts(asker: Asker, by: GroupBy, **more: Any) -> dict[str, Any]:
    value: dict[str, Any] = asker.ask("count_events", group_by=by, **more)
    return value


# -- the law ---------------------------------------------------------------------------------------

FILTERS: list[tuple[dict[str, Any], Callable[[Called], bool | None]]] = [
    ({}, lambda one: True),
    ({"provider": "codex"}, lambda one: one.agent == "codex"),
    ({"tool": "bash"}, lambda one: one.tool.lower() == "bash"),
    ({"failed": True}, lambda one: one.failed),
    ({"failed": False}, lambda one: not one.failed),
    ({"kind": "subagent"}, lambda one: one.kind == "subagent"),
    ({"kind": "main"}, lambda one: one.kind != "subagent"),
    ({"kind": "all"}, lambda one: True),
    ({"since": "2026-10-01", "until": "2026-10-31"}, lambda one: "2026-10-01" <= one.day <= "2026-10-31"),
    ({"provider": "claude_code", "failed": True}, lambda one: one.agent == "claude_code" and one.failed),
]


@pytest.mark.parametrize("by", ["tool", "agent", "day"])
def test_counts_of_calls_and_what_filters_leave_are_those_of_a_scan(samples: Asker, by: GroupBy) -> None:
    calls = called(samples)
    for filters, keep in FILTERS:
        expected = scanned(list(filter(keep, calls)), by)
        data = counts(samples, by, limit=50, **filters)["data"]
        assert len(data["rows"]) == min(len(expected), 50), filters
        assert all(row in expected for row in data["rows"]), filters


def test_a_path_leaves_the_calls_that_name_it_and_of_files_those_with_it(samples: Asker) -> None:
    sql = (
        "SELECT session_id, event_index FROM touched JOIN path p ON p.id = path_id WHERE instr(lower(text), 'store.py')"
    )
    named = set(query(samples, sql))
    expected = scanned([one for one in called(samples) if one[:2] in named], "tool")
    assert sorted(counts(samples, "tool", path="STORE.py", limit=50)["data"]["rows"]) == expected
    files = counts(samples, "file", path="STORE.py", limit=50)["data"]["rows"]
    assert files and all("store.py" in label.lower() for label, *_ in files)


def test_what_no_log_tells_is_unknown_and_not_none(tmp_path: Path) -> None:
    """Cursor's logs have no results."""
    asker = Asker(tmp_path, SAMPLES / "cursor")
    assert {row[2] for by in ("tool", "file", "agent") for row in counts(asker, by)["data"]["rows"]} == {None}
    assert counts(asker, "tool", measure="failed")["summary"].startswith("unknown how many failed tool calls by tool")
    assert counts(asker, "tool", limit=2)["data"]["others"][2] is None
    (project,) = asker.items("get_project_info", "projects")
    assert "failed_calls" not in project


@pytest.mark.parametrize(
    ("by", "measure"),
    [*((by, "calls") for by in GROUPS if by not in ("file", "program")), *((by, "tokens") for by in OF_TOKENS)],
)
def test_groups_come_to_the_same_as_the_lists(each: Asker, by: GroupBy, measure: CountOf) -> None:
    """Calls to agtrace itself count, copies and warm-ups don't."""
    what, *names = ("tokens", "total_tokens", "output_tokens") if measure == "tokens" else (
        "tool calls", "tool_calls", "failed_calls")  # fmt: skip
    items = each.items("list_sessions", "sessions", limit=50, kind="all", sort="output_tokens")
    sums = [sum(item.get(name, 0) for item in items) for name in names]
    value = counts(each, by, measure=measure, limit=50)
    rows = [*value["data"]["rows"], value["data"].get("others", [0, 0, 0])]
    assert [sum(row[column] or 0 for row in rows) for column in (1, 2)] == sums
    assert value["summary"].startswith(f"{sums[0]:,} {what} by {by}; [{', '.join(columns(by, measure)[:3])}")
    if measure == "calls":
        assert counts(each, by, measure="failed")["summary"].startswith(f"{sums[1]:,} failed tool call")


@pytest.mark.parametrize("measure", ["calls", "failed"])
def test_the_largest_group_comes_first_and_a_smaller_limit_only_shortens(samples: Asker, measure: str) -> None:
    rows = counts(samples, "tool", measure=measure, limit=50)["data"]["rows"]
    figures = [row[columns("tool", "calls").index(measure)] or 0 for row in rows]
    assert figures == sorted(figures, reverse=True)
    short = counts(samples, "tool", measure=measure, limit=2)["data"]
    assert short["rows"] == rows[:2]
    assert short["others"] == [len(rows) - 2, sum(row[1] for row in rows[2:]), sum(row[2] or 0 for row in rows[2:])]


# -- what a group is -------------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path: Path) -> ClaudeLog:
    return claude_log(tmp_path / "logs", "aaaaaaaa-0000-4000-8000-000000000000").prompt("go")


def asked(log: ClaudeLog, tmp_path: Path) -> Asker:
    return Asker(tmp_path / "index", log.path.parents[2])


def test_a_program_is_the_first_of_its_command(log: ClaudeLog, tmp_path: Path) -> None:
    """`cd`, variables, wrappers and substitutions aren't what is run."""
    for command in (
        "git status", "cd /srv && git log | head", "GIT_PAGER= sudo -n git diff", "bash -lc 'cd x; git add .'",
        "X=$(pwd)/x Y=$(pwd) git push", "$x = 'a b'; git tag", 'echo "$(git rev-parse HEAD)"', "cd /srv",
        "/usr/local/bin/Cargo test", "cat > x <<'E'\ngit\nE\ngit add x",
    ):  # fmt: skip
        log.call("Bash", {"command": command}, "ok", failed=command.endswith("add x"))
    log.call("Read", {"file_path": "/srv/x"}, "git")
    rows = counts(asked(log, tmp_path), "program")["data"]["rows"]
    assert rows == [["git", 6, 0, 1], ["cat", 1, 1, 1], ["cargo", 1, 0, 1], ["cd", 1, 0, 1], ["echo", 1, 0, 1]]


def test_a_file_that_is_named_in_two_ways_is_one(log: ClaudeLog, tmp_path: Path) -> None:
    log.call("Read", {"file_path": "/home/mira/projects/tidepool/a.py"}, "ok")
    log.call("Edit", {"file_path": "a.py", "new_string": "x"}, "no", failed=True)
    value = counts(asked(log, tmp_path), "file")
    assert value["data"]["rows"] == [["/home/mira/projects/tidepool/a.py", 2, 1, 1]]
    assert value["summary"] == "2 file uses by file; [file, calls, failed, sessions]"


def test_a_call_belongs_to_the_model_of_its_response(log: ClaudeLog, tmp_path: Path) -> None:
    for number, model in enumerate(("claude-opus-4-5", "claude-haiku-4-5", "claude-opus-4-5")):
        call_id = f"toolu_{number}"
        use = {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": "make"}}
        message = {"role": "assistant", "content": [use], "model": model, "id": f"msg_{number}", "type": "message",
                   "usage": {"input_tokens": 5, "output_tokens": 10 + number}}  # fmt: skip
        log.write("assistant", [use], message=message)
        log.write("user", [{"type": "tool_result", "tool_use_id": call_id, "content": "ok"}])
    asker = asked(log, tmp_path)
    assert counts(asker, "model")["data"]["rows"] == [["claude-opus-4-5", 2, 0, 1], ["claude-haiku-4-5", 1, 0, 1]]
    assert counts(asker, "model", measure="tokens")["data"]["rows"] == [
        ["claude-opus-4-5", 32, 22, 2, 1],
        ["claude-haiku-4-5", 16, 11, 1, 1],
    ]


def test_a_copy_counts_where_it_comes_from(log: ClaudeLog, tmp_path: Path) -> None:
    log.call("Bash", {"command": "make"}, "ok").say("done")
    copy = log.fork("bbbbbbbb-0000-4000-8000-000000000002")
    copy.prompt("on").call("Bash", {"command": "ls"}, "ok").say("done")
    asker = asked(log, tmp_path)
    assert counts(asker, "program")["data"]["rows"] == [["ls", 1, 0, 1], ["make", 1, 0, 1]]
    sessions = sorted(row[:3] for row in counts(asker, "session")["data"]["rows"])
    assert sessions == [["aaaaaaaa", 1, 0], ["bbbbbbbb", 1, 0]]


# -- what is refused, and what comes next ----------------------------------------------------------


@pytest.mark.parametrize("arguments", [{"group_by": by} for by in ("tool", "program", "file")])
def test_tokens_have_no_tool_program_or_file(samples: Asker, arguments: dict[str, Any]) -> None:
    problem = samples.error("count_events", measure="tokens", **arguments)
    assert problem["code"] == "invalid_parameter" and problem["details"]["field"] == "measure"


@pytest.mark.parametrize("filters", [{"tool": "Bash"}, {"path": "x"}, {"failed": True}])
def test_filters_of_calls_are_refused_for_tokens(samples: Asker, filters: dict[str, Any]) -> None:
    problem = samples.error("count_events", group_by="model", measure="tokens", **filters)
    assert problem["details"]["field"] == next(iter(filters))


def test_a_group_that_is_not_there_is_answered_with_the_nearest(samples: Asker) -> None:
    assert "did you mean program?" in samples.error("count_events", group_by="programs")["message"]
    assert "group_by is missing" in samples.error("count_events")["message"]
