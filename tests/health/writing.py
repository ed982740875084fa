"""What the writers of logs share: ids, times, token usage, and the order of results."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from tests.health.stories import Execution, Remark, Response, Scene, Story, Tokens

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()
"""The time at which all stories are analysed, independent of any clock."""

CWD = "/home/mira/projects/tidepool"

_SYSTEM, _GROWTH, _ANSWER = 900, 10, 40
"""The default tokens of a response: so few that even a session of a hundred responses isn't large."""


class Log:
    """The ids, the times and the records of one session."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.start = NOW - story.age - story.seconds
        self.records: list[dict[str, Any]] = []
        self._ids = 0
        self.session = self.uuid()

    def name(self, letters: int = 24) -> str:
        """Return the next id, of hexadecimal digits, which is the same in every run."""
        self._ids += 1
        return sha256(f"{self.story.file}/{self.story.name}/{self._ids}".encode()).hexdigest()[:letters]

    def uuid(self) -> str:
        """Return the next id in the form of a UUID."""
        return str(UUID(self.name(32)))

    def time(self, at: float) -> str:
        """Return a moment of the story as ISO 8601."""
        moment = datetime.fromtimestamp(self.start + at, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def absolute(path: str) -> str:
    """Return a path as agents pass it to their tools."""
    return path if path.startswith(("/", "~")) else f"{CWD}/{path}"


def counted(story: Story) -> Iterator[tuple[Scene, Scene | None, Tokens | None]]:
    """Yield every scene with the one that follows, and the token usage of a response.

    If a story has none, the whole previous response is read from the cache and a little is added.
    """
    before, scenes = 0, story.scenes
    for scene, following in zip(scenes, [*scenes[1:], None], strict=True):
        tokens = None
        if isinstance(scene, Response) and scene.counted:
            more = _GROWTH if before else _SYSTEM
            written = more - 3 if story.provider == "claude_code" else 0  # only Claude Code's log has it
            tokens = scene.tokens or Tokens(more - written, before, written, _ANSWER)
            before = tokens.whole
        elif isinstance(scene, Remark) and scene.kind == "compaction":
            before = 0
        yield scene, following, tokens


def results(response: Response) -> list[Execution]:
    """Return the executions with results, in the order of these."""
    ended = [execution for execution in response.executions if execution.ended]
    return sorted(ended, key=lambda execution: execution.ended.at if execution.ended else 0)


def stopped_by_human(scene: Response, following: Scene | None) -> bool:
    """Whether the human stopped the model with a refusal or within an execution, without a separate line about it."""
    last = results(scene)[-1:]
    stopped = bool(last) and last[0].ended is not None and last[0].ended.how in ("refused", "interrupted")
    return stopped and (following is None or (isinstance(following, Remark) and following.kind in ("user", "command")))
