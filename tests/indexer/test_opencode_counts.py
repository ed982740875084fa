"""The published logs of OpenCode, indexed as they are: every count compared with those made without agtrace."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from agtrace_indexer.run import index

from tests.conftest import LOGS
from tests.indexer.opencode_stories import database, tidal
from tests.reference import opencode

MORE = LOGS.parent / "logs_more"
FIGURES = ("tool_use", "tool_err", "api_calls", "user_turns", "in", "out", "cr", "cw")
COLUMNS = (
    "tool_use", "tool_err", "api_calls", "user_turns_est", "in_dedup", "out_dedup", "cr_dedup", "cw_dedup",
)  # fmt: skip

_COUNTS = """
SELECT s.own_id, s.tool_calls, s.failed_calls,
  (SELECT count(*) FROM token_usage u JOIN event e USING (session_id, event_index)
    WHERE u.session_id = s.id AND e.superseded_by IS NULL AND u.input_tokens IS NOT NULL),
  (SELECT count(*) FROM event e JOIN name n ON n.id = e.name_id
    WHERE e.session_id = s.id AND e.type = 0 AND n.text = 'human' AND e.superseded_by IS NULL),
  {sums}
FROM session s JOIN file f ON f.id = s.file_id WHERE f.path LIKE ? || '/%' OR f.path = ?
""".format(
    sums=", ".join(
        f"(SELECT coalesce(sum(u.{name}), 0) FROM token_usage u JOIN event e USING (session_id, event_index) "
        "WHERE u.session_id = s.id AND e.superseded_by IS NULL)"
        for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_5m_tokens")
    )
)
"""Of the sessions in a container, or in a file."""


def counted(data: Path, place: Path) -> dict[str, dict[str, int]]:
    """The figures of the sessions that the index found in a database, a tree or an export."""
    with closing(sqlite3.connect(data)) as connection:
        rows = connection.execute(_COUNTS, (str(place), str(place))).fetchall()
    return {row[0]: dict(zip(FIGURES, row[1:], strict=True)) for row in rows}


def real_logs() -> list[Path]:
    """The databases, trees and exports among the real logs."""
    roots = [LOGS / "opencode", MORE / "opencode"]
    found = [path for root in roots for path in sorted(root.rglob("*"))]
    trees = [path for path in found if path.name.startswith("storage") and path.is_dir()]
    inside = tuple(f"{tree}/" for tree in trees)
    return [*trees, *(p for p in found if p.suffix in (".db", ".json") and not str(p).startswith(inside))]


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of the real logs of OpenCode."""
    if not (LOGS / "opencode").is_dir():
        pytest.skip("the folder of real logs (shared/logs) is not here")
    data = tmp_path_factory.mktemp("counts") / "index.sqlite3"
    index(data, [str(root) for root in (LOGS / "opencode", MORE / "opencode") if root.is_dir()])
    return data


def test_every_session_has_the_figures_that_were_counted_independently(indexed: Path) -> None:
    table = MORE / "EXPECTED_MORE.csv"
    if not table.is_file():
        pytest.skip("the folder of more real logs (shared/logs_more) is not here")
    with table.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["provider"] == "opencode"]
    compared = 0
    for row in rows:
        path, _, session = row["file"].removeprefix("logs_more/").partition("#")
        if (MORE / path).is_file():
            theirs = dict(zip(FIGURES, (int(row[name]) for name in COLUMNS), strict=True))
            found = counted(indexed, MORE / path)
            assert (found[session] if session else next(iter(found.values()))) == theirs
            compared += 1
    assert compared >= 3


@pytest.mark.parametrize("log", real_logs(), ids=lambda path: path.name)
def test_the_reference_agrees_on_every_real_log(indexed: Path, log: Path) -> None:
    theirs = opencode.count(log)
    assert counted(indexed, log) == theirs and theirs != {}


def test_no_record_of_the_real_logs_is_unknown(indexed: Path) -> None:
    with closing(sqlite3.connect(indexed)) as connection:
        assert connection.execute("SELECT count(*) FROM record_type WHERE status = 'unknown'").fetchone() == (0,)
        assert connection.execute("SELECT sum(unreadable_lines) FROM file").fetchone() == (0,)


@pytest.mark.parametrize("form", ["opencode.db", "storage", "export.json"])
def test_the_reference_agrees_on_each_form_of_an_authored_session(form: str, tmp_path: Path) -> None:
    place = tmp_path / "logs" / form
    place.parent.mkdir()
    if form == "storage":
        tidal().into_tree(place)
    elif form == "export.json":
        place.write_text(json.dumps(tidal().export, indent=2))
    else:
        with closing(database(place)) as connection:
            tidal().into_database(connection)
    index(tmp_path / "index.sqlite3", [str(place.parent)])
    theirs = opencode.count(place)
    assert counted(tmp_path / "index.sqlite3", place) == theirs
    assert theirs == {
        tidal().id: dict(zip(FIGURES, (3, 1, 2, 2, 300, 35, 0, 0), strict=True))
    }  # two responses, as the third is still going on
