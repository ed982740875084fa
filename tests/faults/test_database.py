"""A damaged, locked or foreign database: a correct answer, or an error that says what to do; then an honest repair.

The damage is real: bytes of the file are overwritten, cut off, or changed by SQLite itself. No test
can demand that a changed figure in a row is noticed, as SQLite has no checksums of its pages. Texts and the word index
have checksums of ours.
"""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.index.lock import Busy, WriteLock
from agtrace_indexer.index.maintenance import optimize
from agtrace_indexer.index.opening import open_read_only
from agtrace_indexer.index.tombstones import FORGOTTEN, add, digest_of
from agtrace_indexer.repair.repair import NotRepaired, Repaired, damaged_copies, examine, repair
from agtrace_indexer.run import index
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from agtrace.answers.desk import Answers
from agtrace.answers.log import silent
from agtrace.search.question import EventFilters, search, snapshot_of
from agtrace.settings.model import Settings
from tests import corpus
from tests.agtrace.terminal import AGTRACE, agtrace, agtrace_here
from tests.contents import contents
from tests.depth import depth
from tests.faults import damage
from tests.faults.damage import ARCHIVED, LARGE, PAGE, Undisturbed

COMMANDS = (["sessions"], ["search", "tide"], ["show", ARCHIVED], ["report"], ["health"], ["doctor"])
CLEAR = "agtrace doctor --repair"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return Undisturbed.make(tmp_path_factory.mktemp("undisturbed"), lines=depth(400, 10_000))


@pytest.fixture(scope="module")
def expected(undisturbed: Undisturbed, tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Any]]:
    """The answers to all questions from an index without damage."""
    return damage.ask(undisturbed.copy(tmp_path_factory.mktemp("sound") / "data"))


def repaired(undisturbed: Undisturbed, database: Path) -> Repaired:
    """Repair, and see that nothing is missing but what was named."""
    done = repair(database, patience=30)  # where a server writes
    assert not examine(database)
    assert list(damage.differences(undisturbed.database, database, done)) == []
    return done


# -- any page --------------------------------------------------------------------------------------


def test_an_overwritten_page_changes_no_answer_is_noticed_and_can_be_repaired(
    undisturbed: Undisturbed, expected: dict[int, dict[str, Any]], tmp_path: Path
) -> None:
    """Some pages of all that the file has: tables, indexes, the word index, the list of the tables."""
    for page in range(2, undisturbed.pages, depth(61, 7)):
        database = undisturbed.copy(tmp_path / "data")
        damage.overwrite_page(database, page)
        assert examine(database), f"page {page}"
        for number, given in damage.ask(database).items():
            assert damage.same(given, expected[number]) or damage.is_clear_error(given), (page, given)
        done = repaired(undisturbed, database)
        named = {one.session for one in done.lost}
        for number, given in damage.ask(database).items():
            assert named or done.unread or damage.same(given, expected[number]), (page, given)


def test_a_flipped_bit_in_a_text_or_in_the_word_index_is_noticed(
    undisturbed: Undisturbed, expected: dict[int, dict[str, Any]], tmp_path: Path
) -> None:
    pages = damage.pages_of(undisturbed.database, lambda name: name in ("block_data", "words_data", "vocabulary"))
    if not pages:
        pytest.skip("this SQLite can't tell what is in a page")
    noticed = 0
    some = pages[:: depth(11, 5)]
    for page in some:
        database = undisturbed.copy(tmp_path / "data")
        damage.flip_bit(database, page)
        noticed += bool(examine(database))
        for number, given in damage.ask(database).items():
            assert damage.same(given, expected[number]) or damage.is_clear_error(given), (page, given)
    assert noticed >= 0.6 * len(some), "the others fell on bytes that nothing reads"


# -- the whole file --------------------------------------------------------------------------------

DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut in half": lambda database: damage.truncate(database, database.stat().st_size // 2 // PAGE * PAGE),
    "emptied": lambda database: damage.truncate(database, 0),
    "cut within a page": lambda database: damage.truncate(database, database.stat().st_size - 1000),
    "the last page cut off": lambda database: damage.truncate(database, database.stat().st_size - PAGE),
    "the header overwritten": lambda database: damage.write(database, 0, bytes(100)),
    "the first page overwritten": lambda database: damage.overwrite_page(database, 1),
    "a text in its place": lambda database: database.write_text("no database, but a text of some length\n" * 200),
    "no version's number": lambda database: damage.write(database, 60, (12).to_bytes(4, "little")),
    "a table missing": lambda database: damage.run_sql(database, "DROP TABLE event"),
    "an index missing": lambda database: damage.run_sql(database, "DROP INDEX event_place"),
    "an index that lacks rows": lambda database: damage.run_sql(
        database,
        "UPDATE sqlite_master SET sql = sql || ' WHERE event_index != 3' WHERE name = 'event_place'",
        "PRAGMA schema_version = 4711",
    ),
    "texts that can't be unpacked": lambda database: damage.run_sql(database, "UPDATE block_data SET text = x'00ff'"),
    "sums that are wrong": lambda database: damage.run_sql(database, "UPDATE session SET event_count = 3"),
    "no words at all": lambda database: damage.run_sql(database, "DELETE FROM words_data WHERE id > 10"),
    "a half of the vocabulary": lambda database: damage.run_sql(database, "DELETE FROM vocabulary WHERE id % 2"),
    "a table of the word index missing": lambda database: damage.run_sql(
        database, "DELETE FROM sqlite_master WHERE name = 'words_idx'", "PRAGMA schema_version = 4712"
    ),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_file_gives_a_right_answer_or_a_clear_error_and_is_repaired(
    how: str, undisturbed: Undisturbed, expected: dict[int, dict[str, Any]], tmp_path: Path
) -> None:
    database = undisturbed.copy(tmp_path / "data")
    DAMAGES[how](database)
    before = database.read_bytes()
    assert examine(database)
    said = agtrace_here("doctor", AGTRACE_DATA_DIR=str(database.parent))
    assert said.code in (1, 3)
    assert CLEAR in " ".join((said.out + said.err).split())
    if how != "sums that are wrong":  # a figure that nothing contradicts but another figure
        for number, given in damage.ask(database).items():
            assert damage.same(given, expected[number]) or damage.is_clear_error(given), given
    done = repair(database, [str(undisturbed.logs)])
    assert not examine(database)
    assert list(damage.differences(undisturbed.database, database, done)) == []
    if done.damaged is not None:
        assert done.damaged.stat().st_mode & 0o077 == 0
        assert len(done.damaged.read_bytes()) == len(before)
    assert agtrace_here("health", AGTRACE_DATA_DIR=str(database.parent)).code == 0


def test_what_is_made_of_the_tables_is_repaired_without_the_logs_and_loses_nothing(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    database = undisturbed.copy(tmp_path / "data")
    damage.run_sql(database, "DELETE FROM words_data WHERE id > 10", "DROP INDEX event_place")
    done = repaired(undisturbed, database)
    assert (done.lost, done.unread, done.damaged) == ((), (), None)
    assert damaged_copies(database) == []


def test_a_lost_header_costs_no_archived_session(undisturbed: Undisturbed, tmp_path: Path) -> None:
    database = undisturbed.copy(tmp_path / "data")
    damage.run_sql(database, "VACUUM")  # after which no table is where it was made
    DAMAGES["the header overwritten"](database)
    done = repaired(undisturbed, database)
    assert (done.lost, done.unread, done.archived) == ((), (), 4)


def test_a_repair_names_what_is_lost_and_keeps_the_damaged_file(undisturbed: Undisturbed, tmp_path: Path) -> None:
    database = undisturbed.copy(tmp_path / "data")
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(
            "UPDATE block_data SET payload = x'00' WHERE block_id IN "
            "(SELECT b.id FROM block b JOIN session s ON s.id = b.session_id WHERE s.uid = ?)",
            (ARCHIVED,),
        )
    said = agtrace("doctor", "--repair", AGTRACE_DATA_DIR=str(database.parent))
    assert said.code == 1
    assert f"{ARCHIVED}" in said.out and "20 events lost, 0 kept" in said.out
    (kept,) = (path for path in damaged_copies(database) if path.suffix == ".sqlite3")
    assert str(kept) in said.out.replace("\n", "")
    shown = agtrace("doctor", AGTRACE_DATA_DIR=str(database.parent))
    assert "integrity ok" in shown.out and kept.name in shown.out
    again = agtrace("doctor", "--repair", "--json", AGTRACE_DATA_DIR=str(database.parent))
    assert again.code == 0
    assert again.json()["found"] == {"tables": [], "derived": []}


def test_an_archived_session_whose_token_figures_are_lost_is_kept_and_named(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    database = undisturbed.copy(tmp_path / "data")
    of_archived = "session_id IN (SELECT s.id FROM session s JOIN file f ON f.id = s.file_id WHERE f.gone)"
    with closing(sqlite3.connect(database)) as connection, connection:
        events = connection.execute(f"SELECT count(*) FROM event WHERE {of_archived}").fetchone()
        assert connection.execute(f"DELETE FROM token_usage WHERE {of_archived}").rowcount > 0
    assert "lost their token figures" in str(examine(database))
    done = repaired(undisturbed, database)
    assert done.lost and {lost.events for lost in done.lost} == {0}
    assert not examine(database)
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute(f"SELECT count(*) FROM event WHERE {of_archived}").fetchone() == events


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_ends_in_a_traceback(command: list[str], undisturbed: Undisturbed, tmp_path: Path) -> None:
    database = undisturbed.copy(tmp_path / "data")
    damage.run_sql(database, "DELETE FROM block_data", "UPDATE event SET type = 99 WHERE id % 7 = 0")
    said = agtrace(*command, AGTRACE_DATA_DIR=str(database.parent))
    assert said.code in (0, 1, 3)
    assert said.code == 0 or CLEAR in " ".join((said.out + said.err).split())
    assert said.code != 0 or command[0] in ("sessions", "show"), "these can do without what is lost"


# -- the word index --------------------------------------------------------------------------------

QUERIES = ("error", "the file", "import os", "nothing holds this", "é", "atabas", "tide gauge")


@pytest.fixture(scope="module")
def many_blocks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of so many blocks that search asks the word index."""
    folder = tmp_path_factory.mktemp("many blocks")
    corpus.make(folder / "logs", 12)
    index(folder / "index.sqlite3", [str(folder / "logs")])
    optimize(folder / "index.sqlite3")
    return folder / "index.sqlite3"


def found(database: Path) -> dict[str, list[int]]:
    with closing(open_read_only(database)) as connection:
        snapshot = snapshot_of(connection)
        return {
            query: [hit.event_id for hit in search(connection, query, EventFilters(), 50, snapshot=snapshot).hits]
            for query in QUERIES
        }


@pytest.mark.parametrize(
    "statements",
    [
        ["DELETE FROM vocabulary WHERE id % 2"],
        ["DELETE FROM words_data WHERE id > 10"],
        ["DELETE FROM vocabulary_part_data WHERE id > 10"],
        ["UPDATE vocabulary SET words = x'00ff'"],
        ["DROP TABLE trigram", "DROP TABLE word"],
    ],
    ids=lambda statements: statements[0],
)
def test_a_search_over_a_damaged_word_index_finds_what_is_there(
    statements: list[str], many_blocks: Path, tmp_path: Path
) -> None:
    expected = found(many_blocks)
    shutil.copyfile(many_blocks, tmp_path / "index.sqlite3")
    damage.run_sql(tmp_path / "index.sqlite3", *statements)
    assert found(tmp_path / "index.sqlite3") == expected
    assert examine(tmp_path / "index.sqlite3").tables == ()
    assert examine(tmp_path / "index.sqlite3").derived != ()


def test_lists_of_rows_that_lack_some_hide_nothing(many_blocks: Path, tmp_path: Path) -> None:
    """What no structure contradicts: a word index that is whole in itself, and doesn't know where a word stands."""
    expected = found(many_blocks)
    assert expected["atabas"]
    database = tmp_path / "index.sqlite3"
    shutil.copyfile(many_blocks, database)
    with closing(sqlite3.connect(database)) as connection, connection:
        rows = connection.execute("SELECT rowid FROM words WHERE words MATCH 'database'").fetchall()
        connection.executemany("INSERT INTO words(words, rowid, text) VALUES ('delete', ?, 'database')", rows)
    assert found(database) == expected
    assert examine(database)


def test_a_text_where_the_word_index_has_bytes_is_damage_and_hides_nothing(many_blocks: Path, tmp_path: Path) -> None:
    expected = found(many_blocks)
    database = tmp_path / "index.sqlite3"
    shutil.copyfile(many_blocks, database)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE words_data SET block = 'text' WHERE id = (SELECT max(id) FROM words_data)")
    assert found(database) == expected
    assert examine(database)


# -- a write-ahead log that is missing or another one's ----------------------------------------------


def test_a_lost_write_ahead_log_costs_what_was_only_there(undisturbed: Undisturbed, tmp_path: Path) -> None:
    """The WAL of a writer that crashed, deleted: the index is as it was before, and reads the logs again."""
    database = undisturbed.copy(tmp_path / "data")
    code = (
        "import os, sys, sqlite3; c = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "c.execute('PRAGMA journal_mode=WAL'); c.execute('PRAGMA wal_autocheckpoint=0'); "
        "c.execute('UPDATE file SET read_to = 0, stamp = \"\" WHERE NOT gone'); c.execute('DELETE FROM event "
        'WHERE session_id IN (SELECT id FROM session WHERE uid = "' + LARGE + "\")'); os._exit(9)"
    )
    subprocess.run([os.environ.get("PYTHON", AGTRACE.with_name("python")), "-c", code, database], check=False)
    wal = database.with_name(database.name + "-wal")
    assert wal.stat().st_size
    wal.unlink()
    index(database, ())
    assert not examine(database)
    assert contents(database) == contents(undisturbed.database)


def test_the_write_ahead_log_of_another_index_is_left_out_by_a_repair(undisturbed: Undisturbed, tmp_path: Path) -> None:
    database, other = undisturbed.copy(tmp_path / "data"), tmp_path / "other" / "index.sqlite3"
    index(other, [str(next(undisturbed.logs.rglob("*.jsonl")))])
    with closing(sqlite3.connect(other, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("DELETE FROM block_data")
        connection.execute("UPDATE event SET ts = 0")
        connection.execute("UPDATE session SET title = 'of another index'")
        shutil.copyfile(other.with_name("index.sqlite3-wal"), database.with_name("index.sqlite3-wal"))
    assert examine(database)
    done = repaired(undisturbed, database)
    assert done.lost == ()
    assert done.damaged is not None and done.damaged.with_name(done.damaged.name + "-wal").exists()


# -- what is no damage -----------------------------------------------------------------------------


def test_what_is_no_damage_is_not_repaired(undisturbed: Undisturbed, tmp_path: Path) -> None:
    folder = tmp_path / "folder" / "index.sqlite3"
    folder.mkdir(parents=True)
    with pytest.raises(NotRepaired, match="is not a file"):
        repair(folder)
    newer = undisturbed.copy(tmp_path / "newer")
    damage.run_sql(newer, "PRAGMA user_version = 99")
    before = newer.read_bytes()
    with pytest.raises(sqlite3.OperationalError, match="update agtrace"):
        repair(newer)
    assert newer.read_bytes() == before
    said = agtrace("doctor", "--repair", AGTRACE_DATA_DIR=str(tmp_path / "nothing"))
    assert (said.code, said.out) == (3, "")
    assert "there is no index yet" in said.err


def test_a_lock_that_is_held_for_a_moment_is_waited_for_and_one_that_stays_is_named(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    database = undisturbed.copy(tmp_path / "data")
    holding = sqlite3.connect(database, isolation_level=None)
    holding.execute("PRAGMA locking_mode=EXCLUSIVE")
    holding.execute("BEGIN EXCLUSIVE")
    holding.execute("UPDATE meta SET value = value")
    asking = subprocess.Popen(
        [AGTRACE, "sessions", "--json"],
        env={**os.environ, "AGTRACE_DATA_DIR": str(database.parent)}, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        impatient = Answers(Settings(data_dir=database.parent, environment={}), log=silent, refresh_seconds=0.01)
        refused = impatient.ask("list_sessions", {}).value
        assert refused["error"]["retryable"]
        assert "locked by another program" in refused["error"]["message"] and "Try again" in refused["hint"]
    finally:
        holding.close()
    assert b'"sessions"' in asking.communicate(timeout=60)[0]
    assert asking.returncode == 0


def test_a_repair_waits_for_a_writer(undisturbed: Undisturbed, tmp_path: Path) -> None:
    database = undisturbed.copy(tmp_path / "data")
    with WriteLock(database), pytest.raises(Busy):
        repair(database)


# -- what ends a repair ----------------------------------------------------------------------------


MOMENTS: dict[str, Callable[[Path], bool]] = {
    "it begins": lambda data: (data / "index.repairing.sqlite3").exists(),
    "it reads the logs": lambda data: (data / "index.repairing.sqlite3-wal").stat().st_size > 200_000,
    "it changes the files": lambda data: any(data.glob("index.damaged*")),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_repair_that_is_killed_leaves_the_old_index_or_the_new_one(
    moment: str, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    database = undisturbed.copy(tmp_path / "data")
    damage.write(database, 0, bytes(100))
    before = database.read_bytes()
    running = subprocess.Popen(
        [AGTRACE, "doctor", "--repair"],
        env={**os.environ, "AGTRACE_DATA_DIR": str(database.parent)}, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    while running.poll() is None and not _is_so(MOMENTS[moment], database.parent):
        pass
    running.kill()
    running.wait()
    assert database.read_bytes() == before or not examine(database)
    assert repaired(undisturbed, database).lost == ()
    assert list(database.parent.glob("index.repairing*")) == []


def _is_so(moment: Callable[[Path], bool], data: Path) -> bool:
    try:
        return moment(data)
    except FileNotFoundError:  # it was there when it was listed
        return False


def test_a_repair_without_room_leaves_the_old_index_and_says_so(undisturbed: Undisturbed, tmp_path: Path) -> None:
    database = undisturbed.copy(tmp_path / "data")
    damage.overwrite_page(database, undisturbed.pages // 2)
    before = database.read_bytes()
    ended = subprocess.run(
        [AGTRACE, "doctor", "--repair"],
        env={**os.environ, "AGTRACE_DATA_DIR": str(database.parent)}, capture_output=True, text=True, timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000)), check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr.startswith("agtrace: ") and "Traceback" not in ended.stderr
    assert database.read_bytes() == before
    assert list(database.parent.glob("index.[dr]*")) == []
    assert repaired(undisturbed, database)


def test_what_was_forgotten_does_not_come_back_by_a_repair(undisturbed: Undisturbed, tmp_path: Path) -> None:
    """Neither from what is archived nor from a log that is still there."""
    database = undisturbed.copy(tmp_path / "data")
    add(database, FORGOTTEN, [digest_of("claude_code", uid) for uid in (ARCHIVED, LARGE)], 1_800_000_000)
    DAMAGES["the header overwritten"](database)
    repair(database)
    there = {row[0] for row in contents(database)["sessions"]}
    assert there and not there & {ARCHIVED, LARGE}
    assert not examine(database)


# -- a server --------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_server_outlives_its_index_and_answers_again_once_it_is_repaired(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    database = undisturbed.copy(tmp_path / "data")
    environment = {**os.environ, "AGTRACE_DATA_DIR": str(database.parent)}
    parameters = StdioServerParameters(command=str(AGTRACE), args=["mcp"], env=environment)
    async with Client(stdio_client(parameters)) as client:

        async def ask() -> dict[str, object]:
            result = await client.call_tool("get_event_details", {"session_id": LARGE, "event_index": 5})
            assert result.structured_content is not None
            return result.structured_content

        expected = await ask()
        assert expected["success"]
        DAMAGES["cut in half"](database)  # also where the server has the file mapped
        given = await ask()
        assert damage.same(given, expected) or damage.is_clear_error(given), given
        repaired(undisturbed, database)
        given = await ask()
        assert damage.same(given, expected), given
