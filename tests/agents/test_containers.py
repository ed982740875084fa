"""Logs that aren't files: rows of a database that an agent writes, folders of small files."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from typing import Any

import pytest

from tests.agents.nest import Nest, add, lines

MOON = {"tern": "ask", "text": "And the sun?", "at": 1_790_000_100_000, "step": 90}
"""A line that a session goes on with."""


def counts(nest: Nest) -> dict[str, int]:
    """The turns of each session."""
    (listed,) = nest.data_of("sessions --limit 50")
    return {session["id"]: session["turn_count"] for session in listed["sessions"]}


def found(nest: Nest, words: str) -> list[str]:
    """The sessions of the matches of a search."""
    (answer,) = nest.data_of(f"search {words} --newest --limit 50")
    return sorted(match["session_id"] for match in answer["matches"])


def folder_of(nest: Nest) -> dict[str, Any]:
    """What lies in Tern's folder, with sizes and times; whoever reads a database that is open touches its `-shm`."""
    paths = (path for path in nest.flights.rglob("*") if path.is_file())
    return {
        str(path): (path.stat().st_size, None if path.name.endswith("-shm") else path.stat().st_mtime_ns)
        for path in paths
    }


def test_a_row_has_its_database_its_session_and_its_number_for_coordinates(nest: Nest) -> None:
    nest.rows("t-1", "t-2")
    nest.ask("index")
    assert [event["origin"]["line"] for event in nest.data_of("show t-1:0", "show t-2:0")] == [2, 19]
    logs = [session["log"] for session in nest.data_of("show t-1", "show t-2")]
    assert logs == [str(nest.flights / "nest.db" / "t-1"), str(nest.flights / "nest.db" / "t-2")]


def test_what_is_only_in_the_write_ahead_log_is_read_while_the_agent_writes_and_nothing_is_left(nest: Nest) -> None:
    with closing(nest.database()) as connection:
        add(connection, "t-1", *lines("t-1"))
        before = folder_of(nest)
        nest.ask("index")
        assert folder_of(nest) == before
        assert list(counts(nest)) == ["t-1"]
        connection.execute("BEGIN IMMEDIATE")  # the agent is in the midst of writing
        add(connection, "t-1", MOON, changed=2)
        assert found(nest, "sun") == []
        connection.execute("COMMIT")
        assert found(nest, "sun") == ["t-1"]


def test_a_database_that_was_closed_or_whose_agent_died_is_read_without_a_trace(nest: Nest) -> None:
    with closing(nest.database()) as connection:
        add(connection, "t-1", *lines("t-1"))
        copied = nest.folder / "copied"
        copied.mkdir()
        for name in ("nest.db", "nest.db-wal"):
            shutil.copy(nest.flights / name, copied / name)
    closed = folder_of(nest)
    nest.ask("index")
    assert folder_of(nest) == closed and list(counts(nest)) == ["t-1"]
    left = sorted(path.name for path in copied.iterdir())
    nest.ask(f"index {copied}")
    assert sorted(path.name for path in copied.iterdir()) == left
    assert (copied / "nest.db-wal").stat().st_size > 0


@pytest.mark.thorough
def test_a_session_goes_on_and_others_begin_as_if_all_had_been_read_at_once(nest: Nest) -> None:
    nest.rows("t-1")
    nest.feathers("t-5")
    nest.ask("index")
    with closing(nest.database()) as connection:
        add(connection, "t-1", MOON, changed=2)
        add(connection, "t-2", *lines("t-2"), changed=2)
    (nest.flights / "feathers" / "t-5" / "900.json").write_text(json.dumps(MOON))
    nest.feathers("t-6")
    nest.ask("index")
    at_once = Nest(nest.folder / "fresh", nest.knowing)
    at_once.folder.mkdir()
    shutil.copytree(nest.folder / "tern", at_once.folder / "tern")
    at_once.ask("index")
    assert counts(nest) == counts(at_once)
    assert found(nest, "sun") == found(at_once, "sun") == ["t-1", "t-5"]
    shown = [one.data_of(*(f"show {session}" for session in ("t-1", "t-2", "t-5", "t-6"))) for one in (nest, at_once)]
    assert [answer["turns"] for answer in shown[0]] == [answer["turns"] for answer in shown[1]]


def test_a_row_that_changes_in_place_replaces_what_it_said_and_one_that_vanishes_takes_it_back(nest: Nest) -> None:
    nest.rows("t-1")
    nest.ask("index")
    said = json.dumps({"tern": "say", "text": "The gauge is afloat", "at": 1_790_000_013_000, "step": 13})
    with closing(nest.database()) as connection:
        connection.execute("UPDATE line SET line = ?, changed = 2 WHERE line LIKE '%is mended%'", (said,))
        connection.execute("DELETE FROM line WHERE line LIKE '%And the moon%'")
    assert (found(nest, "afloat"), found(nest, "mended"), found(nest, "moon")) == (["t-1"], [], [])


@pytest.mark.thorough
def test_where_nothing_changed_nothing_is_read_and_elsewhere_only_the_sessions_that_did(nest: Nest) -> None:
    nest.rows("t-1", "t-2")
    nest.feathers("t-5")
    nest.ask("index")
    (again,) = nest.ask("index --json")
    assert (json.loads(again)["files_opened"], json.loads(again)["bytes_read"]) == (0, 0)
    with closing(nest.database()) as connection:
        add(connection, "t-2", MOON, changed=2)
    (again,) = nest.ask("index --json")
    assert json.loads(again)["files_opened"] == 1


@pytest.mark.thorough
def test_a_session_that_its_agent_deleted_is_kept(nest: Nest) -> None:
    nest.rows("t-1", "t-2")
    nest.feathers("t-5")
    nest.ask("index")
    with closing(nest.database()) as connection:
        connection.execute("DELETE FROM line WHERE flight = 't-1'")
    shutil.rmtree(nest.flights / "feathers" / "t-5")
    (indexed,) = nest.ask("index")
    assert sorted(counts(nest)) == ["t-1", "t-2", "t-5"], indexed
    (doctor,) = nest.ask("doctor --json")
    assert json.loads(doctor)["index"]["archived_files"] == 2


@pytest.mark.thorough
def test_a_session_that_is_forgotten_stays_away_while_others_in_its_database_go_on(nest: Nest) -> None:
    nest.rows("t-1", "t-2")
    nest.ask("index")
    nest.ask("forget t-1 --yes")
    assert list(counts(nest)) == ["t-2"]
    with closing(nest.database()) as connection:
        add(connection, "t-1", MOON, changed=2)
        add(connection, "t-2", MOON, changed=2)
    assert found(nest, "sun") == ["t-2"] and list(counts(nest)) == ["t-2"]


def test_a_damaged_database_loses_nothing_that_was_read_and_is_read_again_when_it_is_whole(nest: Nest) -> None:
    nest.rows("t-1")
    nest.ask("index")
    database = nest.flights / "nest.db"
    whole = database.read_bytes()
    database.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    nest.ask("index")
    assert list(counts(nest)) == ["t-1"]
    ((code, doctor, _),) = nest.run("doctor --json")
    assert code == 1
    (trouble,) = [file for file in json.loads(doctor)["not_read"] if file["path"].endswith("nest.db")]
    assert trouble["status"] == "unreadable" and "malformed" in trouble["reason"]
    database.write_bytes(whole)
    with closing(nest.database()) as connection:
        add(connection, "t-2", *lines("t-2"))
    assert sorted(counts(nest)) == ["t-1", "t-2"]


@pytest.mark.thorough
def test_a_row_that_cannot_be_read_is_kept_and_counted_and_costs_no_other_one(nest: Nest) -> None:
    nest.rows("t-1")
    with closing(nest.database()) as connection:
        connection.execute("UPDATE line SET line = '{\"tern\": broken' WHERE line LIKE '%is mended%'")
    (indexed,) = nest.ask("index --json")
    assert json.loads(indexed)["unreadable_lines"] == 1
    assert (found(nest, "broken"), found(nest, "moon")) == (["t-1"], ["t-1"])


@pytest.mark.thorough
def test_a_database_of_another_format_costs_nothing_that_was_read_and_no_other_log(nest: Nest) -> None:
    nest.rows("t-1")
    nest.ask("index")
    nest.log("t-2")
    with closing(nest.database()) as connection:
        connection.execute("INSERT INTO line (flight, changed, line) VALUES (NULL, 2, '{}')")
    for way in ("index", "index --rebuild"):
        nest.ask(way)
        assert sorted(counts(nest)) == ["t-1", "t-2"]
    ((_, doctor, _),) = nest.run("doctor --json")
    (trouble,) = [file for file in json.loads(doctor)["not_read"] if file["path"].endswith("nest.db")]
    assert trouble["status"] == "unreadable" and "its format isn't understood" in trouble["reason"]
    assert json.loads(doctor)["index"]["archived_files"] == 0


def test_a_database_can_be_a_root_of_its_own(nest: Nest) -> None:
    with closing(nest.database()) as connection:
        add(connection, "t-1", *lines("t-1"))
        database = nest.flights / "nest.db"
        nest.ask(f"index {database}")
        add(connection, "t-1", MOON, changed=2)
        assert found(nest, "sun") == ["t-1"]
        (roots,) = nest.ask("roots --json")
        assert [(root["path"], root["sessions"]) for root in json.loads(roots)["roots"]] == [(str(database), 1)]


@pytest.mark.thorough
def test_a_repair_and_a_rebuild_give_the_same_sessions(nest: Nest) -> None:
    nest.rows("t-1", "t-2")
    nest.feathers("t-5")
    nest.ask("index")
    before = counts(nest)
    nest.ask("index --rebuild")
    assert counts(nest) == before
    nest.ask("doctor --repair")
    assert counts(nest) == before
