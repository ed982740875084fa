"""What a labelled session is: a story, of what the model gave and of what was said to it.

Times in a story are seconds since its beginning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

PROVIDERS = {"claude_code": "claude-opus-4-5", "codex": "gpt-5.1-codex", "gemini": "gemini-2.5-pro"}
"""The providers whose logs can be written, with the model that speaks where a story names none."""

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
        """All that the model was given to read."""
        return self.fresh + self.cached + self.written


@dataclass
class Ended:
    """What came back from an execution."""

    how: str
    """ok, failed, refused, interrupted."""
    at: float
    text: str = ""
    exit_code: int | None = None


@dataclass
class Execution:
    """A tool call, with what came back if anything did."""

    kind: str
    """run, read, edit, write, grep, tool."""
    at: float
    subject: str
    """The command, the path, the pattern or the tool's name."""
    arguments: Any = None
    """Of `tool`."""
    part: tuple[int, int] | None = None
    """First and last line that are read."""
    changes: list[str] = field(default_factory=list)
    """The lines of an edit or of a file, each behind `-` or `+`."""
    ended: Ended | None = None

    def lines(self, sign: str) -> str:
        """The lines that an edit takes away (`-`) or puts there (`+`)."""
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
    """What the model gave at once."""

    parts: list[Spoken | Execution]
    tokens: Tokens | None = None
    counted: bool = True
    """Whether the log has figures of it; without `tokens` they are small."""

    @property
    def only_thinks(self) -> bool:
        """Whether something must follow yet."""
        return self.counted and not self.tokens and all(part.kind == "think" for part in self.parts)

    @property
    def executions(self) -> list[Execution]:
        """The tool calls of it."""
        return [part for part in self.parts if isinstance(part, Execution)]

    @property
    def ended_at(self) -> float:
        """When the last of it was there."""
        return max(part.ended.at if isinstance(part, Execution) and part.ended else part.at for part in self.parts)


@dataclass
class Remark:
    """Anything else: of the human, of the harness, of the model's API."""

    kind: str
    """user, inject, command, compaction, api error, retry, interrupt."""
    at: float
    text: str = ""

    @property
    def ended_at(self) -> float:
        """When it was written."""
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
        """How long it lasted."""
        return max((scene.ended_at for scene in self.scenes), default=0)

    @property
    def place(self) -> str:
        """File and line, for a message."""
        return f"{self.file}.sessions:{self.line}"
