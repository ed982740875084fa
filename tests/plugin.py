"""The plugin for Claude Code as tests see it: its files, its hook, and a stand-in that says when it ran."""

from __future__ import annotations

import json
import os
import select
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = ROOT / "plugins" / "agtrace"
SKILL = PLUGIN / "skills" / "past-sessions" / "SKILL.md"


def manifest(path: Path) -> Any:
    """Return what a JSON file of the plugin holds."""
    return json.loads(path.read_text(encoding="utf-8"))


def hook() -> dict[str, Any]:
    """Return the one hook, which runs when a session ends."""
    ((event, groups),) = manifest(PLUGIN / "hooks" / "hooks.json")["hooks"].items()
    ((command,),) = [group["hooks"] for group in groups]
    assert event == "SessionEnd"
    return dict(command)


class Bell:
    """A pipe with a name: what a process writes to it can be waited for."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._end = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def rung(self, seconds: float) -> str:
        """Return what was written; empty if nothing was written in time."""
        ready, _, _ = select.select([self._end], [], [], seconds)
        return os.read(self._end, 4096).decode() if ready else ""


def program(path: Path, script: str) -> Path:
    """Write a program for /bin/sh."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
