"""oh-my-pi: Pi's format, with the title in the first line, and logs of sub-agents (pi/README.md).

The log of a sub-agent is in a folder with the name of its parent's log, at any depth. Its parent's id is in that name
or, if that is a sub-agent as well, in the first lines of that log.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import PurePath

from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Draft, LogState, Record, SessionFacts
from agtrace_indexer.events.json_values import text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.logs.decoding import decode
from agtrace_indexer.providers.pi import parser as pi
from agtrace_indexer.providers.pi.parser import as_patch, session_named, unroll

__all__ = ["as_patch", "begin", "drafts", "recognizes", "unroll"]

_OF_A_LOG = later(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}-?[0-9]*Z?_.+")
"""The name of a main session's log, `<time>_<id>`."""

_HEAD = 4096
_HOW = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def recognizes(record: Record) -> bool:
    """Whether it is the title, which is padded to the same length whatever it is; the rest is Pi's format."""
    return record.get("type") == "title" and isinstance(record.get("title"), str) and "pad" in record


def begin(path: PurePath) -> LogState:
    """Return the state before the first record: a folder named like a log belongs to that log's session."""
    folder = path.parent
    if not any(_OF_A_LOG.fullmatch(name) for name in folder.parts):
        return LogState()
    parent = session_named(folder.name) if _OF_A_LOG.fullmatch(folder.name) else _session_of(folder)
    return LogState({"": SessionFacts(parent_id=parent, kind="subagent", agent_type=text(path.name.partition(".")[0]))})


def drafts(record: Record, state: LogState) -> Sequence[Draft]:
    """Return the events of the next record; see `Parser.drafts`."""
    return pi.drafts(record, state)


def _session_of(folder: PurePath) -> str | None:
    """Return the id of the session whose log is next to a folder of its name; None if there is none."""
    for line in _head_of(folder.with_name(f"{folder.name}.jsonl")).split(b"\n"):
        for record in decode(line) or ():
            if isinstance(record, dict) and record.get("type") == "session":
                return identifier(record.get("id"))
    return None


def _head_of(path: PurePath) -> bytes:
    """Return the first bytes of a regular file, and nothing for a pipe, a link or a file that can't be read."""
    try:
        descriptor = os.open(path, _HOW)
    except OSError:
        return b""
    try:
        return os.read(descriptor, _HEAD) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)
