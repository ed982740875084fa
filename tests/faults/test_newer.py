"""An index made by a newer agtrace: everything says to update agtrace, and nothing calls it damaged or changes it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from agtrace_indexer.index.opening import NewerIndex
from agtrace_indexer.run import index
from agtrace_schema.database import VERSION

from tests.agtrace.terminal import agtrace, agtrace_here
from tests.conftest import SAMPLES
from tests.e2e.test_http import listening
from tests.faults.serving import call, line, serving

pytestmark = pytest.mark.thorough

SESSION = "d41f7a52-6c0e-4b8e-9a37-2f5e81c0b944"
TABLES = f"PRAGMA user_version = {VERSION + 1}"
READING = "UPDATE meta SET value = '9999' WHERE key = 'reading'"

COMMANDS = [
    ["sessions"], ["search", "x"], ["search", "x", "--by-session", "--json"], ["show", SESSION],
    ["show", f"{SESSION}:0"], ["show", "ax://health"], ["show", f"ax://session/{SESSION}"], ["analyze", SESSION],
    ["report"], ["report", "--json"],
    ["compare", SESSION, SESSION], ["doctor"],
    ["doctor", "--json"], ["doctor", "--repair"], ["forget", SESSION, "--yes"],
]  # fmt: skip
IN_PROCESSES = [["index"], ["index", str(SAMPLES)], ["index", "--rebuild"], ["index", "--optimize"]]


def made_newer(database: Path, statement: str) -> bytes:
    """Index the samples, and let a newer agtrace have done so; gives the bytes of the index."""
    index(database, [str(SAMPLES)])
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute(statement)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return database.read_bytes()


def says_so(text: str) -> bool:
    """Whether a text says what to do, and nothing else."""
    return "update agtrace" in text and "damaged" not in text and "--repair" not in text


def test_every_command_says_so_and_changes_nothing(database: Path) -> None:
    before = made_newer(database, TABLES)
    for command in COMMANDS + IN_PROCESSES:
        said = (agtrace if command in IN_PROCESSES else agtrace_here)(*command)
        assert (said.code, said.out) == (3, ""), command
        assert says_so(said.err) and len(said.err.splitlines()) <= 3, (command, said.err)
    assert database.read_bytes() == before
    assert not list(database.parent.glob("index.damaged*"))


def test_every_tool_and_resource_of_the_server_says_so(database: Path, tmp_path: Path) -> None:
    before = made_newer(database, TABLES)
    with serving(tmp_path / "stderr") as server:
        server.greet()
        for number, asked in enumerate(
            (
                call(0, "list_sessions"), call(1, "search_event_previews", query="x"), call(2, "get_project_info"),
                call(3, "read_artifact", ref="ax://health"), line("resources/read", 4, uri="ax://health"),
                line("resources/read", 5, uri=f"ax://event/{SESSION}/0"),
            )
        ):  # fmt: skip
            server.send(asked)
            assert says_so(json.dumps(server.answer(number))), asked
    assert database.read_bytes() == before


def test_over_http_health_and_readiness_say_so(database: Path, own_home: Path) -> None:
    made_newer(database, TABLES)
    with listening(own_home) as server:
        for path, status in (("/healthz", 200), ("/readyz", 503)):
            answered, _, text = server.request("GET", path)
            assert (answered, says_so(text)) == (status, True), text


def test_logs_that_a_newer_agtrace_read_are_answered_from_and_not_read_again(database: Path) -> None:
    """Else each of the two would read all of them anew, in turn, for ever."""
    before = made_newer(database, READING)
    with pytest.raises(NewerIndex):
        index(database, [])
    for command in (["index"], ["index", "--rebuild"]):
        said = agtrace(*command)
        assert (said.code, says_so(said.err)) == (3, True)
    repaired = agtrace_here("doctor", "--repair")
    assert (repaired.code, says_so(repaired.err)) == (3, True)
    found = agtrace_here("sessions", "--json")
    assert (found.code, found.json()["success"], says_so(found.err)) == (0, True, True)
    said = agtrace_here("doctor")
    assert (said.code, says_so(said.out)) == (1, True), said
    assert database.read_bytes() == before
