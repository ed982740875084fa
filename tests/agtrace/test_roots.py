"""What is kept fresh: `agtrace roots`, and how a file or folder becomes a root, or stops being one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.agtrace.terminal import agtrace, agtrace_here, index_here
from tests.conftest import SAMPLES


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """Two folders of logs that are indexed."""
    made = [tmp_path / name for name in ("claude", "codex")]
    for folder in made:
        shutil.copytree(SAMPLES / folder.name, folder)
    index_here(*made)
    return made


def sessions() -> set[str]:
    """The ids of all sessions that are found."""
    return {session["id"] for session in agtrace_here("sessions", "--limit", "50", "--json").json()["data"]["sessions"]}


def roots() -> list[str]:
    return [root["path"] for root in agtrace_here("roots", "--json").json()["roots"]]


def test_the_roots_are_listed_with_what_is_indexed_below_them(folders: list[Path]) -> None:
    shown = agtrace_here("roots").out.splitlines()
    assert [line.split()[0] for line in shown] == [str(folder) for folder in folders]
    assert "7 logs, 8 sessions" in shown[0]
    shutil.rmtree(folders[1])
    assert agtrace_here("roots").out.splitlines()[1].endswith("missing")


def test_sessions_of_a_root_that_is_taken_away_stay_as_archived_ones(folders: list[Path]) -> None:
    before = sessions()
    said = agtrace_here("roots", "remove", folders[0])
    assert said.code == 0
    assert f"{folders[0]} is no longer kept fresh; nothing in it was touched" in said.out
    assert "archived. They stay in the index and can be searched as before, until `agtrace forget`" in said.out
    assert roots() == [str(folders[1])]
    (log,) = folders[0].rglob("5be1c2d7*.jsonl")
    log.write_text(log.read_text() * 2)
    assert sessions() == before
    doctor = agtrace_here("doctor", "--json").json()
    assert {file["gone"] for file in doctor["files"] if file["path"].startswith(str(folders[0]))} == {True}
    index_here(folders[0])
    assert (roots(), sessions()) == ([str(folder) for folder in folders], before)
    doctor = agtrace_here("doctor", "--json").json()
    assert not [file for file in doctor["files"] if file["gone"]]


@pytest.mark.thorough
def test_the_homes_of_agents_stay_away_until_they_are_named(own_home: Path) -> None:
    projects = own_home / ".claude" / "projects"
    shutil.copytree(SAMPLES / "claude" / "projects", projects)
    assert agtrace("index").code == 0
    for root in roots():
        assert agtrace_here("roots", "remove", root).code == 0
    assert agtrace("index").code == 0
    assert agtrace_here("sessions").code == 0
    assert roots() == []
    assert str(projects) in agtrace_here("roots", "--json").json()["removed"]
    assert agtrace("index", projects).code == 0
    assert roots() == [str(projects)]
    assert str(projects) not in agtrace_here("roots", "--json").json()["removed"]


def test_what_is_no_root_is_told_with_2_and_no_index_with_3(folders: list[Path], tmp_path: Path) -> None:
    said = agtrace_here("roots", "remove", tmp_path / "elsewhere")
    assert (said.code, "is not kept fresh: `agtrace roots` lists what is" in said.err) == (2, True)
    said = agtrace_here("roots", AGTRACE_DATA_DIR=str(tmp_path / "none"))
    assert (said.code, "there is no index yet" in said.err) == (3, True)


@pytest.mark.thorough
def test_a_file_that_is_no_log_is_told_and_does_not_become_a_root(folders: list[Path], tmp_path: Path) -> None:
    notes, begun = tmp_path / "notes.txt", tmp_path / "begun.jsonl"
    notes.write_text("what is to be done\n")
    begun.touch()
    for _ in range(2):
        said = agtrace("index", notes, begun)
        assert said.code == 0
        assert f"{notes} is not a log (not a log format that agtrace knows): it is not kept fresh" in said.out
        assert roots() == sorted([str(begun), *map(str, folders)])
    assert str(notes) not in [file["path"] for file in agtrace_here("doctor", "--json").json()["not_read"]]
    inside = folders[0] / "notes.txt"
    shutil.copy(notes, inside)
    for named in ([inside], []):
        told = agtrace("index", "--json", *named).json()["no_logs"]
        assert told[str(inside)] == "not a log format that agtrace knows" and told[str(begun)] == "an empty file"
    assert str(inside) not in roots()
    assert str(inside) in [file["path"] for file in agtrace_here("doctor", "--json").json()["not_read"]]
