"""OpenCode's database and its tree of small files, while OpenCode writes them."""

from __future__ import annotations

import copy
import json
import os
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest
from agtrace_indexer.index.catalog import Catalog
from agtrace_indexer.index.store import Store
from agtrace_indexer.providers.opencode import parser as source
from agtrace_indexer.providers.registry import homes
from agtrace_indexer.reader import reader
from agtrace_indexer.reader.plan import make_plan
from agtrace_indexer.run import Summary, index
from agtrace_schema.codes import OUTCOME_CODE
from agtrace_schema.events import Outcome
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contents import contents, texts
from tests.depth import examples
from tests.indexer.opencode_stories import (
    START,
    Story,
    answer,
    as_written,
    database,
    put_message,
    put_part,
    session,
    text,
    tidal,
    tokens,
    tool,
    user,
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """OpenCode's data folder."""
    return tmp_path / "share" / "opencode"


def read(home: Path, name: str = "index") -> Path:
    """Index a data folder; the index."""
    found = home.parent / name / "index.sqlite3"
    run(home, name)
    return found


def run(home: Path, name: str = "index") -> Summary:
    return index(home.parent / name / "index.sqlite3", [str(home)])


def ids(data: Path) -> list[str]:
    return [row[0] for row in contents(data)["sessions"]]


def said(data: Path) -> list[str]:
    """The texts of all events that count."""
    with closing(sqlite3.connect(data)) as connection:
        gone = connection.execute(
            "SELECT s.uid, e.event_index FROM event e JOIN session s ON s.id = e.session_id "
            "WHERE e.superseded_by IS NOT NULL"
        ).fetchall()
        return [text for uid, number, text, _ in texts(connection) if (uid, number) not in gone]


def statuses(data: Path) -> dict[str, tuple[str, str | None]]:
    return {Path(row[0]).name: (row[1], row[2]) for row in contents(data)["files"]}


# --- what counts, wherever it was read from ---

_EVENTS = """
SELECT s.uid, e.event_index, e.type, e.ts, e.turn_index, e.step_index, n.text, e.outcome, e.link, e.identity,
  e.duration_ms FROM event e JOIN session s ON s.id = e.session_id LEFT JOIN name n ON n.id = e.name_id
WHERE e.superseded_by IS NULL ORDER BY s.uid, e.event_index
"""
_SESSIONS = """
SELECT uid, own_id, provider, parent_id, kind, agent_type, cwd, version, title, description, turn_count,
  tool_calls, failed_calls, input_tokens, output_tokens, total_tokens, responses FROM session ORDER BY uid
"""
"""Without the model, which is the newest one seen, even if what it said was taken back."""


def what_counts(data: Path) -> dict[str, Any]:
    """What answers are made of, without the events that were replaced and the gaps that these leave."""
    with closing(sqlite3.connect(data)) as connection:
        held = {(uid, number): (text, rest) for uid, number, text, rest in texts(connection)}
        rows = connection.execute(_EVENTS).fetchall()
        sessions = connection.execute(_SESSIONS).fetchall()
    turns = {uid: sorted({row[4] for row in rows if row[0] == uid and row[4] is not None}) for uid, *_ in sessions}
    steps = sorted({(row[0], row[4], row[5]) for row in rows if row[5] is not None})
    events = [
        (
            uid, kind, ts, None if turn is None else turns[uid].index(turn),
            None if step is None else steps.index((uid, turn, step)), name, outcome,
            None if link is None else held[uid, link][0], *more, *held[uid, number],
        )
        for uid, number, kind, ts, turn, step, name, outcome, link, *more in rows
    ]  # fmt: skip
    sessions = [row for row in sessions if turns[row[0]] or any(event[0] == row[0] for event in events)]
    return {"sessions": sessions, "events": sorted(events, key=repr)}


class Agent:
    """OpenCode at work on a session, in its database or its tree of files."""

    def __init__(self, home: Path, form: str) -> None:
        self.home, self.form, self.clock = home, form, START
        self.story = Story(session(), [])
        self.number = 0
        self.rows = database(home / "opencode.db") if form == "database" else None
        self.write()

    def write(self, *, quiet: bool = False) -> None:
        """Write everything that changed; `quiet`: like an upsert that leaves the times of the rows as they were."""
        self.clock += 1000
        if self.rows is None:
            self._write_tree()
            return
        told = self.story
        Story(told.session).into_database(self.rows, at=self.clock)
        held = {id for (id,) in self.rows.execute("SELECT id FROM message")}
        parts = dict(self.rows.execute("SELECT id, data FROM part"))
        kept = {part["id"] for _, own in told.messages for part in own}
        for gone in held - {info["id"] for info, _ in told.messages}:
            self.rows.execute("DELETE FROM message WHERE id = ?", (gone,))
        for gone in parts.keys() - kept:
            self.rows.execute("DELETE FROM part WHERE id = ?", (gone,))
        at = START if quiet else self.clock
        for info, own in told.messages:
            put_message(self.rows, info, at=at)
            for part in own:
                data = {key: part[key] for key in part if key not in ("id", "sessionID", "messageID")}
                if parts.get(part["id"]) != as_written(data):
                    put_part(self.rows, part, at=at)

    def _write_tree(self) -> None:
        fresh = self.home.parent / "fresh-tree"
        self.story.into_tree(fresh)
        old, new = ({p.relative_to(root): p for p in root.rglob("*.json")} for root in (self.home / "storage", fresh))
        for name in old.keys() - new.keys():
            old[name].unlink()
        for name, path in new.items():
            place = self.home / "storage" / name
            if name not in old or old[name].read_bytes() != path.read_bytes():
                place.parent.mkdir(parents=True, exist_ok=True)
                path.replace(place)
        shutil.rmtree(fresh)

    @property
    def answers(self) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
        return [message for message in self.story.messages if message[0]["role"] == "assistant"]

    def do(self, what: str, chance: int) -> None:
        """Do something that OpenCode does."""
        quiet = False
        if what == "ask":
            self.number += 1
            self.story.messages.append(user(self.number, text(f"Question {self.number}")))
        elif what == "answer":
            self.number += 1
            begun = {"created": START + 1000 * self.number}
            self.story.messages.append(answer(self.number, time=begun, tokens=tokens(0, 0)))
        elif what == "revert":
            del self.story.messages[chance % (len(self.story.messages) + 1) :]
            self.do("ask", chance)  # only the next prompt deletes what was undone
        elif what == "title":
            self.story.session["title"] = f"Tides {chance}"
        elif self.answers:
            info, parts = self.answers[-1]
            ids = {"id": f"prt_{info['id']}{len(parts):03}", "sessionID": self.story.id, "messageID": info["id"]}
            tools = [part for _, own in self.answers for part in own if part["type"] == "tool"]
            said = [part for part in parts if part["type"] == "text"]
            if what == "say":
                parts.append({**ids, **text(f"Word {chance}")})
            elif what == "call":
                parts.append({**ids, **tool("bash", "running", f"call_{chance % 3}")})
            elif what == "finish" and info["time"].get("completed") is None:
                info["time"]["completed"], info["tokens"] = info["time"]["created"] + 7, tokens(100 + chance, 10)
            elif what == "result" and tools:
                tools[-1]["state"] |= {
                    "status": "completed",
                    "output": f"out {chance}",
                    "metadata": {"exit": chance % 2},
                }
            elif what == "compacted" and tools:
                tools[0]["state"].setdefault("time", {})["compacted"] = chance
            elif what in ("reword", "quiet") and said:
                said[-1]["text"] += f" and {chance}"
                quiet = what == "quiet"
            elif what == "drop part" and parts:
                del parts[-1]
        self.write(quiet=quiet)


DOINGS = st.lists(
    st.tuples(
        st.sampled_from(
            ["ask", "ask", "answer", "answer", "say", "call", "result", "finish", "reword", "quiet", "compacted",
             "title", "revert", "drop part", "index", "index", "index"]
        ),
        st.integers(0, 9),
    ),
    min_size=4, max_size=22,
)  # fmt: skip


@pytest.mark.parametrize("form", ["database", "tree"])
@settings(
    deadline=None, derandomize=True, database=None, max_examples=examples(25),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(doings=DOINGS)
def test_any_sequence_of_changes_and_runs_gives_what_one_run_at_the_end_gives(
    form: str, work: Path, doings: list[tuple[str, int]]
) -> None:
    shutil.rmtree(work / form, ignore_errors=True)
    home = work / form / "opencode"
    agent = Agent(home, form)
    for what, chance in doings:
        if what == "index":
            run(home)
        else:
            agent.do(what, chance)
    assert what_counts(read(home)) == what_counts(read(home, "fresh"))
    assert run(home).files_opened == 0
    if agent.rows is not None:
        agent.rows.close()


# --- its database ---


@contextmanager
def at_work(home: Path, mode: str = "WAL") -> Iterator[sqlite3.Connection]:
    """OpenCode with its database open, and a session in it."""
    with closing(database(home / "opencode.db", mode)) as connection:
        tidal().into_database(connection)
        yield connection


def folder_of(home: Path) -> dict[str, tuple[bytes, int]]:
    """The bytes and times of the files in a folder; whoever reads a live database touches locks in its `-shm`."""
    return {
        path.name: (b"", 0) if path.name.endswith("-shm") else (path.read_bytes(), path.stat().st_mtime_ns)
        for path in home.iterdir()
    }


def test_a_row_leads_home_by_its_database_its_session_and_its_rowid(home: Path) -> None:
    with at_work(home) as connection:
        numbers = dict(connection.execute("SELECT rowid, id FROM message"))
        data = read(home)
    with closing(sqlite3.connect(data)) as found:
        rows = found.execute(
            "SELECT f.path, e.line, e.event_index, s.uid FROM event e JOIN session s ON s.id = e.session_id "
            "JOIN file f ON f.id = s.file_id"
        ).fetchall()
        held = {number: text for _, number, text, _ in texts(found)}
    assert {path for path, *_ in rows} == {str(home / "opencode.db" / tidal().id)}
    by_message = {info["id"]: as_written([info, parts]) for info, parts in tidal().messages}
    for _, line, number, _ in rows:
        assert line in numbers
        if held[number] and "\n" not in held[number]:
            assert held[number] in by_message[numbers[line]]


def test_only_sessions_that_changed_are_read_again_and_only_their_changed_messages(home: Path) -> None:
    with at_work(home) as connection:
        other = Story(session(2), [user(1, text("Elsewhere"), of=2)])
        other.into_database(connection)
        run(home)
        whole = run(home)
        assert (whole.files_opened, whole.bytes_read) == (0, 0)
        late = answer(8, text("One more"))
        put_message(connection, late[0], at=START + 9)
        put_part(connection, late[1][0], at=START + 9)
        again = run(home)
    assert again.files_opened == 1
    assert 0 < again.bytes_read < 3 * len(as_written([*late, *tidal().messages[-1]]))


def test_a_change_is_seen_in_a_database_with_more_sessions_than_are_looked_at_closely(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_RECENT", 1)
    with at_work(home) as connection:
        Story(session(2), [user(1, text("Elsewhere"), of=2)]).into_database(connection, at=START + 5)
        data = read(home)
        part = tidal().messages[1][1][2]
        put_part(connection, part | {"text": "I looked twice."}, at=START + 9)
        Story(tidal().session).into_database(connection, at=START + 9)
        run(home)
    assert "I looked twice." in said(data)


def test_a_session_that_is_also_in_the_old_tree_is_read_from_the_database_only(home: Path) -> None:
    tidal().into_tree(home / "storage")
    Story(session(3), [user(1, text("Only in the tree"), of=3)]).into_tree(home / "storage")
    data = read(home)
    assert ids(data) == [tidal().id, "ses_0003abc"]
    with at_work(home):
        run(home)
        assert sorted(ids(data)) == [tidal().id, "ses_0003abc"]
        assert what_counts(data) == what_counts(read(home, "fresh"))
        paths = {row[0]: row[-2] for row in contents(data)["sessions"]}
    assert paths == {
        tidal().id: str(home / "opencode.db" / tidal().id), "ses_0003abc": str(home / "storage" / "ses_0003abc"),
    }  # fmt: skip


def test_the_same_session_is_the_same_in_the_database_the_tree_and_an_export(tmp_path: Path) -> None:
    found = []
    for form in ("database", "tree", "export"):
        home = tmp_path / form / "opencode"
        home.mkdir(parents=True)
        if form == "database":
            with at_work(home):
                pass
        elif form == "tree":
            tidal().into_tree(home / "storage")
        else:
            (home / "export.json").write_text(json.dumps(tidal().export))
        found.append(what_counts(read(home)))
    assert found[0] == found[1] == found[2]


def test_a_fork_repeats_events_which_count_once(home: Path) -> None:
    forked = copy.deepcopy(tidal())
    forked.session |= {"id": "ses_0009abc", "title": "Tide tables 1 (fork #1)"}
    for info, parts in forked.messages:
        info["id"] = info["id"].replace("msg_01", "msg_09")
        info["sessionID"] = forked.id
        for part in parts:
            part |= {"id": part["id"].replace("prt_01", "prt_09"), "sessionID": forked.id, "messageID": info["id"]}
    forked.messages.append(user(60, text("Another way"), of=9))
    with at_work(home) as connection:
        forked.into_database(connection)
        sessions = contents(read(home))["sessions"]
    figures = {row[0]: (row[5 - 0], row[16], row[19]) for row in sessions}
    assert figures[forked.id][1:] == (1, None) and figures[tidal().id][1:] == (2, 300)


def test_a_sub_agent_belongs_to_the_session_and_the_call_that_started_it(home: Path) -> None:
    child = session(2, parentID=tidal().id, title="Find the moon (@explore subagent)")
    with at_work(home) as connection:
        Story(child, [user(1, text("Find it"), of=2)]).into_database(connection)
        data = read(home)
    with closing(sqlite3.connect(data)) as found:
        rows = found.execute("SELECT uid, kind, parent_id, agent_type, started_by FROM session ORDER BY uid").fetchall()
    assert rows[1][:4] == ("ses_0002abc", "subagent", tidal().id, "explore") and rows[1][4] is not None


# --- what we don't know ---


def test_rows_of_a_newer_version_are_kept_and_counted(home: Path) -> None:
    with at_work(home) as connection:
        row = ("msg_x", tidal().id, "assistant.text", 1, START, START, '{"text":"in the new table"}')
        connection.execute("INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        data = read(home)
        assert [kind for *_, kind, _, _ in contents(data)["record_types"] if "session_message" in kind] == [
            "session_message/assistant.text"
        ]
        assert any("in the new table" in found for found in said(data))
        connection.execute('UPDATE session_message SET data = \'{"text":"changed"}\', time_updated = 5')
        Story(tidal().session).into_database(connection, at=START + 9)
        run(home)
    assert not any("in the new table" in found for found in said(data))


@pytest.mark.parametrize(
    "change",
    ["DROP TABLE message", "ALTER TABLE part RENAME TO piece", "ALTER TABLE session RENAME COLUMN directory TO place"],
)
def test_a_layout_that_we_do_not_know_is_reported(change: str, home: Path) -> None:
    with at_work(home) as connection:
        connection.execute(change)
    status, reason = statuses(read(home))["opencode.db"]
    assert status == "unreadable" and reason is not None and "its tables aren't those of OpenCode" in reason


def test_columns_that_came_later_need_not_be_there(home: Path) -> None:
    with at_work(home) as connection:
        for column in ("agent", "revert", "parent_id"):
            connection.execute(f"ALTER TABLE session DROP COLUMN {column}")
        connection.execute("DROP TABLE session_message")
        assert ids(read(home)) == [tidal().id]


def test_sessions_that_mimo_code_copied_from_other_agents_are_theirs(tmp_path: Path) -> None:
    home = tmp_path / "share" / "mimocode"
    with closing(database(home / "mimocode.db")) as connection:
        tidal().into_database(connection)
        Story(session(2), [user(1, text("From elsewhere"), of=2)]).into_database(connection)
        connection.execute("CREATE TABLE external_import (source text, session_id text)")
        connection.execute("INSERT INTO external_import VALUES ('claude', 'ses_0002abc')")
    sessions = contents(read(home))["sessions"]
    assert [(row[0], row[3]) for row in sessions] == [(tidal().id, "mimo_code")]


@pytest.mark.parametrize(
    ("folder", "name", "provider"),
    [("opencode", "opencode.db", "opencode"), ("opencode", "opencode-dev.db", "opencode"), ("kilo", "kilo.db", "kilo"),
     ("mimocode", "mimocode.db", "mimo_code")],
)  # fmt: skip
def test_each_fork_has_a_name_and_a_home_of_its_own(folder: str, name: str, provider: str, tmp_path: Path) -> None:
    share = tmp_path / "data"
    with closing(database(share / folder / name)) as connection:
        tidal().into_database(connection)
    Story(session(5), [user(1, text("Before"), of=5)]).into_tree(share / folder / "storage")
    (share / folder / "auth.json").write_text('{"key": "secret"}')
    index(tmp_path / "index.sqlite3", list(map(str, homes({"XDG_DATA_HOME": str(share)}, tmp_path))))
    found = contents(tmp_path / "index.sqlite3")
    assert [(row[0], row[3]) for row in found["sessions"]] == [(tidal().id, provider), ("ses_0005abc", provider)]
    assert not [row for row in found["files"] if "auth.json" in row[0]]


def test_a_database_that_a_variable_names_is_read(tmp_path: Path) -> None:
    place = tmp_path / "elsewhere" / "my-opencode.sqlite"
    with closing(database(place)) as connection:
        tidal().into_database(connection)
    index(tmp_path / "index.sqlite3", list(map(str, homes({"OPENCODE_DB": str(place)}, tmp_path))))
    assert ids(tmp_path / "index.sqlite3") == [tidal().id]


# --- hostile logs, and runs that end early ---

ODD = [
    "",
    "{",
    "null",
    "[1]",
    "7",
    '{"a": NaN}',
    '{"type": "text", "text": "\\ud800"}',
    "\x00",
    '{"type":"tool"}',
    "{}",
]


@settings(deadline=None, max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(["message", "part"]), st.integers(0, 20), st.sampled_from(ODD)), max_size=8))
def test_rows_that_are_not_json_are_kept_and_cost_no_others(work: Path, damages: list[tuple[str, int, str]]) -> None:
    shutil.rmtree(work / "odd", ignore_errors=True)
    home = work / "odd" / "opencode"
    with at_work(home) as connection:
        for table, number, data in damages:
            connection.execute(f"UPDATE {table} SET data = ? WHERE rowid = ?", (data, number))
        left = [told for (told,) in connection.execute("SELECT data FROM part WHERE data LIKE '%The gauge is mended%'")]
        info = connection.execute("SELECT data FROM message WHERE id = 'msg_010003abc'").fetchone()[0]
        data = read(home)
    assert statuses(data)[tidal().id][0] == "log"
    if left and info not in ODD:
        assert "The gauge is mended." in said(data)


@pytest.mark.parametrize("value", [None, 7, 1.5, b"\xff\xfe", "x" * 50])
def test_columns_may_hold_values_of_any_type(value: Any, home: Path) -> None:
    home.mkdir(parents=True)
    with closing(sqlite3.connect(home / "opencode.db")) as connection:
        connection.executescript(
            "CREATE TABLE session (id, parent_id, directory, title, version, time_updated);"
            "CREATE TABLE message (id, session_id, time_created, time_updated, data);"
            "CREATE TABLE part (id, message_id, session_id, time_updated, data);"
        )
        for table, columns in (("session", 6), ("message", 5), ("part", 5)):
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * columns)})", (value,) * columns)
        connection.execute("INSERT INTO session VALUES ('ses_1', ?, ?, ?, ?, ?)", (value,) * 5)
        connection.execute("INSERT INTO message VALUES ('msg_1', 'ses_1', ?, ?, ?)", (value,) * 3)
        connection.execute("INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_1', ?, ?)", (value,) * 2)
        connection.commit()
    found = statuses(read(home))
    assert found["opencode.db"][0] == "container", found
    assert found["ses_1"] == ("log", None)


@pytest.mark.thorough
def test_a_row_that_is_too_long_is_kept_by_its_beginning(home: Path) -> None:
    with at_work(home) as connection:
        long = answer(7, text("tide " * 2_000_000))
        put_message(connection, long[0])
        put_part(connection, long[1][0])
        data = read(home)
    kept = [found for found in said(data) if found.startswith('{"type":"oversized"')]
    assert len(kept) == 1 and 60_000 < len(kept[0]) < 70_000
    assert "The gauge is mended." in said(data)


@pytest.mark.parametrize("data", [b"", b"no database", b"SQLite format 3\0" + bytes(4000), b"SQLite format 3\0"])
def test_a_file_that_is_no_database_is_reported(data: bytes, home: Path) -> None:
    home.mkdir(parents=True)
    (home / "opencode.db").write_bytes(data)
    assert statuses(read(home))["opencode.db"][0] == "unreadable"


def test_a_database_that_can_not_be_read_is_no_work_until_it_can(home: Path) -> None:
    """A run that has nothing to write takes no lock, and loads nothing of what writing needs."""
    with at_work(home) as connection:
        connection.execute("ALTER TABLE part RENAME TO piece")
    index_file = read(home)
    assert statuses(index_file)["opencode.db"][0] == "unreadable"
    with closing(Catalog(index_file)) as catalog:
        assert make_plan(catalog, [str(home)]).empty
    with closing(sqlite3.connect(home / "opencode.db")) as connection:
        connection.execute("ALTER TABLE piece RENAME TO part")
    assert statuses(read(home))["opencode.db"][0] != "unreadable"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b'{"id":"../../x","role":"assistant"}'])
@pytest.mark.parametrize("kind", ["session", "message", "part"])
def test_small_files_that_are_not_what_they_should_be_cost_no_others(kind: str, content: bytes, home: Path) -> None:
    tidal().into_tree(home / "storage")
    Story(session(2), [user(1, text("Elsewhere"), of=2)]).into_tree(home / "storage")
    min((home / "storage" / kind).rglob("*01abc.json")).write_bytes(content)
    assert "Elsewhere" in said(read(home)) and "The gauge is mended." in said(home.parent / "index" / "index.sqlite3")


def test_a_link_in_the_tree_is_not_followed(home: Path, tmp_path: Path) -> None:
    tidal().into_tree(home / "storage")
    (tmp_path / "outside.json").write_text(json.dumps({"type": "text", "text": "outside"}))
    (home / "storage" / "part" / tidal().messages[2][0]["id"] / "prt_zzz.json").symlink_to(tmp_path / "outside.json")
    assert "outside" not in said(read(home))


@pytest.mark.parametrize("form", ["database", "tree"])
def test_a_run_that_dies_in_the_middle_of_a_session_is_finished_by_the_next(form: str, home: Path) -> None:
    if form == "database":
        with at_work(home):
            pass
    else:
        tidal().into_tree(home / "storage")

    data = home.parent / "index" / "index.sqlite3"
    for commits in (1, 2):
        if not (child := os.fork()):
            _index_until_killed(data, home, commits)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    read(home)
    assert what_counts(data) == what_counts(read(home, "fresh"))
    assert contents(data)["events"] == contents(home.parent / "fresh" / "index.sqlite3")["events"]


def _index_until_killed(data: Path, home: Path, commits: int) -> NoReturn:
    """Commit after every record, and be killed in place of the next commit."""
    commit, left = Store.commit, iter(range(commits))

    def commit_or_die(store: Store) -> None:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        commit(store)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_OVERHEAD_OF_A_LINE", reader.BATCH)
        patch.setattr(Store, "commit", commit_or_die)
        index(data, [str(home)])
    os._exit(0)


# --- OpenCode 2 ---

NEWER = """CREATE TABLE IF NOT EXISTS session_v2 (id text PRIMARY KEY, parent_id text, fork_session_id text,
  directory text NOT NULL, title text, version text NOT NULL, time_created integer, time_updated integer)"""
SPENT = {"input": 5000, "output": 300, "reasoning": 50, "cache": {"read": 1000, "write": 0}}


def put_newer(home: Path, session: str, *messages: tuple[str, dict[str, Any]]) -> None:
    """Write messages of OpenCode 2 behind those that are there."""
    with closing(database(home / "opencode.db")) as connection:
        connection.execute(NEWER)
        row = (session, None, None, "/proj/demo", "Moved", "2.0.12", START, START)
        connection.execute("INSERT OR REPLACE INTO session_v2 VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        for kind, data in messages:
            (seq,) = connection.execute("SELECT count(*) FROM session_message").fetchone()
            told = (f"msg_new{seq}", session, kind, seq, START + seq * 1000, START + seq * 1000, json.dumps(data))
            connection.execute("INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?, ?)", told)


def responded(*content: dict[str, Any], **more: Any) -> tuple[str, dict[str, Any]]:
    model = {"providerID": "anthropic", "id": "claude-sonnet-4-5"}
    return "assistant", {"model": model, "content": [*content], "tokens": SPENT, "cost": 0, **more}


def figures(data: Path) -> list[tuple[Any, ...]]:
    sql = "SELECT own_id, turn_count, tool_calls, failed_calls, input_tokens, output_tokens, incomplete_usage"
    with closing(sqlite3.connect(data)) as connection:
        return connection.execute(f"{sql} FROM session ORDER BY 1").fetchall()


def put_older(home: Path, *messages: Any) -> None:
    """Write a session of 1.x."""
    with closing(database(home / "opencode.db")) as connection:
        Story(session(), [*messages]).into_database(connection)


ASKED = ("user", {"text": "fix the tides LAPISWORD"})
RAN = {"type": "tool", "id": "call_1", "name": "shell", "state": {
    "status": "completed", "input": {"command": "make test"}, "content": [{"type": "text", "text": "1 failed"}],
    "structured": {"exit": 2},
}}  # fmt: skip
DONE = responded(RAN, {"type": "text", "text": "fixed"}, time={"created": START, "completed": START + 5})


@pytest.mark.parametrize("dropped", [(), ("part", "message", "session"), ("part", "message")])
def test_a_session_of_opencode_2_is_read_beside_those_before_and_in_their_place(
    dropped: tuple[str, ...], home: Path
) -> None:
    if not dropped:
        put_older(home, user(1, text("hello")))
    put_newer(home, "ses_new1", ASKED, DONE, ("idle", {"outcome": "succeeded"}), ("model-switched", {}))
    with closing(database(home / "opencode.db")) as connection:
        for table in dropped:
            connection.execute(f"DROP TABLE {table}")
    data = read(home)
    assert ("ses_new1", 1, 1, 1, 5000, 350, 0) in figures(data) and len(figures(data)) == 2 - bool(dropped)
    assert "fix the tides LAPISWORD" in said(data) and "1 failed" in said(data)
    assert not [row for row in contents(data)["record_types"] if "unknown" in row]


def test_a_session_that_opencode_2_moved_and_continued_is_one_and_counts_once(home: Path) -> None:
    put_older(home, user(1, text("go on")), answer(2, text("well"), tokens=tokens(1000, 100)))
    before = figures(read(home))
    put_newer(home, "ses_0001abc", ("user", {"text": "go on"}), responded({"type": "text", "text": "well"}))
    assert figures(read(home)) == before
    put_newer(home, "ses_0001abc", ("user", {"text": "go on"}), DONE)
    for name in ("index", "new"):
        ((_, turns, calls, failed, sent, output, _),) = figures(read(home, name))
        assert (turns, calls, failed, sent, output) == (2, 1, 1, before[0][4] + 5000, before[0][5] + 350)


def test_what_opencode_2_did_not_move_is_said_again(home: Path) -> None:
    put_older(home, user(1, text("fix it")), answer(2, text("well")), user(3, text("go on")))
    put_newer(home, "ses_0001abc", ("user", {"text": "go on"}), DONE)
    assert [row[1] for row in figures(read(home))] == [3]


@pytest.mark.parametrize(
    ("state", "outcome"),
    [({"status": "completed", "metadata": {"exit": 0}}, "ok"),
     ({"status": "completed", "metadata": {"exit": 1}}, "failed"),
     ({"status": "error", "error": {"type": "unknown", "message": "aborted"}}, "interrupted"),
     ({"status": "error", "error": {"type": "tool.failed", "message": "no such file"}}, "failed"),
     ({"status": "streaming", "input": "{"}, "interrupted")],
)  # fmt: skip
def test_outcomes_of_opencode_2_follow_from_states_and_exit_codes(state: Any, outcome: str, home: Path) -> None:
    put_newer(home, "ses_new1", ASKED, responded({"type": "tool", "id": "c", "name": "bash", "state": state}), DONE)
    with closing(sqlite3.connect(read(home))) as connection:
        sql = (
            "SELECT outcome FROM event WHERE outcome IS NOT NULL AND superseded_by IS NULL ORDER BY event_index LIMIT 1"
        )
        ((found,),) = connection.execute(sql).fetchall()
    assert found == OUTCOME_CODE[Outcome(outcome)]


def test_records_of_opencode_2_are_read_by_their_kinds(home: Path) -> None:
    kinds = [
        ASKED, DONE, ("synthetic", {"text": "a file says"}), ("compaction", {"reason": "auto", "summary": "so far"}),
        ("shell", {"shellID": "c", "command": "ls", "status": "exited", "output": {"output": "one"}}),
        ("skill", {"skill": "s", "name": "s", "text": "how to"}), ("dream", {"of": "tides"}),
        responded(error={"type": "provider.overloaded", "message": "too much", "status": 529}, tokens=None),
        responded({"type": "text", "text": "odd"}, tokens={**SPENT, "predicted": 7}),
    ]  # fmt: skip
    put_newer(home, "ses_new1", *kinds)
    data = read(home)
    assert {"a file says", "so far", "one", "odd", "how to", "provider.overloaded 529: too much"} <= {*said(data)}
    unknown = [row[2] for row in contents(data)["record_types"] if "unknown" in row]
    assert sorted(unknown) == ["session_message/dream", "usage/predicted"]
    assert figures(data)[0][1:3] == (1, 2)
