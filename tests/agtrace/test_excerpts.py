"""The part of a long text that is shown for the words that were asked for."""

from __future__ import annotations

import pytest

from agtrace.sessions.quotes import excerpt, stems_in

AROUND = "The gauge of the northern harbour was read at noon. " * 20


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("it was installed in a directory of digits", ["state", "dirty", "git"], []),
        ("a dirty state of git", ["state", "dirty", "git"], ["dirt", "stat", "git"]),
        ("States, dirtied, GIT", ["state", "dirty", "git"], ["Stat", "dirt", "GIT"]),
        ("readFile, read_file and file2", ["file"], ["Fil", "fil", "fil"]),
        ("READFILE profile", ["file"], []),
        ("设定文件损坏了", ["文件"], ["文件"]),
        ("résumés of the été", ["été", "résumé"], ["résu", "été"]),
        ("anything", [], []),
    ],
)
def test_words_are_found_in_their_forms_where_a_word_or_a_part_of_a_name_begins(
    text: str, words: list[str], found: list[str]
) -> None:
    assert [match[0] for match in stems_in(text, words)] == found


def test_the_part_that_is_shown_has_the_words_and_not_others_that_hold_them() -> None:
    other = "Installed in a directory, as the digest says."
    text = f"{AROUND}{other} {AROUND}release failed: git is in a dirty state {AROUND}"
    assert "git is in a dirty state" in excerpt(text, ["git", "dirty", "state"], 200)
