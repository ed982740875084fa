"""SQL over views of the index: what it counts, what it refuses, where it ends; and the plain database."""

from __future__ import annotations

import resource
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from agtrace_indexer.index.queries.views import COMMON, VIEWS
from msgspec.structs import replace

from agtrace.answers.log import silent
from agtrace.answers.service import Service
from agtrace.settings.limits import STOP
from tests.agtrace.asking import Asker, ClaudeLog, claude_log, query
from tests.agtrace.terminal import agtrace_here
from tests.conftest import SAMPLES

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
SECRET = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


def rows(asker: Asker, sql: str) -> list[list[object]]:
    return [row for page in asker.pages("run_sql", sql=sql) for row in page["data"]["rows"]]


@pytest.fixture
def log(tmp_path: Path) -> ClaudeLog:
    return claude_log(tmp_path / "logs", "aaaaaaaa-0000-4000-8000-000000000000").prompt("go")


def asked(log: ClaudeLog, tmp_path: Path) -> Asker:
    return Asker(tmp_path / "index", log.path.parents[2])


# -- what it counts ----------------------------------------------------------------------------------


def test_calls_and_tokens_come_to_the_same_as_the_list_of_sessions(each: Asker) -> None:
    items = each.items("list_sessions", "sessions", limit=50, kind="all", sort="output_tokens")
    sums = [sum(item.get(name, 0) for item in items) for name in ("tool_calls", "failed_calls", "total_tokens")]
    assert rows(each, "SELECT count(*), coalesce(sum(failed), 0) FROM tool_calls") == [sums[:2]]
    assert rows(each, "SELECT coalesce(sum(total_tokens), 0) FROM token_usage") == [sums[2:]]
    assert rows(each, "SELECT count(*), sum(tool_calls) FROM sessions") == [[len(items), sums[0] if items else None]]


def test_what_no_log_tells_is_unknown_and_not_none(tmp_path: Path) -> None:
    """Cursor's logs have no results."""
    asker = Asker(tmp_path, SAMPLES / "cursor")
    assert rows(asker, "SELECT DISTINCT failed FROM tool_calls UNION SELECT failed_calls FROM sessions") == [[None]]


def test_a_program_is_the_first_of_its_command(log: ClaudeLog, tmp_path: Path) -> None:
    """`cd`, variables, wrappers and substitutions aren't what is run."""
    for command in (
        "git status", "cd /srv && git log | head", "GIT_PAGER= sudo -n git diff", "bash -lc 'cd x; git add .'",
        "X=$(pwd)/x Y=$(pwd) git push", "$x = 'a b'; git tag", 'echo "$(git rev-parse HEAD)"', "cd /srv",
        "/usr/local/bin/Cargo test", "cat > x <<'E'\ngit\nE\ngit add x",
    ):  # fmt: skip
        log.call("Bash", {"command": command}, "ok", failed=command.endswith("add x"))
    log.call("Read", {"file_path": "/srv/x"}, "git")
    found = rows(asked(log, tmp_path), "SELECT program, count(*), sum(failed) FROM tool_calls GROUP BY 1 ORDER BY 2, 1")
    assert found == [[None, 1, 0], ["cargo", 1, 0], ["cat", 1, 1], ["cd", 1, 0], ["echo", 1, 0], ["git", 6, 0]]


def test_a_file_that_is_named_in_two_ways_is_one_and_a_copy_counts_where_it_comes_from(
    log: ClaudeLog, tmp_path: Path
) -> None:
    log.call("Read", {"file_path": "/home/mira/projects/tidepool/a.py"}, "ok")
    log.call("Edit", {"file_path": "a.py", "new_string": "x"}, "no", failed=True).say("done")
    log.fork("bbbbbbbb-0000-4000-8000-000000000002").prompt("on").call("Bash", {"command": "ls"}, "ok").say("done")
    asker = asked(log, tmp_path)
    found = rows(asker, "SELECT path, count(*), sum(failed), sum(access = 'write') FROM files GROUP BY 1")
    assert found == [["/home/mira/projects/tidepool/a.py", 2, 1, 1]]
    found = rows(asker, "SELECT session, tool, input FROM tool_calls WHERE tool IN ('Edit', 'Bash') ORDER BY 1")
    assert [row[:2] for row in found] == [["aaaaaaaa", "Edit"], ["bbbbbbbb", "Bash"]] and "ls" in str(found[1][2])


def test_a_finding_is_that_of_the_analysis(samples: Asker) -> None:
    ((session, message),) = rows(samples, "SELECT session, message FROM findings WHERE severity = 'Critical' LIMIT 1")
    found = samples.ask("analyze_session", session_id=session, include_loops=True)["data"]["insights"]
    assert message in {one["message"] for one in found}


def test_pages_are_disjoint_and_complete_while_the_index_grows(log: ClaudeLog, tmp_path: Path) -> None:
    for number in range(150):
        log.call("Bash", {"command": f"make part-{number}"}, "x" * 400)
    asker, found = asked(log, tmp_path), []
    for page in asker.pages("run_sql", sql="SELECT event, output FROM tool_calls"):
        found += [row[0] for row in page["data"]["rows"]]
        log.call("Bash", {"command": "make more"}, "ok")
        asker.index(log.path.parents[2])
    calls = query(asker, "SELECT event_index FROM event WHERE type = 3 ORDER BY event_index LIMIT 150")
    assert found == [event for (event,) in calls]


# -- what it refuses, and where it ends --------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    ["DELETE FROM session", "DROP VIEW events", "CREATE TEMP TABLE x (a)", "ATTACH '/tmp/x' AS y",
     "PRAGMA user_version", "SELECT value FROM secret",
     "WITH events AS (SELECT state FROM file_state) SELECT state FROM events", "SELECT findings_of(1)",
     "SELECT load_extension('x')", "SELECT sql FROM sqlite_master", "SELECT 1; SELECT 2", "SELECT path FROM file"],
)  # fmt: skip
def test_nothing_but_reading_the_views_is_allowed(samples: Asker, sql: str) -> None:
    error = samples.error("run_sql", sql=sql)
    assert error["code"] == "invalid_parameter" and "only a SELECT from the views is run" in error["message"]


def test_a_wrong_column_or_view_is_answered_with_the_right_ones(samples: Asker) -> None:
    wrong = samples.error("run_sql", sql="SELECT toool FROM tool_calls")["message"]
    assert "no such column: toool" in wrong and ", ".join(COMMON | VIEWS["tool_calls"].columns) in wrong
    assert ", ".join(VIEWS) in samples.error("run_sql", sql="SELECT * FROM calls")["message"]
    assert "syntax error" in samples.error("run_sql", sql="SELEC 1")["message"]


def test_a_statement_without_end_stops_at_its_limit_or_once_nobody_waits(samples: Asker) -> None:
    hurried = Service(replace(samples.settings, search_timeout_seconds=1), log=silent)
    before, text = time.process_time(), "printf('%.*c', 120000, 'a')"
    for sql in (ENDLESS, ENDLESS.replace("*", f"instr({text} || {text} || i, {text} || 'b')")):
        assert hurried.ask("run_sql", {"sql": sql}).value["error"]["code"] == "search_timeout"
    assert time.process_time() - before < 10
    stop = threading.Event()
    STOP.set(stop)
    threading.Timer(0.2, stop.set).start()
    before = time.process_time()
    assert samples.answers.ask("run_sql", {"sql": ENDLESS}).value["error"]["code"] == "search_timeout"
    assert time.process_time() - before < 1
    STOP.set(None)
    long = "printf('%.*c', 249000, 'a')"  # no function is interrupted, so none gets more
    assert rows(samples, f"SELECT instr({long}, substr({long}, 2) || 'b'), {long} LIKE '%a%a%a%b'") == [[0, 0]]
    assert "too big" in samples.error("run_sql", sql=f"SELECT {long} || {long}")["message"]
    assert "too complex" in samples.error("run_sql", sql=f"SELECT {long} LIKE substr({long}, 1, 20000)")["message"]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    asked = samples.anything("run_sql", sql=f"SELECT {', '.join([long] * 100)} FROM events LIMIT 20")
    assert not asked.is_error and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


# -- what leaves -------------------------------------------------------------------------------------


def test_no_secret_comes_out_and_long_texts_are_cut(log: ClaudeLog, tmp_path: Path) -> None:
    log.call("Bash", {"command": f"export TOKEN={SECRET}"}, f"{SECRET} " * 400)
    asker = asked(log, tmp_path)
    for sql in ("SELECT text FROM events", "SELECT input, output FROM tool_calls", f"SELECT '{SECRET}'"):
        assert SECRET not in asker.anything("run_sql", sql=sql).text
    assert rows(asker, f"SELECT count(*) FROM events WHERE text LIKE '%{SECRET}%'") == [[0]]


def test_the_plain_database_has_all_and_is_searched_and_has_no_secret(log: ClaudeLog, tmp_path: Path) -> None:
    log.call("Bash", {"command": f"make tide TOKEN={SECRET}"}, "the ebb").say("done")
    file = tmp_path / "out.db"
    log.path.parents[2].rename(Path.home() / ".claude")
    assert agtrace_here("export", "--sqlite", str(file)).code == 0
    with closing(sqlite3.connect(file)) as database:
        counts = [database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in VIEWS]
        assert all(counts[:4]) and SECRET not in "\n".join(database.iterdump())
        found = (
            "SELECT e.name FROM events_fts JOIN events e ON e.rowid = events_fts.rowid WHERE events_fts MATCH 'tide'"
        )
        assert database.execute(found).fetchall() == [("Bash",)]
        keys = database.execute('SELECT "table", "to" FROM pragma_foreign_key_list(\'tool_calls\')').fetchall()
        assert keys == [("sessions", "session")]
    assert file.stat().st_mode & 0o777 == 0o600
    assert "use --force" in agtrace_here("export", "--sqlite", str(file)).err


def test_a_person_sees_a_table_or_lines_of_json(indexed: Path) -> None:
    sql = "SELECT agent, count(*) AS number FROM sessions GROUP BY 1 ORDER BY 1"
    assert agtrace_here("sql", sql).out.splitlines()[0].split() == ["agent", "number"]
    assert '{"agent": "claude_code", "number": ' in agtrace_here("sql", sql, "--json").out
