"""The search where there is no ripgrep, with Python's `re`: run as a file, it prints what it finds as ripgrep would.

Its arguments are the number of lines around a match, the bytes that are wanted of a line, the number of regular
expressions, these, and the paths. It prints `path NUL number : line` for each line that matches, and with `-` instead
of `:` those around it, in the order of the paths and of the names below them. Hidden and ignored files are searched
too; below a folder, `.git`, links and what is no regular file are left out. When a file turns out to be binary after a
match, a line says so. What can't be read is a line on stderr. Exit codes: 0 found, 1 not found, 2 not found and
something couldn't be read, or not a regular expression, which a line on stderr explains.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

_LONGEST_LINE = 16_777_216
"""The bytes of a line that are searched."""


def main(context_lines: str, most_bytes: str, number: str, *rest: str) -> int:
    """Search, print, and return the exit code."""
    expressions, paths = rest[: int(number)], rest[int(number) :]
    warnings.simplefilter("error")  # what Python understands otherwise than others: [[:digit:]]
    try:
        patterns = [re.compile(expression) for expression in expressions]
    except (re.error, OverflowError, RecursionError, Warning) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    search = _Search(patterns, int(context_lines), int(most_bytes))
    for path in paths:
        for file in _files(os.fsencode(path), search.trouble):
            search.file(file)
    return 0 if search.found else 2 if search.troubles else 1


def _files(path: bytes, trouble: Callable[[OSError], None]) -> Iterator[bytes]:
    """Yield a file, or all files below a folder, in the order of the names in each."""
    if not os.path.isdir(path):
        yield path
        return
    try:
        with os.scandir(path) as entries:
            inside = sorted((entry for entry in entries if entry.name != b".git"), key=lambda entry: entry.name)
    except OSError as error:
        trouble(error)
        return
    for entry in inside:
        if entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path, trouble)
        elif entry.is_file(follow_symlinks=False):
            yield entry.path


class _Search:
    def __init__(self, patterns: Sequence[re.Pattern[str]], context_lines: int, most_bytes: int) -> None:
        self._patterns, self._context, self._most = patterns, context_lines, most_bytes
        self._output = sys.stdout.buffer
        self.found = False
        """Whether any line has matched."""
        self.troubles = 0
        """How many files and folders couldn't be read."""

    def trouble(self, error: OSError) -> None:
        self.troubles += 1
        sys.stderr.write(f"{error.strerror} (os error {error.errno})\n")

    def file(self, path: bytes) -> None:
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
        after, found = 0, False
        for number, line in enumerate(_lines(file), 1):
            if b"\0" in line:
                if found:
                    self._output.write(path + b": binary file matches\n")
                return
            text = line.decode("utf-8", "replace")
            if any(pattern.search(text) for pattern in self._patterns):
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

    def _print(self, path: bytes, mark: bytes, number: int, line: bytes) -> None:
        self._output.write(b"%b\0%d%b%b\n" % (path, number, mark, line[: self._most]))


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield each line, without its end; of a very long one the beginning."""
    while line := file.readline(_LONGEST_LINE):
        rest = line
        while not rest.endswith(b"\n") and (rest := file.readline(_LONGEST_LINE)):
            line += b"\0" if b"\0" in rest else b""
        yield line.removesuffix(b"\n")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
