"""What a person of the team could try in order to see, or become, more than they are; and what leaves by mistake."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from agtrace_indexer.families.belonging import known_as
from agtrace_team import migrations, people
from agtrace_team.connection import connect
from agtrace_team.server import Server

from tests.agtrace.asking import claude_log
from tests.agtrace.terminal import agtrace_here, index_here
from tests.conftest import SAMPLES
from tests.team.conftest import new_team
from tests.team.teams import Team, index_of

ANNS, BOBS = (f"{digit * 8}-13ae-41a6-a6df-f287e0552835" for digit in "ab")

_EVIL = """
CREATE FUNCTION pg_temp.evil(v pg_catalog.regclass) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN UPDATE team.session SET audience = 'team'; RETURN true; END $$;
CREATE DOMAIN pg_temp.regclass AS pg_catalog.regclass CHECK (pg_temp.evil(VALUE));
"""


def _talk(folder: Path, session: str, cwd: str) -> Path:
    log = claude_log(folder / ".claude", session, cwd=cwd)
    log.prompt("Mend the gauge.").say("It is mended.")
    return index_of(folder / "i", folder / ".claude")


@pytest.mark.parametrize("temporary", [False, True], ids=["no temporary objects", "temporary objects allowed"])
def test_no_type_of_one_s_own_is_taken_for_the_system_s_by_what_acts_as_the_owner(
    temporary: bool, server: Server, tmp_path: Path
) -> None:
    """The owner is an ordinary one: a superuser's functions and domains would be another matter."""
    with connect(server.url("postgres")) as connection:
        with suppress(psycopg.errors.DuplicateObject):
            connection.execute("CREATE ROLE plain_owner LOGIN CREATEROLE")
        name = f"plain{int(temporary)}"
        connection.execute(f"CREATE DATABASE {name} OWNER plain_owner")
    team = Team(server, name)
    with connect(server.url(name, "plain_owner")) as owner:
        with suppress(psycopg.errors.InsufficientPrivilege):  # roles of the server that another owner made
            migrations.migrate(owner)
        if migrations.waiting(owner):
            pytest.skip("the roles of this server belong to another owner")
        if temporary:
            owner.execute(f"GRANT TEMPORARY ON DATABASE {name} TO PUBLIC")
    team.add("ann", "bob")
    team.push(_talk(tmp_path, ANNS, "/home/dev/harbour"), "ann", "self")
    with closing(connect(team.url("bob"))) as bob, suppress(psycopg.Error):
        bob.execute(_EVIL)
        bob.execute("SELECT team.reserve('session', 1)")
    assert team.sessions("bob") == set()


def test_every_function_that_acts_as_the_owner_looks_into_temporary_objects_last(team: Team) -> None:
    with team.owner() as owner:
        paths = owner.execute(
            "SELECT p.proname, p.proconfig FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace "
            "WHERE n.nspname = 'team' AND p.prosecdef"
        ).fetchall()
    assert len(paths) > 8
    assert [name for name, told in paths if "search_path=pg_catalog, pg_temp" not in (told or [])] == []


def _join(team: Team, login: str, name: str, remote: str | None, *names: str) -> int:
    with closing(connect(team.url(login))) as connection:
        own = "ARRAY(SELECT id FROM team.project WHERE person_id = team.me())"
        sql = f"SELECT team.join_repository({own}, %s, %s, 'remote', %s)"
        row = connection.execute(sql, (name, remote, list(names))).fetchone()
        assert row is not None
        return int(row[0])


@pytest.fixture
def two(team: Team, tmp_path: Path) -> Team:
    """Ann's vault, which those may read who may read it, and Bob's tools."""
    team.add("ann", "bob")
    team.push(_talk(tmp_path / "ann", ANNS, "/home/dev/vault"), "ann", "project")
    team.push(_talk(tmp_path / "bob", BOBS, "/home/dev/tools"), "bob", "project")
    return team


def test_who_calls_another_s_repository_by_a_name_gets_no_right_to_it_by_that_name(two: Team) -> None:
    _join(two, "ann", "vault", "github.com/acme/vault", "vault")
    _join(two, "bob", "x", "github.com/acme/vault", "tools")
    with two.owner() as owner:
        assert people.grant(owner, "bob", "tools") == 0
        assert two.sessions("bob") == {BOBS}
        assert people.grant(owner, "bob", "github.com/acme/vault") == 1, "by its remote"
    assert two.sessions("bob") == {ANNS, BOBS}


def test_a_repository_that_several_people_push_keeps_its_name(two: Team) -> None:
    for login in ("ann", "bob"):
        _join(two, login, "vault", "github.com/acme/vault", "vault" if login == "ann" else "tools")
    with two.owner() as owner:
        people.grant(owner, "bob", "github.com/acme/vault")
    names = {item["project"] for item in two.ask("bob", "list_sessions", {})["data"]["sessions"]}
    assert names == {"vault"}


def test_who_is_added_again_keeps_the_name_that_others_see(two: Team) -> None:
    with two.owner() as owner:
        people.add(owner, "ann", None, None, push=False)
        people.add(owner, "zoe", None, None, push=False)
        shown = dict(owner.execute("SELECT login::text, shown FROM person").fetchall())
    assert (shown["ann"], shown["zoe"]) == ("Ann", "zoe")


@pytest.mark.parametrize("remote", [None, "github.com/acme/vault"])
def test_a_right_by_a_name_covers_nothing_that_others_make_of_it(two: Team, remote: str | None) -> None:
    _join(two, "bob", "tools", remote, "tools")
    with two.owner() as owner:
        assert people.grant(owner, "bob", "tools") == 1, "so far it is only Bob's"
    _join(two, "bob", "x", "github.com/acme/vault", "tools")
    _join(two, "ann", "vault", "github.com/acme/vault", "vault")
    assert two.sessions("bob") == {BOBS}


def test_what_is_known_by_its_file_is_forgotten_on_the_server_too(team: Team, tmp_path: Path) -> None:
    team.add("ann")
    database = index_of(tmp_path, SAMPLES / "opencode")
    team.push(database, "ann")
    with team.owner() as owner:
        told = owner.execute(
            "SELECT s.uid, s.own_id, f.path FROM team.session s JOIN team.file f ON f.id = s.file_id"
        ).fetchall()
    uid, own_id, path = next(row for row in told if known_as(row[1], row[2]) != row[1])
    gone = index_of(tmp_path / "none", tmp_path)
    pushed = team.push(gone, "ann", forgotten=lambda _agent, known: known == known_as(own_id, path))
    assert pushed.removed == [uid]


def test_what_is_shared_are_the_folders_that_were_meant_whatever_the_name_means_later(
    server: Server, own_home: Path
) -> None:
    team = new_team(server)
    team.add("ann", "bob")
    claude_log(own_home / ".claude", ANNS, cwd="/home/dev/one/api").prompt("Mend the gauge.").say("Done.")
    index_here(own_home / ".claude" / "projects")

    def ann(*command: str) -> Any:
        return agtrace_here(*command, AGTRACE_TEAM=team.url("ann"))

    assert ann("team", "share", "api", "--with", "team").code == 0
    assert "1 new session" in ann("push").out
    other = claude_log(own_home / ".claude" / "other", BOBS, cwd="/home/dev/two/api")
    other.prompt("Mend the private diary.").say("Done.")
    index_here(own_home / ".claude" / "other")
    assert ann("push").code == 0
    assert team.sessions("bob") == {ANNS}, "neither less nor more"
    assert agtrace_here("forget", ANNS[:8], "--yes").code == 0
    assert ann("push").code == 0
    assert team.sessions("bob") == set(), "and not what has the name now"


def test_of_two_machines_the_one_that_shows_a_session_to_fewer_decides(team: Team, tmp_path: Path) -> None:
    team.add("ann", "bob")
    log = claude_log(tmp_path / "desk" / ".claude", ANNS).prompt("Mend the gauge.").say("Done.")
    less = index_of(tmp_path / "laptop", tmp_path / "desk" / ".claude")
    log.prompt("And the clock.").say("Done.")
    team.push(index_of(tmp_path / "desk" / "i", tmp_path / "desk" / ".claude"), "ann", machine="desk")
    assert team.sessions("bob") == {ANNS}
    assert team.push(less, "ann", "self", machine="laptop").older == [ANNS]
    assert team.sessions("bob") == set()
