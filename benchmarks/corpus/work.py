"""The work in a session, whatever the agent: prompts, thoughts, answers and tool calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from benchmarks.corpus import outputs
from benchmarks.corpus.chance import binary, hexadecimal, pick, pick_early
from benchmarks.corpus.project import Project, SourceFile, Window
from benchmarks.corpus.voices import VOICES, Voice

_WORKING_SET = (4, 40)
_TURN_RESPONSES = (1, 25)
_CALLS_OF_A_RESPONSE = (1, 1, 2, 2, 3, 3, 4)


@dataclass(slots=True)
class Call:
    """A tool call and its result."""

    kind: str
    """read, shell, edit, search, write, image, or other."""
    tool: str
    """The tool's name in Claude Code."""
    arguments: dict[str, Any]
    """In Claude Code's form."""
    output: str = ""
    """Empty for a `read`, whose text is that of the window."""
    failed: bool = False
    rejected: bool = False
    exit_code: int = 0
    path: str = ""
    at: int = 0
    """An edit's first line, counted from 0."""
    window: Window | None = None
    duration_ms: int = 0


@dataclass(slots=True)
class Response:
    """One response of the model; the first of a turn has the prompt before it."""

    prompt: str = ""
    thought: str = ""
    saying: str = ""
    calls: list[Call] = field(default_factory=list)
    last: bool = False
    """Whether it is the last of its turn."""


class Work:
    """A session's worth of work on a few files of a project."""

    def __init__(self, rng: Random, project: Project, language: int) -> None:
        self.rng = rng
        self.project = project
        self.voice: Voice = VOICES[language]
        self.now = 0
        self._files = [pick_early(rng, project.files) for _ in range(rng.randrange(*_WORKING_SET))]

    def responses(self) -> Iterator[Response]:
        """Yield responses, turn after turn, without end."""
        while True:
            yield from self._turn()

    def say(self, most: int) -> str:
        """Return a text of up to this many sentences."""
        return self.voice(self.rng, self.project, self.rng.randrange(1, most + 1))

    def _turn(self) -> Iterator[Response]:
        rng, prompt = self.rng, self.say(4)
        for _ in range(rng.randrange(*_TURN_RESPONSES)):
            thought = self.say(5) if rng.random() < 0.25 else ""
            saying = self.say(2) if rng.random() < 0.2 else ""
            calls = [self._call() for _ in range(pick(rng, _CALLS_OF_A_RESPONSE))]
            yield Response(prompt, thought, saying, calls)
            prompt = ""
        yield Response(prompt, "", self.say(8), [], last=True)

    def _call(self) -> Call:
        return pick(self.rng, _CALLS)(self)

    def _file(self) -> SourceFile:
        if self.rng.random() < 0.05:
            self._files.append(pick_early(self.rng, self.project.files))
        return pick_early(self.rng, self._files)

    def read(self) -> Call:
        """Read a part of a file, or a file that doesn't exist."""
        rng, file = self.rng, self._file()
        if rng.random() < 0.03:
            path = f"{self.project.root}/src/{pick(rng, self.project.words)}/{pick(rng, self.project.words)}.py"
            return Call("read", "Read", {"file_path": path}, "File does not exist.", failed=True, path=path)
        window = file.window(rng)
        arguments: dict[str, Any] = {"file_path": file.path}
        if window.count < window.total:
            arguments |= {"offset": window.start, "limit": window.count}
        return Call("read", "Read", arguments, path=file.path, window=window)

    def shell(self) -> Call:
        """Run a shell command."""
        rng = self.rng
        run = outputs.run(rng, self.project, self.now)
        arguments = {"command": run.command, "description": run.purpose}
        took = int(rng.expovariate(1.0) * 4000)
        rejected = rng.random() < 0.006
        return Call(
            "shell", "Bash", arguments, run.output, failed=run.exit_code != 0, rejected=rejected,
            exit_code=run.exit_code, duration_ms=took,
        )  # fmt: skip

    def edit(self) -> Call:
        """Replace some lines of a file by a few more, with a new name now and then."""
        rng, file = self.rng, self._file()
        at = rng.randrange(max(1, len(file.lines) - 6))
        old = file.lines[at : at + rng.randrange(1, 16)]
        name = self.project.coin(rng) if rng.random() < 0.5 else pick(rng, self.project.names)
        indent = old[0][: len(old[0]) - len(old[0].lstrip())] if old else ""
        new = [*old, f"{indent}{name} = {pick(rng, self.project.names)}({rng.randrange(100)})"]
        arguments = {"file_path": file.path, "old_string": "\n".join(old), "new_string": "\n".join(new)}
        if rng.random() < 0.05:
            reason = "String to replace not found in file."
            return Call("edit", "Edit", arguments, reason, failed=True, path=file.path)
        file.replace(at, len(old), new)
        return Call("edit", "Edit", arguments, path=file.path, at=at)

    def search(self) -> Call:
        """Search for lines with a name."""
        name = pick_early(self.rng, self.project.names[:200])
        lines = self.project.matching_lines(name)[: self.rng.randrange(10, 80)]
        arguments = {"pattern": name, "path": self.project.root, "output_mode": "content", "-n": True}
        return Call("search", "Grep", arguments, "\n".join(lines) or "No matches found")

    def write(self) -> Call:
        """Write a new file with names and calls of the project."""
        rng, names = self.rng, self.project.names
        name = self.project.coin(rng)
        path = f"{self.project.root}/tests/test_{name.lower()}.py"
        body = [f'"""{self.say(1)}"""', "", f"from {pick(rng, self.project.words)} import {pick(rng, names)}", ""]
        for _ in range(rng.randrange(2, 12)):
            case = self.project.coin(rng)
            body += ["", f"def test_{case}():", f"    {case} = {pick(rng, names)}({rng.randrange(1000)})"]
            body += [f"    assert {case}.{pick(rng, names)} == {rng.randrange(1000)}", ""]
        text = "\n".join(body)
        self._files.append(SourceFile(path, text))
        return Call("write", "Write", {"file_path": path, "content": text}, path=path)

    def image(self) -> Call:
        """Open a screenshot of a few KB."""
        path = f"{self.project.root}/shots/{hexadecimal(self.rng, 6)}.png"
        return Call("image", "Read", {"file_path": path}, binary(self.rng, self.rng.randrange(2000, 9000)), path=path)

    def plan(self) -> Call:
        """Add a task to the to-do list."""
        task = f"{pick(self.rng, self.project.words).title()} {pick(self.rng, self.project.names)}"
        arguments = {"subject": task, "description": self.say(2), "activeForm": task}
        output = f"Task #{self.rng.randrange(1, 30)} created successfully: {task}"
        return Call("other", "TaskCreate", arguments, output)

    def web(self) -> Call:
        """Fetch a web page."""
        url = f"https://docs.{pick(self.rng, self.project.words)}.example/{pick(self.rng, self.project.words)}"
        return Call("other", "WebFetch", {"url": url, "prompt": self.say(1)}, self.say(12), duration_ms=900)

    def issue(self) -> Call:
        """Call a rarely used tool of an MCP server."""
        number = self.rng.randrange(10_000)
        arguments = {"title": self.say(1), "labels": [pick(self.rng, self.project.words)]}
        return Call("other", "mcp__tracker__create_issue", arguments, f"Created issue #{number}")


_WEIGHTS: list[tuple[Callable[[Work], Call], int]] = [
    (Work.read, 3600), (Work.shell, 3600), (Work.edit, 1600), (Work.search, 1000), (Work.write, 250),
    (Work.plan, 250), (Work.web, 80), (Work.image, 25), (Work.issue, 2),
]  # fmt: skip
_CALLS = [call for call, weight in _WEIGHTS for _ in range(weight)]
