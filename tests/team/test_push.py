"""Pushing: what was chosen and nothing else, each session whole, once, and masked; what is forgotten goes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from agtrace_team.problems import PushRefused
from agtrace_team.server import Server

from tests.agtrace.asking import claude_log
from tests.team.conftest import new_team
from tests.team.teams import Team, index_of
from tests.team.test_faults import contents

ANNS, BOBS = "a1111111-13ae-41a6-a6df-f287e0552835", "b2222222-13ae-41a6-a6df-f287e0552835"


def _talk(home: Path, session: str, said: str, *more: str) -> None:
    log = claude_log(home / ".claude", session)
    log.prompt(said)
    log.call("Bash", {"command": "pytest -q"}, "E  AssertionError: the tide is high", failed=True)
    for text in more:
        log.say(text)
    log.say("It is mended.")


def _counts(team: Team) -> dict[str, int]:
    """The number of rows of each table."""
    with team.owner() as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'team'").fetchall()
        rows = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone() for (name,) in tables}
    return {name: row[0] for name, row in rows.items() if row}


def test_what_was_pushed_is_there_and_a_second_push_sends_nothing(team: Team, samples: Path) -> None:
    team.add("ann")
    first = team.push(samples, "ann")
    before = _counts(team)
    again = team.push(samples, "ann")
    assert first.new and not first.changed and first.events
    assert (again.new, again.changed, again.same) == ([], [], len(first.new))
    assert _counts(team) == before


def test_pushing_bit_by_bit_from_several_machines_leaves_what_one_push_leaves(server: Server, tmp_path: Path) -> None:
    bit_by_bit, at_once = new_team(server), new_team(server)
    for number, said in enumerate(("The tide.", "日本 🎉 %s \\ '", "x" * 70, "The gauge.")):
        _talk(tmp_path, f"{number % 2:08x}{ANNS[8:]}", "Mend the tide table.", said)
        database = index_of(tmp_path / "i", tmp_path / ".claude")
        bit_by_bit.add("ann")
        bit_by_bit.push(database, "ann", machine=f"machine {number % 3}")
    at_once.add("ann")
    at_once.push(index_of(tmp_path / "fresh", tmp_path / ".claude"), "ann")
    one, other = (
        {uid: [audience, *rest] for uid, (audience, _digest, *rest) in contents(team).items()}
        for team in (bit_by_bit, at_once)
    )
    assert one == other and len(one) == 2


def test_a_session_that_grew_is_sent_again_and_its_events_keep_their_ids(team: Team, tmp_path: Path) -> None:
    _talk(tmp_path, ANNS, "Mend the tide table.")
    database = index_of(tmp_path / "i", tmp_path / ".claude")
    team.add("ann")
    team.push(database, "ann")
    with closing(team.connection("ann")) as connection:
        before = dict(connection.execute("SELECT event_index, id FROM event").fetchall())
    _talk(tmp_path, ANNS, "Mend the tide table.", "And the harbour, too.")
    grown = team.push(index_of(tmp_path / "i", tmp_path / ".claude"), "ann")
    with closing(team.connection("ann")) as connection:
        after = dict(connection.execute("SELECT event_index, id FROM event").fetchall())
    assert len(grown.changed) == 1
    assert before.items() <= after.items() and len(after) > len(before)
    found = team.ask("ann", "search_event_previews", {"query": "harbour, too", "order": "newest"})
    assert [match["session_id"] for match in found["data"]["matches"]] == ["a1111111"]


def test_of_two_machines_of_a_person_the_one_with_more_of_a_session_wins(team: Team, tmp_path: Path) -> None:
    _talk(tmp_path / "one", ANNS, "Mend the tide table.", "And the harbour, too.")
    _talk(tmp_path / "two", ANNS, "Mend the tide table.")
    longer = index_of(tmp_path / "one" / "i", tmp_path / "one" / ".claude")
    shorter = index_of(tmp_path / "two" / "i", tmp_path / "two" / ".claude")
    team.add("ann")
    team.push(longer, "ann", machine="desk")
    older = team.push(shorter, "ann", machine="laptop")
    assert (len(older.older), older.changed) == (1, [])
    assert _counts(team)["session"] == 1
    assert team.push(longer, "ann", machine="laptop").changed == []


def test_ids_that_look_like_those_of_other_people_are_kept_apart(team: Team, tmp_path: Path) -> None:
    """Two logs of an index that share an id are told apart by `~2`, which is how another person's session is marked."""
    team.add("ann", "ben")
    for number in range(3):
        claude_log(tmp_path / f"logs {number}", "5f2d1c1e-0000-4000-8000-000000000001").prompt(f"Hello {number}")
    database = index_of(tmp_path, *(tmp_path / f"logs {number}" for number in range(3)))
    for _ in range(2):
        for login in ("ann", "ben", "ann"):
            team.push(database, login)
    with team.owner() as connection:
        sql = "SELECT p.login, s.pushed_uid, s.uid FROM session s JOIN person p ON p.id = s.person_id"
        rows = connection.execute(sql).fetchall()
    assert len({uid for *_, uid in rows}) == len({(login, own) for login, own, _ in rows}) == len(rows) == 6
    assert all(uid == own for login, own, uid in rows if login == "ann")


def test_what_was_forgotten_goes_from_the_server_with_every_row_of_it(team: Team, tmp_path: Path) -> None:
    team.add("ann")
    nothing = _counts(team)
    _talk(tmp_path, ANNS, "Mend the tide table.")
    database = index_of(tmp_path / "i", tmp_path / ".claude")
    team.push(database, "ann")
    empty = index_of(tmp_path / "empty")
    kept = team.push(empty, "ann")
    assert (kept.removed, _counts(team)["session"]) == ([], 1), "an index that merely lacks it removes nothing"
    gone = team.push(empty, "ann", forgotten=lambda provider, id: (provider, id) == ("claude_code", ANNS))
    assert gone.removed == [ANNS]
    left = _counts(team)
    assert {name for name in left if left[name] != nothing[name]} <= {"machine", "push"}


@pytest.mark.thorough
def test_what_is_no_longer_shared_goes_and_comes_back_when_it_is(team: Team, samples: Path) -> None:
    team.add("ann")
    every = team.push(samples, "ann").new
    withdrawn = team.push(samples, "ann", only=lambda uid: uid != every[0])
    assert withdrawn.removed == [every[0]] and every[0] not in team.sessions("ann")
    assert team.push(samples, "ann").new == [every[0]]


@pytest.mark.thorough
def test_who_sees_a_session_can_be_changed_without_sending_it_again(team: Team, samples: Path) -> None:
    team.add("ann", "bob")
    pushed = team.push(samples, "ann", "self").new
    assert team.sessions("bob") == set()
    wider = team.push(samples, "ann", "team")
    assert (wider.same, wider.events) == (len(pushed), 0)
    assert len(team.sessions("bob")) == len(pushed)


def test_a_secret_that_only_today_s_rules_know_is_masked_on_the_way(team: Team, tmp_path: Path) -> None:
    _talk(tmp_path, ANNS, "Mend the tide table.", "The gate opens with tide-4711-secret-word.")
    database = index_of(tmp_path / "i", tmp_path / ".claude")
    rules = tmp_path / "i" / "redaction.json"
    rules.write_text('{"add": [{"name": "gate", "pattern": "tide-[0-9]+-secret-word"}]}')
    from agtrace_indexer import redact

    team.add("ann")
    try:
        redact.use(tmp_path / "i")
        done = team.push(database, "ann")
    finally:
        redact.use(tmp_path)
    assert done.masked_again == 1 and done.masked["gate"] == 1
    with closing(sqlite3.connect(database)) as index:
        assert index.execute("SELECT count(*) FROM block").fetchone() == (1,)
    for query in ("tide-4711", "secret-word"):
        found = team.ask("ann", "search_event_previews", {"query": query, "order": "newest"})
        assert found["data"]["matches"] == []
    with team.owner() as connection:
        ranked = connection.execute("SELECT count(*) FROM ranked_event WHERE stems @@ '''4711'''::tsquery").fetchone()
    assert ranked == (0,)


@pytest.mark.thorough
def test_a_fork_counts_once_whichever_of_the_two_is_pushed_first(team: Team, everything: Path) -> None:
    with closing(sqlite3.connect(everything)) as index:
        found = index.execute(
            "SELECT s.uid, o.uid FROM event e JOIN session s ON s.id = e.session_id JOIN event f ON f.id = e.copy_of "
            "JOIN session o ON o.id = f.session_id WHERE e.copy_of > 0 AND o.uid != s.uid LIMIT 1"
        ).fetchone()
    if found is None:
        pytest.skip("no fork is at hand")
    copy, original = found
    team.add("ann")
    team.push(everything, "ann", only=lambda uid: uid == copy)
    with team.owner() as connection:
        alone = connection.execute("SELECT count(*) FROM event WHERE copy_of = 0").fetchone()
    team.push(everything, "ann", only=lambda uid: uid in found)
    with team.owner() as connection:
        wrong = connection.execute(
            "SELECT count(*) FROM event e WHERE e.copy_of > 0 "
            "AND NOT EXISTS (SELECT 1 FROM event o WHERE o.id = e.copy_of)"
        ).fetchone()
        joined = connection.execute("SELECT count(*) FROM event WHERE copy_of > 0").fetchone()
    assert alone and alone[0] > 0, original
    assert wrong == (0,) and joined and joined[0] > 0


def test_who_is_nobody_of_the_team_or_may_not_push_is_told_so(team: Team, samples: Path) -> None:
    team.add("ann", push=False)
    for login, said in (("ann", "may only read"), ("postgres", "nobody of the team")):
        with pytest.raises(PushRefused, match=said):
            team.push(samples, login)
    assert _counts(team)["session"] == 0
