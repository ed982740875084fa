"""Several databases, each with other people's sessions, answer together as one does that has them all."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, cast, get_args
from urllib.parse import quote

import pytest
from agtrace_schema.requests import Section
from agtrace_team.connecting import connected
from agtrace_team.server import Server
from agtrace_team.several import SeveralConnections

from agtrace.answers.desk import Answers
from agtrace.settings import load
from tests.agtrace.terminal import agtrace_here
from tests.depth import part
from tests.team.conftest import new_team
from tests.team.teams import Team
from tests.team.test_questions import QUESTIONS, asked
from tests.team.test_same_answers import (
    COMMANDS,
    COUNTS,
    GROUPS,
    LISTS,
    QUERIES,
    SEARCHES,
    TEXTS,
    Both,
    without_moments,
)

PEOPLE = ("ann", "ben")


def _url(teams: list[Team]) -> str:
    """How both databases are asked."""
    return " ".join(team.url("ann") for team in teams)


class Together:
    """What answers a person from several databases."""

    def __init__(self, url: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="agtrace-nowhere-")  # it goes with this object
        settings = load({"AGTRACE_DATA_DIR": self._folder.name, "AGTRACE_INDEX": url})
        self._answers = Answers(settings, log=lambda _record: None)

    def ask(self, login: str, tool: str, arguments: dict[str, Any]) -> Any:
        return self._answers.ask(tool, arguments).value


MONTH = 30 * 24 * 3600 * 1000


def _whose(database: Path) -> dict[str, str]:
    """Whose each session is: those that belong together, and those that began in the same month, are one person's.

    All that belong to one whose beginning isn't known are the first one's.
    What happened at the same moment is listed by row ids, and these aren't the same in one database as in two.
    """
    sql = """
    WITH RECURSIVE above (id, top) AS (
      SELECT id, id FROM session WHERE parent_session IS NULL
      UNION SELECT s.id, a.top FROM above a JOIN session s ON s.parent_session = a.id)
    SELECT s.uid, coalesce(min(o.started_at), 0) * (count(*) = count(nullif(o.started_at, 0)))
    FROM session s LEFT JOIN above a ON a.id = s.id LEFT JOIN above b ON b.top = a.top
    LEFT JOIN session o ON o.id = b.id GROUP BY s.id
    """
    with closing(sqlite3.connect(database)) as index:
        return {uid: PEOPLE[started // MONTH % 2] for uid, started in index.execute(sql)}


@pytest.fixture(scope="module")
def teams(server: Server, everything: Path) -> tuple[Team, list[Team]]:
    """A team in one database, and the same in two."""
    whose = _whose(everything)
    one, *parts = (new_team(server) for _ in range(3))
    for team in (one, *parts):
        team.add(*PEOPLE)
    for login, own in zip(PEOPLE, parts, strict=True):
        for team in (one, own):
            team.push(everything, login, only=partial(_is_of, whose, login))
    return one, parts


def _is_of(whose: dict[str, str], login: str, uid: str) -> bool:
    return whose[uid] == login


@pytest.fixture(scope="module")
def both(teams: tuple[Team, list[Team]]) -> Both:
    return Both(teams[0].answers("ann"), Together(_url(teams[1])))


@pytest.mark.parametrize("arguments", LISTS, ids=str)
def test_lists_agree(both: Both, arguments: dict[str, Any]) -> None:
    both.agree("list_sessions", arguments)


@pytest.mark.parametrize("arguments", ({}, {"limit": 50}, {"limit": 2}), ids=str)
def test_projects_agree(both: Both, arguments: dict[str, Any]) -> None:
    both.agree("get_project_info", arguments)


@pytest.mark.parametrize("group", (*GROUPS, "user"))
def test_counts_agree(both: Both, group: str) -> None:
    for more in COUNTS:
        refused = more.get("measure") == "tokens" and group in ("tool", "program", "file")
        wanted = {"group_by": group, "limit": 50, **more}
        one, two = both.own.ask("count_events", wanted).value, both.team.ask("ann", "count_events", wanted)
        assert (one["success"], two["success"]) == (not refused, not refused)
        if not refused:
            assert _in_order(two) == _in_order(one)


def _in_order(answer: dict[str, Any]) -> list[Any]:
    """The groups that are listed, whichever is first of equal ones: of these, row ids decide what is left out."""
    rows = answer["data"]["rows"]
    return sorted((row for row in rows if "others" not in answer["data"] or row[1] != rows[-1][1]), key=str)


@pytest.mark.parametrize("query", QUERIES)
def test_searches_agree(both: Both, query: str) -> None:
    for more in part(SEARCHES, QUERIES.index(query), 6):
        refused = query == "\\" and "regex" in more
        if query not in COMMON or "order" in more:
            both.agree("search_event_previews", {"query": query, **more}, succeeds=not refused)


COMMON = ("the", "test.py")
"""More events hold these words than are weighed: which of them are, row ids decide."""


def test_what_is_said_of_single_sessions_agrees(both: Both) -> None:
    for number, id in enumerate(part(both.ids, 0, 15)):
        both.agree("get_session_details", {"session_id": id})
        both.agree("analyze_session", {"session_id": id})
        both.agree("get_event_details", {"session_id": id, "event_index": number % 7}, succeeds=None)
        both.agree("read_artifact", {"ref": f"ax://session/{id}"})
        both.agree("read_artifact", {"ref": f"ax://session/{id}/event/{number % 7}"}, succeeds=None)
        if number % 3 == 0:
            both.agree(
                "get_session_details", {"session_id": id, "detail_level": "steps", "turn_index": 0}, succeeds=None
            )
            for section in get_args(Section):
                both.agree("get_session_details", {"session_id": id, "sections": [section]})
            both.agree("get_reasoning_chain", {"session_id": id})
            both.agree("compare_sessions", {"id1": id, "id2": next(one for one in both.ids if one != id)})


@pytest.mark.parametrize("subject", ("py", "test_", "no such subject"))
def test_lessons_agree(both: Both, subject: str) -> None:
    both.agree("read_artifact", {"ref": f"ax://lessons/{quote(subject)}"}, succeeds=None)


@pytest.mark.parametrize("command", (*COMMANDS, *TEXTS), ids=" ".join)
def test_commands_agree(teams: tuple[Team, list[Team]], command: tuple[str, ...], tmp_path: Path) -> None:
    as_json = [] if command in TEXTS else ["--json"]
    one, two = (
        agtrace_here("--index", url, *command, *as_json, AGTRACE_DATA_DIR=str(tmp_path))
        for url in (teams[0].url("ann"), _url(teams[1]))
    )
    assert (one.code, one.err) == (two.code, two.err) == (0, "")
    if as_json:
        assert without_moments(two.json()) == without_moments(one.json())
    else:
        assert two.out == one.out


def test_one_persons_sessions_are_those_of_one_database(both: Both) -> None:
    for login in PEOPLE:
        both.agree("list_sessions", {"user": login, "limit": 50})
    both.agree("list_sessions", {"user": "nobody"}, succeeds=False)


@pytest.fixture(scope="module")
def connections(teams: tuple[Team, list[Team]]) -> Iterator[tuple[sqlite3.Connection, sqlite3.Connection]]:
    with closing(connected([teams[0].url("ann")])) as one, closing(connected(_url(teams[1]).split())) as two:
        yield cast(sqlite3.Connection, one), cast(sqlite3.Connection, two)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_has_as_many_rows_in_both(
    question: str, connections: tuple[sqlite3.Connection, sqlite3.Connection]
) -> None:
    one, two = (asked(question, connection) for connection in connections)
    if question == "upkeep.files_of_project":
        return  # of a folder of one person, and both have such a one
    assert type(one) is type(two)
    if isinstance(one, (list, dict, set)):
        assert len(one) == len(two)


def test_a_page_goes_on_where_it_ended_while_others_push(server: Server, samples: Path) -> None:
    parts = [new_team(server), new_team(server)]
    for team in parts:
        team.add(*PEOPLE)
    with closing(sqlite3.connect(samples)) as index:
        uids = [uid for (uid,) in index.execute("SELECT uid FROM session ORDER BY started_at, id")]
    first, later = set(uids[::3]), set(uids)
    for login, team in zip(PEOPLE, parts, strict=True):
        team.push(samples, login, only=lambda uid: uid in first)
    together = Together(_url(parts))
    wanted = _all(together, {"limit": 50})
    begun = together.ask("ann", "list_sessions", {"limit": 2})
    for login, team in zip(PEOPLE, parts, strict=True):
        team.push(samples, login, only=lambda uid: uid in later)
    listed = begun["data"]["sessions"] + _all(together, {"limit": 2, "cursor": begun["pagination"]["next_cursor"]})
    assert [_known(one) for one in listed] == [_known(one) for one in wanted]


def _known(session: dict[str, Any]) -> tuple[Any, ...]:
    """What tells a session: its id becomes longer when there are similar ones."""
    return tuple(session.get(name) for name in ("start_time", "snippet", "title", "tool_calls"))


def _all(together: Together, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """The sessions of all pages."""
    found: list[dict[str, Any]] = []
    while True:
        answer = together.ask("ann", "list_sessions", arguments)
        found += answer["data"]["sessions"]
        cursor = answer.get("pagination", {}).get("next_cursor")
        if cursor is None:
            return found
        arguments = {**arguments, "cursor": cursor}


def test_a_database_that_is_down_is_named_and_the_others_answer(teams: tuple[Team, list[Team]], tmp_path: Path) -> None:
    up = teams[1][0].url("ann")
    down = up.replace(str(teams[0].server.folder), str(tmp_path))
    both_up, one_down = Together(_url(teams[1])), Together(f"{up} {down}")
    wanted = {"user": "ann", "limit": 50}
    answer = one_down.ask("ann", "list_sessions", wanted)
    assert answer["data"] == both_up.ask("ann", "list_sessions", wanted)["data"]
    assert answer["index"]["state"] == "partial"
    problem = answer["index"]["problem"]
    assert problem.startswith(
        f"1 of 2 databases is missing: {teams[1][0].name} at {tmp_path}: the team's database can't"
    )
    error = one_down.ask("ann", "get_session_details", {"session_id": "ffffffff"})["error"]
    assert error["code"] == "session_not_found" and "1 of 2 databases is missing" in error["message"]
    found = agtrace_here("--index", f"{up} {down}", "sessions", AGTRACE_DATA_DIR=str(tmp_path / "data"))
    assert found.code == 0
    assert "1 of 2 databases is missing" in found.err and found.err.strip().endswith("the answer lacks what is there")


def test_a_cursor_goes_on_only_in_the_databases_that_it_was_made_for(
    teams: tuple[Team, list[Team]], tmp_path: Path
) -> None:
    first, second = (team.url("ann") for team in teams[1])
    settings = {"AGTRACE_DATA_DIR": str(tmp_path)}
    one, two = (
        Answers(load({**settings, "AGTRACE_INDEX": url}), log=lambda _record: None)
        for url in (f"{first} {second}", f"{second} {first}")
    )
    cursor = one.ask("list_sessions", {"limit": 2}).value["pagination"]["next_cursor"]
    assert one.ask("list_sessions", {"limit": 2, "cursor": cursor}).value["success"]
    assert two.ask("list_sessions", {"limit": 2, "cursor": cursor}).value["error"]["code"] == "invalid_cursor"


def test_if_none_can_be_reached_that_is_an_error(tmp_path: Path) -> None:
    url = f"postgresql:///team?host={tmp_path}&user=ann"
    answer = Together(f"{url} {url}").ask("ann", "list_sessions", {})
    assert answer["error"]["code"] == "index_unavailable"


def test_a_database_that_goes_down_is_left_out_until_it_is_back(server: Server) -> None:
    folder = Path(tempfile.mkdtemp(prefix="agtrace-pg-"))
    folder.chmod(0o711)
    try:
        server.make("team")
        other = Server(folder / "two", durable=False)
        other.start()
        other.make("team")
        with closing(connected([server.url("team"), other.url("team")])) as several:
            assert isinstance(several, SeveralConnections)
            assert several.lacking is None and several.is_whole(0)
            other.stop("immediate")
            assert not several.is_whole(0)
        with closing(connected([server.url("team"), other.url("team")])) as several:
            assert isinstance(several, SeveralConnections)
            assert several.lacking is not None
            now = time.monotonic()
            assert several.is_whole(now) and not several.is_whole(now + 60)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
