"""What dies, stops or is of another version loses nothing, doubles nothing, and says a clear word."""

from __future__ import annotations

import os
import random
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agtrace_team import migrations, people
from agtrace_team.connection import connect, secured
from agtrace_team.problems import NewerTables, PushRefused, TeamUnavailable
from agtrace_team.push import refused
from agtrace_team.server import Server

from tests.agtrace.asking import claude_log
from tests.agtrace.terminal import agtrace_here
from tests.depth import depth
from tests.team.conftest import new_team
from tests.team.teams import Team, index_of

pytestmark = pytest.mark.thorough

_CONTENTS = """
SELECT s.uid, s.audience, s.digest, s.event_count,
  (SELECT md5(string_agg(concat_ws(',', e.event_index, e.type, e.ts, e.line, e.outcome), ';' ORDER BY e.event_index))
    FROM event e WHERE e.session_id = s.id),
  (SELECT md5(string_agg(md5(d.text), ';' ORDER BY b.first_index))
    FROM block b JOIN block_data d ON d.block_id = b.id WHERE b.session_id = s.id),
  (SELECT count(*) FROM ranked_event r WHERE r.session_id = s.id),
  (SELECT count(*) FROM touched t WHERE t.session_id = s.id)
FROM session s ORDER BY s.uid
"""


def contents(team: Team) -> dict[str, Any]:
    """The sessions by id, each with a digest of all that was pushed of it."""
    with team.owner() as connection:
        return {uid: rest for uid, *rest in connection.execute(_CONTENTS)}


@pytest.fixture(scope="module")
def whole(server: Server, samples: Path) -> dict[str, Any]:
    """What a push that nothing disturbs leaves."""
    team = new_team(server)
    team.add("ann")
    team.push(samples, "ann")
    return contents(team)


def _push_killed_within(seconds: float, database: Path, team: Team) -> None:
    """Push in a process of its own, which is killed so long after its first session has come."""
    process = subprocess.Popen([sys.executable, "-m", "tests.team.pushing", str(database), team.url("ann")])
    with process, team.owner() as connection:
        count = "SELECT count(*) FROM session"
        before = connection.execute(count).fetchone()
        while process.poll() is None and connection.execute(count).fetchone() == before:
            select.select([], [], [], 0.01)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.kill()


def test_a_push_killed_at_any_moment_leaves_whole_sessions_and_the_next_one_goes_on(
    server: Server, samples: Path, whole: dict[str, Any]
) -> None:
    chance = random.Random(7)
    team = new_team(server)
    team.add("ann")
    held: set[int] = set()
    for _ in range(depth(5, 20)):
        _push_killed_within(chance.uniform(0, 0.05), samples, team)
        held.add(len(found := contents(team)))
        assert found.items() <= whole.items()
    assert held - {0, len(whole)}, "no kill amid a push"
    team.push(samples, "ann")
    assert contents(team) == whole


def _at_once(*works: Callable[[], object]) -> None:
    with ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(work) for work in works]:
            done.result()


def test_two_machines_that_push_the_same_at_once_leave_it_once(
    team: Team, samples: Path, whole: dict[str, Any]
) -> None:
    team.add("ann")
    _at_once(*(partial(team.push, samples, "ann", machine=machine) for machine in ("desk", "laptop")))
    assert contents(team) == whole


@pytest.fixture
def own_server(server: Server) -> Iterator[Server]:
    """A server that a test may kill."""
    with tempfile.TemporaryDirectory(prefix="agtrace-pg-", ignore_cleanup_errors=True) as folder:
        found = Server(Path(folder))
        found.start()
        found.make("made")
        yield found
        found.stop("immediate")


def test_a_server_that_is_down_is_said_to_be_and_is_asked_again_once_it_is_back(
    own_server: Server, samples: Path
) -> None:
    team = new_team(own_server)
    team.add("ann")
    team.push(samples, "ann")
    before = team.ask("ann", "list_sessions", {"limit": 3})["data"]
    own_server.stop("immediate")
    down = team.ask("ann", "list_sessions", {"limit": 3})
    assert down["error"]["code"] == "index_unavailable" and "can't be reached" in down["error"]["message"]
    assert "Does its server run" in str(down["hint"])
    own_server.start()
    assert team.ask("ann", "list_sessions", {"limit": 3})["data"] == before


def test_a_login_that_the_server_does_not_know_is_told_who_lets_people_in(server: Server) -> None:
    given = new_team(server).ask("zelda", "list_sessions", {})
    assert given["error"]["message"] == 'the team\'s database refuses this login: role "zelda" does not exist'
    assert "agtrace team add" in str(given["hint"])


def test_tables_of_a_newer_version_are_refused_by_readers_and_by_who_migrates(team: Team) -> None:
    team.add("ann")
    with team.owner() as owner:
        owner.execute("INSERT INTO agtrace_migration.step (name) VALUES ('9999-from-the-future')")
        with pytest.raises(NewerTables, match="update agtrace"):
            migrations.migrate(owner)
        owner.execute("UPDATE meta SET value = '99' WHERE key = 'tables'")
    with pytest.raises(TeamUnavailable, match="a newer agtrace"):
        team.connection("ann")


def test_a_database_without_tables_of_a_team_says_so(server: Server, samples: Path) -> None:
    with connect(server.url("postgres")) as connection:
        connection.execute("CREATE DATABASE bare")
    bare = Team(server, "bare")
    with pytest.raises(TeamUnavailable, match="no tables of a team"):
        bare.connection("postgres")
    with pytest.raises(PushRefused, match="agtrace team init"), refused():
        bare.push(samples, "postgres")


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE session ADD COLUMN mood text, ADD COLUMN weather bigint NOT NULL DEFAULT 0",
        "ALTER TABLE landmark DROP COLUMN evidence",
    ],
)
def test_a_column_that_only_one_of_server_and_pusher_has_is_left_out(
    team: Team, samples: Path, whole: dict[str, Any], change: str
) -> None:
    team.add("ann")
    with team.owner() as owner:
        owner.execute(change)
    team.push(samples, "ann")
    assert contents(team) == whole


def test_migrations_are_applied_once_and_two_that_migrate_at_once_do_it_once(server: Server) -> None:
    with connect(server.url("postgres")) as connection:
        connection.execute("CREATE DATABASE migrated")
    done: list[list[str]] = []

    def migrate() -> None:
        with connect(server.url("migrated")) as connection:
            done.append(migrations.migrate(connection))

    _at_once(*[migrate] * 4)
    assert sorted(name for names in done for name in names) == [step.name for step in migrations.steps()]


@pytest.mark.parametrize(
    ("given", "variables"),
    [
        *(({"host": host}, {}) for host in ("db.example.org", "10.0.0.7", "localhost,db.example.org", "127.evil")),
        ({}, {"PGHOST": "db.example"}),
        ({"host": "localhost", "hostaddr": "192.0.2.2"}, {}),
        ({}, {"PGHOSTADDR": "192.0.2.2"}),
        ({"service": "team"}, {}),
    ],
    ids=str,
)
def test_another_machine_is_reached_by_tls_only_however_it_is_named_and_its_certificate_is_checked(
    given: dict[str, str], variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PGHOST", "PGHOSTADDR", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setitem(os.environ, name, value)
    found = secured(given)
    assert (found["sslmode"], found["sslrootcert"]) == ("verify-full", "system")
    assert secured({**given, "sslmode": "require"})["sslmode"] == "require"
    for mode in ("disable", "allow", "prefer"):
        with pytest.raises(TeamUnavailable, match="TLS only"):
            secured({**given, "sslmode": mode})


@pytest.mark.parametrize("host", ("", "/tmp", "localhost", "127.0.0.1", "::1", "/a,/b"))
def test_this_machine_is_reached_without(host: str) -> None:
    assert secured({"host": host}) == {"host": host}


def test_a_password_is_in_no_error_argument_or_log_of_the_server(own_server: Server) -> None:
    with pytest.raises(TeamUnavailable) as raised:
        connect(url := "postgresql://ann:hunter2hunter2@127.0.0.1:1/none")
    refused = [agtrace_here(*command, url) for command in (("push", "--to"), ("team", "status", "--url"), ("--index",))]
    assert [said.code for said in refused] == [2, 2, 2] and "hunter2" not in str((raised.value, refused))
    with new_team(own_server).owner() as owner:
        owner.execute("SET log_statement = 'all'")
        people.add(owner, "ann", None, "hunter2hunter2", push=False)
    log = (own_server.folder / "log").read_text()
    assert "ALTER ROLE" in log and "hunter2" not in log


def test_what_was_forgotten_is_in_no_file_of_the_tables_once_they_are_rewritten(
    own_server: Server, tmp_path: Path
) -> None:
    word = "heliotropeheliotrope"
    log = claude_log(tmp_path / ".claude", "a1111111-13ae-41a6-a6df-f287e0552835")
    log.prompt(f"Mend the {word} gauge.").call("Bash", {"command": f"mend {word}"}, word)
    other = claude_log(tmp_path / ".claude", "a1111111-13ae-41a6-a6df-f287e0552836")
    other.prompt(f"Paint the {word} gauge.").call("Bash", {"command": f"paint {word}"}, word)
    team = new_team(own_server)
    team.add("ann")
    team.push(index_of(tmp_path / "i", tmp_path / ".claude"), "ann")
    with team.owner() as owner:
        owner.execute("ANALYZE")  # as the server does by itself: it copies values into a table of its own

    def holding() -> bool:
        with team.owner() as owner:
            owner.execute("CHECKPOINT")
        files = (own_server.folder / "data" / "base").rglob("*")
        return any(word.encode() in path.read_bytes() for path in files if path.is_file())

    assert holding()
    team.push(index_of(tmp_path / "empty"), "ann", forgotten=lambda _provider, _id: True)
    assert team.sessions("ann") == set()
    with team.owner() as owner:
        owner.execute("VACUUM (FULL)")
    assert not holding()
