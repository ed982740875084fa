"""Cutting texts and JSON values to size: at characters and lines, never inside them, and told where."""

from __future__ import annotations

import re
from typing import Any

import orjson
from agtrace_indexer.redact import redact

SUMMARY = 100
"""Characters of an answer's summary (R-002)."""

USER_MESSAGE = 200
"""Characters of a request or a snippet."""

LABEL = 50
"""Characters of a label (R-004)."""

PATH = 500
"""Characters of the path of a project or a log."""

LINES_PER_CHUNK = 200
"""Lines of a chunk of text at most (R-077)."""

UNSEEN = (
    "\x7f-\x9f\u00ad\u034f\u061c\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters that nobody sees, for a class of a regular expression: controls from DEL on, turns of the writing
direction, marks without width, the tags and selectors in which a whole text can hide. Joiners aren't among them."""

_CONTROLS = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, the cursor
    r"|\x1b[\]PX^_][^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS and the like: links, titles, the clipboard
    r"|\x1b[ -/]+[0-~]"  # character sets
    f"|[\x00-\x08\x0b-\x1f{UNSEEN}]"
)
_ROWS = re.compile("([\u200c\u200d])[\u200c\u200d]+|([\ufe00-\ufe0f])[\ufe00-\ufe0f]+")  # rows of them hide a text
_PLAIN_NAME = re.compile(r"[\w.:/@+#~-]+", re.ASCII)


def one_line(text: str, most: int) -> str:
    """Put a text on one line of at most this many characters, without control characters."""
    return cut(" ".join(without_controls(text).split()), most)


def repeated(text: str, most: int) -> str:
    """What somebody gave, as it is told to them again: on one line, without secrets, cut behind those."""
    return one_line(redact(text), most)


def named(name: str, most: int) -> str:
    """A name out of a log within a sentence of ours: masked, then cut; quoted where it could be read as more words."""
    line = repeated(name, most)
    return line if _PLAIN_NAME.fullmatch(line) else repr(line)


def unbroken(text: str) -> str:
    """A text on one line, each blank as it is, without control characters."""
    return without_controls(text).replace("\n", " ").replace("\t", " ")


def shown_path(path: str, most: int = PATH) -> str:
    """A path on one line, masked, without control characters; of a long one the end, which tells most."""
    line = unbroken(redact(path))
    return line if len(line) <= most else "..." + line[3 - most :]


def named_path(path: str, most: int) -> str:
    """A path within a sentence of ours."""
    line = shown_path(path, most)
    return line if _PLAIN_NAME.fullmatch(line) else repr(line)


def counted(number: int, noun: str) -> str:
    """`1 step`, `2,000 steps`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def cut(text: str, most: int) -> str:
    """Cut a text to at most this many characters, `...` included."""
    return text if len(text) <= most else text[: max(most - 3, 0)] + "..."


def without_controls(text: str) -> str:
    """Remove what is obeyed or unseen, newlines and tabs excepted.

    Terminal escapes whole, control characters, what is `UNSEEN`; single joiners stay, which scripts and emoji need.
    Unicode's separators of lines and paragraphs become newlines.
    """
    seen = _CONTROLS.sub("", text)
    return seen if seen.isascii() else _ROWS.sub(r"\1\2", seen.replace("\u2028", "\n").replace("\u2029", "\n"))


def escaped_size(text: str) -> int:
    """The bytes that a string takes inside JSON, without its quotes."""
    return len(orjson.dumps(text)) - 2


def chunk_end(text: str, start: int, most_bytes: int) -> int:
    """Where the chunk that begins at `start` ends: behind at most 200 lines that take at most this many bytes as JSON.

    A chunk ends behind a newline; only a line that is longer than the budget is cut, at a character.
    """
    ends = _line_ends(text, start, most_bytes)
    if escaped_size(text[start : ends[-1]]) <= most_bytes:
        return ends[-1]
    fits, too_many = -1, len(ends) - 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if escaped_size(text[start : ends[middle]]) <= most_bytes:
            fits = middle
        else:
            too_many = middle
    begun = ends[fits] if fits >= 0 else start
    left = most_bytes - escaped_size(text[start:begun])
    following = text[begun : ends[fits + 1]]
    if fits < 0 or (left > most_bytes // 2 and escaped_size(following) > most_bytes):
        return begun + _longest_prefix(following, left)
    return begun


def chunks_from(text: str, start: int, most_bytes: int) -> int:
    """How many chunks a text has from `start` on, at least one."""
    count = 1
    while (start := chunk_end(text, start, most_bytes)) < len(text):
        count += 1
    return count


def line_count(text: str) -> int:
    """How many lines a text has, at least one: behind the last newline there is none."""
    return text.count("\n") + (not text.endswith("\n"))


def line_start(text: str, lines: int) -> int | None:
    """Where the line begins that has so many lines before it; None where there are fewer newlines."""
    end = 0
    for _ in range(lines):
        newline = text.find("\n", end)
        if newline < 0:
            return None
        end = newline + 1
    return end


def shortened(value: Any, most: int, path: str = "") -> tuple[Any, list[str]]:
    """Cut every longer string of a JSON value, keys too; give the value and where values were cut."""
    if isinstance(value, str):
        short = cut(value, most)
        return short, [] if short == value else [f"{path}: {most} of {len(value)} chars"]
    if isinstance(value, dict):
        fields: dict[str, Any] = {}
        told: list[str] = []
        for key, item in value.items():
            name = cut(key, most)
            at = f"{path}.{name}" if path else name
            if name in fields:  # another one that begins so
                told.append(f"{at}: left out")
                continue
            told += [] if name == key else [f"{at}: {most} of {len(key)} chars of the name"]
            fields[name], below = shortened(item, most, at)
            told += below
        return fields, told
    if isinstance(value, list):
        entries = [shortened(item, most, f"{path}[{number}]") for number, item in enumerate(value)]
        return [item for item, _ in entries], [p for _, paths in entries for p in paths]
    return value, []


def flattened(value: Any, levels: int) -> Any:
    """Write objects that lie deeper than `levels` as dotted keys of the last level; values are preserved (R-006)."""
    if isinstance(value, list):
        return [flattened(item, levels) for item in value]
    if not isinstance(value, dict):
        return value
    if levels > 1:
        return {key: flattened(item, levels - 1) for key, item in value.items()}
    return dict(pair for key, item in value.items() for pair in _dotted(str(key), item))


def _dotted(path: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        return [pair for key, item in value.items() for pair in _dotted(f"{path}.{key}", item)]
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return [pair for number, item in enumerate(value) for pair in _dotted(f"{path}.{number}", item)]
    return [(path, value)]


def _line_ends(text: str, start: int, most_bytes: int) -> list[int]:
    """Where the next lines end, as many as a chunk can have: a character takes at least one byte."""
    ends: list[int] = []
    end = start
    while len(ends) < LINES_PER_CHUNK and end < len(text) and end - start <= most_bytes:
        newline = text.find("\n", end)
        end = len(text) if newline < 0 else newline + 1
        ends.append(end)
    return ends or [start]


def _longest_prefix(line: str, most_bytes: int) -> int:
    """How many characters of a line take at most this many bytes as JSON, at least one."""
    fits, too_many = 1, min(len(line), most_bytes) + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if escaped_size(line[:middle]) <= most_bytes:
            fits = middle
        else:
            too_many = middle
    return fits
