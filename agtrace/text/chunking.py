"""A long text in chunks, limited in lines and in bytes as JSON."""

from __future__ import annotations

from bisect import bisect_right

import orjson


def escaped_size(text: str) -> int:
    """Return the bytes that a string takes inside JSON, without its quotes."""
    return len(orjson.dumps(text)) - 2


def chunk_end(text: str, start: int, most_bytes: int, most_lines: int) -> int:
    """Return the end of the chunk that begins at `start`: at most this many lines, and bytes as JSON.

    A chunk ends after a newline; only a line longer than the budget is cut: after a sentence, else after a word, else
    between characters.
    """
    ends = _line_ends(text, start, most_bytes, most_lines)
    if escaped_size(text[start : ends[-1]]) <= most_bytes:
        return ends[-1]
    fits = bisect_right(ends, most_bytes, key=lambda end: escaped_size(text[start:end])) - 1
    begun = ends[fits] if fits >= 0 else start
    left = most_bytes - escaped_size(text[start:begun])
    following = text[begun : ends[fits + 1]]
    if fits < 0 or (left > most_bytes // 2 and escaped_size(following) > most_bytes):
        return begun + _longest_prefix(following, left)
    return begun


def chunks_from(text: str, start: int, most_bytes: int, most_lines: int) -> int:
    """Count the chunks of a text from `start` on, at least one."""
    count = 1
    while (start := chunk_end(text, start, most_bytes, most_lines)) < len(text):
        count += 1
    return count


def line_count(text: str) -> int:
    """Count the lines of a text, at least one: a final newline doesn't start another line."""
    return text.count("\n") + (not text.endswith("\n"))


def line_start(text: str, lines: int) -> int | None:
    """Return the start of the line after this many lines; None if there are fewer newlines."""
    end = 0
    for _ in range(lines):
        newline = text.find("\n", end)
        if newline < 0:
            return None
        end = newline + 1
    return end


def _line_ends(text: str, start: int, most_bytes: int, most_lines: int) -> list[int]:
    """Return the ends of the next lines, as many as a chunk can have: a character takes at least one byte."""
    ends: list[int] = []
    end = start
    while len(ends) < most_lines and end < len(text) and end - start <= most_bytes:
        newline = text.find("\n", end)
        end = len(text) if newline < 0 else newline + 1
        ends.append(end)
    return ends or [start]


def _longest_prefix(line: str, most_bytes: int) -> int:
    """Return how many characters of a line to take, at least one: they have at most this many bytes as JSON."""
    ends = range(1, min(len(line), most_bytes) + 1)
    longest = max(bisect_right(ends, most_bytes, key=lambda end: escaped_size(line[:end])), 1)
    if longest < len(line):
        for marks in _ENDS_OF_SENTENCES, (" ",):
            result = max(line.rfind(mark, longest * 3 // 4, longest) + len(mark) for mark in marks)
            if result > longest * 3 // 4:
                return result
    return longest


_ENDS_OF_SENTENCES = (". ", "! ", "? ")
