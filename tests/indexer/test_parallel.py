"""Worker processes yield the same as a single process, whatever happens to the workers."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agtrace_indexer.index import shards
from agtrace_indexer.index.references import REFERENCES
from agtrace_indexer.index.store import Store
from agtrace_indexer.logs.discovery import ARCHIVE, walk
from agtrace_indexer.logs.files import Progress
from agtrace_indexer.parallel import pool
from agtrace_indexer.redact import COMPILED_FILE
from agtrace_indexer.run import Summary, index
from msgspec.structs import replace

from tests import corpus
from tests.agtrace.asking import claude_log
from tests.conftest import copy_of_samples, keep_rules
from tests.contents import contents
from tests.hostile import build_all
from tests.indexer.test_files import claude, write

SESSION = "aaaaaaaa-0000-4000-8000-{:012x}"
PORTION = 100_000

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="only Linux tells whose child a process is"
)


@pytest.fixture(autouse=True)
def small_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers read whatever is new, however little it is, in portions of a few logs."""
    monkeypatch.setattr(pool, "LEAST", 1)
    monkeypatch.setattr(pool, "_PORTION", PORTION)
    monkeypatch.setattr(pool, "cores", lambda: 2)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Index in one process, without workers; give the index."""

    def run(database: Path, *roots: Path, **how: Any) -> Path:
        with monkeypatch.context() as patched:
            patched.setattr(pool, "LEAST", sys.maxsize)
            index(database, [str(root) for root in roots], **how)
        return database

    return run


def children(parent: int | None = None) -> list[int]:
    """The processes that a process has started and that still run, or wait to be told of.

    But for those that other tests of this process have started and keep.
    """
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            _, _, rest = (folder / "stat").read_text().rpartition(")")
            if int(rest.split()[1]) == (parent or os.getpid()):
                found.append(int(folder.name))
    return [process for process in found if process not in _KEPT]


_KEPT: set[int] = set()


@pytest.fixture(autouse=True)
def kept() -> None:
    """Note which processes are there before a test."""
    _KEPT.clear()
    _KEPT.update(children())


class Watched:
    """A report that notes how many workers there were."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.most, self.last, self._then = 0, Progress(), then

    def __call__(self, progress: Progress) -> None:
        running = len(children())
        self.last = replace(progress)
        if running:
            self.most = max(self.most, running)
            self._then()


def by_workers(database: Path, *roots: Path, **how: Any) -> Summary:
    """Index, and see that workers did it and went."""
    keep_rules(Path(os.environ["AGTRACE_DATA_DIR"]) / COMPILED_FILE, database.parent)
    watched = Watched()
    summary = index(database, [str(root) for root in roots], report=watched, **how)
    assert watched.most > 0, "no worker was needed"
    assert children() == []
    last = watched.last
    assert last.files_done == last.files_total and last.bytes_done >= last.bytes_total
    return summary


def said(database: Path) -> dict[str, Any]:
    """The contents of an index, what search asks of its blocks, and what must fit together."""
    with closing(sqlite3.connect(database)) as connection:
        blocks = connection.execute(
            "SELECT s.uid, b.first_index, b.event_count, b.t0, b.t1, b.text_size, b.types, (SELECT group_concat(text) "
            "FROM (SELECT n.text FROM block_tool t JOIN name n ON n.id = t.name_id WHERE t.block_id = b.id ORDER BY 1))"
            " FROM block b JOIN session s ON s.id = b.session_id ORDER BY 1, 2"
        ).fetchall()
        projects = connection.execute("SELECT hash, root_path FROM project ORDER BY hash").fetchall()
        ranked = connection.execute(RANKED).fetchall()
        connection.execute("CREATE VIRTUAL TABLE temp.ranked_word USING fts5vocab(main, ranked, row)")
        words = connection.execute("SELECT term, doc FROM ranked_word WHERE doc > 0 ORDER BY term").fetchall()
        for table, column, other in ((table, *to) for table, ids in REFERENCES.items() for to in ids.items()):
            orphans = f"SELECT count(*) FROM {table} WHERE abs({column}) NOT IN (SELECT id FROM {other})"
            assert connection.execute(orphans).fetchone() == (0,), (table, column)
    return {**contents(database), "blocks": blocks, "projects": projects, "ranked": ranked, "words": words}


RANKED = """
SELECT s.uid, e.event_index, hex(r.sz) FROM ranked_docsize r JOIN event e ON e.id = r.id
JOIN session s ON s.id = e.session_id ORDER BY 1, 2
"""


# --- what they read ---


def samples(folder: Path) -> Path:
    return copy_of_samples(folder / "logs")


def hostile(folder: Path) -> Path:
    (folder / "logs").mkdir()
    build_all(folder / "logs", 1)
    return folder / "logs"


@pytest.mark.parametrize("logs", [samples, hostile])
def test_workers_give_what_one_process_gives(
    logs: Callable[[Path], Path], tmp_path: Path, alone: Callable[..., Path]
) -> None:
    root = logs(tmp_path)
    summary = by_workers(tmp_path / "new" / "index.sqlite3", root)
    other = index(alone(tmp_path / "alone" / "index.sqlite3", root), [str(root)])
    assert said(tmp_path / "new" / "index.sqlite3") == said(tmp_path / "alone" / "index.sqlite3")
    assert {**vars_of(summary), **UNLIKE} == {**vars_of(other), **UNLIKE}
    again = index(tmp_path / "alone" / "index.sqlite3", [])
    assert (again.files_opened, again.bytes_read) == (0, 0)


UNLIKE = {"files_opened": 0, "files_changed": 0, "bytes_read": 0, "seconds": 0, "index_bytes": 0}


def vars_of(summary: Summary) -> dict[str, Any]:
    return {name: getattr(summary, name) for name in Summary.__struct_fields__}


@pytest.mark.thorough
def test_logs_that_are_too_large_for_workers_are_read_beside_them(
    tmp_path: Path, alone: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "MOST", 30_000)
    root = samples(tmp_path)
    by_workers(tmp_path / "new" / "index.sqlite3", root)
    assert said(tmp_path / "new" / "index.sqlite3") == said(alone(tmp_path / "alone" / "index.sqlite3", root))


def twins(folder: Path, names: str) -> Path:
    """Logs of one session, each with a prompt of its own."""
    for number, name in enumerate(names):
        log = claude_log(folder / name, SESSION.format(1))
        log.clock += 1000 * number
        log.prompt(f"request {name}").call("Bash", {"command": name}, "done").say(f"answer {name}")
    return folder


@pytest.mark.parametrize("portion", [1, PORTION])
def test_logs_of_one_session_id_are_told_apart_in_one_portion_or_in_several(
    portion: int, tmp_path: Path, alone: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_PORTION", portion)
    logs = twins(tmp_path / "logs", "abcde")
    by_workers(tmp_path / "new" / "index.sqlite3", logs)
    assert said(tmp_path / "new" / "index.sqlite3") == said(alone(tmp_path / "alone" / "index.sqlite3", logs))


def test_logs_of_one_session_id_are_told_apart_from_one_that_was_there(
    tmp_path: Path, alone: Callable[..., Path]
) -> None:
    alone(tmp_path / "new" / "index.sqlite3", twins(tmp_path / "logs", "a"))
    logs = twins(tmp_path / "logs", "bc")
    by_workers(tmp_path / "new" / "index.sqlite3", logs)
    assert said(tmp_path / "new" / "index.sqlite3") == said(alone(tmp_path / "alone" / "index.sqlite3", logs))


def copied(source: str, target: str) -> str:
    """Copy a file of a data folder; the archive's are links, as before."""
    if ARCHIVE not in Path(source).parts:
        return str(shutil.copy2(source, target))
    os.link(source, target)
    return target


@pytest.mark.thorough
def test_a_rebuild_by_workers_keeps_what_is_gone_and_reads_the_rest_anew(
    tmp_path: Path, alone: Callable[..., Path]
) -> None:
    logs = samples(tmp_path)
    database = alone(tmp_path / "alone" / "index.sqlite3", logs)
    for path in sorted(logs.rglob("*.jsonl"))[::5]:
        path.unlink()
    alone(database)
    for path, content in zip(
        sorted(logs.rglob("*.jsonl"))[::7], (b"", b"\x7fELF\0", b"no log any more\n"), strict=False
    ):
        path.write_bytes(content)
    shutil.copytree(database.parent, tmp_path / "new", copy_function=copied)
    by_workers(tmp_path / "new" / "index.sqlite3", rebuild=True)
    assert said(tmp_path / "new" / "index.sqlite3") == said(alone(database, rebuild=True))


@pytest.mark.thorough
def test_a_log_that_moved_while_many_new_ones_came_is_followed(tmp_path: Path, alone: Callable[..., Path]) -> None:
    logs = samples(tmp_path)
    database = alone(tmp_path / "new" / "index.sqlite3", logs)
    moved = next(logs.rglob("e97a4b06*.jsonl"))
    before = rows_of(database, moved)
    assert before[0][2] > 20
    target = tmp_path / "logs" / "elsewhere" / moved.name
    target.parent.mkdir()
    moved.rename(target)
    corpus.make(logs / "more", 0.3, largest=0.05)
    by_workers(database)
    assert (rows_of(database, target), rows_of(database, moved)) == (before, [])
    assert said(database) == said(alone(tmp_path / "fresh" / "index.sqlite3", logs))


def rows_of(database: Path, path: Path) -> list[tuple[int, str, int, int]]:
    """The sessions of a log, with their ids and those of their events."""
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(
            "SELECT s.id, s.uid, count(*), sum(e.id) FROM session s JOIN file f ON f.id = s.file_id "
            "JOIN event e ON e.session_id = s.id WHERE f.path = ? AND NOT f.gone GROUP BY s.id",
            (str(path),),
        ).fetchall()


# --- what may become of them ---


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of half a dozen portions."""
    folder = tmp_path_factory.mktemp("several")
    corpus.make(folder, 0.6, largest=0.05)
    return folder


@pytest.fixture(scope="module")
def expected(several: Path) -> dict[str, Any]:
    """What one process reads in them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pool, "LEAST", sys.maxsize)
        index(several.parent / "expected" / "index.sqlite3", [str(several)])
    return said(several.parent / "expected" / "index.sqlite3")


@pytest.mark.parametrize("killed", [pytest.param(1, marks=pytest.mark.thorough), 2])
def test_workers_that_are_killed_cost_nothing(
    killed: int, several: Path, database: Path, expected: dict[str, Any]
) -> None:
    victims: list[int] = []

    def kill() -> None:
        if not victims:
            victims.extend(children()[:killed])
            for pid in victims:
                os.kill(pid, signal.SIGKILL)

    index(database, [str(several)], report=Watched(kill))
    assert len(victims) == killed
    assert said(database) == expected
    assert children() == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    "worker",
    [
        None,
        "exit 1",
        "read request; echo no JSON",
        """read request; echo '{"size": 9999, "progress": {}}'; echo broken off""",
    ],
)
def test_workers_that_dont_work_cost_nothing(
    worker: str | None, several: Path, tmp_path: Path, database: Path, expected: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "executable", str(script(tmp_path, worker) if worker else tmp_path / "nothing"))
    index(database, [str(several)])
    assert said(database) == expected


def script(folder: Path, commands: str, by: str = "/bin/sh") -> Path:
    """An executable that does this in place of Python."""
    path = folder / "python"
    path.write_text(f"#!{by}\n{commands}\n")
    path.chmod(0o700)
    return path


def test_a_worker_that_never_answers_ends_with_the_time_of_the_run(
    several: Path, tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(script(tmp_path, "exec sleep 300")))
    assert index(database, [str(several)], seconds=0.3).files_behind > 0
    assert children() == []


_SMALL = """
import pathlib, sys
from agtrace_indexer.parallel import worker
worker.MOST = {most}
database = pathlib.Path(sys.argv[-2])
worker.serve(database, worker.Archive(database), sys.stdin.buffer, sys.stdout.buffer)
"""


@pytest.mark.thorough
def test_what_is_too_much_for_a_worker_is_read_beside_it(
    several: Path, tmp_path: Path, database: Path, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = script(tmp_path, _SMALL.format(most=2 * PORTION // 5), sys.executable)
    monkeypatch.setattr(sys, "executable", str(small))
    by_workers(database, several)
    assert said(database) == expected


_ENDING = """
import json, os, subprocess, sys
worker = subprocess.Popen([{python!r}, *sys.argv[1:]], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
worker.stdin.write(sys.stdin.buffer.readline())
size, output = worker.stdout.readline(), open(worker.stdout.fileno(), "rb", closefd=False)
answer = size + output.read(json.loads(size)["size"])
worker.kill()
os.close(0)
sys.stdout.buffer.write(answer)
"""


@pytest.mark.thorough
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_workers_that_end_after_their_first_answer_cost_nothing_and_nobody_hears_of_it(
    several: Path, tmp_path: Path, database: Path, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = script(tmp_path, _ENDING.format(python=sys.executable), sys.executable)
    monkeypatch.setattr(sys, "executable", str(ending))
    by_workers(database, several)
    assert said(database) == expected


@pytest.mark.thorough
def test_a_run_that_has_no_time_reads_one_log_leaves_no_process_and_the_rest_to_the_next(
    several: Path, database: Path, expected: dict[str, Any]
) -> None:
    behind = []
    for seconds in (1e-6, 1e-6, 0.3):
        behind.append(index(database, [str(several)], seconds=seconds).files_behind)
        assert children() == []
    assert behind[1] == behind[0] - 1
    assert behind[2] < behind[1], "workers may not be there in time: then it reads one itself"
    index(database, [])
    assert said(database) == expected


@pytest.mark.thorough
def test_a_run_that_is_interrupted_leaves_no_process_and_the_rest_to_the_next(
    several: Path, database: Path, expected: dict[str, Any]
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index(database, [str(several)], report=Watched(interrupt))
    assert children() == []
    with closing(sqlite3.connect(database)) as connection:
        held = {path for (path,) in connection.execute("SELECT path FROM file")}
    assert 0 < len(held) < len([path for path in several.rglob("*") if path.is_file()])
    index(database, [])
    assert said(database) == expected


_INDEXING = """
import sys
from pathlib import Path
from agtrace_indexer.parallel import pool
from agtrace_indexer.redact import COMPILED_FILE
from agtrace_indexer.run import index
pool.LEAST, pool._PORTION, pool.cores = 1, int(sys.argv[3]), lambda: 2
def report(progress):
    print(progress.files_done, flush=True)
    sys.stdin.readline()
index(Path(sys.argv[1]), [sys.argv[2]], report=report)
"""


@pytest.mark.thorough
def test_workers_end_when_their_parent_is_killed_and_the_next_run_reads_the_rest(
    several: Path, database: Path, expected: dict[str, Any]
) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _INDEXING, database, several, str(PORTION)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert parent.stdin is not None and parent.stdout is not None
    with parent:
        assert parent.stdout.readline().strip().isdigit(), "a portion is in the index"
        orphans = [os.pidfd_open(pid) for pid in children(parent.pid)]
        assert len(orphans) == 2
        parent.kill()
    for orphan in orphans:
        ended, _, _ = select.select([orphan], [], [], 20)
        os.close(orphan)
        assert ended, "a worker goes on without its parent"
    assert 0 < len(said(database)["files"]) < len(expected["files"])
    index(database, [])
    assert said(database) == expected


def test_a_worker_ends_in_the_midst_of_its_work_when_nobody_waits_for_it(database: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "long.jsonl", claude(1, 20_000))
    worker = [sys.executable, "-m", "agtrace_indexer.parallel.worker", database]
    request = msgspec.json.encode(list(walk([str(path)]))) + b"\n"
    assert subprocess.run(worker, input=request, stdout=subprocess.PIPE).stdout == b""


def test_a_worker_runs_no_code_of_the_folder_that_it_is_started_in(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "orjson.py").write_text("import pathlib\npathlib.Path('was_here').touch()\n")
    monkeypatch.chdir(project)
    by_workers(database, twins(tmp_path / "logs", "ab"))
    assert sorted(path.name for path in project.iterdir()) == ["orjson.py"]


def test_a_long_log_is_looked_up_by_an_index_and_not_by_a_scan_for_every_line() -> None:
    """A log of tens of megabytes and a hundred thousand lines took minutes: each line looked through all before it."""
    with closing(shards.begin()) as connection:
        asked: list[str] = []
        connection.set_trace_callback(asked.append)
        assert not Store(connection).rows(1, 1).has_identity(1)
        connection.set_trace_callback(None)
        (plan,) = connection.execute(f"EXPLAIN QUERY PLAN {asked[-1]}").fetchall()
        assert "SEARCH event USING INDEX event_identity" in plan[3]
