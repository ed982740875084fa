"""Regular expressions that mean the same to ripgrep and to the built-in search.

A pattern may have literals, `.`, classes, groups, alternatives, greedy and lazy repetitions, `^`, `$`, `\\b`, `\\B`,
`\\<`, `\\>`, `\\d \\w \\s` and their opposites, `\\p{...}`, the usual escapes, `(?i)` at its start and `(?i:...)`.
A brace that repeats nothing is a brace, a bracket in a class is a bracket. What only one engine understands, such as
lookaround and backreferences, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from agtrace_schema.patterns import later

_MOST_REPETITIONS = 1_000
_DEEPEST = 100
_META = frozenset("\\.+*?()|[]{}^$#&-~")
_NO_TEXT = r"\uDC80-\uDCFF"
"""How the built-in search sees bytes that aren't UTF-8; no part of a pattern matches them."""

_GROUP = later(r"\?(?::|P?<[A-Za-z_]\w*>)")
_GROUP_WITH_FLAGS = later(r"\?([ims]*)(?:-([ims]+))?:")
_FLAGS = later(r"\?([ims]+)\)")
_TIMES = later(r"(\d+)(?:(,)(\d*))?\}|,(\d+)\}")
_CODE = later(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|[xuU]\{([0-9A-Fa-f]{1,8})\}")
_PROPERTY = later(r"[pP](?:[A-Z]|\{[A-Za-z][A-Za-z_ ]*(?:=[A-Za-z_ ]+)?\})")
_POSIX = later(r"\[:(\w+):\]")

_POSIX_CLASSES: Mapping[str, str] = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\x09\x20",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": r"\x21-\x7E",
    "lower": "a-z",
    "print": r"\x20-\x7E",
    "punct": r"\x21-\x2F\x3A-\x40\x5B-\x60\x7B-\x7E",
    "space": r"\x09-\x0D\x20",
    "upper": "A-Z",
    "word": "0-9A-Z_a-z",
    "xdigit": "0-9A-Fa-f",
}
_CONTROLS: Mapping[str, str] = {"t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b"}
_ASSERTIONS: Mapping[str, tuple[str, str]] = {
    "b": (r"\b", r"\b"),
    "B": (r"\B", r"\B"),
    "<": (r"\b{start}", r"\m"),
    ">": (r"\b{end}", r"\M"),
}
"""Escape -> as ripgrep and as the built-in search write it."""
_REFUSED: Mapping[str, str] = {
    "?=": "lookahead is",
    "?!": "lookahead is",
    "?<=": "lookbehind is",
    "?<!": "lookbehind is",
    "?>": "an atomic group is",
    "?#": "a comment is",
}


class BadPattern(Exception):
    """A pattern that the search doesn't understand; the message says why."""


class Pattern(NamedTuple):
    """A regular expression as each engine writes it."""

    rust: str
    python: str


def understood(pattern: str) -> Pattern:
    """Read a pattern. Raises `BadPattern`."""
    return _Reading(pattern).whole()


class _Reading:
    """A pattern that is being read from left to right and written for both engines."""

    def __init__(self, pattern: str) -> None:
        self._pattern, self._at = pattern, 0
        self._rust: list[str] = []
        self._python: list[str] = []
        self._depth = 0
        self._can_repeat = False

    def whole(self) -> Pattern:
        """Read all of it."""
        flags = "i" if self._flags_of_all() else ""
        while self._at < len(self._pattern):
            self._part(self._next())
        if self._depth:
            raise self._bad("a ( has no )")
        return Pattern(f"(?{flags}:{''.join(self._rust)})", f"(?{flags}:{''.join(self._python)})")

    def _flags_of_all(self) -> bool:
        """Read `(?i)` at the beginning; `m` and `s` change nothing within a line."""
        found = re.compile(r"\(\?([ims]+)\)").match(self._pattern)
        self._at = found.end() if found else 0
        return found is not None and "i" in found[1]

    def _part(self, char: str) -> None:
        if char == "\\":
            self._escape()
        elif char == "[":
            self._class()
        elif char == "(":
            self._group()
        elif char == ")":
            if not self._depth:
                raise self._bad("a ) has no (")
            self._depth -= 1
            self._write(")")
        elif char in "*+?":
            self._repeat(char)
        elif char == "{" and (times := _TIMES.match(self._pattern, self._at)) and self._can_repeat:
            self._at = times.end()
            self._repeat(self._times(times))
        elif char in "^$|":
            self._write(char, r"\Z" if char == "$" else char, can_repeat=False)
        elif char == ".":
            self._write(".", f"[^\\n{_NO_TEXT}]")
        else:
            self._write(_literal(char))

    def _write(self, rust: str, python: str | None = None, *, can_repeat: bool = True) -> None:
        self._rust.append(rust)
        self._python.append(rust if python is None else python)
        self._can_repeat = can_repeat

    def _next(self) -> str:
        if self._at >= len(self._pattern):
            raise self._bad("it ends too early")
        self._at += 1
        return self._pattern[self._at - 1]

    def _bad(self, why: str) -> BadPattern:
        return BadPattern(f"{why} (at character {max(self._at, 1)})")

    # -- repetitions and groups ------------------------------------------------------------------------

    def _repeat(self, how: str) -> None:
        if not self._can_repeat:
            possessive = how == "+" and self._pattern[self._at - 2 : self._at - 1] in tuple("*+?}")
            raise self._bad("possessive repetition is not supported" if possessive else f"{how} repeats nothing")
        if self._pattern.startswith("?", self._at):
            self._at += 1
            how += "?"
        self._write(how, can_repeat=False)

    def _times(self, found: re.Match[str]) -> str:
        least, comma, most, only_most = found.groups()
        if max(int(number) for number in (least, most, only_most) if number) > _MOST_REPETITIONS:
            raise self._bad(f"nothing may repeat more than {_MOST_REPETITIONS:,} times")
        if most and int(most) < int(least):
            raise self._bad("a repetition has more as least than as most")
        return f"{{{least or 0}{comma or ''}{most or ''}}}" if least else f"{{0,{only_most}}}"

    def _group(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._bad("its groups are too deep")
        opening = "(?:"
        if found := _GROUP.match(self._pattern, self._at):
            self._at = found.end()
        elif found := _GROUP_WITH_FLAGS.match(self._pattern, self._at):
            self._at = found.end()
            opening = "(?i:" if "i" in found[1] else "(?-i:" if "i" in (found[2] or "") else "(?:"
        elif self._pattern.startswith("?", self._at):
            kinds = (what for start, what in _REFUSED.items() if self._pattern.startswith(start, self._at))
            flags = "flags are, except (?i) at the beginning" if _FLAGS.match(self._pattern, self._at) else None
            raise self._bad(f"{next(kinds, flags or 'this kind of group is')} not supported")
        self._write(opening, can_repeat=False)

    # -- escapes ---------------------------------------------------------------------------------------

    def _escape(self) -> None:
        start = self._at
        char = self._next()
        if char in _ASSERTIONS:
            self._write(*_ASSERTIONS[char], can_repeat=False)
            return
        if (several := self._several(char)) is not None:
            self._write(several, f"[^{several.lower()}{_NO_TEXT}]" if char in "DWS" else None)
            if char == "P":
                self._python[-1] = f"(?:(?![{_NO_TEXT}]){several})"
            return
        self._at = start
        self._write(_literal(self._escaped()))

    def _several(self, char: str) -> str | None:
        """Return an escape that stands for several characters, whose first letter was read; None if it doesn't."""
        if char in "dwsDWS":
            return "\\" + char
        if char in "pP":
            found = _PROPERTY.match(self._pattern, self._at - 1)
            if found is None:
                raise self._bad(f"\\{char} names no property of characters")
            self._at = found.end()
            return "\\" + found[0]
        return None

    def _escaped(self) -> str:
        """Read the escape of one character, behind `\\`."""
        if found := _CODE.match(self._pattern, self._at):
            self._at = found.end()
            code = int(next(filter(None, found.groups())), 16)
            if code in (0, 10) or 0xD800 <= code < 0xE000 or code > 0x10FFFF:
                raise self._bad(f"{found[0]} is no character of a line")
            return chr(code)
        char = self._next()
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char.isdecimal():
            raise self._bad("a backreference is not supported" if char != "0" else "\\0 is no character of a text")
        if char == "n":
            raise self._bad("\\n is never found, as single lines are searched")
        if char.isascii() and char.isalpha():
            raise self._bad(f"\\{char} is not supported")
        return char

    # -- classes ---------------------------------------------------------------------------------------

    def _class(self) -> None:
        negated = self._pattern.startswith("^", self._at)
        self._at += negated
        rust, python, opposite, first = "", "", False, True
        while first or not self._pattern.startswith("]", self._at):
            one = self._member()
            rust, python = rust + one.rust, python + one.python
            opposite = opposite or one.python[:2] in (r"\D", r"\W", r"\S", r"\P")
            first = False
        self._at += 1
        if opposite:
            self._write(f"[{'^' * negated}{rust}]", f"(?:(?![{_NO_TEXT}])[{'^' * negated}{python}])")
        else:
            self._write(f"[{'^' * negated}{rust}]", f"[{'^' * negated}{python}{_NO_TEXT * negated}]")

    def _member(self) -> Pattern:
        """Read one character, range or class of a class."""
        if found := _POSIX.match(self._pattern, self._at):
            self._at = found.end()
            if found[1] not in _POSIX_CLASSES:
                raise self._bad(f"{found[0]} is no class of characters")
            return Pattern(found[0], _POSIX_CLASSES[found[1]])
        low = self._one_or_several()
        if len(low) > 1:
            return Pattern(low, low)
        if self._pattern.startswith("-", self._at) and not self._pattern.startswith("-]", self._at):
            self._at += 1
            high = self._one_or_several()
            if len(high) > 1 or high < low:
                raise self._bad("a range in a class is backwards, or ends with a class")
            return Pattern(*(f"{_literal(low)}-{_literal(high)}",) * 2)
        return Pattern(*(_literal(low),) * 2)

    def _one_or_several(self) -> str:
        """Read a character, which is returned, or an escape that stands for several, which is longer."""
        if self._at >= len(self._pattern):
            raise self._bad("a [ has no ]")
        char = self._next()
        if char != "\\":
            return char
        start = self._at
        several = self._several(self._next())
        if several is not None:
            return several
        self._at = start
        return self._escaped()


def _literal(char: str) -> str:
    return "\\" + char if char in _META else char
