"""The working directory: only commands and sub-agents name it."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import LogState
from agtrace_indexer.events.json_values import text

_HEAD = 2_000
_WORKSPACE = later(r'"workspaceUris":\s{0,9}\[\s{0,99}"file://([^"\n]{1,1000})"')
_OWN = later(r"[/\\]\.gemini[/\\]antigravity[^/\\]*[/\\]")
"""A folder of Antigravity's own, in which it runs commands if no folder is open."""


def note_folder(folder: Any, state: LogState) -> None:
    """Take the first folder in which a command was run, if it is the user's."""
    facts = state.sessions[""]
    if facts.cwd is None and text(folder) and not _OWN.search(f"{folder}/"):
        facts.cwd = text(folder)


def note_place(said: str, state: LogState) -> None:
    """Take the folder that a sub-agent is told to work in."""
    if state.sessions[""].cwd is None and (found := _WORKSPACE.search(said[:_HEAD])):
        note_folder(unquote(found[1]), state)
