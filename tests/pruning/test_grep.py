"""The tool `grep`: the same answers from ripgrep and from what is built in, over real files.

Where ripgrep isn't installed, only the built-in search is tried, and a program that prints what ripgrep printed.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agtrace.pruning.output import Output, ToolFailed
from tests.pruning.running import failure, run

_RIPGREP = shutil.which("rg")
_WITHOUT = {"PATH": os.defpath, "HOME": "/nowhere"}
_ENGINES = {
    "built in": _WITHOUT if shutil.which("rg", path=os.defpath) is None else {"PATH": "/nowhere"},
    "ripgrep": {**_WITHOUT, "PATH": str(Path(_RIPGREP or "/nowhere/rg").parent)},
}

Search = Callable[..., Output]


@pytest.fixture(params=_ENGINES)
def engine(request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment in which one of the engines is found."""
    if request.param == "ripgrep" and _RIPGREP is None:
        pytest.skip("ripgrep is not installed")
    return _ENGINES[request.param]


@pytest.fixture
def search(engine: dict[str, str], tree: Path) -> Search:
    """A search in the tree."""

    def ask(pattern: str | None = None, **arguments: Any) -> Output:
        return run("grep", tree, engine, **({} if pattern is None else {"pattern": pattern}), **arguments)

    return ask


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Files of many kinds."""
    root = tmp_path / "tree"
    for name in ("a", ".git/hooks", "node_modules", "sub/.git", "-dir"):
        (root / name).mkdir(parents=True)
    (root / ".gitignore").write_text("node_modules\n*.log\n")
    (root / "a" / "b.py").write_text("def one():\n    return 1\n\n\ndef two():\n    return 2\n")
    (root / "a.py").write_text("import one\n")
    (root / "a-b.py").write_text("one = 1\r\nlast one")
    (root / ".hidden").write_text("one hidden\n")
    (root / "ignored.log").write_text("one ignored\n")
    (root / "node_modules" / "x.js").write_text("one module\n")
    (root / ".git" / "hooks" / "one").write_text("one of git\n")
    (root / "sub" / ".git" / "x").write_text("one of git\n")
    (root / "-dir" / "-file").write_text("one -e dashed\n")
    (root / "binary").write_bytes(b"one\n" * 3 + b"\0\n")
    (root / "late binary").write_bytes(b"one\n" + (b"text" * 30 + b"\n") * 10_000 + b"\0\n")
    (root / "no utf-8").write_bytes(b"one \xff two\n\xc3\xa9t\xc3\xa9\n")
    (root / "mark").write_bytes(b"\xef\xbb\xbfone\n")
    (root / "link.py").symlink_to("a.py")
    (root / "link").symlink_to("a")
    (root / "empty").touch()
    os.mkfifo(root / "fifo")
    return root


def test_all_files_are_searched_but_those_of_git_links_binary_and_irregular_ones(search: Search) -> None:
    output = search("one")
    assert output.text.split("\n") == [
        "-dir/-file:1:one -e dashed", ".hidden:1:one hidden", "a/b.py:1:def one():", "a-b.py:1:one = 1\r",
        "a-b.py:2:last one", "a.py:1:import one", "ignored.log:1:one ignored", "mark:1:\ufeffone",
        "no utf-8:1:one \ufffd two", "node_modules/x.js:1:one module", "",
    ]  # fmt: skip
    assert (output.exit_code, output.truncated, output.stdout_bytes) == (0, None, len(output.text.encode()))


def test_no_match_is_an_empty_text_and_exit_code_1(search: Search) -> None:
    output = search("nothing like this")
    assert (output.text, output.exit_code) == ("", 1)


def test_lines_around_a_match_have_other_marks_and_groups_are_divided(search: Search) -> None:
    output = search("return", paths=["a", "a-b.py"], context_lines=1)
    assert output.text == (
        "a/b.py-1-def one():\na/b.py:2:    return 1\na/b.py-3-\n--\na/b.py-5-def two():\na/b.py:6:    return 2\n"
    )
    output = search("return 1|import|last", paths=["a", "a.py", "a-b.py"], context_lines=3)
    assert [line for line in output.text.split("\n") if line == "--"] == ["--"] * 2


@pytest.mark.parametrize(
    ("paths", "files"),
    [(["a"], ["a/b.py"]), (["./a/", "a"], ["a/b.py"]), (["a.py", "a"], ["a.py", "a/b.py"]), (["link"], ["link/b.py"]),
     (["link.py", "binary", "late binary"], ["link.py"]), ([".git"], [".git/hooks/one"]), (["-dir"], ["-dir/-file"]),
     ([".git/hooks/one"], [".git/hooks/one"]), (["a/../a.py"], ["a/../a.py"]), (["binary", "empty"], [])],
)  # fmt: skip
def test_paths_are_searched_in_their_order_and_once(paths: list[str], files: list[str], search: Search) -> None:
    output = search("one", paths=paths)
    assert [line.split(":")[0] for line in output.text.splitlines()] == files


def test_paths_are_found_from_the_root_the_home_and_another_folder(tree: Path, engine: dict[str, str]) -> None:
    home = {**engine, "HOME": str(tree)}
    assert run("grep", Path("/"), home, pattern="import", paths=[f"{tree}/a.py"]).text == f"{tree}/a.py:1:import one\n"
    assert run("grep", Path("/"), home, pattern="import", paths=["~/a.py"]).text == f"{tree}/a.py:1:import one\n"
    assert run("grep", tree, engine, pattern="def one", cwd="a").text == "b.py:1:def one():\n"


@pytest.mark.parametrize(("path", "code"), [("no", "ENOENT"), ("a.py/x", "ENOTDIR"), ("fifo", "not_regular"),
                                            ("/dev/zero", "not_regular"), ("--files", "ENOENT")])  # fmt: skip
def test_a_path_that_cant_be_searched_is_an_error(path: str, code: str, tree: Path, engine: dict[str, str]) -> None:
    failed = failure("grep", tree, engine, pattern="one", paths=["a", path])
    assert failed.error_code == code and failed.message.startswith(path)


def test_a_pattern_that_looks_like_an_option_is_a_pattern_and_no_path_is_stdin(search: Search, tree: Path) -> None:
    (tree / "-").write_text("one dash\n")
    assert search("one dash$", paths=["-"]).text == "-:1:one dash\n"
    assert search("-e dash").text == "-dir/-file:1:one -e dashed\n"
    assert search(patterns=["--files", "--pre=sh"]).text == ""


@pytest.mark.parametrize(
    ("pattern", "numbers"),
    [("^one", [1]), ("one$", [2]), ("(?i)LAST", [2]), ("l(?i:A)st", [2]), ("l(?:x|a)s?t{1,2}", [2]), (r"\bas", []),
     (r"=\s\d", [1]), ("[^]a-z ]{2}", [1]), (r"\r", [1]), (r"\x3d", [1]), ("(?P<word>last)", [2]), ("a|", [1, 2]),
     ("o.*?e", [1, 2]), (r"[\w]+ [\W]", [1]), (r"\.|=", [1]), ("^$", [])],
)  # fmt: skip
def test_usual_patterns_mean_the_same_to_both_engines(pattern: str, numbers: list[int], search: Search) -> None:
    found = search(pattern, paths=["a-b.py"]).text.splitlines()
    assert [int(line.split(":")[1]) for line in found] == numbers


@pytest.mark.parametrize("pattern", ["(", "[a", "*a", "a{3,2}", "[z-a]", r"\p{Nope}", r"(a)(?P=b)"])
def test_what_is_not_understood_is_explained(pattern: str, tree: Path, engine: dict[str, str]) -> None:
    failed = failure("grep", tree, engine, patterns=["a", pattern])
    assert failed.error_code == "bad_pattern" and failed.message.startswith("The pattern is not understood: ")
    assert len(failed.message) > 40


def test_a_class_that_python_would_read_otherwise_is_refused(tree: Path) -> None:
    failed = failure("grep", tree, _ENGINES["built in"], pattern="[[:digit:]]")
    assert failed.error_code == "bad_pattern" and "nested set" in failed.message


def test_the_search_ends_after_so_many_matches_and_says_so(search: Search) -> None:
    output = search("text", paths=["a", "late binary"], max_matches=3)
    assert output.text.split("\n")[-2] == "(stopped after 3 matches, max_matches; there are more)"
    assert output.text.count("late binary:") == 3 and output.exit_code == 0
    assert output.truncated is not None and output.truncated.total_bytes is None
    assert "(stopped" not in search("def", paths=["a"], max_matches=2).text, "there are only two"


def test_the_search_ends_before_so_many_bytes_and_says_so(search: Search) -> None:
    output = search("text", paths=["late binary"], max_bytes=1_024, max_matches=1_000)
    assert output.text.endswith("\n(stopped before 1,024 bytes, max_bytes; there is more)\n")
    assert 700 < len(output.text.encode()) <= 1_024


def test_a_long_line_is_cut(tree: Path, search: Search) -> None:
    (tree / "long").write_text("é" * 3_000_000 + "needle\n" + "x" * 1_000 + "needle")
    assert search("needle", paths=["long"]).text == "".join(
        f"long:{number}:{char * 1_000}... (cut at 1,000 characters)\n" for number, char in enumerate("éx", 1)
    )


def test_a_search_takes_no_longer_than_it_may(tree: Path) -> None:
    """The built-in engine backtracks."""
    (tree / "slow").write_text("a" * 60 + "!bc\n")
    began = time.monotonic()
    failed = failure("grep", tree, _ENGINES["built in"], pattern="^(a|a)*bc$", paths=["a", "slow"],
                     timeout_ms=500)  # fmt: skip
    assert (failed.error_code, failed.timeout_ms) == ("timeout", 500)
    assert time.monotonic() - began < 10


def test_names_with_line_ends_and_colons_break_nothing(tree: Path, search: Search) -> None:
    (tree / "a" / "new\nline: binary").write_text("one more\n")
    assert search("one", paths=["a"]).text == "a/b.py:1:def one():\na/new\\nline: binary:1:one more\n"


# -- as ripgrep prints it --------------------------------------------------------------------------


@pytest.fixture
def printing(tmp_path: Path) -> Callable[[bytes, int], dict[str, str]]:
    """An environment in which `rg` notes its arguments and prints what it is given."""

    def make(printed: bytes, code: int = 0) -> dict[str, str]:
        folder = tmp_path / "programs"
        folder.mkdir()
        (folder / "printed").write_bytes(printed)
        program = folder / "rg"
        program.write_text(
            f"#!/bin/sh\nfor one; do printf '%s\\n' \"$one\"; done > '{folder}/arguments'\n"
            f"/bin/cat '{folder}/printed'; exit {code}\n"
        )
        program.chmod(0o755)
        return {"PATH": str(folder)}

    return make


def test_what_ripgrep_prints_is_read(printing: Callable[..., dict[str, str]], tree: Path) -> None:
    """As ripgrep 15.2.0 printed it."""
    environment = printing(
        b"./a/b.py\x001-def one():\n./a/b.py\x002:    return 1:2\n./a/b.py\x003-\n./a.py\x001:import one\n"
        b'./binary: binary file matches (found "\\0" byte around offset 14)\n./late binary\x001:one\n'
        b'./late binary: WARNING: stopped searching binary file after match (found "\\0" byte around offset 2000004)\n'
        b"./long\x001:" + b"x" * 4_004 + b" [... omitted end of long line]\n"
    )
    output = run("grep", tree, environment, patterns=["return", "-x"], paths=["a", "-dir", "."], context_lines=1)
    assert output.text == (
        "a/b.py-1-def one():\na/b.py:2:    return 1:2\na/b.py-3-\n--\na.py:1:import one\n--\nlong:1:"
        + "x" * 1_000
        + "... (cut at 1,000 characters)\n"
    )
    arguments = (tree.parent / "programs" / "arguments").read_text().splitlines()
    assert arguments[arguments.index("--context=1") :] == [
        "--context=1", "--regexp=return", "--regexp=-x", "--", "./a", "./-dir", "."
    ]  # fmt: skip


def test_a_file_that_may_not_be_read_is_told_of(tree: Path, engine: dict[str, str]) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (tree / "a.py").chmod(0)
    output = run("grep", tree, engine, pattern="def one")
    assert output.text == "a/b.py:1:def one():\n(not everything could be read: 1 errors)\n"
    with pytest.raises(ToolFailed) as failed:
        run("grep", tree, engine, pattern="def one", paths=["a.py"])
    assert failed.value.error_code == "EACCES"
