"""The `.meta.json` next to a sub-agent's log: its role, and the task it was started for.

It is read when the log is read from its beginning; a description that is added or changed later isn't noticed
until the log is read again.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from agtrace_indexer.providers.beside import object_in

_LARGEST = 64 * 1024


def description_beside(path: PurePath) -> dict[str, Any]:
    """Return the object in the file next to a log; an empty one if there is no such file or it can't be read."""
    return object_in(path.with_name(f"{path.name.partition('.')[0]}.meta.json"), _LARGEST)
