"""The commits and branches that git made are those that are recognized, whatever the command looks like."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from agtrace_indexer.landmarks.attempts import attempts
from agtrace_indexer.landmarks.recognition import landmarks
from agtrace_schema.events import Outcome

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

COMMANDS = [
    "echo 1 > a && git add -A && git commit -m 'First: the files'",
    "echo 2 > a && git commit -aqm 'quiet; said nothing' && git log --oneline -1",
    "echo 3 > a; git commit -am 'Three' 2>&1 | tail -3",
    "git commit -m nothing",
    "git commit -m nothing || echo 'nothing to do'",
    "git checkout -b side && echo s > s && git add . && git commit -m 'On the side (with [brackets])'",
    "git switch main && git merge side --no-edit",
    "git switch -c other main~1 2>&1; echo o > o; git add o; git commit -m 'Other\n\nbody'; git status --short | head",
    "git switch -q main && git merge --no-ff other -m 'Merge other into main' && git rev-parse HEAD",
    "git cherry-pick --allow-empty --keep-redundant-commits other 2>&1 | tail -5",
    "git revert --no-edit HEAD~1 -m 1 2>&1 | head -3",
    "git commit --amend -m 'Amended'",
    "git commit --allow-empty -qm 'as rtk prints it' 2>&1 | tail -1; echo ok $(git rev-parse --short HEAD)",
    "git stash list; git log --oneline | head -3; git show --stat HEAD | head; git status; git branch --show-current",
    "git branch -m other moved; git branch -D moved; git checkout -- .; git tag v1; git commit --dry-run -m x",
    "git commit --allow-empty -F - <<EOF\nfrom stdin\n\nbody\nEOF",
    "git commit --allow-empty -qF - <<'EOF'\nsays `nothing` (of \"itself\")\n\nbody\nEOF\ngit log --oneline -3; ls",
    "git commit -q --allow-empty --file=- <<EOF\nOne\nEOF\ngit commit -qm Two --allow-empty; git log --oneline -3",
    "echo x > x; git add x; git commit -q -F - <<EOF && git status --short\nx\nEOF\ngit rev-parse --short HEAD",
    "echo y > y; git add y; git commit -m y | tail -1; git rev-parse HEAD",
    "git commit -q -F - <<EOF\nnothing\nEOF\nls",
    'git commit --allow-empty -m "$(cat <<\'EOF\'\na "quoted" thing; $more\n\n- git checkout -b no\nEOF\n)" | cat',
    "(cd . && git commit --allow-empty -m 'in a subshell')",
    "git checkout nope 2>&1; git checkout -b nope",
    "git checkout -b nope || git checkout main",
    "git checkout -q --detach && git commit --allow-empty -m detached && git checkout -q main",
    "echo 'exit 1' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; git commit --allow-empty -m hooked",
]


class Repository:
    """A repository, and a shell in it."""

    def __init__(self, folder: Path) -> None:
        """Make one with a commit."""
        self.folder = folder
        who = {f"GIT_{role}_{what}": "a@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_EDITOR": "true", **who}
        self.commands = 0
        self.run("git init -q -b main . && git commit --allow-empty -qm Start")

    def run(self, command: str) -> tuple[str, Outcome]:
        """Run a command; return what it printed and how it ended."""
        self.commands += 1  # a clock of its own, so that hashes are the same every day
        clock = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"{1_700_000_000 + self.commands} +0000")
        ended = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.environment | clock, text=True, capture_output=True
        )  # fmt: skip
        return ended.stdout + ended.stderr, Outcome.FAILED if ended.returncode else Outcome.OK

    def made(self) -> set[str]:
        """The commits and branches that exist, those that nothing refers to any more included."""
        branches = self.run("git for-each-ref --format='branch %(refname:short)' refs/heads")[0].splitlines()
        commits = self.run("git log --all --reflog --format='commit %H'")[0].splitlines()
        return {one for one in (*branches, *commits) if one.startswith(("branch ", "commit "))}


def test_what_git_made_is_what_is_recognized(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    for command in COMMANDS:
        before = repository.made()
        found = landmarks(attempts(command), *repository.run(command))
        new = repository.made() - before
        named = [f"{one.kind} {one.name}" for one in found]
        assert len(named) == len(new), command
        assert all(any(real.startswith(name) for name in named) for real in new), command
