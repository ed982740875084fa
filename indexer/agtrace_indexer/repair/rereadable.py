"""The contents of an index that will be read again, because their logs still have them."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from agtrace_indexer.logs.content import Content
from agtrace_indexer.logs.discovery import Found, preferred, walk
from agtrace_indexer.logs.files import CountedFile, checksum_to, inode, open_regular
from agtrace_indexer.logs.progress import Progress
from agtrace_indexer.providers.registry import FORMS
from agtrace_indexer.reader.containers import look_into
from agtrace_indexer.texts.blocks import unpack


@dataclass
class Logs:
    """The logs from which a new index will be made: those below its roots, or below others if it has none."""

    new: sqlite3.Connection
    otherwise: list[str]

    @cached_property
    def _listed(self) -> dict[str, Found]:
        roots = [path for (path,) in self.new.execute("SELECT path FROM root")]
        if not roots and not self.new.execute("SELECT 1 FROM meta WHERE key = 'root_forgotten'").fetchone():
            roots = self.otherwise
        found, _ = look_into(walk(roots), {})
        left_out = preferred(found, FORMS)
        return {file.path: file for file in found if file.oddity is None and file.path not in left_out}

    def back(self, file: dict[str, Any]) -> bool:
        """Whether all that was read of a file will be read again, because it is still at the beginning of a log."""
        if file["status"] != "log":
            return True
        found = self._listed.get(file["path"])
        if file["gone"] or found is None:
            return False
        if found.container:
            return True
        try:
            state = orjson.loads(unpack(file["state"]))
            checksum, taken_back = state["checksum"], state.get("taken_back")
        except (sqlite3.DatabaseError, ValueError, TypeError, KeyError):  # the file's size has to suffice
            return inode(found.stamp) == inode(str(file["stamp"])) and found.size >= file["size"]
        if taken_back:  # the log no longer has all that was read of it
            return False
        try:
            with open_regular(found) as opened:
                return bool(checksum_to(Content(CountedFile(opened, Progress())), file["read_to"])[0] == checksum)
        except OSError:
            return False
