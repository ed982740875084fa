"""The tool `grep`: lines that match a regular expression, by ripgrep, or by Python's `re` where that isn't installed.

Their patterns differ in details. Both search the same files in the same order: hidden and ignored ones too, but nothing
in `.git`, no binary ones (those with a NUL character), and below a folder no links and nothing that isn't a regular
file. Nothing goes through a shell.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Literal, NamedTuple

from anyio import to_thread

from agtrace.pruning import line_search, processes
from agtrace.pruning.arguments import GrepArguments
from agtrace.pruning.output import (
    Capture,
    Output,
    ToolContext,
    ToolFailed,
    Truncation,
    expanded,
    failed_on,
    shown,
    working_folder,
)

LONGEST_LINE = 1_000
"""The characters of a line that are shown."""

_MOST_BYTES = 4 * (LONGEST_LINE + 1)
"""What an engine has to give of a line, so that it is clear whether it was longer."""
_MOST_UNREAD, _MOST_ERRORS = 1_048_576, 16_384
_FOR_NOTES = 200
"""Bytes kept free for the last lines, which say what isn't there."""
_TROUBLE = 2
_OF_THE_SYSTEM = "(os error"
"""What both engines say of a file that can't be read, and not of a pattern that isn't understood."""
_RIPGREP = (
    *("--no-config", "--color=never", "--no-heading", "--with-filename", "--line-number", "--null"),
    *("--no-context-separator", "--line-buffered", "--case-sensitive", "--encoding=none", "--no-mmap"),
    *("--no-ignore", "--hidden", "--glob=!.git", "--sort=path"),
    *(f"--max-columns={_MOST_BYTES}", "--max-columns-preview"),
)


async def run(arguments: GrepArguments, context: ToolContext) -> Output:
    """Search files and folders for lines.

    Raises `ToolFailed` if a path can't be searched, a pattern isn't understood, or it takes too long.
    """
    began = time.monotonic()
    folder, environment = working_folder(arguments.cwd, context), context.environment
    paths = list(dict.fromkeys(_asked(path, environment) for path in arguments.paths))
    await to_thread.run_sync(_check, folder, paths)
    ripgrep = shutil.which("rg", path=environment.get("PATH", os.defpath))
    if ripgrep:
        patterns = [f"--regexp={pattern}" for pattern in arguments.wanted]
        command = [ripgrep, *_RIPGREP, f"--context={arguments.context_lines}", *patterns, "--", *paths]
    else:
        figures = [str(arguments.context_lines), str(_MOST_BYTES), str(len(arguments.wanted))]
        command = [sys.executable, "-I", "-S", line_search.__file__, *figures, *arguments.wanted, *paths]
    lines = _Lines(arguments)
    try:
        ended = await processes.run(
            command, folder, environment, arguments.timeout_ms / 1000, lines.add, lines.add_trouble
        )
    except OSError as error:
        raise ToolFailed("spawn_failed", f"The search can't be started: {error.strerror}.") from None
    duration_ms = (time.monotonic() - began) * 1000
    text = lines.text(timed_out=ended.why == "timeout")
    size = len(text.encode())
    truncated = Truncation(size, None) if lines.stopped else None
    errors = lines.errors.kept().text
    output = Output(text, size, lines.errors.total, 0 if lines.matches else 1, duration_ms, truncated=truncated)
    if ended.why == "timeout":
        message = f"The search was ended after {arguments.timeout_ms:,} ms (timeout_ms)."
        raise ToolFailed("timeout", message, timeout_ms=arguments.timeout_ms, output=output)
    if ended.code == _TROUBLE and not lines.matches and _OF_THE_SYSTEM not in errors:
        why = errors.strip().rpartition("\n")[2].removeprefix("error: ")
        raise ToolFailed("bad_pattern", f"The pattern is not understood: {why}.")
    if ended.why == "itself" and not 0 <= ended.code <= _TROUBLE:
        raise ToolFailed("spawn_failed", "The search ended unexpectedly.", exit_code=ended.code, output=output)
    return output


def _asked(path: str, environment: Mapping[str, str]) -> str:
    """Return a path in a form that no program takes for an option or for stdin."""
    plain = str(PurePath(expanded(path, environment)))
    return plain if plain == "." or plain.startswith("/") else f"./{plain}"


def _check(folder: Path, paths: Sequence[str]) -> None:
    for path in paths:
        name = path.removeprefix("./")
        try:
            mode = os.stat(folder / path).st_mode
        except OSError as error:
            raise failed_on(name, error) from None
        if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
            raise ToolFailed("not_regular", f"{shown(name)} is neither a regular file nor a folder.")
        if not os.access(folder / path, os.R_OK):
            raise ToolFailed("EACCES", f"{shown(name)}: this may not be read (EACCES).")


class _Line(NamedTuple):
    number: int
    matches: bool
    text: str


class _Lines:
    def __init__(self, arguments: GrepArguments) -> None:
        self._context, self._most = arguments.context_lines, arguments.max_matches
        self._max_bytes = arguments.max_bytes
        self._room = arguments.max_bytes - _FOR_NOTES
        self._unread, self._begun = b"", b""
        self._done: list[str] = []
        self._path: bytes | None = None
        self._here: list[_Line] = []
        self.errors = Capture(_MOST_ERRORS)
        self._troubles = 0
        self.matches = 0
        self.stopped: Literal["", "matches", "bytes"] = ""
        """Which limit ended the search."""

    def add(self, piece: bytes) -> bool:
        """Take what an engine prints; return whether more is wanted."""
        if self.stopped:
            return False
        *records, self._unread = (self._unread + piece).split(b"\n")
        del piece
        for record in records:
            self._record(self._begun + record)
            if self.stopped:
                last = max((line.number for line in self._here if line.matches), default=-self._context)
                self._here = [line for line in self._here if line.number <= last + self._context and line.number > 0]
                while self._here and self._here[-1].text == "--":
                    self._here.pop()
                return False
        if len(self._unread) > _MOST_UNREAD:
            self._unread = self._unread[:_MOST_UNREAD]
        return True

    def add_trouble(self, piece: bytes) -> bool:
        self._troubles += piece.count(b"\n")
        return self.errors.add(piece)

    def text(self, *, timed_out: bool = False) -> str:
        self._end_file()
        notes = {
            "matches": f"(stopped after {self._most:,} matches, max_matches; there are more)",
            "bytes": f"(stopped before {self._max_bytes:,} bytes, max_bytes; there is more)",
            "": "(stopped by timeout_ms; there may be more)" if timed_out else "",
        }
        lines = [*self._done, notes[self.stopped]]
        if self._troubles:
            lines.append(f"(not everything could be read: {self._troubles:,} errors)")
        return "".join(f"{line}\n" for line in lines if line)

    def _record(self, record: bytes) -> None:
        path, nul, rest = record.partition(b"\0")
        if not nul:
            if notice := _BINARY.fullmatch(record):
                self._drop_file(notice[1] or notice[2])
            else:
                self._begun = record + b"\n"  # a path with a line end
            return
        self._begun = b""
        found = _RECORD.fullmatch(rest)
        if found is None:
            return
        if path != self._path:
            self._end_file()
            self._path = path
        self._line(int(found[1]), found[2] == b":", found[3])

    def _line(self, number: int, matches: bool, line: bytes) -> None:
        if matches and self.matches == self._most:
            self.stopped = "matches"
            return
        new = []
        if self._context and (self._here[-1].number != number - 1 if self._here else bool(self._done)):
            new.append(_Line(number, False, "--"))
        mark = ":" if matches else "-"
        path = (self._path or b"").removeprefix(b"./").decode("utf-8", "replace").replace("\n", "\\n")
        text = line.decode("utf-8", "replace")
        if len(text) > LONGEST_LINE:
            text = f"{text[:LONGEST_LINE]}... (cut at {LONGEST_LINE:,} characters)"
        new.append(_Line(number, matches, f"{path}{mark}{number}{mark}{text}"))
        size = sum(len(one.text.encode()) + 1 for one in new)
        if size > self._room:
            self.stopped = "bytes"
            return
        self._room -= size
        self.matches += matches
        self._here += new

    def _end_file(self) -> None:
        self._done += [line.text for line in self._here]
        self._here = []

    def _drop_file(self, path: bytes) -> None:
        if path != self._path:
            return
        self.matches -= sum(line.matches for line in self._here)
        self._room += sum(len(line.text.encode()) + 1 for line in self._here)
        self._here = []


_BINARY = re.compile(
    rb"(.*): (?:WARNING: stopped searching binary file after match|binary file matches)(?: \(.*)?"
    rb"|Binary file (.*) matches(?: \(.*)?",  # of older versions
    re.DOTALL,
)
_RECORD = re.compile(rb"(\d+)([:-])(.*)", re.DOTALL)
