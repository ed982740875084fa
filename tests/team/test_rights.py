"""Rights: a person sees their own sessions and what was shared with them, and nothing of anything else by any way.

Ann has pushed a session for herself, one for its project, and one for the team; Bob may read no project. Everything of
Ann's private session has the word `heliotrope` in it: texts, tools, paths, projects, titles, ids.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import product
from pathlib import Path
from typing import Any

import psycopg
import pytest
from agtrace_indexer.index.team_words import grams_of_query
from agtrace_team import people
from agtrace_team.connection import TeamConnection, connect
from agtrace_team.server import Server
from psycopg.rows import dict_row

from agtrace.problems import Problem
from agtrace.tools import TOOLS
from tests.agtrace.asking import claude_log
from tests.depth import part
from tests.team.conftest import new_team
from tests.team.teams import Team, index_of

PRIVATE, OF_PROJECT, OF_TEAM, BOBS = (f"{digit * 8}-13ae-41a6-a6df-f287e0552835" for digit in "abcd")
WORD = "heliotrope"


def _say(home: Path, session: str, folder: str, word: str) -> None:
    log = claude_log(home / ".claude", session)
    log.cwd = f"/home/dev/{folder}"
    log.prompt(f"Mend the {word} gauge.")
    log.call(f"mcp__{word}__look", {"file_path": f"/home/dev/{folder}/{word}.py"}, f"{word} failed", failed=True)
    log.call("Bash", {"command": f"{word} --check"}, f"{word} is fine")
    log.say(f"The {word} gauge is mended.")


@pytest.fixture(scope="module")
def team(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Team:
    team = new_team(server)
    team.add("ann", "bob")
    team.add("eve", push=False)
    with team.owner() as connection:
        for login in ("stranger", "fallen"):
            if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (login,)).fetchone() is None:
                connection.execute(f"CREATE ROLE {login} LOGIN IN ROLE agtrace_read")
    for session, folder, word, audience in (
        (PRIVATE, WORD, WORD, "self"),
        (OF_PROJECT, "harbour", "cobalt", "project"),
        (OF_TEAM, "quay", "saffron", "team"),
    ):
        home = tmp_path_factory.mktemp(folder)
        _say(home, session, folder, word)
        team.push(index_of(home / "i", home / ".claude"), "ann", audience)  # type: ignore[arg-type]
    home = tmp_path_factory.mktemp("bob")
    _say(home, BOBS, "mole", "umber")
    team.push(index_of(home / "i", home / ".claude"), "bob", "self", machine="bobs")
    return team


def _all(connection: TeamConnection | psycopg.Connection[Any]) -> Iterator[tuple[str, list[Any]]]:
    tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'team'").fetchall()
    for (table,) in tables:
        yield table, connection.execute(f"SELECT * FROM team.{table}").fetchall()


def test_each_sees_their_own_and_what_was_shared_with_them(team: Team) -> None:
    assert team.sessions("ann") == {PRIVATE, OF_PROJECT, OF_TEAM}
    assert team.sessions("bob") == {OF_TEAM, BOBS}
    assert team.sessions("eve") == {OF_TEAM}
    assert team.sessions("stranger") == set(), "a login of the server that is nobody of the team"


def test_a_project_is_seen_by_those_who_may_read_it_until_that_is_taken_back(team: Team) -> None:
    with team.owner() as connection:
        assert people.grant(connection, "eve", "harbour") == 1
        assert team.sessions("eve") == {OF_PROJECT, OF_TEAM}
        people.grant(connection, "eve", "harbour", take_back=True)
    assert team.sessions("eve") == {OF_TEAM}


@pytest.mark.parametrize("login", ("bob", "eve", "stranger"))
def test_no_row_of_any_table_tells_of_a_session_that_one_may_not_see(team: Team, login: str) -> None:
    with team.owner() as owner:
        told = {table for table, rows in _all(owner) if WORD in repr(rows)}
    assert {"session", "name", "path", "project", "request", "repository"} <= told, "the owner sees it"
    with closing(connect(team.url(login))) as connection:
        for table, rows in _all(connection):
            assert WORD not in repr(rows) and "cobalt" not in repr(rows), table
            assert PRIVATE not in repr(rows) and OF_PROJECT not in repr(rows), table


@pytest.mark.parametrize("login", ("bob", "eve", "stranger"))
def test_the_functions_that_look_past_policies_find_nothing_of_it_either(team: Team, login: str) -> None:
    grams = "{" + ",".join(map(str, grams_of_query(WORD.encode()))) + "}"
    calls = (
        ("SELECT count(*) FROM team.blocks_with(%s::smallint[])", grams),
        ("SELECT count(*) FROM team.events_with(%s::tsquery)", "'heliotrop':*"),
        ("SELECT count(*) FROM team.visible() v WHERE v IN (SELECT generate_series(1, 1000)) AND %s = ''", ""),
    )
    seen = {"bob": 2, "eve": 1, "stranger": 0}[login]
    with closing(connect(team.url(login))) as connection:
        assert [connection.execute(sql, (given,)).fetchone() for sql, given in calls] == [(0,), (0,), (seen,)]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE team.session SET audience = 'team'",
        "DELETE FROM team.session",
        "DELETE FROM team.event",
        "DELETE FROM team.block",
        "UPDATE team.event SET copy_of = 0",
        "UPDATE team.request SET text = 'x'",
    ],
)
def test_what_is_not_one_s_own_is_not_changed(team: Team, sql: str) -> None:
    table = sql.replace("DELETE FROM", "UPDATE").split()[1].removeprefix("team.")
    key = "id" if table == "session" else "session_id"
    with team.owner() as owner:
        own = owner.execute(
            f"SELECT count(*) FROM {table} WHERE {key} IN "
            "(SELECT s.id FROM session s JOIN person p ON p.id = s.person_id WHERE p.login = 'bob')"
        ).fetchone()
    with closing(connect(team.url("bob"))) as connection, connection.transaction(force_rollback=True):
        assert (connection.execute(sql).rowcount,) == own
    for login in ("eve", "stranger"):
        with closing(connect(team.url(login))) as connection, suppress(psycopg.errors.InsufficientPrivilege):
            assert connection.execute(sql).rowcount == 0


@pytest.mark.parametrize(
    "sql", ("SELECT * FROM team.names(1, ARRAY['x'])", "SELECT team.reserve('event', 1000000)", "SELECT team.sweep()")
)
def test_who_may_only_read_moves_nothing(team: Team, sql: str) -> None:
    with team.owner() as owner:
        owner.execute("GRANT agtrace_push TO eve")  # as another database of the cluster may have done
        before = owner.execute("SELECT count(*) FROM name").fetchone()
        with closing(connect(team.url("eve"))) as connection, suppress(psycopg.errors.InsufficientPrivilege):
            connection.execute(sql)
        assert owner.execute("SELECT count(*) FROM name").fetchone() == before


@pytest.mark.parametrize(
    "sql",
    [
        "SET ROLE ann",
        "SET SESSION AUTHORIZATION ann",
        "SET row_security = off; SELECT * FROM team.session",
        "ALTER TABLE team.session DISABLE ROW LEVEL SECURITY",
        "CREATE OR REPLACE FUNCTION team.me() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
        "CREATE FUNCTION team.lower(given text) RETURNS text LANGUAGE sql AS 'SELECT given'",
        "INSERT INTO team.person (login, shown, may_push) VALUES ('bob2', 'x', true)",
        "UPDATE team.person SET may_push = true",
        "INSERT INTO team.may_read SELECT 1, 1",
        "SELECT * FROM agtrace_migration.step",
        "COPY team.session TO STDOUT",
        "TRUNCATE team.session",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT setval('team.event_id', 1)",
        "GRANT agtrace_push TO eve",
        "UPDATE team.asked SET login = 'ann'",
        "INSERT INTO team.asked (login, kind) VALUES ('ann', 'forged')",
        "INSERT INTO team.name (text) VALUES ('x')",
        "INSERT INTO team.repository VALUES (1, 'x', 'x', 'remote')",
        "DELETE FROM team.push",
    ],
)
def test_nobody_gets_another_s_rights(team: Team, sql: str) -> None:
    for login in ("bob", "eve"):
        with closing(connect(team.url(login))) as connection:
            try:
                found = connection.execute(sql)
            except psycopg.Error:
                continue
            rows = found.fetchall() if found.description else []
            assert not sql.startswith(("SET ROLE", "SET SESSION", "ALTER", "CREATE", "TRUNCATE", "GRANT")), sql
            assert WORD not in repr(rows)
            assert found.rowcount <= 0 or found.description is not None, sql


_COLUMNS = "id, person_id, machine_id, pushed_uid, audience, digest, file_id, thread, provider, uid, own_id, kind"


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO team.request VALUES ({shown}, 99, 'forged')",
        "INSERT INTO team.clue VALUES ({shown}, 0, 'remote', 'evil')",
        "INSERT INTO team.path (owner, text) VALUES ({shown}, 'x')",
        "INSERT INTO team.kin VALUES ({shown}, 1)",
        "INSERT INTO team.name_use VALUES ({shown}, 1)",
        f"INSERT INTO team.session ({_COLUMNS}) VALUES "
        "(90000, {person_id}, {machine_id}, 'forged', 'team', '', 1, '', 'codex', 'forged', 'forged', 'main')",
        *(f"UPDATE team.session SET {name} = {{{name}}} WHERE id = {{own}}" for name in ("project_id", "file_id")),
        "UPDATE team.session SET machine_id = {machine_id} WHERE id = {own}",
        "INSERT INTO team.name_use VALUES ({own}, {name})",
        "SELECT * FROM team.names(1, ARRAY['x'])",
    ],
)
def test_nothing_is_put_into_another_s_session_nor_in_another_s_name_nor_refers_to_what_is_another_s(
    team: Team, sql: str
) -> None:
    """Whoever refers to a project, a file or a name sees it: a session of one's own may name only what is one's own."""
    of_session = "(SELECT id FROM session WHERE uid = '{}')"
    named = f"(SELECT id FROM name WHERE strpos(text, '{WORD}') > 0 LIMIT 1)"
    with team.owner() as owner:
        rows = owner.cursor(row_factory=dict_row)
        found = rows.execute(
            f"SELECT s.*, {of_session.format(OF_TEAM)} AS shown, {of_session.format(BOBS)} AS own, {named} AS name "
            "FROM session s WHERE uid = %s", (PRIVATE,)
        ).fetchone()  # fmt: skip
    assert found is not None
    with closing(connect(team.url("bob"))) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(sql.format(**found))


_OF_A_SESSION = ("get_session_details", "analyze_session", "get_reasoning_chain", "search_event_previews")


def _asked(login: str, session: str) -> list[tuple[str, dict[str, Any]]]:
    short = session[:8]
    return [
        *((tool, {"session_id": given}) for tool in _OF_A_SESSION for given in (session, short)),
        ("get_event_details", {"session_id": session, "event_index": 1}),
        ("compare_sessions", {"id1": session, "id2": OF_TEAM}),
        ("compare_sessions", {"id1": OF_TEAM, "id2": short}),
        ("read_artifact", {"ref": f"ax://session/{session}"}),
        ("read_artifact", {"ref": f"ax://session/{session}/event/1"}),
        ("list_sessions", {"project": WORD}),
        ("get_project_info", {"project": WORD}),
        ("read_artifact", {"ref": f"ax://lessons/{WORD}"}),
        ("read_artifact", {"ref": f"ax://why/{WORD}.py"}),
    ]  # fmt: skip


@pytest.mark.parametrize("login", ("bob", "eve"))
def test_a_guessed_id_is_answered_as_one_that_does_not_exist(team: Team, login: str) -> None:
    """Every tool that opens a session is tried."""
    opening = {
        name for name, tool in TOOLS.items() if {"session_id", "id1", "ref"} & {*tool.arguments.__struct_fields__}
    }
    assert opening <= {tool for tool, _ in _asked(login, OF_TEAM)}
    unknown = "eeeeeeee-13ae-41a6-a6df-f287e0552835"
    for (tool, real), (_, other) in zip(_asked(login, PRIVATE), _asked(login, unknown), strict=True):
        one, two = (json.dumps(team.ask(login, tool, given)) for given in (real, other))
        assert one.replace("aaaaaaaa", "eeeeeeee") == two.replace("aaaaaaaa", "eeeeeeee"), (tool, real)
        assert "gauge" not in one or "saffron" in one


@pytest.mark.parametrize("login", ("bob", "eve"))
def test_searches_counts_lists_and_totals_hold_nothing_of_it(team: Team, login: str) -> None:
    for query in (WORD, "helio", f"{WORD} gauge", WORD.upper(), "tiro", f"mcp__{WORD}"):
        for more in ({}, {"order": "newest"}, {"order": "oldest"},
                     {"regex": True}, {"group_by": "session"}, {"tool": f"mcp__{WORD}__look"},
                     {"path": WORD}):  # fmt: skip
            found = team.ask(login, "search_event_previews", {"query": query, **more})
            assert WORD in found["data"].get("nowhere", []) or not found["data"].get("matches"), (query, more)
            assert "cobalt" not in (shown := json.dumps(found["data"].get("matches", []))) and WORD not in shown
    seen = len(team.sessions(login))
    listed = team.ask(login, "list_sessions", {"limit": 50})
    assert len(listed["data"]["sessions"]) == seen and f"Found {seen} session" in listed["summary"]
    said = [
        listed,
        team.ask(login, "get_project_info", {"limit": 50}),
        team.ask(login, "list_sessions", {"sort": "cost"}),
    ]
    said += [team.ask(login, "list_sessions", {"path": "helio"}), team.ask(login, "list_sessions", {"query": WORD})]
    assert WORD not in json.dumps(said[:-1]) and "cobalt" not in json.dumps(said)
    total = team.answers(login).health().index
    with closing(team.connection(login)) as connection:
        assert (total.sessions, total.events) == connection.execute(
            "SELECT count(*), sum(event_count) FROM session"
        ).fetchone()


def test_a_cursor_of_another_leads_nowhere(team: Team) -> None:
    anns = team.ask("ann", "list_sessions", {"limit": 1})["pagination"]["next_cursor"]
    found = team.ask("bob", "list_sessions", {"limit": 1, "cursor": anns})
    assert WORD not in json.dumps(found) and "cobalt" not in json.dumps(found)


INJECTED = (
    "' OR 1=1 --", "'; DELETE FROM team.session; --", "%s", "%(x)s", "$1", "\\'; --",
    "x' UNION SELECT title FROM session", "{}", "[1]", "\\", "''", "%%", ":session", "?", "E'\\x00'",
    "heliotrope' IS NOT NULL OR '",
)  # fmt: skip


@pytest.mark.parametrize("text", part(INJECTED, 0, 3))
def test_sql_in_an_argument_is_text(team: Team, text: str) -> None:
    tools = ("list_sessions", "get_project_info", "search_event_previews", "get_session_details")
    names = ("query", "project", "path", "tool", "session_id", "commit", "pr", "since")
    for tool, name in product(tools, names):
        given = {name: text}
        if tool == "search_event_previews" and name != "query":
            given["query"] = "gauge"
        found = json.dumps(team.ask("bob", tool, given))
        assert "cobalt" not in found and f"{WORD} gauge" not in found, (tool, given)
        assert "refused a question" not in found, found
    assert "takes no SQL; list_sessions" in team.ask("bob", "run_sql", {"sql": text})["error"]["message"]
    assert team.sessions("ann") == {PRIVATE, OF_PROJECT, OF_TEAM}


def test_errors_quote_nothing_that_was_stored(team: Team) -> None:
    with closing(team.connection("bob")) as connection:
        for sql in ("SELECT max(snippet)::bigint FROM session", "SELECT nothing FROM session"):
            with pytest.raises(sqlite3.OperationalError) as raised:
                connection.execute(sql).fetchall()
            assert "gauge" not in str(raised.value)


def test_who_asked_what_kind_of_question_and_when_is_noted_without_its_text(team: Team) -> None:
    team.ask("bob", "search_event_previews", {"query": "umber"})
    with team.owner() as owner:
        noted = owner.execute("SELECT DISTINCT login::text, kind FROM asked WHERE login = 'bob'").fetchall()
    assert ("bob", "search_event_previews") in noted
    assert "umber" not in repr(noted)
    with closing(connect(team.url("bob"))) as connection:
        connection.execute("INSERT INTO team.asked (at, kind) VALUES ('2020-01-01', 'forged')")
        with pytest.raises(psycopg.Error):
            connection.execute("INSERT INTO team.asked (kind) VALUES (%s)", ("x" * 1_000,))
    with team.owner() as owner:
        noted = owner.execute("SELECT login::text, at > now() - interval '1 hour' FROM asked WHERE kind = 'forged'")
        assert noted.fetchall() == [("bob", True)], "when somebody asked isn't theirs to say"


def test_the_planner_has_no_statistics_of_texts_words_and_sessions_that_it_could_tell(team: Team) -> None:
    with team.owner() as owner:
        owner.execute("ANALYZE")
        told = owner.execute("SELECT tablename, attname FROM pg_stats WHERE schemaname = 'team'").fetchall()
    named = {f"{table}.{column}" for table, column in told}
    assert "event.ts" in named, "of other numbers there are some"
    assert not any(column.endswith(".session_id") for column in named)
    texts = {"name.text", "path.text", "session.uid", "session.title", "session.snippet", "request.text"}
    others = {"project.root_path", "ranked_event.stems", "block_data.text", "block.grams", "person.login"}
    assert named & (texts | others) == set()


def test_who_is_no_longer_a_person_of_the_team_sees_nothing(team: Team, server: Server) -> None:
    other = new_team(server)
    other.add("dan")
    with other.owner() as owner:
        people.remove(owner, "dan")
    with pytest.raises((Problem, sqlite3.Error)), closing(other.connection("dan")) as connection:
        assert connection.execute("SELECT count(*) FROM session").fetchone() == (0,)
        raise sqlite3.Error("nothing was seen")


def test_one_person_s_sessions_can_be_asked_and_never_more_than_one_sees(team: Team) -> None:
    def listed(login: str, user: str) -> dict[str, str]:
        found = team.ask(login, "list_sessions", {"user": user})
        return {item["id"]: item["user"] for item in found["data"]["sessions"]}

    assert listed("bob", "ann") == {OF_TEAM[:8]: "Ann"}
    assert listed("bob", "bob") == {BOBS[:8]: "Bob"}
    assert set(listed("ann", "ann")) == {PRIVATE[:8], OF_PROJECT[:8], OF_TEAM[:8]}
    found = team.ask("bob", "search_event_previews", {"query": "gauge", "order": "newest", "user": "bob"})
    assert {match["session_id"] for match in found["data"]["matches"]} == {BOBS[:8]}
    assert listed("bob", "Ann") == listed("bob", "ann"), "as others see them"
    assert "nobody of the team" in team.ask("bob", "list_sessions", {"user": "zoe"})["error"]["message"]
    assert len(team.ask("bob", "list_sessions", {})["data"]["sessions"]) == 2, "the next question is about all again"


def test_sessions_are_sorted_by_who_pushed_them_and_the_newest_of_each_comes_first(team: Team) -> None:
    whole = team.ask("bob", "list_sessions", {"sort": "user"})["data"]["sessions"]
    newest = team.ask("bob", "list_sessions", {})["data"]["sessions"]
    assert {one["user"] for one in whole} == {"Ann", "Bob"}
    assert whole == sorted(newest, key=lambda one: str(one["user"]))
    first = team.ask("bob", "list_sessions", {"sort": "user", "limit": 1})
    wanted = {"sort": "user", "limit": 1, "cursor": first["pagination"]["next_cursor"]}
    assert first["data"]["sessions"] + team.ask("bob", "list_sessions", wanted)["data"]["sessions"] == whole[:2]


def test_what_an_answer_about_one_person_suggests_is_about_that_person(team: Team) -> None:
    first = team.ask("ann", "list_sessions", {"user": "ann", "limit": 1})
    assert "user='ann'" in first["hint"]
    wanted = {"user": "ann", "limit": 1, "cursor": first["pagination"]["next_cursor"]}
    assert team.ask("ann", "list_sessions", wanted)["data"]["sessions"] != first["data"]["sessions"]
    for other in ({**wanted, "user": "bob"}, {"limit": 1, "cursor": wanted["cursor"]}):
        assert team.ask("ann", "list_sessions", other)["error"]["code"] == "invalid_cursor"
    assert "user=" not in team.ask("ann", "list_sessions", {"limit": 1})["hint"]
