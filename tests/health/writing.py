"""What the writers of logs share: ids, times, figures, and the order in which things come back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from tests.health.stories import Execution, Remark, Response, Scene, Story, Tokens

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()
"""When all stories are analyzed: no clock is asked."""

CWD = "/home/mira/projects/tidepool"

_SYSTEM, _GROWTH, _ANSWER = 900, 10, 40
"""Tokens of a response without figures: so few that no session of a hundred responses is a large one."""


class Log:
    """What the writers share: the ids, the times and the records of one session."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.start = NOW - story.age - story.seconds
        self.records: list[dict[str, Any]] = []
        self._ids = 0
        self.session = self.uuid()

    def name(self, letters: int = 24) -> str:
        """The next id: of hexadecimal digits, the same in every run."""
        self._ids += 1
        return sha256(f"{self.story.file}/{self.story.name}/{self._ids}".encode()).hexdigest()[:letters]

    def uuid(self) -> str:
        """The next id in the form of a UUID."""
        return str(UUID(self.name(32)))

    def time(self, at: float) -> str:
        """A moment of the story as ISO 8601."""
        moment = datetime.fromtimestamp(self.start + at, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def absolute(path: str) -> str:
    """A path as agents name it to their tools."""
    return path if path.startswith(("/", "~")) else f"{CWD}/{path}"


def counted(story: Story) -> Iterator[tuple[Scene, Scene | None, Tokens | None]]:
    """Every scene with the one that follows, and the figures of a response.

    Where a story has none, all of the response before is read from the cache and a little is added.
    """
    before, scenes = 0, story.scenes
    for scene, following in zip(scenes, [*scenes[1:], None], strict=True):
        tokens = None
        if isinstance(scene, Response) and scene.counted:
            more = _GROWTH if before else _SYSTEM
            written = more - 3 if story.provider == "claude_code" else 0  # only Claude's log tells it
            tokens = scene.tokens or Tokens(more - written, before, written, _ANSWER)
            before = tokens.whole
        elif isinstance(scene, Remark) and scene.kind == "compaction":
            before = 0
        yield scene, following, tokens


def results(response: Response) -> list[Execution]:
    """The executions that came back, in the order in which they did."""
    ended = [execution for execution in response.executions if execution.ended]
    return sorted(ended, key=lambda execution: execution.ended.at if execution.ended else 0)


def stopped_by_human(scene: Response, following: Scene | None) -> bool:
    """Whether the human stopped the model with a refusal or within an execution, and no line of its own says it."""
    last = results(scene)[-1:]
    stopped = bool(last) and last[0].ended is not None and last[0].ended.how in ("refused", "interrupted")
    return stopped and (following is None or (isinstance(following, Remark) and following.kind in ("user", "command")))
