"""`agtrace why FILE:LINE`: the session named for a line is the one that last wrote it, and it says how sure that is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agtrace.health.facts.changes import Edit, edits
from agtrace.report.replay import Author, authors, lines_of
from tests.agtrace.asking import Asker, ClaudeLog, claude_log
from tests.agtrace.terminal import agtrace_here, index_here

ONE, TWO, THREE = (f"6d1c2b3{n}-0000-4000-8000-000000000001" for n in range(3))
NAMES = "tide", "ebb", "moon", "reef", "kelp"
SECRET = "ghp_abcDEF0123456789ghij" + "abcDEF0123456789ghij"


# -- the law ---------------------------------------------------------------------------------------


class History:
    """A file that edits of several authors change, and who last wrote each of its lines."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines: list[tuple[str, int | None]] = []
        self.calls: list[tuple[str, Any]] = []
        self._number = 0
        self._renamed: set[str] = set()

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line, _ in self.lines)

    def new(self) -> str:
        """A line that isn't in the file yet, or now and then one of those that are everywhere."""
        self._number += 1
        indent, name = " " * self.random.choice((0, 4, 8)), self.random.choice(NAMES)
        return indent + (f"{name}_{self._number} = {name}({self._number})" if self.random.random() < 0.85 else "}")

    def change(self) -> None:
        """A call changes some lines, with one of the tools."""
        author = len(self.calls)
        make = self.random.choice(
            (self._write, self._edit, self._edit, self._multi, self._rename, self._patch, self._patch)
        )
        if not self.lines or (found := make(author)) is None:
            found = self._write(author)
        self.calls.append(found)

    def _write(self, author: int) -> tuple[str, Any]:
        for _ in range(self.random.randint(1, 3)):
            self._put(*self._span(), author)
        if not self.lines:
            self.lines = [(self.new(), author) for _ in range(6)]
        return "Write", {"file_path": "/f", "content": self.text}

    def _edit(self, author: int) -> tuple[str, Any] | None:
        found = self._replacement(author)
        return None if found is None else ("Edit", {"file_path": "/f", **found})

    def _multi(self, author: int) -> tuple[str, Any] | None:
        made = [found for _ in range(2) if (found := self._replacement(author)) is not None]
        return ("MultiEdit", {"file_path": "/f", "edits": made}) if made else None

    def _replacement(self, author: int) -> dict[str, str] | None:
        first, last = self._span()
        first, last = max(first - 1, 0), min(last + 1, len(self.lines))
        old = "\n".join(line for line, _ in self.lines[first:last])
        if not old or self.text.count(old) != 1:
            return None
        kept = self.lines[first:last][:1]
        changed = [*kept, *((self.new(), author) for _ in range(self.random.randint(1, 3)))]
        self.lines[first:last] = changed
        return {"old_string": old, "new_string": "\n".join(line for line, _ in changed)}

    def _rename(self, author: int) -> tuple[str, Any] | None:
        """Replace a name everywhere by another one, which lines may have already, but not by renaming."""
        old, new = self.random.sample(NAMES, 2)
        if old not in self.text or new in self._renamed:
            return None
        self._renamed |= {old, new}
        self.lines = [(line.replace(old, new), author if old in line else before) for line, before in self.lines]
        return "Edit", {"file_path": "/f", "old_string": old, "new_string": new, "replace_all": True}

    def _patch(self, author: int) -> tuple[str, Any] | None:
        first, last = self._span()
        before = [line for line, _ in self.lines[max(first - 2, 0) : first]]
        after = [line for line, _ in self.lines[last : last + 2]]
        old = [line for line, _ in self.lines[first:last]]
        block = "\n".join([*before, *old, *after])
        if not block or self.text.count(block) != 1:
            return None
        new = [self.new() for _ in range(self.random.randint(1, 3))]
        self.lines[first:last] = [(line, author) for line in new]
        hunk = [*(f" {line}" for line in before), *(f"-{line}" for line in old), *(f"+{line}" for line in new),
                *(f" {line}" for line in after)]  # fmt: skip
        return "apply_patch", {"input": "\n".join(
            ["*** Begin Patch", "*** Update File: /f", "@@", *hunk, "*** End Patch"]
        )}  # fmt: skip

    def _span(self) -> tuple[int, int]:
        first = self.random.randint(0, len(self.lines))
        return first, min(first + self.random.randint(0, 3), len(self.lines))

    def _put(self, first: int, last: int, author: int) -> None:
        self.lines[first:last] = [(self.new(), author) for _ in range(self.random.randint(0, 3))]


def authors_in(history: History, copy: str | None = None) -> list[Author | None]:
    made: list[Edit] = [edit for tool, given in history.calls for edit in edits(tool, given, writes=True)]
    assert len(made) == len(history.calls)
    return authors(lines_of(history.text), made, [copy] * len(made))


def found_in(history: History) -> list[int | None]:
    return [author and author.edit for author in authors_in(history)]


def test_the_author_of_a_line_is_the_call_that_last_wrote_it() -> None:
    """For lines that say something: which of several equal brackets is the new one, no text can say."""
    for seed in range(60):
        history = History(seed)
        for _ in range(history.random.randint(1, 25)):
            history.change()
        found = found_in(history)
        told = [(line, author) for (line, _), author in zip(history.lines, found, strict=True) if line.strip() != "}"]
        assert told == [(line, author) for line, author in history.lines if line.strip() != "}"], seed
        assert all(author.sure for author in authors_in(history) if author is not None), seed


@pytest.mark.parametrize("copy", [None, "/elsewhere"])
def test_what_was_replaced_everywhere_in_lines_of_nobody_s_is_found_and_the_rest_said_surely(copy: str | None) -> None:
    for seed in range(30):
        history = History(seed)
        history.lines = [(f"{history.random.choice(NAMES)} {number}", None) for number in range(20)]
        for _ in range(history.random.randint(1, 8)):
            make = history.random.choice((history._edit, history._rename))
            if (made := make(len(history.calls))) is not None:
                history.calls.append(made)
        told = list(zip(history.lines, authors_in(history, copy), strict=True))
        telling = [(line, wrote, author) for (line, wrote), author in told if line.strip() != "}"]
        wrong = [line for line, wrote, author in telling if author and author.sure and author.edit != wrote]
        unknown = [line for line, wrote, author in telling if wrote is not None and author is None]
        assert (wrong, unknown) == ([], []), seed


def everywhere(old: str, new: str) -> Edit:
    return next(edits("Edit", {"path": "/f", "old_string": old, "new_string": new, "replace_all": True}, writes=True))


@pytest.mark.parametrize(
    "said",
    [
        {"replace_all": True}, {"replaceAll": True}, {"allow_multiple": True}, {"AllowMultiple": True},
        {"expected_replacements": 2},
    ],
)  # fmt: skip
def test_every_agent_s_word_for_everywhere_is_known(said: dict[str, Any]) -> None:
    replacement = {"old_string": "tide", "new_string": "ebb", **said}
    for given in ({"path": "/f", **replacement}, {"path": "/f", "edits": [replacement]}):
        (made,) = edits("Edit", given, writes=True)
        assert [part.every for part in made.replacements] == [True]


def wrote(content: str) -> Edit:
    return next(edits("Edit", {"path": "/f", "old_string": "# ...", "new_string": content}, writes=True))


@pytest.mark.parametrize("copy", [None, "/elsewhere"])
def test_a_text_that_was_replaced_everywhere_leads_to_the_line_that_had_it(copy: str | None) -> None:
    """Twice in one line, and in a line that nobody is known to have written, which may have had the new one before."""
    made = [wrote("a = id.New(id.Pattern)"), everywhere("id.", "ids.")]
    present = ["import ids", "a = ids.New(ids.Pattern)", "b = ids.Empty"]
    assert authors(present, made, [copy, copy]) == [None, Author(1), Author(1, sure=False)]


def test_a_line_that_still_has_the_old_text_is_not_from_its_replacement() -> None:
    made = [everywhere("go run ./tide", "tide")]
    assert authors(["go run ./tide", "tide up", "tide down"], made, [None]) == [
        None, Author(0, sure=False), Author(0, sure=False),
    ]  # fmt: skip


def test_an_edit_whose_place_was_changed_since_is_known_by_the_lines_that_it_added() -> None:
    given = {"file_path": "/f", "old_string": "def a():\n    pass", "new_string": "def a():\n    return tide(1)"}
    made = list(edits("Edit", given, writes=True))
    assert authors(["async def a():", "    return tide(1)", "}"], made, [None]) == [None, Author(0), None]
    assert authors(["", "}"], made, [None]) == [None, None]


# -- files -----------------------------------------------------------------------------------------


def edit(log: ClaudeLog, file: Path, old: str, new: str, *, replace_all: bool = False, **more: Any) -> None:
    given = {"file_path": str(file), "old_string": old, "new_string": new, "replace_all": replace_all}
    log.call("Edit", given, "done", **more)
    file.write_text(file.read_text().replace(old, new)) if not more.get("failed") else None


def later(log: ClaudeLog, than: ClaudeLog) -> ClaudeLog:
    log.clock = than.clock + 1_000
    return log


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that one session wrote and another changed; a third failed to, and a fourth read it."""
    folder = tmp_path / "tidepool"
    folder.mkdir()
    file = folder / "store.py"
    one = claude_log(tmp_path / "home", ONE, cwd=str(folder))
    one.prompt("Write the store.").call(
        "Write", {"file_path": str(file), "content": "import tide\n\ndef get():\n    return 1\n"}, "ok"
    )
    file.write_text("import tide\n\ndef get():\n    return 1\n")
    two = later(claude_log(tmp_path / "home", TWO, cwd=str(folder)), one)
    two.prompt("Look at it.").say("Yes.").prompt("Make it retry when it is locked.")
    edit(two, file, "    return 1", "    return retry(1)")
    three = later(claude_log(tmp_path / "home", THREE, cwd=str(folder)), two)
    three.prompt("Rename it.")
    edit(three, file, "def get", "def fetch", failed=True)
    index_here(tmp_path / "home")
    return file


def asked(place: object) -> dict[str, Any]:
    said = agtrace_here("why", str(place), "--json")
    assert said.code in (0, 1), said.err
    return said.json()  # type: ignore[no-any-return]


def test_a_line_is_shown_with_its_session_the_request_and_the_edit(file: Path) -> None:
    said = agtrace_here("why", f"{file}:4")
    assert (said.code, said.err) == (0, "")
    assert f"{file}:4\n  4      return retry(1)\nedit matches: " in said.out
    assert TWO[:8] in said.out and "turn 1: Make it retry when it is locked." in said.out
    assert "Claude Code" in said.out and f"continue it: cd {file.parent} && claude --resume {TWO}" in said.out
    (part,) = asked(f"{file}:4")["lines"]
    assert (part["sure"], part["session"]["session_id"], part["session"]["tool"]) == ("edit matches", TWO, "Edit")
    shown = agtrace_here("show", part["session"]["event"])
    assert "return retry(1)" in shown.out
    command = next(line for line in said.out.splitlines() if "agtrace show " in line).partition("agtrace ")[2]
    assert agtrace_here(*command.split()).out == shown.out


def test_a_range_is_parted_by_who_wrote_it_and_failed_edits_wrote_nothing(file: Path) -> None:
    parts = asked(f"{file}:1-4")["lines"]
    assert [(p["first_line"], p["last_line"], p["session"]["session_id"]) for p in parts] == [(1, 3, ONE), (4, 4, TWO)]


def test_a_whole_file_lists_the_sessions_that_wrote_it_newest_first(file: Path) -> None:
    found = asked(file)["sessions"]
    assert [(each["session"]["session_id"], each["edits"], each["lines"]) for each in found] == [
        (TWO, 1, 1),
        (ONE, 1, 3),
    ]
    said = agtrace_here("why", str(file)).out
    assert "written by 2 sessions, newest first" in said and "1 edit, 3 lines of it now" in said


def test_line_ends_of_windows_and_relative_paths_make_no_difference(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    monkeypatch.chdir(file.parent)
    assert [part["session"]["session_id"] for part in asked("store.py:3-4")["lines"]] == [ONE, TWO]


def test_a_masked_line_is_known_and_stays_masked(tmp_path: Path) -> None:
    file = tmp_path / "keys.py"
    content = f'TOKEN = "{SECRET}"\nprint(TOKEN)\n'
    file.write_text(content)
    log = claude_log(tmp_path / "home", ONE, cwd=str(tmp_path))
    log.prompt("Go.").call("Write", {"file_path": str(file), "content": content}, "ok")
    index_here(tmp_path / "home")
    said = agtrace_here("why", f"{file}:1-2")
    assert "edit matches" in said.out and SECRET not in said.out and "[redacted: github-token]" in said.out


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("gone.py:3", "can't be read: no such file"),
        ("{folder}", "is a folder"),
        ("{file}:99", "has 4 lines"),
        ("{file}:0", "counted from 1"),
        ("{file}:4-2", "the lower number first"),
        ("binary.bin:1", "is binary and has no lines"),
        ("huge.txt:1", "is too large"),
        ("pipe:1", "is not a regular file"),
    ],
)
def test_what_has_no_such_line_says_so(place: str, message: str, file: Path) -> None:
    (file.parent / "binary.bin").write_bytes(b"\x00\x01\n" * 9)
    (file.parent / "huge.txt").write_bytes(b"line\n" * 1_000_000)
    os.mkfifo(file.parent / "pipe")
    named = place.format(file=file, folder=file.parent)
    said = agtrace_here("why", named if named.startswith("/") else str(file.parent / named))
    assert (said.code, said.out) == (2, "") and message in " ".join(said.err.split())


def test_a_file_that_no_session_wrote_or_that_is_gone_says_so(file: Path) -> None:
    other = file.with_name("other.py")
    other.write_text("x\n")
    said = agtrace_here("why", str(other))
    assert said.code == 1 and "No session in the index named this file." in said.out
    assert agtrace_here("why", f"{other}:1").code == 1
    file.unlink()
    said = agtrace_here("why", str(file))
    assert said.code == 0 and "can't be read: no such file" in said.out and TWO[:8] in said.out


def test_an_edit_that_replaced_a_text_everywhere_is_named_only_as_surely_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "tide.py"
    file.write_text("flow = tides.Flow\nebb = tide.Ebb\n")
    log = claude_log(tmp_path / "home", ONE, cwd=str(tmp_path)).prompt("Rename it.")
    edit(log, file, "tide.", "tides.", replace_all=True)
    index_here(tmp_path / "home")
    (part,) = asked(f"{file}:1-2")["lines"]
    assert (part["sure"], part["session"]["session_id"]) == ("edit may match", ONE)
    assert "the line may have had it before\n" in agtrace_here("why", f"{file}:1").out
    said = agtrace_here("why", str(file)).out
    assert "1 edit, 0 lines of it now" in said and "2 lines may be from an edit that replaced a text everywhere" in said


def test_a_turn_that_a_command_opened_is_told_with_it(tmp_path: Path) -> None:
    file = tmp_path / "tide.py"
    file.write_text("ebb = 1\n")
    log = claude_log(tmp_path / "home", ONE, cwd=str(tmp_path))
    log.prompt("<command-message>tide</command-message>\n<command-name>/tide-review</command-name>")
    log.write("user", "Look at the tide.", isMeta=True)
    edit(log, file, "ebb = 1", "ebb = 2")
    log.prompt("And now?").say("Ok.")
    index_here(tmp_path / "home")
    assert "  turn 0: /tide-review\n" in agtrace_here("why", f"{file}:1").out
    assert asked(f"{file}:1")["lines"][0]["session"]["request"] == "/tide-review"
    for part in ((), ("--turns", "0")):
        shown = agtrace_here("show", ONE, *part).out
        assert shown.index("turn 0 ") < shown.index("/tide-review") < shown.index("Edit")
        assert shown.count("/tide-review") == 1
    assert "/tide-review" not in agtrace_here("show", ONE, "--turns", "1").out


def test_a_file_renamed_by_a_patch_keeps_its_history(tmp_path: Path) -> None:
    old, new = tmp_path / "old.py", tmp_path / "new.py"
    log = claude_log(tmp_path / "home", ONE, cwd=str(tmp_path)).prompt("Write.")
    log.call("Write", {"file_path": str(old), "content": "first = 1\nsecond = 2\n"}, "ok")
    two = later(claude_log(tmp_path / "home", TWO, cwd=str(tmp_path)), log).prompt("Rename.")
    patch = f"*** Begin Patch\n*** Update File: {old}\n*** Move to: {new}\n"
    patch += "@@\n first = 1\n-second = 2\n+second = 3\n*** End Patch"
    two.call("apply_patch", {"input": patch}, "ok")
    new.write_text("first = 1\nsecond = 3\n")
    index_here(tmp_path / "home")
    assert [part["session"]["session_id"] for part in asked(f"{new}:1-2")["lines"]] == [ONE, TWO]


# -- git -------------------------------------------------------------------------------------------


def git(folder: Path, *command: str) -> str:
    who = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for role in ("AUTHOR", "COMMITTER"):
        who |= {f"GIT_{role}_NAME": "Mira", f"GIT_{role}_EMAIL": "mira@example.org"}
    return subprocess.run(
        ["git", *command], cwd=folder, env={**os.environ, **who}, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty repository."""
    (tmp_path / "tidepool").mkdir()
    git(tmp_path / "tidepool", "init", "-q")
    return tmp_path / "tidepool"


def committed(folder: Path, message: str) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)
    return git(folder, "rev-parse", "HEAD").strip()


def test_a_line_from_a_commit_that_a_session_made_names_that_session(folder: Path, tmp_path: Path) -> None:
    (folder / "a.py").write_text("from_nobody = 1\n")
    first = committed(folder, "Begin by hand")
    (folder / "a.py").write_text("from_nobody = 1\nfrom_sed = 2\n")
    second = committed(folder, "Add the second")
    (folder / "a.py").write_text("from_nobody = 1\nfrom_sed = 2\nnot_yet = 3\n")
    log = claude_log(tmp_path / "home", ONE, cwd=str(folder)).prompt("Add a second line with sed.")
    log.call("Bash", {"command": "sed -i '$a from_sed = 2' a.py && git commit -qam 'Add the second'"}, "")
    log.call(
        "Bash", {"command": "git commit -am 'Add the second'"}, f"[main {second[:7]}] Add the second\n 1 file changed"
    )
    index_here(tmp_path / "home")
    one, two, three = asked(f"{folder / 'a.py'}:1-3")["lines"]
    assert (one["sure"], one["commit"]["hash"], one["commit"]["author"]) == ("unknown", first, "Mira")
    assert (two["sure"], two["session"]["session_id"], two["commit"]["subject"]) == (
        "commit made by session", ONE, "Add the second",
    )  # fmt: skip
    assert (three["sure"], three["uncommitted"]) == ("unknown", True) and "commit" not in three
    said = agtrace_here("why", f"{folder / 'a.py'}:1-3").out
    assert f"commit {first[:10]}" in said and "not committed yet" in said
    (tmp_path / "link").symlink_to(folder)
    assert asked(f"{tmp_path / 'link' / 'a.py'}:2")["lines"][0]["sure"] == "commit made by session"


def test_a_file_renamed_in_git_keeps_its_history(folder: Path, tmp_path: Path) -> None:
    content = "".join(f"value_{number} = {number}\n" for number in range(9))
    log = claude_log(tmp_path / "home", ONE, cwd=str(folder)).prompt("Write.")
    log.call("Write", {"file_path": str(folder / "old name.py"), "content": content}, "ok")
    (folder / "old name.py").write_text(content)
    committed(folder, "One")
    git(folder, "mv", "old name.py", "new.py")
    committed(folder, "Two")
    index_here(tmp_path / "home")
    (part,) = asked(f"{folder / 'new.py'}:3")["lines"]
    assert (part["sure"], part["session"]["session_id"]) == ("edit matches", ONE)


@pytest.mark.parametrize(
    ("where", "began"),
    [
        (".claude/worktrees/tide", ".claude/worktrees/tide"),
        (".claude/worktrees/tide", "."),
        ("../gone", "."),
        ("../here", "."),
    ],
)
def test_an_edit_in_another_worktree_of_the_repository_is_found(
    where: str, began: str, folder: Path, tmp_path: Path
) -> None:
    """Also by a session, or a sub-agent, that began in the repository, and when the worktree is gone."""
    (folder / "src").mkdir()
    (folder / "src" / "a.py").write_text("first = 1\n")
    committed(folder, "One")
    worktree = Path(os.path.normpath(folder / where))
    if where == "../here":
        git(folder, "worktree", "add", "-q", "--detach", str(worktree))
    log = claude_log(tmp_path / "home", ONE, cwd=os.path.normpath(folder / began)).prompt("Add a second.")
    edit = {"file_path": str(worktree / "src/a.py"), "old_string": "first = 1", "new_string": "first = 1\nsecond = 2"}
    log.call("Edit", edit)
    (folder / "src" / "a.py").write_text("first = 1\nsecond = 2\n")
    index_here(tmp_path / "home")
    (part,) = asked(f"{folder / 'src' / 'a.py'}:2")["lines"]
    assert (part["sure"], part["session"]["session_id"]) == ("edit matches", ONE)


def test_a_file_of_a_session_on_windows_is_found_by_its_path(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "home", ONE, cwd="D:\\tidepool").prompt("Write the table.")
    log.call("Write", {"file_path": "D:\\tidepool\\src\\tides.py", "content": "first = 1\n"}, "ok")
    index_here(tmp_path / "home")
    found = asked("D:\\tidepool\\src\\tides.py")
    assert [written["session"]["session_id"] for written in found["sessions"]] == [ONE]


def test_a_line_that_is_no_number_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("first = 1\n")
    said = agtrace_here("why", f"{tmp_path / 'a.py'}:x")
    assert said.code == 2 and "expected FILE:10 or FILE:10-20, got 'x'" in said.err


def test_another_clone_is_known_by_its_remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = tmp_path / "elsewhere" / "tidepool"
    (clone / "src").mkdir(parents=True)
    git(clone, "init", "-q")
    git(clone, "remote", "add", "fork", "https://example.org/nobody/tidepool.git")
    git(clone, "remote", "add", "origin", "git@github.com:mira/tidepool.git")
    (clone / "src" / "a.py").write_text("first = 1\nsecond = 2\n")
    log = claude_log(tmp_path / "home", ONE, cwd="/srv/mira/tidepool").prompt("Add a second.")
    log.call("Bash", {"command": "git remote -v"}, "origin\tgit@github.com:mira/tidepool.git (fetch)")
    log.call(
        "Edit",
        {"file_path": "/srv/mira/tidepool/src/a.py", "old_string": "first = 1", "new_string": "first = 1\nsecond = 2"},
    )
    claude_log(tmp_path / "home", TWO, cwd="/srv/mira/harbour").prompt("Something else.")
    index_here(tmp_path / "home")
    (part,) = asked(f"{clone / 'src' / 'a.py'}:2")["lines"]
    assert (part["sure"], part["session"]["session_id"]) == ("edit matches", ONE)
    monkeypatch.chdir(clone / "src")
    assert [one["id"] for one in agtrace_here("sessions", "--project", ".", "--json").json()["data"]["sessions"]] == [
        ONE[:8]
    ]
    (clone / ".git" / "config").unlink()
    os.mkfifo(clone / ".git" / "config")
    assert agtrace_here("sessions", "--project", ".").code != 0


def test_a_hostile_repository_starts_nothing(folder: Path, tmp_path: Path) -> None:
    mark = tmp_path / "started"
    (folder / "a.py").write_text("one = 1\n")
    committed(folder, "One")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho x >> {mark}\ncat\n")
    program.chmod(0o755)
    (folder / ".gitattributes").write_text("*.py filter=evil diff=evil\n")
    hooks = folder / ".git" / "hooks"
    for hook in ("post-index-change", "pre-auto-gc", "reference-transaction", "post-checkout"):
        (hooks / hook).write_text(program.read_text())
        (hooks / hook).chmod(0o755)
    for name in (
        *("core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv"),
        *("diff.evil.command", "diff.external", "core.pager", "pager.blame", "pager.log", "gpg.program"),
        *("core.sshCommand", "core.editor", "credential.helper", "core.askPass"),
    ):
        git(folder, "config", name, str(program))
    for name in ("log.showSignature", "extensions.partialClone"):
        git(folder, "config", name, "true" if name.startswith("log") else "origin")
    git(folder, "config", "remote.origin.url", f"ext::{program}")
    (folder / "a.py").write_text("one = 1\ntwo = 2\n")
    mark.unlink(missing_ok=True)
    log = claude_log(tmp_path / "home", ONE, cwd=str(folder)).prompt("Go.")
    log.call("Read", {"file_path": str(folder / "a.py")}, "one = 1")
    index_here(tmp_path / "home")
    one, two = asked(f"{folder / 'a.py'}:1-2")["lines"]
    assert one["commit"]["subject"] == "One" and two["uncommitted"] and one["sure"] == "only touched"
    assert not mark.exists()


# -- for agents ------------------------------------------------------------------------------------


def test_an_agent_gets_the_same_by_reference_but_only_of_files_that_a_session_named(file: Path, tmp_path: Path) -> None:
    asker = Asker(tmp_path / "index", tmp_path / "home")
    given = asker.ask("read_artifact", ref=f"ax://why{file}:4")
    assert given["data"]["text"] == agtrace_here("why", f"{file}:4").out
    assert f"ax://event/{TWO[:8]}/" in given["hint"] and "1 session" in given["summary"]
    assert "newest first" in asker.ask("read_artifact", ref=f"ax://why/{file}")["data"]["text"]
    private = file.with_name("private.txt")
    private.write_text("nobody's business\n")
    told = asker.ask("read_artifact", ref=f"ax://why{private}:1")["data"]["text"]
    assert "No session in the index named this file" in told and "business" not in told
    assert asker.error("read_artifact", ref=f"ax://why{file}:77")["code"] == "invalid_range"
    assert asker.error("read_artifact", ref=f"ax://why{file}:0")["code"] == "invalid_range"
