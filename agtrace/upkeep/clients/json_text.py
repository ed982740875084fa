"""Putting our server into settings in JSON, and taking it out, with every other byte left as it was.

What is put in follows the file: its indentation, its line ends, its commas. Taking out what was put in gives the
former text, byte for byte, because its form says what was there before:

- servers that were there, but empty, get the entry on one line; servers that were missing are written over several
  lines, so that our entry over several lines, if it is alone, is taken out together with the servers;
- `{}` is opened, so that our entry has a line of its own; in an object with space inside, the entry follows `{`
  directly, and the space stays behind it.

Of a text without any value, such as an empty file, `{}` remains.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agtrace_schema.patterns import later

from agtrace.upkeep.clients.entries import is_remote
from agtrace.upkeep.clients.jsonc import Member, Value, parse
from agtrace.upkeep.clients.refusal import refused_at

_COMMENTS = later(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_SAME_LINE = later(r"(?:[ \t]*/\*(?:(?!\*/)[^\r\n])*\*/)*(?:[ \t]*//[^\r\n]*)?")


def servers(text: str, path: Sequence[str]) -> Mapping[str, Any]:
    """Return the servers below a path of names; none if it isn't there. Raises `Refused`."""
    found = parse(text)
    for name in path:
        found = _named(text, found, name) if found is not None else None
    if found is None:
        return {}
    return dict(_object(text, found).content)


def put(text: str, path: Sequence[str], name: str, entry: Mapping[str, Any]) -> str:
    """Return a text with a server of this name below the path, of which only the last may be missing. Raises `Refused`.

    Of a server that is there already, only the values that differ are replaced, and missing ones added.
    """
    root = parse(text)
    if root is None:
        return _Layout(text, None).of_nothing(_wrapped(path, name, entry))
    at = _object(text, root)
    for depth, step in enumerate(path):
        below = _named(text, at, step)
        if below is None:
            return _Layout(text, root).with_new(at, step, _wrapped(path[depth + 1 :], name, entry), spread=True)
        at = _object(text, below)
    present = _named(text, at, name)
    if present is None:
        return _Layout(text, root).with_new(at, name, entry)
    if present.members is None or is_remote(present.content):
        return _replaced(text, present, entry)
    return _merged(text, (*path, name), present, entry)


def drop(text: str, path: Sequence[str], name: str) -> str:
    """Return a text without the server of this name, and without the object of servers if `put` made it."""
    chain = [_object(text, value)] if (value := parse(text)) is not None else []
    for step in path:
        below = _named(text, chain[-1], step) if chain else None
        if below is None:
            return text
        chain.append(_object(text, below))
    if not chain or _named(text, chain[-1], name) is None:
        return text
    if path and _made_by_us(text, chain[-1], name):
        return _without(text, chain[-2], path[-1])
    return _without(text, chain[-1], name)


def rest(text: str, path: Sequence[str], name: str) -> str:
    """Return what a text says besides the server of this name: equal for two texts that differ in nothing else."""
    root = parse(text)
    content = root.content if root is not None else {}
    _forget(content, (*path, name))
    return json.dumps(content)


def _forget(content: Any, path: Sequence[str]) -> None:
    """Remove what a path leads to, and the objects that are then empty."""
    if not isinstance(content, dict) or path[0] not in content:
        return
    _forget(content[path[0]], path[1:]) if len(path) > 1 else None
    if len(path) == 1 or content[path[0]] == {}:
        del content[path[0]]


def _wrapped(path: Sequence[str], name: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an entry below the names of a path; the entry itself is what the last name has."""
    inner: Mapping[str, Any] = {name: entry}
    for step in reversed(path):
        inner = {step: inner}
    return inner


def _object(text: str, value: Value) -> Value:
    if value.members is None:
        raise refused_at(text, value.start, "an object, { }, is expected here")
    return value


def _named(text: str, value: Value, name: str) -> Value | None:
    """Return the value of a name in an object. Two of one name are refused: clients differ in which they take."""
    found = [member for member in _object(text, value).members or () if member.name == name]
    if len(found) > 1:
        raise refused_at(text, found[1].start, f'"{name}" is here for the second time')
    return found[0].value if found else None


def _merged(text: str, path: Sequence[str], present: Value, entry: Mapping[str, Any]) -> str:
    """Return a text in which the object at a path has the values of an entry; other values of it stay."""
    if present.members is None:
        return _replaced(text, present, entry)
    for name, wanted in entry.items():
        root, at = _at(text, path)
        value = _named(text, at, name)
        if value is None:
            text = _Layout(text, root).with_new(at, name, wanted)
        elif isinstance(wanted, Mapping):
            text = _merged(text, (*path, name), value, wanted)
        elif json.dumps(value.content) != json.dumps(wanted):
            text = _replaced(text, value, wanted)
    return text


def _at(text: str, path: Sequence[str]) -> tuple[Value, Value]:
    """Return the outermost object, and the one that a path leads to, which is known to be there."""
    root = at = parse(text)
    for step in path:
        at = _named(text, at, step) if at is not None else None
    assert root is not None and at is not None
    return root, at


def _replaced(text: str, value: Value, wanted: Any) -> str:
    written = _Layout(text, parse(text)).written(wanted, _margin(text, value.start), spread=True)
    return text[: value.start] + written + text[value.end :]


class _Layout:
    """How a text is laid out, and what is written into it in the same way."""

    def __init__(self, text: str, root: Value | None) -> None:
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        outer = _margin(text, root.start) if root else ""
        first = root.members[0] if root and root.members else None
        inner = _margin(text, first.start) if first and _begins_line(text, first.start) else ""
        self.unit = inner.removeprefix(outer) if inner.startswith(outer) and inner != outer else "  "

    def of_nothing(self, value: Mapping[str, Any]) -> str:
        """Write a value at the end of a text that has none."""
        between = "" if not self.text.strip("\ufeff") or self.text.endswith(("\n", "\r")) else self.newline
        return self.text + between + self.written(value, "", spread=True) + self.newline

    def written(self, value: Any, margin: str, *, spread: bool) -> str:
        """Write a value in a line with this margin, objects over several lines or everything on one."""
        if not isinstance(value, Mapping) or not spread or not value:
            return json.dumps(value, ensure_ascii=False)
        inner = margin + self.unit
        members = (self.newline + inner + self.member(name, below, inner, spread=True) for name, below in value.items())
        return "{" + ",".join(members) + self.newline + margin + "}"

    def member(self, name: str, value: Any, margin: str, *, spread: bool) -> str:
        """Write a name with its value."""
        return f"{json.dumps(name)}: {self.written(value, margin, spread=spread)}"

    def with_new(self, at: Value, name: str, value: Any, *, spread: bool = False) -> str:
        """Return the text with another member in an object, after its last one and what follows that on its line."""
        if not at.members:
            return self._filled(at, name, value, spread=spread)
        last = at.members[-1]
        tail = _SAME_LINE.match(self.text, last.end)
        assert tail is not None
        several = _begins_line(self.text, last.start)
        margin = _margin(self.text, last.start)
        lead = self.newline + margin if several or "//" in tail[0] else " "
        written = self.member(name, value, margin, spread=spread or several)
        comma = ("", ",") if last.comma else (",", "")
        before = self.text[: last.value.end] + comma[0] + self.text[last.value.end : tail.end()]
        return before + lead + written + comma[1] + self.text[tail.end() :]

    def _filled(self, at: Value, name: str, value: Any, *, spread: bool) -> str:
        """Return the text with the first member in an empty object, whose comments and space stay."""
        inside = self.text[at.start + 1 : at.end - 1]
        said = inside.rstrip()
        outer = _margin(self.text, at.start)
        lead, behind = inside[len(said) :], inside[len(said) :]
        if "\n" in inside:
            lead = self.newline + outer + self.unit if said else ""
        elif not inside and (spread or "\n" in self.text.rstrip()):
            lead, behind = self.newline + outer + self.unit, self.newline + outer
        margin = outer + self.unit if "\n" in lead else outer
        written = self.member(name, value, margin, spread=spread)
        return self.text[: at.start + 1] + said + lead + written + behind + self.text[at.end - 1 :]


def _line_before(text: str, position: int) -> str:
    """Return what comes before a position in its line."""
    return text[max(text.rfind("\n", 0, position), text.rfind("\r", 0, position)) + 1 : position]


def _margin(text: str, position: int) -> str:
    """Return the space at the beginning of the line that a position is in."""
    line = _line_before(text, position)
    return line[: len(line) - len(line.lstrip(" \t"))]


def _begins_line(text: str, position: int) -> bool:
    return not _line_before(text, position).strip(" \t")


def _made_by_us(text: str, at: Value, name: str) -> bool:
    """Whether an object has nothing but a member of this name, over several lines, and no comment around it."""
    only = _only(text, at)
    return only is not None and only.name == name and "\n" in text[only.value.start : only.value.end]


def _only(text: str, at: Value) -> Member | None:
    """Return the one member of an object that has no other, and no comment or comma."""
    if at.members is None or len(at.members) != 1:
        return None
    (only,) = at.members
    around = text[at.start + 1 : only.start] + text[only.value.end : at.end - 1]
    return None if around.strip() else only


def _without(text: str, at: Value, name: str) -> str:
    """Return the text without a member of an object; comments around the member stay."""
    only = _only(text, at)
    if only is not None and _begins_line(text, only.start):
        return text[: at.start + 1] + text[at.end - 1 :]
    members = at.members or ()
    index = next(number for number, member in enumerate(members) if member.name == name)
    gone, before = members[index], members[index - 1] if index else None
    begin = _after_comments(text, before.end if before else at.start + 1, gone.start)
    if before is not None and before.comma is not None and gone.comma is None:
        return text[: before.comma - 1] + text[before.comma : begin] + text[gone.end :]
    return text[:begin] + text[gone.end :]


def _after_comments(text: str, start: int, end: int) -> int:
    """Return the position after the last comment between two positions; the first position if there is none."""
    ends = [comment.end() for comment in _COMMENTS.finditer(text, start, end)]
    return ends[-1] if ends else start
