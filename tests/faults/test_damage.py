"""A damaged or locked index: a right answer, or an error that says what to do; then an honest rebuild.

The damage is real: bytes of the file are overwritten, cut off, or changed by SQLite itself. No test can demand that a
changed figure in a row is noticed, as SQLite has no checksums of its pages; only texts have checksums of ours.
"""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.index.catalog import NotRebuilt, old_files
from agtrace_indexer.index.maintenance import optimize
from agtrace_indexer.index.opening import Busy, open_read_only, write_lock
from agtrace_indexer.index.queries.matches import EventFilters
from agtrace_indexer.index.tombstones import FORGOTTEN, add, digest_of
from agtrace_indexer.run import index
from agtrace_indexer.run.rebuild import Rebuilt, damage_in, rebuild
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from agtrace.answers.log import silent
from agtrace.answers.service import Service
from agtrace.index.trouble import explained
from agtrace.search.matching import Contains, Deadline
from agtrace.search.scan import Hit, Question, snapshot_of
from agtrace.settings.model import Settings
from tests import corpus
from tests.agtrace.terminal import AGTRACE, agtrace, agtrace_here
from tests.contents import contents
from tests.depth import depth
from tests.faults import damage
from tests.faults.damage import ARCHIVED, LARGE, PAGE, Undisturbed
from tests.indexer.test_files import claude, write

pytestmark = pytest.mark.thorough

COMMANDS = (["sessions"], ["search", "tide"], ["show", ARCHIVED], ["report"], ["doctor"])
CLEAR = "agtrace doctor --repair"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return Undisturbed.make(tmp_path_factory.mktemp("undisturbed"), lines=400)


@pytest.fixture(scope="module")
def expected(undisturbed: Undisturbed, tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Any]]:
    """The answers to all questions from an index without damage."""
    return damage.ask(undisturbed.copy(tmp_path_factory.mktemp("sound") / "data"))


def rebuilt(undisturbed: Undisturbed, database: Path) -> Rebuilt:
    """Rebuild, and see that nothing is missing but what was named, and that the old file is kept."""
    before = database.stat().st_size
    done = rebuild(database, [str(undisturbed.logs)], patience=30)  # where a server writes
    assert damage_in(database) == ()
    assert (done.lost, "session" in done.unread, logged(database)) == ((), False, logged(undisturbed.database))
    assert done.old.stat().st_size == before and done.old.stat().st_mode & 0o077 == 0
    return done


def logged(database: Path) -> dict[str, Any]:
    """What the index says, but for the rows of files, which differ for logs that were compressed."""
    return {**contents(database), "files": []}


# -- any damage ------------------------------------------------------------------------------------


@settings(max_examples=depth(5, 40), phases=[Phase.generate])
@given(st.data())
def test_an_overwritten_or_missing_part_changes_no_answer_and_nothing_is_lost_unnamed(
    undisturbed: Undisturbed, expected: dict[int, dict[str, Any]], data: st.DataObject
) -> None:
    page = data.draw(st.integers(1, undisturbed.pages - 1), "page")
    seed = data.draw(st.integers(0, 1000), "seed")
    with tempfile.TemporaryDirectory() as folder:
        database = undisturbed.copy(Path(folder))
        if data.draw(st.booleans(), "cut off"):
            damage.truncate(database, page * PAGE)
        else:
            damage.overwrite_page(database, page, seed)
        assert damage_in(database)
        for number, given_ in damage.ask(database).items():
            assert damage.same(given_, expected[number]) or damage.is_clear_error(given_), given_
        rebuilt(undisturbed, database)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "emptied": lambda database: damage.truncate(database, 0),
    "cut within a page": lambda database: damage.truncate(database, database.stat().st_size // 2 + 1000),
    "the header overwritten": lambda database: damage.write(database, 0, bytes(100)),
    "a text in its place": lambda database: database.write_text("no database, but a text of some length\n" * 200),
    "no version's number": lambda database: damage.write(database, 60, (12_000_000).to_bytes(4, "little")),
    "a table missing": lambda database: damage.run_sql(database, "DROP TABLE event"),
    "an index missing": lambda database: damage.run_sql(database, "DROP INDEX event_place"),
    "texts that can't be unpacked": lambda database: damage.run_sql(database, "UPDATE block_data SET text = x'00ff'"),
    "no words at all": lambda database: damage.run_sql(database, "DELETE FROM words_data WHERE id > 10"),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_file_gives_a_right_answer_or_a_clear_error_and_is_rebuilt(
    how: str, undisturbed: Undisturbed, expected: dict[int, dict[str, Any]], tmp_path: Path
) -> None:
    database = undisturbed.copy(tmp_path / "data")
    DAMAGES[how](database)
    assert damage_in(database)
    said = agtrace_here("doctor", AGTRACE_DATA_DIR=str(database.parent))
    assert (said.code == 3 and CLEAR in said.err) or "index.damaged-" in said.out
    for number, given_ in damage.ask(database).items():
        assert damage.same(given_, expected[number]) or damage.is_clear_error(given_), given_
    rebuilt(undisturbed, database)


@settings(max_examples=depth(8, 200), phases=[Phase.generate], deadline=None)
@given(st.data())
def test_a_byte_that_changed_in_any_column_stops_no_run(data: st.DataObject) -> None:
    """What stopped it is rebuilt, and nothing counts twice."""
    with tempfile.TemporaryDirectory() as folder:
        database, logs = Path(folder, "data", "index.sqlite3"), Path(folder, "logs")
        paths = [write(logs / f"{number}.jsonl", claude(number)) for number in range(3)]
        index(database, [str(logs)])
        for path in paths:
            path.write_bytes(path.read_bytes() + claude(9).splitlines(keepends=True)[1])
        with closing(sqlite3.connect(database, isolation_level=None)) as connection:
            columns = connection.execute(
                "SELECT t.name, c.name FROM pragma_table_list t, pragma_table_info(t.name) c WHERE t.schema = 'main' "
                "AND (t.type = 'table' OR t.name LIKE '%_data' OR t.name LIKE '%_config') AND t.name NOT LIKE 'sqlite%'"
            ).fetchall()
            table, column = data.draw(st.sampled_from(columns), "column")
            damage.flip(connection, table, column, as_blob=data.draw(st.booleans(), "as a blob"))
        said = agtrace("index", AGTRACE_DATA_DIR=str(database.parent))
        assert said.code == 0, said.err
        if "so it was rebuilt" not in said.err:
            rebuild(database, [str(logs)])
        index(fresh := Path(folder, "fresh", "index.sqlite3"), [str(logs)])
        assert logged(database) == logged(fresh)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_ends_in_a_traceback(command: list[str], undisturbed: Undisturbed, tmp_path: Path) -> None:
    database = undisturbed.copy(tmp_path / "data")
    damage.run_sql(database, "DELETE FROM block_data WHERE block_id % 2", "UPDATE block_data SET text = x'00ff'")
    said = agtrace(*command, AGTRACE_DATA_DIR=str(database.parent))
    assert said.code in (0, 1, 3)
    assert said.code == 0 or CLEAR in " ".join((said.out + said.err).split())


def test_no_error_by_itself_makes_an_index_damaged(undisturbed: Undisturbed, tmp_path: Path) -> None:
    database, error = undisturbed.copy(tmp_path / "data"), sqlite3.DatabaseError("database disk image is malformed")
    told = explained(error, database)
    assert "damaged" not in str(told) and "Try again" in (told.hint or "")
    damage.run_sql(database, "DROP TABLE event")
    assert "the index is damaged (event lacks" in str(explained(error, database))


# -- what is said of a rebuild ---------------------------------------------------------------------


def test_a_rebuild_says_what_was_damaged_and_where_the_old_file_is(undisturbed: Undisturbed, tmp_path: Path) -> None:
    database = undisturbed.copy(tmp_path / "data")
    damage.run_sql(database, "UPDATE block_data SET text = x'00'")
    said = agtrace("doctor", "--repair", AGTRACE_DATA_DIR=str(database.parent))
    assert said.code == 0 and "blocks of texts can't be read" in said.out
    (old,) = (path for path in old_files(database) if path.suffix == ".sqlite3")
    assert str(old) in said.out.replace("\n", "")
    shown = agtrace("doctor", AGTRACE_DATA_DIR=str(database.parent))
    assert "integrity ok" in shown.out and old.name in shown.out
    again = agtrace("doctor", "--repair", "--json", AGTRACE_DATA_DIR=str(database.parent))
    assert (again.code, again.json()["damage"], again.json()["lost"]) == (0, [], [])


def test_what_was_forgotten_does_not_come_back_by_a_rebuild(undisturbed: Undisturbed, tmp_path: Path) -> None:
    """Neither from what is archived nor from a log that is still there."""
    database = undisturbed.copy(tmp_path / "data")
    add(database, FORGOTTEN, [digest_of("claude_code", uid) for uid in (ARCHIVED, LARGE)], 1_800_000_000)
    damage.run_sql(database, "DROP INDEX event_place")
    rebuild(database)
    there = {row[0] for row in contents(database)["sessions"]}
    assert there and not there & {ARCHIVED, LARGE}


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


def _hits(connection: sqlite3.Connection, query: str) -> list[Hit]:
    asked = Question(connection, Contains(query), EventFilters(), snapshot_of(connection))
    return asked.page(50, None, Deadline()).hits


def found(database: Path) -> dict[str, list[int]]:
    with closing(open_read_only(database)) as connection:
        return {query: [hit.event_id for hit in _hits(connection, query)] for query in QUERIES}


@pytest.mark.parametrize(
    "statements",
    [
        ["DELETE FROM words_data WHERE id > 10"],
        ["UPDATE vocabulary SET words = x'00ff'"],
        ["DROP TABLE vocabulary", "DROP TABLE word"],
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


# -- others that have the file ---------------------------------------------------------------------


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
        impatient = Service(Settings(data_dir=database.parent, environment={}), log=silent, refresh_seconds=0.01)
        refused = impatient.ask("list_sessions", {}).value
        assert refused["error"]["retryable"]
        assert "locked by another program" in refused["error"]["message"] and "Try again" in refused["hint"]
    finally:
        holding.close()
    assert b'"sessions"' in asking.communicate(timeout=300)[0]
    assert asking.returncode == 0


def test_what_can_not_be_rebuilt_is_left_as_it_is(undisturbed: Undisturbed, tmp_path: Path) -> None:
    folder = tmp_path / "folder" / "index.sqlite3"
    folder.mkdir(parents=True)
    with pytest.raises(NotRebuilt, match="is not a file"):
        rebuild(folder)
    database = undisturbed.copy(tmp_path / "data")
    with write_lock(database), pytest.raises(Busy):
        rebuild(database)
    damage.run_sql(database, "PRAGMA user_version = 99")
    before = database.read_bytes()
    with pytest.raises(sqlite3.OperationalError, match="update agtrace"):
        rebuild(database)
    assert database.read_bytes() == before
    said = agtrace("doctor", "--repair", AGTRACE_DATA_DIR=str(tmp_path / "nothing"))
    assert (said.code, said.out) == (3, "")
    assert "there is no index yet" in said.err


@pytest.mark.anyio
async def test_a_server_outlives_its_index_and_answers_again_once_it_is_rebuilt(
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
        damage.truncate(database, database.stat().st_size // 2 // PAGE * PAGE)  # where the server has the file mapped
        given_ = await ask()
        assert damage.same(given_, expected) or damage.is_clear_error(given_), given_
        rebuilt(undisturbed, database)
        given_ = await ask()
        assert damage.same(given_, expected), given_


# -- what ends a rebuild ---------------------------------------------------------------------------

MOMENTS: dict[str, Callable[[Path], bool]] = {
    "it begins": lambda data: (data / "index.repairing.sqlite3").exists(),
    "it reads the logs": lambda data: (data / "index.repairing.sqlite3-wal").stat().st_size > 200_000,
    "it changes the files": lambda data: any(data.glob("index.damaged*")),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_rebuild_that_is_killed_leaves_the_old_index_or_the_new_one(
    moment: str, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    database = undisturbed.copy(tmp_path / "data")
    damage.run_sql(database, "DROP INDEX event_place")
    before = database.read_bytes()
    running = subprocess.Popen(
        [AGTRACE, "doctor", "--repair"],
        env={**os.environ, "AGTRACE_DATA_DIR": str(database.parent)}, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    while running.poll() is None and not _is_so(MOMENTS[moment], database.parent):
        pass
    running.kill()
    running.wait()
    assert database.read_bytes() == before or damage_in(database) == ()
    assert rebuilt(undisturbed, database).lost == ()
    assert list(database.parent.glob("index.repairing*")) == []


def _is_so(moment: Callable[[Path], bool], data: Path) -> bool:
    try:
        return moment(data)
    except FileNotFoundError:  # it was there when it was listed
        return False


def test_a_crash_while_the_new_index_is_put_in_place_loses_no_commit(tmp_path: Path) -> None:
    """Also where the newest commit is in the write-ahead log only."""
    database = tmp_path / "data" / "index.sqlite3"
    index(database, [str(write(tmp_path / "1.jsonl", claude(1)))])
    crash = """
import os, sqlite3, sys
from pathlib import Path
from agtrace_indexer.run.rebuild import rebuild
database, replace = Path(sys.argv[1]), os.replace
connection = sqlite3.connect(database, isolation_level=None)
connection.execute("PRAGMA journal_mode=WAL")
connection.execute("INSERT INTO meta VALUES ('newest', 'commit')")
if os.fork() == 0:
    os._exit(0)
os.replace = lambda source, target: os._exit(9) if Path(target) == database else replace(source, target)
rebuild(database)
"""
    ended = subprocess.run(["python", "-c", crash, database], timeout=300, check=False, env=_with_this_python())
    assert ended.returncode == 9
    kept = [path for path in database.parent.glob("*.sqlite3") if "repairing" not in path.name]
    assert any(_newest(path) for path in kept)
    assert rebuild(database).lost == ()


def _with_this_python() -> dict[str, str]:
    return {**os.environ, "PATH": f"{AGTRACE.parent}{os.pathsep}{os.environ['PATH']}"}


def _newest(database: Path) -> bool:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute("SELECT 1 FROM meta WHERE key = 'newest'").fetchone() is not None


def test_a_rebuild_without_room_leaves_the_old_index_and_says_so(undisturbed: Undisturbed, tmp_path: Path) -> None:
    database = undisturbed.copy(tmp_path / "data")
    before = database.read_bytes()
    ended = subprocess.run(
        [AGTRACE, "doctor", "--repair"],
        env={**os.environ, "AGTRACE_DATA_DIR": str(database.parent)}, capture_output=True, text=True, timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000)), check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr.startswith("agtrace: ") and "Traceback" not in ended.stderr
    assert database.read_bytes() == before
    assert list(database.parent.glob("index.[dr]*")) == []


def test_what_a_killed_rebuild_left_is_removed_by_the_next_run_that_writes(tmp_path: Path) -> None:
    database = tmp_path / "data" / "index.sqlite3"
    log = write(tmp_path / "logs" / "1.jsonl", claude(1))
    index(database, [str(log.parent)])
    left = [database.with_name(f"index.repairing.{end}") for end in ("sqlite3", "sqlite3-wal")]
    for path in left:
        path.write_bytes(log.read_bytes())
    write(tmp_path / "logs" / "2.jsonl", claude(2))
    index(database, ())
    assert not any(path.exists() for path in left)
