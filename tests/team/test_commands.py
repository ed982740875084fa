"""The commands of a team, as its owner and its people type them."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from agtrace_team.connection import connect
from agtrace_team.server import Server

from tests.agtrace.asking import claude_log
from tests.agtrace.terminal import Said, agtrace, agtrace_here
from tests.team.teams import Team

SESSION = "a1111111-13ae-41a6-a6df-f287e0552835"


@pytest.fixture
def team(server: Server) -> Iterator[Team]:
    """A bare database, in which nobody has made any table yet."""
    with connect(server.url("postgres")) as connection:
        connection.execute("DROP DATABASE IF EXISTS commands WITH (FORCE)")
        connection.execute("CREATE DATABASE commands")
    yield Team(server, "commands")


@pytest.fixture
def home(own_home: Path) -> Path:
    """The home of somebody with one session, indexed."""
    log = claude_log(own_home / ".claude", SESSION)
    log.prompt("Mend the tide table.")
    log.call("Bash", {"command": "export KEY=sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"}, "done")
    log.say("It is mended.")
    assert agtrace("index").code == 0
    return own_home


def _as(team: Team, login: str, *command: str) -> Said:
    return agtrace_here(*command, AGTRACE_TEAM=team.url(login))


@pytest.mark.thorough
def test_from_an_empty_database_to_a_colleague_s_answer(team: Team, home: Path) -> None:
    assert "init" in _as(team, "ann", "push").err or "nothing is shared" in _as(team, "ann", "push").err
    assert "0001-tables" in _as(team, "postgres", "team", "init").out
    assert "there already" in _as(team, "postgres", "team", "init").out
    assert _as(team, "postgres", "team", "add", "ann", "--name", "Ann Lee").out == "ann may read and push\n"
    assert _as(team, "postgres", "team", "add", "eve", "--read-only").out == "eve may read\n"

    assert "nothing is shared" in _as(team, "ann", "team", "share").out
    assert _as(team, "ann", "team", "share", "tidepoo").code != 0, "what is shared is named exactly"
    assert "nothing is shared" in _as(team, "ann", "team", "share").out
    shared = _as(team, "ann", "team", "share", "tidepool", "--with", "team").out
    assert shared == "tidepool  team (seen by everybody of the team)\n  /home/mira/projects/tidepool\n"
    dry = _as(team, "ann", "push", "--dry-run")
    assert "1 new session" in dry.out and "  1 seen by everybody of the team" in dry.out
    assert f"  {SESSION}  tidepool  team  Mend the tide table.\n" in dry.out
    assert "1 stripe-key" in dry.out
    assert "1 new session" in _as(team, "ann", "push").out
    assert "1 are there already" in _as(team, "ann", "push").out

    found = _as(team, "eve", "--index", "team", "sessions", "--json").json()["data"]["sessions"]
    assert [(one["id"], one["user"]) for one in found] == [(SESSION[:8], "Ann Lee")]
    assert _as(team, "eve", "--index", "team", "--user", "ann", "sessions", "--json").json()["data"]["sessions"]
    assert "nobody of the team is called zoe" in _as(team, "eve", "--index", "team", "--user", "zoe", "sessions").err
    assert "may only read" in _as(team, "eve", "push").err
    assert "sk_live_" not in _as(team, "eve", "--index", "team", "show", f"{SESSION}:1").out

    status = _as(team, "postgres", "team", "status", "--json").json()
    assert [(one["login"], one["sessions"]) for one in status["people"]] == [("ann", 1), ("eve", 0)]
    assert status["asked_today"]["list_sessions"] >= 2 and status["waiting"] == []
    assert "pages taken up" in _as(team, "postgres", "team", "tend").out


def test_what_is_no_longer_shared_and_who_is_no_longer_there_goes(team: Team, home: Path) -> None:
    _as(team, "postgres", "team", "init")
    for login in ("ann", "eve"):
        _as(team, "postgres", "team", "add", login)
    _as(team, "ann", "team", "share", "tidepool", "--with", "project")
    _as(team, "ann", "push")
    sessions = ("--index", "team", "sessions", "--json")
    assert _as(team, "eve", *sessions).json()["data"]["sessions"] == []
    assert _as(team, "postgres", "team", "grant", "eve", "tidepool").out == "eve may read tidepool\n"
    assert "eve may read tidepool (no remote, by its name)" in _as(team, "postgres", "team", "status").out
    assert "nobody of the team is called 'zoe'" in _as(team, "postgres", "team", "grant", "zoe", "tidepool").err
    assert "only the owner" in _as(team, "eve", "team", "status").err
    assert len(_as(team, "eve", *sessions).json()["data"]["sessions"]) == 1
    _as(team, "postgres", "team", "grant", "eve", "tidepool", "--take-back")
    assert _as(team, "eve", *sessions).json()["data"]["sessions"] == []
    assert "nobody has pushed" in _as(team, "postgres", "team", "grant", "eve", "nothing-of-the-kind").err

    assert _as(team, "ann", "team", "unshare", "tidepool").code == 0
    assert "1 were removed there" in _as(team, "ann", "push").out
    assert "isn't shared" in _as(team, "ann", "team", "unshare", "tidepool").err
    _as(team, "ann", "team", "share", "tidepool")
    _as(team, "ann", "push")
    assert "nobody of the team" in _as(team, "postgres", "team", "remove", "zoe", "--yes").err
    assert "nothing was removed" in _as(team, "postgres", "team", "remove", "ann").err
    assert _as(team, "postgres", "team", "remove", "ann", "--yes").out == "ann is gone, with 1 session\n"
    assert "nobody of the team" in _as(team, "ann", "push").err


@pytest.mark.thorough
def test_who_sees_a_session_from_now_on_is_said_before_it_happens(team: Team, home: Path) -> None:
    _as(team, "postgres", "team", "init")
    _as(team, "postgres", "team", "add", "ann")
    _as(team, "ann", "team", "share", "tidepool")
    assert "  1 seen by you alone" in _as(team, "ann", "push").out
    _as(team, "ann", "team", "share", "tidepool", "--with", "team")
    dry = _as(team, "ann", "push", "--dry-run").out
    assert "1 of them would then be seen by everybody of the team" in dry and f"  {SESSION}  tidepool  team" in dry
    assert "1 of them would then be" in _as(team, "ann", "push", "--dry-run").out, "a dry run changes nothing"
    assert "1 of them are now seen by everybody of the team" in _as(team, "ann", "push").out
    assert "of them" not in _as(team, "ann", "push").out
    _as(team, "ann", "team", "unshare", "tidepool")
    assert f"  {SESSION}  would be removed" in _as(team, "ann", "push", "--dry-run").out


@pytest.mark.thorough
def test_tables_that_lack_what_a_newer_agtrace_asks_for_are_said_to_be_older(team: Team, home: Path) -> None:
    _as(team, "postgres", "team", "init")
    _as(team, "postgres", "team", "add", "ann")
    with connect(team.url("postgres")) as connection:
        connection.execute("ALTER TABLE team.session DROP COLUMN branch CASCADE")
    said = _as(team, "ann", "--index", "team", "sessions")
    assert said.code != 0 and "its owner has to run `agtrace team migrate`" in said.err


def test_answers_of_a_team_name_the_person(team: Team, home: Path) -> None:
    _as(team, "postgres", "team", "init")
    empty = _as(team, "postgres", "team", "add", "ann", "--name", "Ann Lee")
    assert empty.code == 0
    assert "Nobody has pushed a session yet" in _as(team, "ann", "--index", "team", "sessions", "--json").out
    _as(team, "ann", "team", "share", "tidepool")
    _as(team, "ann", "push")
    best = _as(team, "ann", "--index", "team", "search", "tide table", "--json").json()["data"]
    assert best["sessions"][0]["user"] == "Ann Lee"
    newest = _as(team, "ann", "--index", "team", "search", "tide", "--by-session", "--json").json()["data"]
    assert newest["matches"][0]["user"] == "Ann Lee"
    assert "Ann Lee" in _as(team, "ann", "--index", "team", "search", "tide table").out
    shown = _as(team, "ann", "--index", "team", "show", SESSION)
    assert "Ann Lee" in shown.out
    spent = _as(team, "ann", "--index", "team", "cost", "--by", "user", "--json").json()
    assert [group["group"] for group in spent["groups"]] == ["Ann Lee"]
    assert [group["group"] for group in agtrace("cost", "--by", "user", "--json").json()["groups"]] == ["you"]
    forgotten = _as(team, "ann", "--index", "team", "forget", SESSION, "--dry-run")
    assert "in your own index" in forgotten.err


def test_a_project_that_is_unknown_or_a_list_that_was_damaged_is_said_to_be(team: Team, home: Path) -> None:
    assert "no project" in _as(team, "ann", "team", "share", "nothing-of-the-kind").err.lower()
    shared = Path(os.environ["AGTRACE_DATA_DIR"]) / "sharing.json"
    shared.write_text(json.dumps({"machine": "m", "projects": {"tidepool": {"audience": "everybody", "folders": []}}}))
    said = _as(team, "ann", "push")
    assert said.code == 2 and "can't be used: Invalid enum value 'everybody'" in said.err


@pytest.mark.thorough
def test_without_a_url_it_is_said_what_is_missing(home: Path) -> None:
    for command in (("push",), ("team", "status"), ("team", "init")):
        assert "AGTRACE_TEAM" in agtrace_here(*command).err
    said = agtrace_here("--index", "mysql://x/y", "sessions")
    assert said.code == 2 and "index" in said.err
    said = agtrace_here("--index", "team", "sessions")
    assert said.code != 0 and "team" in said.err


@pytest.mark.thorough
def test_a_trial_is_started_and_stopped_in_a_folder(server: Server) -> None:
    with tempfile.TemporaryDirectory(prefix="agtrace-pg-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "notes").write_text("mine")
        assert "isn't empty" in agtrace("team", "trial", folder).err
        assert Path(folder).stat().st_mode & 0o777 == 0o755, "another folder stays as it is"
        place = f"{folder}/trial"
        said = agtrace("team", "trial", place)
        assert said.code == 0, said
        owner = said.out.split()[1]
        assert agtrace("team", "add", "ann", "--url", owner).out == "ann may read and push\n"
        assert agtrace("team", "status", "--url", owner).out.startswith("0 sessions")
        assert "stopped" in agtrace("team", "trial", place, "--stop").out
        assert "can't be reached" in agtrace("team", "status", "--url", owner).err


NOT_INSTALLED = """
from importlib import util

find = util.find_spec
util.find_spec = lambda name, *more: None if name == "psycopg" else find(name, *more)
"""
"""Python runs it first: it hides what the extra installs."""


@pytest.mark.thorough
def test_what_is_not_installed_is_named_and_how_to_install_it(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(NOT_INSTALLED)
    for command in (["sessions"], ["show", "last"], ["cost"], ["mcp", "--http", "127.0.0.1:0"]):
        said = agtrace("--index", "postgresql://localhost/none", *command, PYTHONPATH=str(tmp_path))
        assert (said.code, said.out) == (2, ""), command
        assert said.err.startswith("agtrace: the index of a team needs psycopg, which isn't installed: pip install")


def test_an_index_that_is_no_url_is_refused_by_the_name_of_the_option() -> None:
    said = agtrace("--index", "/tmp/index.sqlite3", "sessions")
    assert said.code == 2 and said.err.startswith("agtrace: --index: expected `team`, or postgresql://LOGIN@HOST/")
