"""The built-in search, where there is no ripgrep: run as a file, it finds and prints the same as ripgrep would.

Its arguments are the number of lines around a match, the bytes that are wanted of a line, the number of regular
expressions, these, and the paths. It prints `path NUL number : line` for each line that matches, and with `-` instead
of `:` those around it, in the order of the paths and of the names below them. Hidden and ignored files are searched
too; below a folder, `.git`, links and what is no regular file are left out. When a file turns out to be binary after a
match, a line says so. What can't be read is a line on stderr. Exit codes: 0 found, 1 not found, 2 not found and
something couldn't be read, 3 not a regular expression.
"""

from __future__ import annotations

import os
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import BinaryIO

import regex

_BLOCK = 1_048_576
_LONGEST_LINE = 16_777_216
"""The bytes of a line that are searched."""


def main(context_lines: str, most_bytes: str, number: str, *rest: str) -> int:
    """Search, print, and return the exit code."""
    patterns, paths = rest[: int(number)], rest[int(number) :]
    try:
        pattern = regex.compile("|".join(patterns), regex.V0)
    except regex.error as error:
        sys.stderr.write(f"{error}\n")
        return 3
    search = _Search(pattern.search, int(context_lines), int(most_bytes))
    for path in paths:
        for file in _files(os.fsencode(path), search.trouble):
            search.file(file)
    return 0 if search.found else 2 if search.troubles else 1


def _files(path: bytes, trouble: Callable[[OSError], None]) -> Iterator[bytes]:
    """Yield a file, or all files below a folder."""
    if not os.path.isdir(path):
        yield path
        return
    folders = [iter(_entries(path, trouble))]
    while folders:
        for entry in folders[-1]:
            if entry.is_dir(follow_symlinks=False):
                folders.append(iter(_entries(entry.path, trouble)))
                break
            if entry.is_file(follow_symlinks=False):
                yield entry.path
        else:
            folders.pop()


def _entries(folder: bytes, trouble: Callable[[OSError], None]) -> list[os.DirEntry[bytes]]:
    try:
        with os.scandir(folder) as entries:
            return sorted((entry for entry in entries if entry.name != b".git"), key=lambda entry: entry.name)
    except OSError as error:
        trouble(error)
        return []


class _Search:
    """A search through files."""

    def __init__(self, matches: Callable[[str], object], context_lines: int, most_bytes: int) -> None:
        self._matches, self._context, self._most = matches, context_lines, most_bytes
        self._output = sys.stdout.buffer
        self.found = False
        """Whether any line has matched."""
        self.troubles = 0
        """How many files and folders couldn't be read."""

    def trouble(self, error: OSError) -> None:
        """Say that something can't be read."""
        self.troubles += 1
        sys.stderr.write(f"{error.strerror}\n")

    def file(self, path: bytes) -> None:
        """Search a file and print what is found."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
            with open(descriptor, "rb") as file:
                if stat.S_ISREG(os.fstat(descriptor).st_mode):
                    self._search(path, file)
        except OSError as error:
            self.trouble(error)
        self._output.flush()

    def _search(self, path: bytes, file: BinaryIO) -> None:
        before: deque[tuple[int, bytes]] = deque(maxlen=self._context)
        number, after, found = 0, 0, False
        for block in _blocks(file):
            if b"\0" in block:
                if found:
                    self._output.write(path + b": binary file matches\n")
                return
            for line in block.removesuffix(b"\n").split(b"\n"):
                number += 1
                if self._matches(line[:_LONGEST_LINE].decode("utf-8", "surrogateescape")):
                    while before:
                        self._print(path, b"-", *before.popleft())
                    self._print(path, b":", number, line)
                    self.found = found = True
                    after = self._context
                elif after:
                    self._print(path, b"-", number, line)
                    after -= 1
                else:
                    before.append((number, line[: self._most]))
            if found:
                self._output.flush()

    def _print(self, path: bytes, mark: bytes, number: int, line: bytes) -> None:
        self._output.write(b"%b\0%d%b%b\n" % (path, number, mark, line[: self._most]))


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Yield whole lines, many at once; of a very long line, the beginning; of a binary file, up to the first NUL."""
    while block := file.read(_BLOCK):
        if b"\0" not in block and not block.endswith(b"\n"):
            block += file.readline(_LONGEST_LINE)
            while block[-1:] not in (b"\n", b"\0") and (rest := file.readline(_LONGEST_LINE)):
                block = block + b"\0" if b"\0" in rest else block + b"\n" if rest.endswith(b"\n") else block
        yield block


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
