"""`agtrace forget`, and questions to an index after it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from agtrace_indexer import forget as forgetting
from agtrace_indexer.forget import forget
from agtrace_indexer.index.projects import project_hash
from agtrace_indexer.run import index

from tests.agtrace.asking import Asker, claude_log
from tests.agtrace.terminal import AGTRACE, agtrace, agtrace_here, index_here
from tests.conftest import SAMPLES
from tests.contents import contents
from tests.indexer.forgettable import STAYS, WORD, found_in
from tests.indexer.test_files import claude, write
from tests.indexer.test_forget import aged, digests

LARGE = "d41f7a52-6c0e-4b8e-9a37-2f5e81c0b944"
WITH_AGENT = "e97a4b06-73c8-4f52-8d1e-b06c5a2f91d4"
INLINE_PARENT = "5be1c2d7-90f4-4a61-b1c8-7d20e6a4f315"


@pytest.fixture
def indexed(database: Path, sample_index: Path) -> Path:
    """An index of the sample sessions, which a test may change."""
    shutil.copy2(sample_index / database.name, database)
    return database


# --- the command ---


def test_forget_says_what_goes_and_what_stays(indexed: Path) -> None:
    said = agtrace("forget", WITH_AGENT[:8], "--yes", TZ="Asia/Tokyo")
    assert said.code == 0, said
    lines = said.out.splitlines()
    assert lines[0] == "1 session and 1 sub-agent with 75 events, 2026-10-20 18:15 to 2026-10-20 18:24"
    assert lines[1].strip() == "Surge warnings on the map"
    assert f"{WITH_AGENT}.jsonl" in said.out and "are not deleted" in said.out
    assert lines[-1] == "forgotten: nothing of it is left in the index"
    assert (SAMPLES / "claude" / "projects" / "-home-mira-projects-tidepool" / f"{WITH_AGENT}.jsonl").exists()


def test_nothing_finds_what_was_forgotten_and_all_commands_go_on(indexed: Path) -> None:
    assert f"{WITH_AGENT[:8]}  2026" in agtrace_here("search", "surge warnings").out
    assert "surge" in agtrace_here("search", "surge warnings", "--newest").out.lower()
    agtrace_here("forget", WITH_AGENT, "--yes")
    assert WITH_AGENT[:8] not in agtrace_here("search", "surge warnings").out
    assert "Found 0 events" in agtrace_here("search", "surge warnings", "--newest").out
    assert WITH_AGENT[:8] not in agtrace_here("sessions", "--limit", "50").out
    assert agtrace_here("show", WITH_AGENT).code == agtrace_here("analyze", f"{WITH_AGENT}").code == 2
    again = agtrace_here("forget", WITH_AGENT, "--yes")
    assert (again.code, again.out) == (0, f"{WITH_AGENT} was forgotten already\n")
    assert "Surge" not in agtrace_here("report").out
    doctor = agtrace_here("doctor").out
    assert "not read, their sessions were forgotten: 3 files" in doctor and WITH_AGENT not in doctor


def test_nothing_is_forgotten_by_a_dry_run_without_consent_or_where_nothing_is_named(indexed: Path) -> None:
    before = contents(indexed)
    for arguments, code, told in (
        ([LARGE, "--dry-run"], 0, "1 session with"),
        ([LARGE], 2, "--yes is needed"),
        ([], 2, "say what to forget"),
        (["--before", "2020-01-01", "--yes"], 0, "no session matches"),
        (["0000ffff", "--yes"], 2, "`agtrace sessions` lists the newest ids"),
        (["--project", "nowhere", "--yes"], 2, "no project matches"),
        (["--before", "whenever", "--yes"], 2, "expected ISO 8601"),
        ([LARGE, "--older-content", "--yes"], 2, "--older-content alone"),
        (["sidechain-", "--yes"], 2, f"is a sub-agent in the log of session {INLINE_PARENT}"),
    ):
        said = agtrace_here("forget", *arguments)
        assert (said.code, told in said.out + said.err) == (code, True), said
        assert (said.out == "") == (code == 2)
    assert contents(indexed) == before
    assert not indexed.with_name("forgotten").exists()


@pytest.mark.parametrize("longer", [b"wave", b"a much longer wave", b"o"])
@pytest.mark.parametrize("in_place", [True, False])
def test_what_a_log_said_before_it_was_edited_is_in_no_answer_and_goes_at_once(
    longer: bytes, in_place: bool, database: Path, tmp_path: Path
) -> None:
    log = write(tmp_path / "logs" / "1.jsonl", claude(1).replace(b"tide", WORD.encode()))
    index(database, [str(log.parent)])
    new = log if in_place else log.with_suffix(".new")
    new.write_bytes(claude(1).replace(b"tide", longer))
    new.replace(log)
    assert "Found 0 events" in agtrace_here("search", WORD, "--newest").out
    assert found_in(database.parent, WORD) == {WORD}, "in free pages, and in the archive if it is another file"
    told = agtrace_here("forget", "--older-content", "--yes")
    assert (str(log) in told.out) != in_place and "nothing of it is left" in told.out
    assert found_in(database.parent, WORD) == set()
    assert longer.decode() in str(contents(database)["texts"]) and log.exists()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no terminals here")
@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("y", 0)])
def test_a_person_is_asked(answer: str, code: int, indexed: Path) -> None:
    ours, theirs = os.openpty()
    with closing(os.fdopen(theirs)) as stdin:
        os.write(ours, f"{answer}\n".encode())
        command = [AGTRACE, "forget", LARGE, "--json"]
        run = subprocess.run(command, stdin=stdin, stderr=stdin, stdout=subprocess.PIPE, timeout=300)
        told = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert run.returncode == code
    assert 0 < told.find("1 session with ") < told.find("Forget 1 session for good?")
    assert ("rewriting the index" in told) == bool(run.stdout) == (answer == "y")
    assert indexed.with_name("forgotten").exists() == (answer == "y")


def test_what_a_parent_holds_of_a_subagent_stays_and_is_said(indexed: Path) -> None:
    agent = next(id for id in agtrace_here("show", WITH_AGENT, "--json").out.split('"') if id.startswith("agent-"))
    said = agtrace_here("forget", agent, "--dry-run")
    assert f"session {WITH_AGENT} stays, with what it asked its sub-agent and the answer it got" in said.out


@pytest.mark.thorough
def test_without_an_index_or_with_an_unusable_list_nothing_is_made_or_forgotten(database: Path) -> None:
    said = agtrace_here("forget", LARGE, "--yes")
    assert (said.code, "there is no index yet" in said.err, database.exists()) == (3, True, False)
    index_here(SAMPLES)
    place = database.with_name("forgotten")
    place.write_text("garbage\n")
    for command in (["forget", LARGE, "--yes"], ["sessions"]):
        said = agtrace_here(*command)
        assert f"line 1 of {place}, the list of forgotten sessions, can't be read: delete that line" in said.err
    assert place.read_text() == "garbage\n"


def test_conditions_restrict_each_other(indexed: Path) -> None:
    all_of_it = agtrace_here("forget", "--project", "tidepool", "--dry-run", "--json").json()
    early = agtrace_here("forget", "--project", "tidepool", "--before", "2026-10-01", "--dry-run", "--json").json()
    assert 0 < early["sessions"] < all_of_it["sessions"] and early["to"] < "2026-10-01" < all_of_it["to"]
    named = agtrace_here("forget", LARGE, "--project", "lanternfish", "--dry-run", "--json").json()
    assert (named["sessions"], named["forgotten"]) == (0, False)


def test_a_name_means_all_folders_of_a_project_and_a_path_or_a_hash_only_one(database: Path, tmp_path: Path) -> None:
    pushed = "To github.com:mira/harbour.git\n   3fa9c21..77b0aa1  main -> main\n"
    for number, cwd in enumerate(("/srv/mira/harbour", "/srv/otto/boats", "/srv/otto/quay")):
        log = claude_log(tmp_path / "logs", f"{number}badc0de-0000-4000-8000-000000000001", cwd=cwd).prompt("Push")
        for _ in range(2):
            log.call("Bash", {"command": "git push"}, pushed if number < 2 else "Everything up-to-date")
    index_here(tmp_path / "logs")

    def meant(given: str) -> list[str]:
        told: list[str] = agtrace_here("forget", "--project", given, "--dry-run", "--json").json()["folders"]
        return sorted(told)

    both = ["/srv/mira/harbour", "/srv/otto/boats"]
    assert [meant(name) for name in ("harbour", "mira/harbour", "boats", "otto/boats")] == [both] * 4
    assert meant("/srv/otto/boats") == meant(project_hash("/srv/otto/boats")[:8]) == ["/srv/otto/boats"]
    assert "in 2 folders of one project" in agtrace_here("forget", "--project", "harbour", "--dry-run").out
    for given in ("/srv/otto/boats/inside", "/srv", "."):
        assert "no folders match" in agtrace_here("forget", "--project", given, "--yes").err
    assert agtrace_here("forget", "--project", "harbou", "--yes").code == 2, "what is forgotten is named exactly"
    assert agtrace_here("forget", "--project", "harbour", "--yes").code == 0
    assert [row["id"][:8] for row in agtrace_here("sessions", "--json").json()["data"]["sessions"]] == ["2badc0de"]


def test_sessions_that_hold_the_same_events_are_named(database: Path, tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", LARGE).prompt("Where is the tide table?").say("In docs/tides.md.")
    copy = claude_log(tmp_path / "logs", STAYS)
    copy.path.write_text(log.path.read_text())
    copy.lines, copy.clock = log.lines, log.clock
    copy.prompt("And now?")
    index_here(tmp_path / "logs")
    said = agtrace_here("forget", LARGE, "--yes")
    assert f"2 events are also in session {STAYS}, which stays" in said.out
    assert "Found 1 event" in agtrace_here("search", "tide table", "--newest").out


def test_the_answer_for_programs_has_no_more_than_digests_left_to_tell(indexed: Path) -> None:
    said = agtrace_here("forget", LARGE, "--yes", "--json")
    told = said.json()
    assert (said.code, told["sessions"], told["forgotten"], told["traces_left"]) == (0, 1, True, None)
    assert [Path(path).name for path in told["logs"]] == [f"{LARGE}.jsonl"]
    assert found_in(indexed.parent, LARGE) == set()


def test_traces_that_a_reader_keeps_are_said_and_go_with_the_next_run(
    indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "_PATIENCE", 0.1)
    with closing(sqlite3.connect(indexed)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM session").fetchone()
        said = agtrace_here("forget", LARGE, "--yes")
        assert said.code == 1 and "still on the disk: another process is still reading" in said.out
        assert "still on the disk" in agtrace_here("doctor").out
    assert "still on the disk" not in agtrace_here("doctor").out
    assert found_in(indexed.parent, LARGE) == set()


# --- the server ---


def test_cursors_into_a_forgotten_session_end_in_a_clear_error(indexed: Path) -> None:
    asker = Asker(indexed.parent)
    inside = asker.ask("get_session_details", session_id=LARGE, detail_level="turns")
    found = asker.ask("search_event_previews", order="newest", query="tide", limit=5)
    listed = asker.ask("list_sessions", limit=2)
    database = asker.settings.database
    assert forget(database, digests(database, LARGE), now=time.time()) is None
    cursor = inside["pagination"]["next_cursor"]
    error = asker.error("get_session_details", session_id=LARGE, detail_level="turns", cursor=cursor)
    assert error["code"] == "session_not_found"
    for name, value, arguments in (
        ("search_event_previews", found, {"order": "newest", "query": "tide", "limit": 5}),
        ("list_sessions", listed, {"limit": 2}),
    ):
        page = asker.anything(name, **arguments, cursor=value["pagination"]["next_cursor"])
        assert not page.is_error and LARGE[:8] not in page.text


@pytest.mark.thorough
def test_questions_are_answered_while_sessions_are_forgotten(tmp_path: Path) -> None:
    asker, database = Asker(tmp_path / "data", SAMPLES), tmp_path / "data" / "index.sqlite3"
    codes: set[str] = set()
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            for name, arguments in (
                ("get_session_details", {"session_id": LARGE}),
                ("search_event_previews", {"order": "newest", "query": "tide"}),
                ("analyze_session", {"session_id": WITH_AGENT}),
            ):  # fmt: skip
                given = asker.anything(name, **arguments)
                codes.add(given.value["error"]["code"] if given.is_error else "ok")

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for session in (LARGE, WITH_AGENT):
            forget(database, digests(database, session), now=time.time(), patience=30)
    finally:
        ended.set()
        thread.join()
    assert codes <= {"ok", "session_not_found"}
    index(database, [])
    assert found_in(database.parent, LARGE, WITH_AGENT) == set()


# --- retention ---


@pytest.mark.thorough
def test_sessions_leave_by_age_from_index_and_server(tmp_path: Path, database: Path) -> None:
    aged(tmp_path / "logs", (1, 40, 80), time.time())
    said = agtrace("index", tmp_path / "logs", "--json", AGTRACE_KEEP_DAYS="60")
    assert said.json()["sessions"] == 2
    assert found_in(database.parent, f"{WORD}80") == set()
    assert agtrace("index", AGTRACE_KEEP_DAYS="0").code == 2
    aged(tmp_path / "more", (50,), time.time())
    (tmp_path / "more").rename(tmp_path / "logs" / "more")
    assert "Found 1 session" in agtrace_here("sessions", AGTRACE_KEEP_DAYS="30").out
    assert found_in(database.parent, f"{WORD}50", f"{WORD}40") == set()
