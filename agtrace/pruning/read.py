"""The tool `read`: a text file, or a range of its lines, in bounded memory whatever its size."""

from __future__ import annotations

import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from anyio import to_thread

from agtrace.pruning.arguments import ReadArguments
from agtrace.pruning.output import (
    MOST_CAPTURED,
    Capture,
    Output,
    ToolContext,
    ToolFailed,
    Truncation,
    expanded,
    failed_on,
    shown,
)
from agtrace.text.kept_texts import REFERENCE, KeptTexts

_PIECE = 262_144
_MOST_UNSIZED = 64 * 1024 * 1024
"""The most bytes that are read of a file that doesn't say how large it is, as those of /proc."""
_KEY = re.compile(rb"-----(BEGIN|END) [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_LONGEST_MARK = 70
_CONTROLLING = getattr(os, "O_NOCTTY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class _Read(NamedTuple):
    capture: Capture
    first_line: int
    inside: bytes = b""
    """The beginning of a private key that the first line is within."""


class _Key:
    """Notices whether a place in a file is within a private key."""

    def __init__(self) -> None:
        self.begun, self._end = b"", b""

    def pass_by(self, piece: bytes) -> None:
        for found in _KEY.finditer(self._end + piece):
            self.begun = found[0] if found[1] == b"BEGIN" else b""
        self._end = piece[-_LONGEST_MARK:]


async def run(arguments: ReadArguments, context: ToolContext) -> Output:
    """Read a file, or an earlier output by its reference, or some lines of it.

    Raises `ToolFailed` if it isn't a text file, has no such lines, or isn't kept any more.
    """
    if arguments.file_path.startswith(REFERENCE):
        return await to_thread.run_sync(_read_kept, arguments, context.kept)
    began = time.monotonic()
    path = context.cwd / expanded(arguments.file_path, context.environment)
    given_up = threading.Event()

    def read() -> _Read:
        return _read(path, arguments, given_up.is_set)

    try:
        found = await to_thread.run_sync(read, abandon_on_cancel=True)
    except OSError as error:
        raise failed_on(path, error) from None
    finally:
        given_up.set()
    kept = found.capture.kept()
    total = found.capture.total
    truncated = Truncation(kept.size, total) if kept.size < total else None
    return Output(
        kept.text, total, 0, None, (time.monotonic() - began) * 1000, found.first_line, truncated, found.inside.decode()
    )


def _read_kept(arguments: ReadArguments, kept: KeptTexts) -> Output:
    began = time.monotonic()
    found = kept.read(arguments.file_path.removeprefix(REFERENCE))
    if found is None:
        raise ToolFailed("ENOENT", "There is no output under this reference any more: outputs are kept for a day.")
    lines = found.text.removesuffix("\n").split("\n")
    begin, end = found.first_line, found.first_line + len(lines) - 1
    first, last = arguments.lines or (begin, end)
    first, last = max(first, begin), end if last is None else min(last, end)
    if first > last:
        raise ToolFailed("out_of_range", f"The output has the lines {begin:,} to {end:,}.")
    chosen = "\n".join(lines[first - begin : last - begin + 1])
    chosen += "\n" if last == end and found.text.endswith("\n") else ""
    return Output(chosen, len(chosen.encode()), 0, None, 1000 * (time.monotonic() - began), first)


def _read(path: Path, arguments: ReadArguments, given_up: Callable[[], bool]) -> _Read:
    _check(path, os.stat(path))  # what is no file mustn't even be opened
    descriptor = os.open(path, os.O_RDONLY | _CONTROLLING)
    try:
        _check(path, os.fstat(descriptor))
    except ToolFailed:
        os.close(descriptor)
        raise
    try:
        file = _File(descriptor, path, given_up)
        lines = arguments.lines
        return _whole(file) if lines is None else _lines(file, *lines, arguments.around_line or lines[0])
    finally:
        os.close(descriptor)


def _check(path: Path, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise ToolFailed("EISDIR", f"{shown(path)} is a folder; `bash` with `ls` or `grep` shows what is in it.")
    if not stat.S_ISREG(found.st_mode):
        raise ToolFailed("not_regular", f"{shown(path)} is not a regular file.")


class _File:
    """An open file, read piece by piece up to the size that it has now."""

    def __init__(self, descriptor: int, path: Path, given_up: Callable[[], bool]) -> None:
        self._descriptor, self._path, self._given_up = descriptor, path, given_up
        self.size = os.fstat(descriptor).st_size

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """Yield what is there from a position on. Raises `ToolFailed` if it is no text."""
        position, end = start, self.size or _MOST_UNSIZED
        while position < end and not self._given_up():
            piece = os.pread(self._descriptor, min(_PIECE, end - position), position)
            if not piece:
                return
            if b"\0" in piece:
                raise ToolFailed("binary", f"{shown(self._path)} is a binary file ({self.size:,} bytes).")
            position += len(piece)
            yield piece

    def out_of_range(self, number: int, lines: int) -> ToolFailed:
        """Return what to say if it has no line of this number."""
        have = "1 line" if lines == 1 else f"{lines:,} lines"
        return ToolFailed("out_of_range", f"{shown(self._path)} has {have}: there is no line {number:,}.")


def _whole(file: _File) -> _Read:
    capture = Capture()
    half = MOST_CAPTURED // 2
    if file.size <= MOST_CAPTURED:
        for piece in file.pieces():
            capture.add(piece)
        return _Read(capture, 1)
    for piece in file.pieces():
        capture.add(piece[: half - capture.total])
        if capture.total == half:
            break
    capture.skip(file.size - 2 * half)
    for piece in file.pieces(file.size - half):
        capture.add(piece)
    return _Read(capture, 1)


def _lines(file: _File, first: int, last: int | None, wanted: int) -> _Read:
    capture, key = Capture(), _Key()
    line, ended = 1, True  # the line that comes next, and whether the one before has its end
    for piece in file.pieces():
        begin = 0
        line_ends = piece.count(b"\n")
        if line < first:
            begin = _behind(piece, first - line) if line + line_ends >= first else len(piece)
        end = len(piece)
        if last is not None and line + line_ends > last:
            end = _behind(piece, last + 1 - line)
        if not capture.total:
            key.pass_by(piece[:begin])
        capture.add(piece[begin:end])
        line += line_ends
        ended = piece.endswith(b"\n")
        if last is not None and line > last:
            return _Read(capture, first, key.begun)
    lines = line - 1 if ended else line
    if wanted > max(lines, 1):
        raise file.out_of_range(wanted, lines)
    return _Read(capture, first, key.begun)


def _behind(piece: bytes, number: int) -> int:
    """Return the position behind the n-th line end of a piece."""
    position = 0
    for _ in range(number):
        position = piece.index(b"\n", position) + 1
    return position
