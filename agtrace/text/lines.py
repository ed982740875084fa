"""A text of somebody else within a line of ours: cut, quoted, without secrets and without what nobody sees."""

from __future__ import annotations

import re

from agtrace_indexer.redact import redact

SUMMARY = 100
"""Characters of an answer's summary."""

USER_MESSAGE = 200
"""Characters of a request or a snippet."""

LABEL = 50
"""Characters of a label."""

PATH = 500
"""Characters of the path of a project or a log."""

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
