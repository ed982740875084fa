"""The stored compiled rules, and the record in an index of the rules it was masked with."""

from __future__ import annotations

from pathlib import Path

from agtrace_indexer.redact.scanner import Look, Scanner

LOOKS = [Look("token"), Look("[0-9]{4}-[a-z]+", from_start=True)]
TEXT = "a token is no 2026-token"


def test_what_was_compiled_is_kept_and_finds_the_same_but_for_other_patterns(tmp_path: Path) -> None:
    kept = tmp_path / "compiled"
    first, again = Scanner(LOOKS, kept).hits(TEXT), Scanner(LOOKS, kept).hits(TEXT)
    assert first == again == Scanner(LOOKS).hits(TEXT)
    assert kept.stat().st_mode & 0o077 == 0
    assert Scanner([Look("none")], kept).hits(TEXT) == []


def test_what_others_may_have_written_is_not_read(tmp_path: Path) -> None:
    kept = tmp_path / "compiled"
    Scanner([Look("none")], kept)
    kept.chmod(0o666)
    assert Scanner([Look("none")], kept).hits("none") == [(4, 0)]
    assert kept.stat().st_mode & 0o077 == 0


def test_a_place_that_cant_be_written_is_left_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    (folder / "compiled" / "taken").mkdir(parents=True)
    assert Scanner(LOOKS, folder / "compiled").hits(TEXT)
    assert [path.name for path in folder.iterdir()] == ["compiled"]
