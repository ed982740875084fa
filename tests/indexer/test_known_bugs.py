"""Bugs of other tools with files, times, directories and prices that no other test covers."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import zstandard
from agtrace_indexer.index.projects import project_root
from agtrace_indexer.providers.registry import homes
from agtrace_indexer.run import index, versions
from rich.cells import cell_len

from agtrace.sessions.prices import load as load_prices
from tests.agtrace.asking import Asker, ClaudeLog, claude_log
from tests.agtrace.terminal import agtrace_here
from tests.conftest import copy_of_samples
from tests.contents import contents
from tests.depth import part
from tests.hostile import _codex_lines
from tests.indexer.test_codex_families import MINUTE, NOTHING, OWN_TURN, T0, TWO_TURNS, Rollout, sums

ONE = "aaaaaaaa-0000-4000-8000-000000000001"
TWO = "bbbbbbbb-0000-4000-8000-000000000002"


@pytest.fixture
def log(tmp_path: Path) -> ClaudeLog:
    """A log that has a project's root of its own, below `home`."""
    return claude_log(tmp_path / "home", ONE)


def asker_of(tmp_path: Path) -> Asker:
    """Questions to an index of what lies below `home`."""
    return Asker(tmp_path / "data", tmp_path / "home")


def texts_of(database: Path) -> list[str]:
    """The searchable texts of all events."""
    return [text for _, _, text, _ in contents(database)["texts"]]


def statuses(database: Path) -> dict[str, str]:
    """What became of each file."""
    return {Path(row[0]).name: row[1] for row in contents(database)["files"]}


def answered(log: ClaudeLog, text: str, given: int, made: int, model: str = "claude-opus-4-5", **more: Any) -> None:
    """A response of so many tokens."""
    usage = {"input_tokens": given, "output_tokens": made}
    identity = {"id": f"msg_{text}", "role": "assistant", "model": model, "stop_reason": "end_turn", "usage": usage}
    content = [{"type": "text", "text": text}]
    log.write("assistant", content, message={**identity, "content": content}, requestId=f"req_{text}", **more)


# --- tokens and costs ---


def test_a_cost_that_the_log_tells_wins_over_list_prices_and_over_having_none(log: ClaudeLog, tmp_path: Path) -> None:
    log.prompt("go")
    answered(log, "one", 1_000_000, 10, costUSD=0.125)
    answered(log, "two", 1_000_000, 10, "a-model-that-nobody-knows", costUSD=0.25)
    stats = asker_of(tmp_path).ask("get_session_details", session_id=ONE)["data"]["stats"]
    assert (stats["cost_usd"], stats["cost_made"]) == (0.375, "exact")


def test_a_response_without_a_price_makes_the_cost_unknown_and_not_zero(log: ClaudeLog, tmp_path: Path) -> None:
    log.prompt("go")
    answered(log, "one", 1_000, 10, "claude-of-next-year-9")
    asker = asker_of(tmp_path)
    stats = asker.ask("get_session_details", session_id=ONE)["data"]["stats"]
    assert ("cost_usd" in stats, stats["cost_made"], stats["total_tokens"]) == (False, "unknown", 1_010)
    answered(log, "two", 1_000_000, 0, costUSD=None)
    stats = asker.ask("get_session_details", session_id=ONE)["data"]["stats"]
    assert (stats["cost_usd"], stats["cost_made"]) == (5.0, "partial")


@pytest.mark.parametrize("fast", [False, True])
def test_each_request_is_priced_by_its_own_speed_size_and_cache_writes(
    fast: bool, log: ClaudeLog, tmp_path: Path
) -> None:
    """Two small requests are no large one, and an hour in the cache is not five minutes."""
    model, speed = ("claude-opus-4-8", "fast") if fast else ("claude-sonnet-4-5", "standard")
    log.prompt("go")
    for number, given in enumerate((150_000, 150_000, 250_000)):
        usage = {"input_tokens": given - 3_000, "output_tokens": 1_000, "cache_creation_input_tokens": 3_000,
                 "cache_creation": {"ephemeral_5m_input_tokens": 1_000, "ephemeral_1h_input_tokens": 2_000},
                 "speed": speed}  # fmt: skip
        message = {"id": f"m{number}", "role": "assistant", "model": model, "content": [], "stop_reason": "end_turn"}
        log.write("assistant", [], message={**message, "usage": usage}, requestId=f"r{number}")
    prices = load_prices(None).find(model)
    assert prices is not None and prices.standard is not None
    rates = prices.fast if fast else prices.standard
    assert rates is not None and rates.cache_write_5m is not None and rates.cache_write_1h is not None
    above = rates.above.get(200_000, rates)
    dollars = sum(
        (given - 3_000) * one.input + 1_000 * one.output + 1_000 * one.input * 1.25 + 2_000 * one.input * 2
        for given, one in ((150_000, rates), (150_000, rates), (250_000, above))
    )
    stats = asker_of(tmp_path).ask("get_session_details", session_id=ONE)["data"]["stats"]
    assert stats["cost_usd"] == pytest.approx(dollars / 1_000_000, abs=0.0001)


def test_the_tokens_of_a_sub_agent_count_in_its_project_once_and_not_in_its_parent(
    log: ClaudeLog, tmp_path: Path
) -> None:
    """What the parent's log reports of them is no response of the parent."""
    log.prompt("go")
    answered(log, "asking", 100, 10)
    call = {"type": "tool_use", "id": "toolu_1", "name": "Task", "input": {"prompt": "look"}}
    log.write("assistant", [call])
    done = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "seen"}]}
    told = {"status": "completed", "agentId": "ab", "totalTokens": 5_005, "usage": {"input_tokens": 5_000}}
    log.write("user", [done], toolUseResult=told)
    agent = ClaudeLog(log.path.with_suffix("") / "subagents" / "agent-ab.jsonl", ONE)
    agent.write("user", "look", isSidechain=True, agentId="ab")
    answered(agent, "seen", 5_000, 5, isSidechain=True, agentId="ab")
    asker = asker_of(tmp_path)
    stats = asker.ask("get_session_details", session_id=ONE)["data"]["stats"]
    assert (stats["total_tokens"], stats["with_children"]["total_tokens"]) == (110, 5_115)
    (project,) = asker.ask("get_project_info")["data"]["projects"]
    assert (project["total_tokens"], project["responses"]) == (5_115, 2)


def test_turns_tell_the_end_of_a_replay_where_times_of_lines_and_the_parents_log_cannot(
    tmp_path: Path, database: Path
) -> None:
    """One replay took a minute to be written, the other sub-agent began its own work at once."""
    parent = Rollout(tmp_path, T0).turn("one", 100).turn("two", 100)
    slow = parent.fork(T0 + MINUTE, step=2_000, forked_from_id=parent.id).turn("mine", 7)
    slow.write()
    fresh = Rollout(tmp_path, T0 + MINUTE, 3, forked_from_id=parent.id, thread_source="subagent").turn("mine", 7)
    for record in fresh.records:
        record["timestamp"] = fresh.records[0]["timestamp"]
    fresh.write()
    index(database, [str(tmp_path)])
    assert sums(database, slow) == (OWN_TURN, TWO_TURNS)
    assert sums(database, fresh) == (OWN_TURN, NOTHING)


# --- times ---


@pytest.fixture(params=["America/Los_Angeles", "Pacific/Auckland"])
def elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This machine's clock shows the time of another place."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("2026-03-08T09:30:00.000Z", "2026-03-08T09:30:00Z"),
        ("2026-03-08T02:30:00-07:00", "2026-03-08T09:30:00Z"),
        ("2026-03-08T02:30:00", "2026-03-08T02:30:00Z"),
        ("2026-03-09T00:30:00+02:00", "2026-03-08T22:30:00Z"),
        (1_772_962_200, "2026-03-08T09:30:00Z"),
        (1_772_962_200_000, "2026-03-08T09:30:00Z"),
    ],
)
def test_a_time_is_one_moment_however_it_is_written_and_its_day_is_the_users(
    written: Any, shown: str, log: ClaudeLog, tmp_path: Path
) -> None:
    """A day on which clocks are set forward, asked for in two other zones."""
    log.write("user", "go", timestamp=written)
    asker = asker_of(tmp_path)
    day = datetime.fromisoformat(shown).astimezone().date()
    (session,) = asker.ask("list_sessions", since=str(day), until=str(day))["data"]["sessions"]
    assert session["start_time"] == shown
    for other in (str(day - timedelta(1)), str(day + timedelta(1))):
        assert asker.ask("list_sessions", since=other, until=other)["data"]["sessions"] == []
    found = asker.ask("search_event_previews", order="newest", query="go", since=str(day), until=str(day))
    (match,) = found["data"]["matches"]
    assert match["timestamp"] == shown


def test_times_that_are_missing_or_wrong_cost_no_event_and_give_no_negative_duration(
    log: ClaudeLog, tmp_path: Path
) -> None:
    """Also a clock that was set back, and one that is ahead of ours."""
    log.write("user", "first needle", timestamp="2026-03-08T10:00:00Z")
    for wrong in (None, "", "soon", "2026-13-45T00:00:00Z", -1, 10**30, True, {"$date": 1}):
        log.write("assistant", [{"type": "text", "text": "needle"}], timestamp=wrong)
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "needle"}}
    log.write("assistant", [call], timestamp="2126-03-08T10:00:30Z")
    done = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "needle"}
    log.write("user", [done], timestamp="2026-03-08T09:59:00Z")
    asker = asker_of(tmp_path)
    matches = asker.items("search_event_previews", "matches", order="newest", query="needle", limit=3)
    kinds = [match["event_type"] for match in matches]
    assert (len(kinds), kinds.count("Message")) == (11, 8)
    data = asker.ask("get_session_details", session_id=ONE)["data"]
    assert (data["start_time"], data["end_time"]) == ("2026-03-08T09:59:00Z", "2126-03-08T10:00:30Z")
    assert data["stats"]["duration_seconds"] > 0 and data["stats"]["active_seconds"] >= 0
    with closing(sqlite3.connect(asker.settings.database)) as connection:
        assert connection.execute("SELECT count(*) FROM event WHERE duration_ms < 0").fetchone() == (0,)
        missing = connection.execute("SELECT DISTINCT ts FROM event WHERE event_index BETWEEN 0 AND 8").fetchall()
    assert missing == [(1_772_964_000_000,)], "what has no time has that of the event before it"


def test_a_log_without_any_time_is_listed_and_can_be_opened(log: ClaudeLog, tmp_path: Path) -> None:
    log.write("user", "needle", timestamp=None)
    asker = asker_of(tmp_path)
    (session,) = asker.ask("list_sessions")["data"]["sessions"]
    assert "start_time" not in session
    assert asker.ask("search_event_previews", order="newest", query="needle")["data"]["matches"]
    stats = asker.ask("get_session_details", session_id=ONE)["data"]["stats"]
    assert "duration_seconds" not in stats
    log.say("done")  # with a time
    asker.index()
    stats = asker.ask("get_session_details", session_id=ONE)["data"]["stats"]
    assert (stats["duration_seconds"], stats["active_seconds"]) == (0, 0)


# --- files ---


def test_a_new_reading_reads_all_again_what_is_gone_from_the_archive(
    log: ClaudeLog, tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.prompt("still there")
    gone = claude_log(tmp_path / "home", TWO).prompt("long gone")
    index(database, [str(tmp_path / "home")])
    gone.path.unlink()
    index(database, [])
    before = contents(database)
    monkeypatch.setattr(versions, "READING_VERSION", versions.READING_VERSION + 1)
    assert index(database, []).files_opened == 2
    assert contents(database) == before
    assert "long gone" in texts_of(database)
    assert index(database, []).files_opened == 0


def test_a_session_whose_log_was_deleted_is_listed_found_opened_and_said_to_be_gone(
    log: ClaudeLog, tmp_path: Path
) -> None:
    """Agents delete their logs after some weeks."""
    log.prompt("needle")
    asker = asker_of(tmp_path)
    assert "log_gone" not in asker.ask("get_session_details", session_id=ONE)["data"]
    log.path.unlink()
    assert len(asker.ask("list_sessions")["data"]["sessions"]) == 1
    (match,) = asker.ask("search_event_previews", order="newest", query="needle")["data"]["matches"]
    assert asker.body(match["session_id"], match["event_index"]) == "needle"
    assert asker.ask("get_session_details", session_id=ONE)["data"]["log_gone"] is True
    assert agtrace_here("doctor", "--json").json()["index"]["archived_files"] == 1


def test_a_list_of_typed_prompts_is_no_log_and_brings_no_session(
    log: ClaudeLog, tmp_path: Path, database: Path
) -> None:
    """The agents keep one beside their logs."""
    log.prompt("engine")
    typed = {"display": "boat", "pastedContents": {}, "timestamp": 1_772_962_200_000, "project": "/p", "sessionId": TWO}
    (tmp_path / "home" / "history.jsonl").write_text(json.dumps(typed) + "\n")
    index(database, [str(tmp_path / "home")])
    assert [row[0] for row in contents(database)["sessions"]] == [ONE]
    assert statuses(database)["history.jsonl"] == "unrecognized"


def test_a_first_line_of_megabytes_whose_ids_stand_at_its_end_hides_no_log(
    log: ClaudeLog, tmp_path: Path, database: Path
) -> None:
    """A look at the first 64 KB finds nothing of a session."""
    record = {"message": {"role": "user", "content": "needle " + "x" * 3_000_000}, "isSidechain": False, "uuid": "u1"}
    log.raw({**record, "timestamp": "2026-03-08T09:30:00Z", "cwd": "/p", "sessionId": ONE, "type": "user"})
    index(database, [str(tmp_path / "home")])
    assert [row[0] for row in contents(database)["sessions"]] == [ONE]
    assert texts_of(database)[0].startswith("needle")


def test_a_file_that_could_not_be_read_is_read_as_soon_as_it_changes(
    log: ClaudeLog, tmp_path: Path, database: Path
) -> None:
    """What was set aside once is not set aside for ever."""
    log.prompt("needle")
    content = log.path.read_bytes()
    log.path.write_bytes(b"\x7fELF" + bytes(500))
    packed = tmp_path / "home" / "packed.jsonl.zst"
    whole = zstandard.ZstdCompressor().compress(b"".join(line + b"\n" for line in _codex_lines()))
    packed.write_bytes(whole[: len(whole) // 2])
    index(database, [str(tmp_path / "home")])
    assert (statuses(database)[log.path.name], len(contents(database)["sessions"])) == ("unrecognized", 1)
    assert len(texts_of(database)) < 400
    log.path.write_bytes(content)
    packed.write_bytes(whole)
    index(database, [])
    assert statuses(database)[log.path.name] == "log"
    assert (len(texts_of(database)), texts_of(database).count("needle")) == (503, 1)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_line_that_is_no_record_costs_no_other_one_and_is_reported(
    place: int, log: ClaudeLog, tmp_path: Path, database: Path
) -> None:
    """A session with a bad line is not quarantined."""
    log.prompt("first").say("last")
    lines = log.path.read_bytes().splitlines(keepends=True)
    log.path.write_bytes(b"".join([*lines[:place], b'{"type": "user", "mess\n', *lines[place:]]))
    os.utime(log.path, (1, 1))  # its agent writes no more
    index(database, [str(tmp_path / "home")])
    assert [text for text in texts_of(database) if not text.startswith("{")] == ["first", "last"]
    said = agtrace_here("doctor", "--json")
    assert (said.code, [line["line"] for line in said.json()["unreadable_lines"]]) == (1, [place + 1])


STRANGERS: dict[str, bytes] = {
    "log-cache.db": b"SQLite format 3\x00" + bytes(4_000),
    "index.html": b'<!doctype html><script>var records = [{"type":"user"}]</script>\n' * 50,
    "sessions-index.json": b'{"version": 1, "entries": [{"sessionId": "x", "firstPrompt": "boat", "messageCount": 2}]}',
    "agent-ab.meta.json": b'{"agentType": "Explore"}',
    "todos.json": b'[{"content": "boat", "status": "pending", "id": "1"}]',
    "package.json": b'{"name": "x", "type": "module", "version": "1.0.0"}\n',
    "events.jsonl": b'{"type": "user", "name": "x"}\n{"type": "message", "message": "hello"}\n',
    "export.jsonl": b'{"type": "user", "message": {"role": "user", "content": "boat"}}\n' * 3,
    "another-agent.jsonl": b'{"type":"user","sessionId":"x","message":{"role":"user","parts":[{"text":"boat"}]}}\n',
    "checkpoint.json": b'{"messages": [{"role": "user", "content": "boat"}], "timestamp": 1}',
    "notes.md": b"# Engine\n",
}


def test_what_others_put_among_the_logs_is_no_log_and_is_opened_once(
    log: ClaudeLog, tmp_path: Path, database: Path
) -> None:
    """Caches, pages, checkpoints, descriptions, other tools' lines."""
    log.prompt("engine")
    for name, content in STRANGERS.items():
        log.path.with_name(name).write_bytes(content)
    index(database, [str(tmp_path / "home")])
    found = statuses(database)
    assert found.pop(log.path.name) == "log"
    assert found == dict.fromkeys(STRANGERS, "unrecognized")
    assert len(contents(database)["sessions"]) == 1
    assert index(database, []).files_opened == 0


def blanks(record: Any) -> str:
    """A record as another JSON writer may write it: with blanks wherever they are allowed."""
    return " \t" + json.dumps(record, separators=(" ,  ", " :\t")) + "  "


@pytest.mark.parametrize("spaced", part([blanks, lambda record: json.dumps(record, separators=(",", ":"))], 0, 2))
def test_blanks_between_the_parts_of_a_line_change_nothing(
    spaced: Callable[[Any], str], tmp_path: Path, database: Path
) -> None:
    """A reader that looks for bytes such as `"usage":{` finds nothing in them."""
    copy_of_samples(tmp_path / "logs")
    first = tmp_path / "first" / "index.sqlite3"
    index(first, [str(tmp_path / "logs")])
    for path in (tmp_path / "logs").rglob("*.jsonl"):
        lines = path.read_text(encoding="utf-8").splitlines()
        path.write_text("".join(_rewritten(line, spaced) + "\n" for line in lines), encoding="utf-8")
    index(database, [str(tmp_path / "logs")])
    one, other = contents(first), contents(database)
    for what in ("sessions", "texts", "turns", "usage", "models", "requests", "record_types"):
        assert one[what] == other[what]


def _rewritten(line: str, written: Callable[[Any], str]) -> str:
    try:
        return written(json.loads(line))
    except ValueError:
        return line


def test_what_is_no_text_costs_only_itself_and_large_numbers_stay_exact(
    log: ClaudeLog, tmp_path: Path, database: Path
) -> None:
    log.prompt("before HERE after").prompt("low HALF end").call(
        "Bash", {"n": 9_007_199_254_740_993, "m": 2**64 - 1}, "ok"
    )
    content = log.path.read_bytes().replace(b"HERE", b"\xe2\x82 \xff").replace(b"HALF", b"\\ud800\\u0000")
    log.path.write_bytes(b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"))
    index(database, [str(tmp_path / "home")])
    said = texts_of(database)
    assert (said[0].startswith("before "), said[0].endswith(" after"), said[1][:4], said[1][-4:]) == (
        True, True, "low ", " end",
    )  # fmt: skip
    assert said[2:] == ["Bash\nn: 9007199254740993\nm: 18446744073709551615", "ok"]


# --- what indexing touches ---

_WATCHED = """
import json, sys
opened, started = [], []
def hook(event, arguments):
    if event in ("open", "os.listdir", "os.scandir"):
        opened.append(str(arguments[0]))
    elif event.startswith(("subprocess.", "os.exec", "os.posix_spawn", "os.fork", "os.system", "os.spawn", "socket.")):
        started.append(event)
from agtrace_indexer.run import index
from pathlib import Path
import agtrace_indexer.reader.reader
sys.addaudithook(hook)
index(Path(sys.argv[1]), [sys.argv[2]])
print(json.dumps([opened, started]))
"""


@pytest.mark.thorough
def test_indexing_starts_no_process_and_opens_nothing_in_the_projects_but_the_pointer_of_a_worktree(
    tmp_path: Path, database: Path
) -> None:
    """A system that guards folders would ask the user for each project."""
    project, tree = tmp_path / "code" / "engine", tmp_path / "code" / "tree"
    (project / ".git" / "worktrees" / "tree").mkdir(parents=True)
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {project}/.git/worktrees/tree\n")
    for number, cwd in enumerate((project, project, tree)):
        claude_log(tmp_path / "home", f"{ONE[:-1]}{number}", cwd=str(cwd)).prompt("go")
    command = [sys.executable, "-c", _WATCHED, str(database), str(tmp_path / "home")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    opened, started = json.loads(ended.stdout)
    assert started == []
    assert {path for path in opened if path.startswith(str(tmp_path / "code"))} == {str(tree / ".git")}
    assert len(contents(database)["sessions"]) == 3


# --- projects, homes, screens ---


def test_projects_are_told_by_the_first_directory_in_the_lines_and_not_by_the_folder(tmp_path: Path) -> None:
    """The folder's name is the same for both."""
    folder = tmp_path / "home" / "projects" / "-srv-tide-pool"
    for session, cwd in ((ONE, "/srv/tide-pool"), (TWO, "/srv/tide/pool")):
        log = ClaudeLog(folder / f"{session}.jsonl", session, cwd=cwd).prompt("go")
        log.cwd = "/srv/elsewhere"
        log.say("done")
    found = asker_of(tmp_path).ask("get_project_info")["data"]["projects"]
    assert sorted((one["root_path"], one["session_count"]) for one in found) == [
        ("/srv/tide-pool", 1),
        ("/srv/tide/pool", 1),
    ]


def test_a_home_that_is_set_replaces_the_default_one_and_an_empty_list_is_no_home() -> None:
    home = Path("/home/ada")
    rest = homes({}, home)[1:]
    assert homes({"CLAUDE_CONFIG_DIR": "", "CODEX_HOME": "", "GEMINI_CLI_HOME": ""}, home) == homes({}, home)
    assert homes({"CLAUDE_CONFIG_DIR": " , "}, home) == rest
    assert homes({"CLAUDE_CONFIG_DIR": "/a,/b c ,"}, home) == [Path("/a/projects"), Path("/b c/projects"), *rest]
    moved = homes({"CODEX_HOME": "/c", "GEMINI_CLI_HOME": "/g"}, home)
    assert moved[2:5] == [Path("/c/sessions"), Path("/c/archived_sessions"), Path("/g/.gemini/tmp")]
    variables = {"CURSOR_CONFIG_DIR": "/u", "KIRO_HOME": "/k", "GOOSE_PATH_ROOT": "/g", "XDG_DATA_HOME": "/x"}
    places = ("/u/projects", "/k/sessions", "/x/kiro-cli/data.sqlite3", "/x/amazon-q/data.sqlite3",
              "/g/data/sessions", "/x/goose/sessions")  # fmt: skip
    assert set(map(Path, places)) <= set(homes(variables, home))


def test_no_root_at_all_is_nothing_to_index(log: ClaudeLog, database: Path) -> None:
    """An empty list is not taken for the default."""
    log.prompt("go")
    assert index(database, [], otherwise=[]).files_seen == 0
    assert index(database, [], otherwise=[str(log.path.parent)]).files_seen == 1


def test_a_worktree_belongs_to_its_main_repository_and_a_submodule_to_itself(tmp_path: Path) -> None:
    main, tree, module = tmp_path / "main", tmp_path / "tree", tmp_path / "main" / "module"
    (main / ".git" / "worktrees" / "tree").mkdir(parents=True)
    for folder, pointer in ((tree, f"{main}/.git/worktrees/tree"), (module, "../.git/modules/module")):
        (folder / "src").mkdir(parents=True)
        (folder / ".git").write_text(f"gitdir: {pointer}\n")
    inside = main / ".claude" / "worktrees" / "try-1"  # removed since
    sessions = ((ONE, main), (TWO, tree / "src"), (f"{TWO[:-1]}3", inside), (f"{TWO[:-1]}4", module / "src"))
    for session, cwd in sessions:
        claude_log(tmp_path / "home", session, cwd=str(cwd)).prompt("go")
    found = asker_of(tmp_path).ask("get_project_info")["data"]["projects"]
    assert {one["root_path"]: one["session_count"] for one in found} == {str(main): 3, str(module): 1}


FOREIGN = [
    r"C:\Users\Ada Lovelace\engine",
    r"\\wsl$\Ubuntu\home\ada\engine",
    r"\\wsl.localhost\Ubuntu\srv",
    "C:/engine",
]


@pytest.mark.skipif(os.name == "nt", reason="these are paths of the machine itself there")
@pytest.mark.parametrize("cwd", [*FOREIGN, "engine", "/mnt/c/Users/Ada Lovelace/engine"])
def test_a_directory_of_another_system_is_its_own_project_and_never_looked_for_here(
    cwd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is called so here, relative to where agtrace runs, is something else."""
    (tmp_path / ".git").mkdir()
    if not cwd.startswith("/"):
        (tmp_path / cwd).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    project_root.cache_clear()
    claude_log(tmp_path / "home", ONE, cwd=cwd).prompt("go")
    claude_log(tmp_path / "home", TWO, cwd=f"{cwd}/.claude/worktrees/try").prompt("go")
    (project,) = asker_of(tmp_path).ask("get_project_info")["data"]["projects"]
    assert (project["root_path"], project["session_count"]) == (cwd, 2)


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize(
    "text",
    ["潮が引くのはいつですか" * 9, "🐟🌊" * 60, "e\u0301" * 150, "ﬁ—ß " * 60],
    ids=["Japanese", "emoji", "combining", "narrow"],
)
def test_wide_characters_keep_a_table_within_the_columns_of_the_terminal(
    text: str, columns: int, log: ClaudeLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are neither counted as bytes nor as one column each."""
    from agtrace.render import lists

    log.prompt(text)
    answer = asker_of(tmp_path).ask("list_sessions")
    monkeypatch.setenv("COLUMNS", str(columns))
    with lists.OUT.capture() as printed:
        lists.sessions(answer, ())
    *_, row = printed.get().rstrip("\n").split("\n")
    assert text[:4] in row
    assert all(cell_len(line) <= columns for line in printed.get().split("\n"))
    assert cell_len(row) > columns - 4, "no room is given away"


def test_no_chunk_and_no_preview_breaks_a_character(log: ClaudeLog, tmp_path: Path) -> None:
    """A cut inside one of several bytes would be an error, or a sign that stands for it."""
    said = "潮🐟é" * 4_000
    log.prompt("go").call("Read", {"file_path": "/p"}, said)
    asker = asker_of(tmp_path)
    log.prompt("潮" * 200).prompt("🐟" * 201)
    answer = asker.ask("get_session_details", session_id=ONE)
    assert [turn["user_message"] for turn in answer["data"]["turns"]][1:] == ["潮" * 200, "🐟" * 197 + "..."]
    for shift in range(3):
        (match, *_) = asker.ask("search_event_previews", order="newest", query=said[shift : shift + 5])["data"][
            "matches"
        ]
        assert "\ufffd" not in json.dumps(match, ensure_ascii=False)
    assert asker.body(ONE, 2, max_bytes=2_048 + 1) == said
