"""A labelled session: a story of the model's responses and everything said to it.

Times in a story are seconds since its beginning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

PROVIDERS = {"claude_code": "claude-opus-4-5", "codex": "gpt-5.1-codex", "gemini": "gemini-2.5-pro"}
"""The providers whose logs can be written, with the default model."""

DAY = 86_400


@dataclass
class Tokens:
    """The figures of a response."""

    fresh: int = 0
    cached: int = 0
    written: int = 0
    out: int = 0

    @property
    def whole(self) -> int:
        """The model's whole input."""
        return self.fresh + self.cached + self.written


@dataclass
class Ended:
    """The end of an execution, with its result."""

    how: str
    """ok, failed, refused, interrupted."""
    at: float
    text: str = ""
    exit_code: int | None = None


@dataclass
class Execution:
    """A tool call, with its result if there is one."""

    kind: str
    """run, read, edit, write, grep, tool."""
    at: float
    subject: str
    """The command, the path, the pattern or the tool's name."""
    arguments: Any = None
    """The arguments of a `tool`."""
    part: tuple[int, int] | None = None
    """The first and the last line that are read."""
    changes: list[str] = field(default_factory=list)
    """The lines of an edit or of a file, each after `-` or `+`."""
    ended: Ended | None = None

    def lines(self, sign: str) -> str:
        """Return the lines that an edit removes (`-`) or adds (`+`)."""
        return "\n".join(line[1:] for line in self.changes if line[0] == sign)


@dataclass
class Spoken:
    """A text of the model."""

    kind: str
    """say, think."""
    at: float
    text: str


@dataclass
class Response:
    """One response of the model."""

    parts: list[Spoken | Execution]
    tokens: Tokens | None = None
    counted: bool = True
    """Whether the log has its token usage, which is small unless `tokens` says otherwise."""

    @property
    def only_thinks(self) -> bool:
        """Whether it has only thoughts, so that something must follow."""
        return self.counted and not self.tokens and all(part.kind == "think" for part in self.parts)

    @property
    def executions(self) -> list[Execution]:
        """Its tool calls."""
        return [part for part in self.parts if isinstance(part, Execution)]

    @property
    def ended_at(self) -> float:
        """The time of its last part."""
        return max(part.ended.at if isinstance(part, Execution) and part.ended else part.at for part in self.parts)


@dataclass
class Remark:
    """Anything else: from the human, the harness, or the model's API."""

    kind: str
    """user, inject, command, compaction, api error, review, retry, interrupt."""
    at: float
    text: str = ""

    @property
    def ended_at(self) -> float:
        """The time at which it was written."""
        return self.at


Scene: TypeAlias = Response | Remark


@dataclass
class Story:
    """A labelled session."""

    file: str
    """The detector for which it was written."""
    name: str
    line: int
    finds: frozenset[str] = frozenset()
    provider: str = "claude_code"
    model: str = ""
    window: int | None = None
    age: float = 10 * DAY
    scenes: list[Scene] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Its duration."""
        return max((scene.ended_at for scene in self.scenes), default=0)

    @property
    def place(self) -> str:
        """Its file and line, for a message."""
        return f"{self.file}.sessions:{self.line}"
