"""Writing stories as logs, as their agents would today, below a folder that represents the agents' homes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.health import claude_code, codex, gemini
from tests.health.stories import Story
from tests.health.writing import NOW, Log

_WRITERS: dict[str, Callable[[Log], str]] = {
    "claude_code": claude_code.write,
    "codex": codex.write,
    "gemini": gemini.write,
}


def write_logs(folder: Path, stories: Sequence[Story]) -> dict[str, Story]:
    """Write the logs of all stories; return the stories by the ids of their sessions."""
    written = {}
    for story in stories:
        log = Log(story)
        path = folder / _WRITERS[story.provider](log)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in log.records), "utf-8")
        os.utime(path, (NOW - story.age, NOW - story.age))
        written[log.session] = story
    return written
