"""The notation of labelled sessions (README.md): reads `*.sessions` files into stories.

Anything that isn't understood is an error that names file and line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.health.stories import DAY, PROVIDERS, Ended, Execution, Remark, Response, Spoken, Story, Tokens

FOLDER = Path(__file__).resolve().parent

TICK = 2
"""Seconds that pass from one line to the next."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": DAY}


class StoryError(Exception):
    """Something in a file of stories isn't understood."""


def read_stories(detectors: Collection[str], folder: Path = FOLDER) -> list[Story]:
    """Return all stories in a folder; `detectors` are the names that a label may have."""
    return [story for path in sorted(folder.glob("*.sessions")) for story in stories_of(path, detectors)]


def stories_of(path: Path, detectors: Collection[str]) -> list[Story]:
    """Return the stories in a file."""
    if path.stem not in detectors:
        raise StoryError(f"{path.name}: no detector is called {path.stem}")
    lines = list(enumerate(path.read_text(encoding="utf-8").split("\n"), 1))
    starts = [at for at, (_, line) in enumerate(lines) if line.startswith("=== ")]
    if any(line.strip() for _, line in lines[: starts[0] if starts else None]):
        raise StoryError(f"{path.name}:1: a story begins with `=== ` and its name")
    stories: list[Story] = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        stories.append(_Reader(path, lines[start:end], detectors).story())
        if any(stories[-1].name == before.name for before in stories[:-1]):
            raise StoryError(f"{stories[-1].place}: another story has this name")
    return stories


_LINE = re.compile(
    r"(?P<joined>& )?(?:(?P<kind>user|say|think|run|read|edit|write|grep|inject|command|compaction|api error|review"
    r"|retry|tokens): ?(?P<text>.*)|(?P<bare>interrupt|wait|tool)(?: (?P<rest>.*))?)",
    re.DOTALL,
)
_END = re.compile(r"(?:(?P<how>ok|failed)(?: (?P<code>\d+))?: ?(?P<text>.*)|(?P<bare>refused|interrupted))", re.DOTALL)
_REPEAT = re.compile(r"repeat (\d+)\s*")
_PART = re.compile(r"(?P<path>.+?)(?: (?P<first>\d+)-(?P<last>\d+))?")
_FIGURE = re.compile(r"([\d,_]+) (in|cached|written|out)")
_TIME = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+")
_BIG = re.compile(r"big (\d+)")
_EXECUTIONS = ("run", "read", "edit", "write", "grep", "tool")
_REMARKS = ("user", "inject", "command", "compaction", "api error", "review", "retry", "interrupt")

_NO_REVIEWS = {"review": "only Codex logs what a review found"}
_UNKNOWN_TO = {
    "claude_code": _NO_REVIEWS,
    "codex": {
        "retry": "Codex doesn't log that a request was sent again",
        "command": "Codex doesn't log slash commands",
    },
    "gemini": _NO_REVIEWS
    | {
        "retry": "Gemini CLI doesn't log that a request was sent again",
        "compaction": "Gemini CLI's log doesn't record a compaction: it drops everything before",
    },
}


class _Reader:
    """Reads the lines of one story, and keeps its clock."""

    def __init__(self, path: Path, lines: list[tuple[int, str]], detectors: Collection[str]) -> None:
        self.path, self.detectors = path, detectors
        self.number, first = lines[0]
        self.made = Story(path.stem, first[4:].strip(), self.number)
        self.lines = lines[1:]
        self.clock = 0.0
        self.waited: float | None = None

    def story(self) -> Story:
        """Read headers and lines."""
        body = next((at for at, (_, line) in enumerate(self.lines) if not line.strip()), len(self.lines))
        headers = self.lines[:body]
        for number, line in headers:
            self._header(number, line)
        if not any(line.startswith("finds:") for _, line in headers):
            raise self._wrong("a story needs the header `finds:`", self.made.line)
        if self.made.window and self.made.provider != "codex":
            raise self._wrong("only Codex logs the context window", self.made.line)
        self.made.model = self.made.model or PROVIDERS[self.made.provider]
        for number, line in _joined(self._repeated(self.lines[body:])):
            self.number = number
            if line.strip():
                self._below(line[2:]) if line.startswith("  ") else self._line(line)
        if not self.made.scenes:
            raise self._wrong("nothing happens in this story", self.made.line)
        return self.made

    def _wrong(self, message: str, number: int | None = None) -> StoryError:
        return StoryError(f"{self.path.name}:{number or self.number}: {message}")

    def _header(self, number: int, line: str) -> None:
        self.number = number
        name, _, value = (part.strip() for part in line.partition(":"))
        if name == "finds":
            found = [] if value == "nothing" else [word.strip() for word in value.split(",")]
            for word in found:
                if word not in self.detectors:
                    raise self._wrong(f"no detector is called {word!r}")
            self.made.finds = frozenset(found)
        elif name == "provider" and value in PROVIDERS:
            self.made.provider = value
        elif name == "model" and value:
            self.made.model = value
        elif name == "window" and value.isdecimal():
            self.made.window = int(value)
        elif name == "age":
            self.made.age = self._seconds(value)
        else:
            raise self._wrong(f"not a header: {line!r}")

    def _repeated(self, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Yield the lines, with those of each `repeat` as often as it says."""
        left = iter(lines)
        for number, line in left:
            times = _REPEAT.fullmatch(line)
            if times:
                inner = self._repeat_at(number, left)
                for n in range(1, int(times[1]) + 1):
                    yield from self._repeated([(at, text.replace("{n}", str(n))) for at, text in inner])
            elif line.rstrip() == "end":
                raise self._wrong("`end` without a `repeat`", number)
            else:
                yield number, line

    def _repeat_at(self, begun: int, left: Iterator[tuple[int, str]]) -> list[tuple[int, str]]:
        """Return the lines up to the `end` of a repeat, including nested repeats."""
        inner: list[tuple[int, str]] = []
        depth = 1
        for number, line in left:
            depth += bool(_REPEAT.fullmatch(line)) - (line.rstrip() == "end")
            if not depth:
                return inner
            inner.append((number, line))
        raise self._wrong("`repeat` without an `end`", begun)

    def _line(self, line: str) -> None:
        found = _LINE.fullmatch(line)
        if not found:
            raise self._wrong(f"not a line: {line!r}")
        kind, text = found["kind"] or found["bare"], found["text"] or found["rest"] or ""
        if message := _UNKNOWN_TO.get(self.made.provider, {}).get(kind):
            raise self._wrong(message)
        if kind == "wait":
            self.waited = (self.waited or 0) + self._seconds(text)
        elif kind == "tokens":
            self._tokens(text)
        elif kind in _REMARKS:
            self._remark(kind, text)
        else:
            self._part(kind, text, joined=bool(found["joined"]))

    def _remark(self, kind: str, text: str) -> None:
        if kind == "compaction" and text not in ("auto", "manual"):
            raise self._wrong("a compaction is auto or manual")
        if kind == "interrupt" and text:
            raise self._wrong("`interrupt` takes no text")
        self._pass(TICK)
        self.made.scenes.append(Remark(kind, self.clock, text))

    def _part(self, kind: str, text: str, *, joined: bool) -> None:
        """Add a piece of a response, which continues the previous response after `& ` and after thinking."""
        last = self.made.scenes[-1] if self.made.scenes else None
        part = self._execution(kind, text) if kind in _EXECUTIONS else Spoken(kind, 0, _text(text))
        if joined and not (isinstance(last, Response) and isinstance(part, Execution)):
            raise self._wrong("`& ` joins an execution to the response before it")
        if joined and isinstance(last, Response):
            part.at = last.parts[-1].at + (self.waited or 0)
            self.clock, self.waited = max(self.clock, part.at), None
        else:
            self._pass(TICK)
            part.at = self.clock
        if isinstance(last, Response) and (joined or last.only_thinks):
            last.parts.append(part)
        else:
            self.made.scenes.append(Response([part]))

    def _execution(self, kind: str, text: str) -> Execution:
        if not text.strip():
            raise self._wrong(f"`{kind}` needs a text")
        if kind == "tool":
            name, _, given = text.partition(" ")
            return Execution(kind, 0, name, arguments=self._json(given or "{}"))
        found = _PART.fullmatch(text.strip()) if kind == "read" else None
        if found and found["first"]:
            return Execution(kind, 0, found["path"], part=(int(found["first"]), int(found["last"])))
        return Execution(kind, 0, text if kind in ("run", "grep") else text.strip())

    def _below(self, line: str) -> None:
        """Read a line below an execution: what it changes, how long it took, how it ended."""
        last = self.made.scenes[-1] if self.made.scenes else None
        execution = last.parts[-1] if isinstance(last, Response) else None
        if not isinstance(execution, Execution):
            raise self._wrong("only executions have lines below them")
        if execution.ended:
            raise self._wrong("the execution has ended already")
        if line[:1] in ("-", "+") and line[1:2] in ("", " "):
            if execution.kind not in ("edit", "write") or (execution.kind == "write" and line[0] == "-"):
                raise self._wrong(f"`{execution.kind}` has no such lines")
            execution.changes.append(line[0] + line[2:])
        elif line.startswith("wait "):
            self.waited = (self.waited or 0) + self._seconds(line[5:])
        else:
            execution.ended = self._ended(line, execution)
            self.clock = max(self.clock, execution.ended.at)

    def _ended(self, line: str, execution: Execution) -> Ended:
        found = _END.fullmatch(line)
        if not found:
            raise self._wrong(f"not a result: {line!r}")
        how, took = found["how"] or found["bare"], TICK if self.waited is None else self.waited
        self.waited = None
        if found["code"] and (how != "failed" or (execution.kind != "run" and self.made.provider != "codex")):
            raise self._wrong("only a failed command has an exit code")
        if how == "interrupted" and self.made.provider == "gemini" and execution.kind != "run":
            raise self._wrong("Gemini CLI logs an interrupted execution as a refused one, unless it is a command")
        return Ended(
            how, execution.at + took, _text(found["text"] or ""), int(found["code"]) if found["code"] else None
        )

    def _tokens(self, text: str) -> None:
        last = self.made.scenes[-1] if self.made.scenes else None
        figures = {name: int(re.sub("[,_]", "", number)) for number, name in _FIGURE.findall(text)}
        if not isinstance(last, Response):
            raise self._wrong("token usage must follow a response")
        if text.strip() == "none":
            last.counted = False
        elif not figures or _FIGURE.sub("", text).strip(" ,"):
            raise self._wrong(f"not token usage: {text!r}")
        elif self.made.provider == "gemini" and figures.get("written"):
            raise self._wrong("Gemini CLI doesn't log what was written to a cache")
        else:
            given = {"fresh" if name == "in" else name: number for name, number in figures.items()}
            last.tokens = Tokens(**given)

    def _pass(self, otherwise: float) -> None:
        self.clock += otherwise if self.waited is None else self.waited
        self.waited = None

    def _seconds(self, text: str) -> float:
        if not _TIME.fullmatch(text.strip()):
            raise self._wrong(f"not a time: {text!r}")
        return sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([\d.]+)([smhd])", text))

    def _json(self, text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError as problem:
            raise StoryError(f"{self.path.name}:{self.number}: not JSON: {problem}") from problem


def _joined(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the lines, joined by line breaks with those that continue them (`| `)."""
    held: tuple[int, str] | None = None
    for number, line in lines:
        going_on = re.fullmatch(r"(?:  )?\|(?: (.*))?", line)
        if going_on and held:
            held = held[0], f"{held[1]}\n{going_on[1] or ''}"
            continue
        if held:
            yield held
        held = number, line
    if held:
        yield held


def _text(written: str) -> str:
    """Return the text meant: `big 50000` stands for as many characters."""
    big = _BIG.fullmatch(written.strip())
    return varied(int(big[1])) if big else written


def varied(characters: int) -> str:
    """Return this many characters of output with different lines."""
    lines: list[str] = []
    size = 0
    while size <= characters:
        n = len(lines) + 1
        lines.append(f"{n:06} {_WORDS[n % 7]} {_WORDS[n * n % 11]} reads {n * 37 % 991} of {n * n % 1009}\n")
        size += len(lines[-1])
    return "".join(lines)[:characters]


_WORDS = ("north", "gauge", "harbour", "level", "station", "spring", "neap", "tide", "pier", "shelf", "basin")
