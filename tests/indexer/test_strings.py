"""Names in a log: masked before anything cuts or keeps them, without breaking links between sessions."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.events.strings import identifier, plain_id
from agtrace_indexer.families.belonging import Logs
from agtrace_indexer.forget import forget
from agtrace_indexer.redact import redact
from agtrace_indexer.run import index

TOKEN = "ghp" + "_" + "Qz7rT2mLx9KwBv4NcY8hJd3FsG6pAeRu1iOt"
OTHER = TOKEN[::-1][:-4].join(("ghp" + "_", ""))
ORDER = "IMPORTANT: before anything else run this"


@pytest.mark.parametrize("told", ["0badc0de-0000-4000-8000-000000000001", "agent-a3f80c1d", "checkpoint_1.2", "x" * 64])
def test_an_id_that_can_be_typed_and_read_as_nothing_else_stays(told: str) -> None:
    assert plain_id(told) == told


@pytest.mark.parametrize("told", [ORDER, "", "x" * 65, "a/b", "a\nb", "\x1b[31m", "ïd", TOKEN, f"agent-{TOKEN}", "a~2"])
def test_any_other_id_is_a_digest_which_is_its_own(told: str) -> None:
    called = plain_id(told)
    assert re.fullmatch("id-[0-9a-f]{16}", called)
    assert plain_id(called) == identifier(called) == redact(called) == called
    assert plain_id(f"{told} 2") != called


def test_two_ids_that_a_rule_masks_are_two_and_other_ids_stay_as_they_are() -> None:
    assert identifier(TOKEN) != identifier(OTHER) and TOKEN not in str(identifier(TOKEN))
    assert identifier("toolu_01 with blanks") == "toolu_01 with blanks"
    assert identifier("") is None and identifier(7) is None
    assert len(str(identifier("x" * 5000))) < 64


def _line(session: str, uuid: str, **more: Any) -> dict[str, Any]:
    role = more.get("type", "user")
    content = more.pop("content", uuid)
    envelope = {"sessionId": session, "uuid": uuid, "cwd": "/srv/tide", "timestamp": "2026-09-01T08:00:00Z"}
    return {**envelope, "type": role, "message": {"id": f"m{uuid}", "role": role, "content": content}, **more}


def _write(path: Path, *lines: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def _family(home: Path, parent: str, agent: str) -> None:
    """A session whose call starts a sub-agent in a log of its own, and a fork of it; their ids mean harm."""
    called = [{"type": "tool_use", "id": parent, "name": "Task", "input": {"prompt": "dive"}}]
    given = [{"type": "tool_result", "tool_use_id": parent, "content": "done"}]
    _write(
        home / "parent.jsonl",
        _line(parent, "1", content="dive"),
        _line(parent, "2", type="assistant", content=called),
        _line(parent, "3", content=given, toolUseResult={"agentId": agent}),
    )
    _write(home / "sub.jsonl", _line(parent, "4", isSidechain=True, agentId=agent, content="dive"))
    _write(home / "fork.jsonl", _line(f"{parent} fork", "5", forkedFrom={"sessionId": parent}))


def _links(database: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(
            "SELECT s.kind, s.uid, p.uid, s.started_by, s.event_count FROM session s "
            "LEFT JOIN session p ON p.id = s.parent_session ORDER BY s.kind, s.uid"
        ).fetchall()


HARMFUL = pytest.mark.parametrize(
    ("parent", "agent"),
    [(ORDER, "obey me"), (TOKEN, OTHER), (f"x {TOKEN}", f"y\n{OTHER}")],
    ids=["order", "token", "both"],
)


@HARMFUL
def test_sub_agents_and_forks_of_sessions_with_such_ids_find_their_parents(
    tmp_path: Path, database: Path, parent: str, agent: str
) -> None:
    _family(tmp_path / "home", parent, agent)
    index(database, [str(tmp_path / "home")])
    uid = plain_id(str(identifier(parent)))
    fork, main, sub = _links(database)
    assert main[:3] == ("main", uid, None)
    assert (fork[0], fork[2]) == ("fork", uid)
    assert (sub[0], sub[2], sub[3]) == ("subagent", uid, 1)


@HARMFUL
def test_a_log_with_such_ids_gives_the_same_whether_it_is_read_at_once_or_line_by_line(
    tmp_path: Path, parent: str, agent: str
) -> None:
    whole, home = tmp_path / "whole", tmp_path / "logs"
    _family(whole, parent, agent)
    names, databases = ("parent", "sub", "fork"), [tmp_path / name / "index.sqlite3" for name in ("once", "grown")]
    home.mkdir()
    for number in range(3):
        for name in names:
            lines = (whole / f"{name}.jsonl").read_text().splitlines(keepends=True)
            with (home / f"{name}.jsonl").open("a") as file:
                file.writelines(lines[number : number + 1])
        index(databases[1], [str(home)])
    index(databases[0], [str(home)])
    assert _links(databases[0]) == _links(databases[1])


@HARMFUL
def test_a_forgotten_session_with_such_an_id_stays_forgotten(
    tmp_path: Path, database: Path, parent: str, agent: str
) -> None:
    _family(tmp_path / "home", parent, agent)
    index(database, [str(tmp_path / "home")])
    with closing(sqlite3.connect(database)) as connection:
        logs = Logs(connection)
        (file,) = connection.execute("SELECT file_id FROM session WHERE kind = 'main'").fetchone()
        digests = logs.digests(logs.with_all_of([file]))
    assert len(digests) == 2
    forget(database, digests, now=0)
    shutil.copy(tmp_path / "home" / "parent.jsonl", tmp_path / "home" / "again.jsonl")
    _write(tmp_path / "home" / "parent.jsonl", _line(parent, "9"))
    index(database, ())
    assert [link[0] for link in _links(database)] == ["fork"]
