"""JSON as editors write it, with comments and trailing commas, read together with the place of every value.

Libraries for JSON with comments give values, or write the whole file again. To change one entry and leave each other
byte as it was takes positions, which this module adds to the grammar of RFC 8259 and to the two extensions of VS Code's
`jsonc-parser`: comments as in JavaScript, and a comma after the last member.
"""

from __future__ import annotations

import json
import re
from typing import Any

from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace.upkeep.clients.refusal import Refused, refused_at

DEEPEST = 100
"""More levels of lists and objects than any settings have; deeper ones are refused."""

_SPACE = later(r"[ \t\r\n]*")
_COMMENT = later(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = later(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_WORD = later(r"(?:true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![\w.+-])")
_BYTE_ORDER_MARK = "\ufeff"
_NO_VALUE = {'"': "this string doesn't end, or has a character that must be escaped", "": "the file ends too early"}


class Value(Struct, frozen=True):
    """A value in a text: what it is, and where. An object has its members as well."""

    start: int
    end: int
    """The position after its last character."""
    content: Any
    members: tuple[Member, ...] | None = None


class Member(Struct, frozen=True):
    """A member of an object, from the quotation mark of its name to its comma."""

    name: str
    start: int
    value: Value
    comma: int | None
    """The position after the comma that follows; None after the last member, unless there is one."""

    @property
    def end(self) -> int:
        """The position after the member and its comma."""
        return self.comma or self.value.end


def parse(text: str, *, comments: bool = True, commas: bool = True) -> Value | None:
    """Return the value that a text holds; None if it holds only space and comments.

    Raises `Refused`, with line and column, if the text is malformed, or has a comment or a trailing comma where none is
    allowed.
    """
    scanner = _Scanner(text, comments=comments, commas=commas)
    scanner.skip()
    if scanner.at == len(text):
        return None
    value = scanner.value(0)
    scanner.skip()
    if scanner.at < len(text):
        raise scanner.refused("something follows the end of the settings")
    return value


class _Scanner:
    """Reads a text from `at` on."""

    def __init__(self, text: str, *, comments: bool, commas: bool) -> None:
        self.text, self.comments, self.commas = text, comments, commas
        self.at = len(_BYTE_ORDER_MARK) if text.startswith(_BYTE_ORDER_MARK) else 0

    def refused(self, reason: str, at: int | None = None) -> Refused:
        return refused_at(self.text, self.at if at is None else at, reason)

    def skip(self) -> None:
        """Go past space and comments."""
        while True:
            if found := _SPACE.match(self.text, self.at):
                self.at = found.end()
            if not self.text.startswith(("//", "/*"), self.at):
                return
            comment = _COMMENT.match(self.text, self.at)
            if comment is None:
                raise self.refused("this comment doesn't end")
            if not self.comments:
                raise self.refused("the client allows no comments in this file")
            self.at = comment.end()

    def value(self, depth: int) -> Value:
        if depth > DEEPEST:
            raise self.refused(f"more than {DEEPEST} levels of lists and objects")
        start, first = self.at, self.text[self.at : self.at + 1]
        if first == "{":
            members = self._members(depth)
            return Value(start, self.at, {member.name: member.value.content for member in members}, members)
        if first == "[":
            items = self._items(depth)
            return Value(start, self.at, items)
        found = _STRING.match(self.text, self.at) if first == '"' else _WORD.match(self.text, self.at)
        if found is None:
            raise self.refused(_NO_VALUE.get(first, "a value is expected here"))
        self.at = found.end()
        return Value(start, self.at, json.loads(found[0], parse_int=_integer))

    def _members(self, depth: int) -> tuple[Member, ...]:
        found: list[Member] = []
        self.at += 1
        self.skip()
        while not self._ended("}", after_comma=bool(found and found[-1].comma)):
            start, name = self.at, _STRING.match(self.text, self.at)
            if name is None:
                ended = self.at == len(self.text)
                raise self.refused(_NO_VALUE[""] if ended else 'a name in quotation marks or "}" is expected here')
            self.at = name.end()
            self.skip()
            self._take(":", 'a ":" is expected here')
            self.skip()
            value = self.value(depth + 1)
            found.append(Member(json.loads(name[0]), start, value, self._comma("}")))
        return tuple(found)

    def _items(self, depth: int) -> list[Any]:
        found: list[Any] = []
        comma = None
        self.at += 1
        self.skip()
        while not self._ended("]", after_comma=comma is not None):
            found.append(self.value(depth + 1).content)
            comma = self._comma("]")
        return found

    def _ended(self, closing: str, *, after_comma: bool) -> bool:
        """Go past the end of a list or an object, if it is here."""
        if not self.text.startswith(closing, self.at):
            return False
        if after_comma and not self.commas:
            raise self.refused(f'the client allows no comma before "{closing}"')
        self.at += 1
        return True

    def _comma(self, closing: str) -> int | None:
        """Go past a comma and return the position after it; None if the list or object ends here."""
        self.skip()
        if self.text.startswith(closing, self.at):
            return None
        self._take(",", f'a "," or "{closing}" is expected here')
        after = self.at
        self.skip()
        return after

    def _take(self, character: str, reason: str) -> None:
        if not self.text.startswith(character, self.at):
            raise self.refused(reason if self.at < len(self.text) else _NO_VALUE[""])
        self.at += 1


def _integer(digits: str) -> int | str:
    """Return an integer; as text if it has more digits than Python converts, which happens to no setting."""
    return int(digits) if len(digits) < 1000 else digits
