"""Small logs that once broke a law: a line was lost or counted twice, or pieces made another index than the whole."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.run import index

from tests.contents import contents
from tests.depth import depth

FOUND = Path(__file__).with_name("found")
LOGS = sorted((FOUND / "logs").iterdir())
CUTS = depth(3, 6)
"""Places at which a log is cut: not all, for each is two runs."""

SAID = {
    "no-content.jsonl": ("Seven gulls.", "And the terns?"),
    "session-2026-11-10T11-40-5d0b8f3a.json": ("Count the gulls", "Seven gulls."),
}
"""Texts that were lost."""


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def may_end(data: bytes, end: int) -> bool:
    """Whether a log of lines may be cut at a position, which it may not if the part before could be a whole line."""
    line = data[data.rfind(b"\n", 0, end) + 1 : end]
    try:
        json.loads(line)
    except ValueError:
        return data.startswith(b'{"') and b"\n" in data.strip()
    return False


def indexed(folder: Path, name: str, pieces: list[bytes]) -> dict[str, Any]:
    """What is in an index of a log that grew by these pieces."""
    folder.mkdir()
    for piece in pieces:
        append(folder / name, piece)
        index(folder.with_name("data") / "index.sqlite3", [str(folder)])
    found = contents(folder.with_name("data") / "index.sqlite3")
    shutil.rmtree(folder)
    shutil.rmtree(folder.with_name("data"))
    return found


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_a_log_that_broke_a_law_may_be_found_cut_anywhere(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    whole = indexed(tmp_path / "logs", path.name, [data])
    for end in range(1, len(data), len(data) // CUTS):
        if may_end(data, end):
            assert indexed(tmp_path / "logs", path.name, [data[:end], data[end:]]) == whole, data[:end]


def test_empty_lines_before_the_end_dont_make_a_log_that_grows_another_one(tmp_path: Path, database: Path) -> None:
    log, data = tmp_path / "growing.jsonl", (FOUND / "logs" / "empty-lines.jsonl").read_bytes()
    end = data.index(b"\n\n\n") + 3
    for piece in (data[:end], data[end:]):
        append(log, piece)
        index(database, [str(log)])
    assert [row[0] for row in contents(database)["files"]] == [str(log)], "no generation of it is archived"


@pytest.mark.parametrize("name", SAID)
def test_readable_texts_are_kept_wherever_they_stand(name: str, database: Path) -> None:
    index(database, [str(FOUND / "logs" / name)])
    said = "\n".join(text for _, _, text, _ in contents(database)["texts"])
    assert [text for text in SAID[name] if text not in said] == []


def test_logs_that_contradict_each_other_form_the_same_family_in_any_order(tmp_path: Path) -> None:
    """Each names another one as where it comes from; the third one, which comes later, ends the circle."""
    families = []
    for number, order in enumerate(itertools.permutations(sorted((FOUND / "circle").iterdir()))):
        logs, database = tmp_path / "logs", tmp_path / str(number) / "index.sqlite3"
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir()
        for path in order:
            shutil.copyfile(path, logs / path.name)
            index(database, [str(logs)])
        families.append(contents(database))
    assert [found for found in families if found != families[0]] == []
    assert sum(session[-6] is not None for session in families[0]["sessions"]) == 2, "two of them come from another"
