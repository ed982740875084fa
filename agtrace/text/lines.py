"""Foreign text in lines of ours: cut, quoted, without secrets and invisible characters."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from agtrace_indexer.redact import redact
from agtrace_schema.patterns import later

SUMMARY = 100
"""The most characters of an answer's summary."""

USER_MESSAGE = 200
"""The most characters of a request or a snippet."""

LABEL = 50
"""The most characters of a label."""
NO_TOOL = "unknown tool"
"""Stands for the name of a tool that a log doesn't tell."""

PATH = 500
"""The most characters of the path of a project or a log."""

UNSEEN = (
    "\x7f-\x9f\u00ad\u034f\u061c\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Invisible characters, for a character class of a regular expression: controls from DEL on, changes of the writing
direction, zero-width marks, and the tags and selectors in which a whole text can hide. Joiners are not included."""

_CONTROLS = later(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, the cursor
    r"|\x1b[\]PX^_][^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS and the like: links, titles, the clipboard
    r"|\x1b[ -/]+[0-~]"  # character sets
    f"|[\x00-\x08\x0b-\x1f{UNSEEN}]"
)
_ROWS = later("([\u200c\u200d])[\u200c\u200d]+|([\ufe00-\ufe0f])[\ufe00-\ufe0f]+")  # runs of them can hide a text
_SEPARATOR = later(r"[/\\]")
_PLAIN_NAME = later(r"[\w.:/@+#~-]+", re.ASCII)


def one_line(text: str, most: int) -> str:
    """Put a text on one line of at most this many characters, without control characters."""
    return cut(" ".join(without_controls(text).split()), most)


def repeated(text: str, most: int) -> str:
    """Return an argument as a message repeats it: on one line, redacted before it is cut."""
    return one_line(redact(text), most)


def name_in_sentence(name: str, most: int) -> str:
    """Return a name from a log for a sentence of ours: redacted, then cut; quoted if it could be taken for words."""
    line = repeated(name, most)
    return line if _PLAIN_NAME.fullmatch(line) else repr(line)


def unbroken(text: str) -> str:
    """Return a text on one line without control characters, keeping all its spaces."""
    return without_controls(text).replace("\n", " ").replace("\t", " ")


def shown_path(path: str, most: int = PATH) -> str:
    """Return a path on one line, redacted, without control characters; of a long one the end, which says most."""
    return end_of_path(unbroken(redact(path)), most)


def end_of_path(path: str, most: int) -> str:
    """Cut a path to the last folders that fit, behind `…/`; if not even its last name fits, to the end of that."""
    if len(path) <= most:
        return path
    end = path[1 - most :]
    whole = _SEPARATOR.search(end[:-1])
    return f"…{end[whole.start() :] if whole else end}"


def named_path(path: str, most: int) -> str:
    """Return a path for a sentence of ours."""
    line = shown_path(path, most)
    return line if _PLAIN_NAME.fullmatch(line) else repr(line)


def cut(text: str, most: int) -> str:
    """Cut a text to at most this many characters, including `...`."""
    return text if len(text) <= most else text[: max(most - 3, 0)] + "..."


def without_controls(text: str) -> str:
    """Remove control and invisible characters, except newlines and tabs.

    That is whole terminal escapes, control characters and `UNSEEN`; single joiners stay, since scripts and emoji need
    them. Unicode's line and paragraph separators become newlines.
    """
    seen = _CONTROLS.sub("", text)
    return seen if seen.isascii() else _ROWS.sub(r"\1\2", seen.replace("\u2028", "\n").replace("\u2029", "\n"))


def in_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with all its keys and texts changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): in_texts(item, change) for key, item in value.items()}
    return [in_texts(item, change) for item in value] if isinstance(value, list) else value
