"""Output of programs that agents run in a project's shell."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from benchmarks.corpus.chance import hexadecimal, pick, pick_early, secret, uuid4
from benchmarks.corpus.project import Project

_ERRORS = ("ValueError", "KeyError", "TypeError", "AttributeError", "RuntimeError", "TimeoutError", "AssertionError")
_LEVELS = ("INFO", "INFO", "INFO", "DEBUG", "WARNING", "ERROR")
_VERBS = ("fix", "add", "rename", "simplify", "test", "document", "revert", "speed up", "remove")
_DAY_SECONDS = 86_400


class Run(NamedTuple):
    """A shell command and its result."""

    command: str
    purpose: str
    output: str
    exit_code: int = 0


def tests(rng: Random, project: Project, now: int) -> Run:
    """Run pytest, sometimes with a failure and its traceback."""
    file = pick_early(rng, project.files).path
    total, seconds = rng.randrange(3, 900), rng.random() * 60
    command = f"cd {project.root} && python -m pytest -q {file.removeprefix(project.root + '/')} 2>&1 | tail -40"
    dots = "." * min(72, total)
    if rng.random() < 0.75:
        return Run(command, "Run the tests", f"{dots} [100%]\n{total} passed in {seconds:.2f}s")
    name = f"test_{pick(rng, project.names)}"
    trace = traceback(rng, project)
    last = trace.rpartition("\n")[2]
    output = (
        f"{dots}F [100%]\n=================================== FAILURES ===================================\n"
        f"{name:_^80}\n\n{trace}\n=========================== short test summary info ============================\n"
        f"FAILED {file}::{name} - {last}\n1 failed, {total} passed in {seconds:.2f}s"
    )
    return Run(command, "Run the tests", output, 1)


def traceback(rng: Random, project: Project) -> str:
    """Return a traceback through files of the project."""
    frames = []
    for _ in range(rng.randrange(2, 12)):
        file = pick_early(rng, project.files)
        number = rng.randrange(len(file.lines))
        name = pick(rng, project.names)
        frames.append(f'  File "{file.path}", line {number + 1}, in {name}\n    {file.lines[number].strip()[:200]}')
    reason = f"{pick(rng, project.words)} {pick(rng, project.words)} {pick(rng, project.names)!r}"
    return "\n".join(["Traceback (most recent call last):", *frames, f"{pick(rng, _ERRORS)}: {reason}"])


def program(rng: Random, project: Project, now: int) -> Run:
    """Run a script of the project, which prints some of its data, or fails."""
    file = pick_early(rng, project.files).path
    command = f"python {file} --{pick(rng, project.words)} {rng.randrange(100)}"
    if rng.random() < 0.2:
        return Run(command, f"Run {pick(rng, project.names)}", traceback(rng, project), 1)
    lines = [
        f"{pick(rng, project.names)}={rng.randrange(100_000)} {pick(rng, project.words)} {rng.random():.4f}"
        for _ in range(rng.randrange(5, 60))
    ]
    return Run(command, f"Run {pick(rng, project.names)}", "\n".join(lines))


def server_log(rng: Random, project: Project, now: int) -> Run:
    """Show the log of a running service: times, ports, request ids."""
    port = rng.randrange(1024, 65_536)
    lines, second = [], now // 1000
    for _ in range(rng.randrange(10, 60)):
        second += rng.randrange(4)
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(second))
        lines.append(
            f"{stamp},{rng.randrange(1000):03d} {pick(rng, _LEVELS)} {pick_early(rng, project.names)}: "
            f"{pick(rng, project.words)} {pick(rng, project.words)} 127.0.0.1:{port} "
            f"request={uuid4(rng) if rng.random() < 0.3 else rng.randrange(10**6)} {rng.random() * 900:.1f}ms"
        )
    return Run(f"tail -n 60 /var/log/{project.name}/{port}.log", "Look at the service's log", "\n".join(lines))


def history(rng: Random, project: Project, now: int) -> Run:
    """Run git log."""
    lines = [
        f"{hexadecimal(rng, 8)} {pick(rng, _VERBS)} {pick(rng, project.names)} in {pick(rng, project.words)}"
        for _ in range(rng.randrange(5, 50))
    ]
    return Run(f"git log --oneline -{len(lines)}", "Show the last commits", "\n".join(lines))


def difference(rng: Random, project: Project, now: int) -> Run:
    """Run git diff on one to three files."""
    parts = []
    for _ in range(rng.randrange(1, 4)):
        file = pick_early(rng, project.files)
        path, at = file.path.removeprefix(project.root + "/"), rng.randrange(len(file.lines))
        lines = file.lines[at : at + 40]
        marks = [pick(rng, (" ", " ", " ", "-", "+")) for _ in lines]
        parts.append(
            f"diff --git a/{path} b/{path}\nindex {hexadecimal(rng, 8)}..{hexadecimal(rng, 8)} 100644\n"
            f"--- a/{path}\n+++ b/{path}\n@@ -{at + 1},{len(lines)} +{at + 1},{len(lines)} @@\n"
            + "\n".join([mark + line for mark, line in zip(marks, lines, strict=True)])
        )
    return Run("git diff HEAD", "Show what changed", "\n".join(parts))


def excerpt(rng: Random, project: Project, now: int) -> Run:
    """Show a part of a file with sed or cat."""
    file = pick_early(rng, project.files)
    window = file.window(rng)
    return Run(f"sed -n '{window.start},{window.start + window.count}p' {file.path}", "Show the lines", window.text)


def listing(rng: Random, project: Project, now: int) -> Run:
    """Run ls -l on some files."""
    lines = [
        f"-rw-r--r-- 1 mira mira {rng.randrange(200, 90_000):6} Jun {rng.randrange(1, 31):2} "
        f"{rng.randrange(24):02}:{rng.randrange(60):02} {pick(rng, project.files).path}"
        for _ in range(rng.randrange(5, 50))
    ]
    return Run(f"ls -l $(git ls-files | grep {pick(rng, project.words)})", "List the files", "\n".join(lines))


def missing_command(rng: Random, project: Project, now: int) -> Run:
    """Run a command that fails at once."""
    word = pick(rng, project.words)
    return Run(f"{word}ctl status", f"Ask {word}", f"/bin/bash: line 1: {word}ctl: command not found", 127)


def settings(rng: Random, project: Project, now: int) -> Run:
    """Show environment variables, with secrets among them."""
    lines = [f"{pick(rng, project.words).upper()}_{pick(rng, project.words).upper()}={rng.randrange(9999)}"]
    return Run("cat .env", "Look at the settings", "\n".join([*lines, secret(rng), secret(rng), "DEBUG=1"]))


def one_long_line(rng: Random, project: Project, now: int) -> Run:
    """Show a minified file: 50 to 500 KB without a line break, which makes a record of 100 KB to 1 MB."""
    wanted, parts, size = int(50_000 * 10 ** rng.random()), [], 0
    while size < wanted:
        name = pick(rng, project.names)
        part = f"function {name}(a,b){{return a.{pick(rng, project.words)}({rng.randrange(9999)})||b}};"
        parts.append(part)
        size += len(part)
    return Run(f"cat dist/{project.name}.min.js", "Look at the bundle", "".join(parts))


_COMMANDS: list[tuple[Callable[[Random, Project, int], Run], float]] = [
    (tests, 26), (excerpt, 24), (program, 12), (difference, 12), (history, 8), (listing, 7), (server_log, 8),
    (missing_command, 2), (settings, 0.6), (one_long_line, 0.06),
]  # fmt: skip
_PROGRAMS = [command for command, weight in _COMMANDS for _ in range(round(weight * 100))]


def run(rng: Random, project: Project, now: int) -> Run:
    """Run a command of the kinds that agents run."""
    return pick(rng, _PROGRAMS)(rng, project, now)
