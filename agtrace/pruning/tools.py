"""The tools of the server: what clients see of each, its arguments, and what it does."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Literal, NamedTuple

from anyio import to_thread

from agtrace.pruning import line_search, processes
from agtrace.pruning.arguments import Arguments, BashArguments, GrepArguments, ReadArguments
from agtrace.pruning.output import (
    MOST_CAPTURED,
    Capture,
    Output,
    ToolContext,
    ToolFailed,
    Truncation,
    expanded,
    failed_on,
    join_captures,
    path_text,
    working_folder,
)
from agtrace.text.kept_texts import REFERENCE, KeptTexts

# -- bash ------------------------------------------------------------------------------------------


async def bash(arguments: BashArguments, context: ToolContext) -> Output:
    """Run a command in bash, or in sh where there is no bash.

    Its environment is that of the context, with the variables of the request.
    Raises `ToolFailed` if it can't be started, takes too long, or fails, unless that is allowed.
    """
    folder, environment = working_folder(arguments.cwd, context), context.environment
    shell = shutil.which("bash", path=environment.get("PATH", os.defpath)) or "/bin/sh"
    variables = {**environment, "PWD": str(folder), **arguments.env}
    output, errors = Capture(), Capture()
    command = [shell, "-c", "--", arguments.command]
    try:
        ended = await processes.run(command, folder, variables, arguments.timeout_ms / 1000, output.add, errors.add)
    except OSError as error:
        raise ToolFailed("spawn_failed", f"The command can't be started: {error.strerror}.") from None
    text, truncated = join_captures(output, errors)
    code = ended.code if ended.why == "itself" else None
    result = Output(text, output.total, errors.total, code, ended.duration_ms, truncated=truncated)
    if ended.why == "timeout":
        message = f"The command was ended after {arguments.timeout_ms:,} ms (timeout_ms)."
        raise ToolFailed("timeout", message, timeout_ms=arguments.timeout_ms, output=result)
    if ended.code and not arguments.allow_nonzero_exit:
        how = f"was ended by signal {-ended.code}" if ended.code < 0 else f"ended with exit code {ended.code}"
        raise ToolFailed("nonzero_exit", f"The command {how}.", exit_code=ended.code, output=result)
    return result


# -- read: a text file, or a range of its lines, in bounded memory whatever its size ---------------

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
        for match in _KEY.finditer(self._end + piece):
            self.begun = match[0] if match[1] == b"BEGIN" else b""
        self._end = piece[-_LONGEST_MARK:]


async def read_file(arguments: ReadArguments, context: ToolContext) -> Output:
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
    _check_file(path, os.stat(path))  # what is no file mustn't even be opened
    descriptor = os.open(path, os.O_RDONLY | _CONTROLLING)
    try:
        _check_file(path, os.fstat(descriptor))
    except ToolFailed:
        os.close(descriptor)
        raise
    try:
        file = _File(descriptor, path, given_up)
        lines = arguments.lines
        return _whole(file) if lines is None else _lines(file, *lines, arguments.around_line or lines[0])
    finally:
        os.close(descriptor)


def _check_file(path: Path, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise ToolFailed("EISDIR", f"{path_text(path)} is a folder; `bash` with `ls` or `grep` shows what is in it.")
    if not stat.S_ISREG(found.st_mode):
        raise ToolFailed("not_regular", f"{path_text(path)} is not a regular file.")


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
                raise ToolFailed("binary", f"{path_text(self._path)} is a binary file ({self.size:,} bytes).")
            position += len(piece)
            yield piece

    def out_of_range(self, number: int, lines: int) -> ToolFailed:
        """Return what to say if it has no line of this number."""
        have = "1 line" if lines == 1 else f"{lines:,} lines"
        return ToolFailed("out_of_range", f"{path_text(self._path)} has {have}: there is no line {number:,}.")


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


# -- grep ------------------------------------------------------------------------------------------
# Lines that match a regular expression, by ripgrep, or by Python's re where that isn't installed: their patterns
# differ in details. Both search the same files in the same order: hidden and ignored ones too, but nothing in .git,
# no binary ones (those with a NUL character), and below a folder no links and nothing that isn't a regular file.
# Nothing goes through a shell.

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


async def search_files(arguments: GrepArguments, context: ToolContext) -> Output:
    """Search files and folders for lines.

    Raises `ToolFailed` if a path can't be searched, a pattern isn't understood, or it takes too long.
    """
    began = time.monotonic()
    folder, environment = working_folder(arguments.cwd, context), context.environment
    paths = list(dict.fromkeys(_asked(path, environment) for path in arguments.paths))
    await to_thread.run_sync(_check_paths, folder, paths)
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


def _check_paths(folder: Path, paths: Sequence[str]) -> None:
    for path in paths:
        name = path.removeprefix("./")
        try:
            mode = os.stat(folder / path).st_mode
        except OSError as error:
            raise failed_on(name, error) from None
        if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
            raise ToolFailed("not_regular", f"{path_text(name)} is neither a regular file nor a folder.")
        if not os.access(folder / path, os.R_OK):
            raise ToolFailed("EACCES", f"{path_text(name)}: this may not be read (EACCES).")


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
        match = _RECORD.fullmatch(rest)
        if match is None:
            return
        if path != self._path:
            self._end_file()
            self._path = path
        self._line(int(match[1]), match[2] == b":", match[3])

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


# -- the tools as clients see them ------------------------------------------------------------------


class Tool(NamedTuple):
    """A tool as clients see it, and what it does."""

    title: str
    description: str
    arguments: type[Arguments]
    run: Callable[[Any, ToolContext], Awaitable[Output]]
    """Raises `ToolFailed`."""
    only_reads: bool = True


TOOLS: Mapping[str, Tool] = {
    "read": Tool(
        "Read a file",
        "Read a text file or a range of its lines; with the `ref` of an answer as file_path, what that left out.",
        ReadArguments,
        read_file,
    ),
    "bash": Tool(
        "Run a command",
        "Run a command in bash. Its stdin is empty, and what it leaves running in the background ends with it.",
        BashArguments,
        bash,
        only_reads=False,
    ),
    "grep": Tool(
        "Search files",
        "Search files for regular expressions, also hidden and ignored files. Hits are path:line:text, lines around "
        "them path-line-text; (?i) before a pattern ignores case.",
        GrepArguments,
        search_files,
    ),
}
