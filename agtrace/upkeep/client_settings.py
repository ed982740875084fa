"""What `agtrace setup` would change in a client's settings, and changing it: our entry is put in, or taken out.

Libraries read the settings, and say where things are; our entry is put into the text there, or cut out, so that
comments and layout stay. JSON is read by Python's `json`, after as many spaces took the place of comments and last
commas; YAML by ruamel.yaml, which writes our entry, too.
"""

from __future__ import annotations

import difflib
import io
import json
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from agtrace_indexer.providers.setup import SERVER_NAME
from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace.upkeep.clients import Client, Language, Machine

MOST_BYTES = 8_000_000
"""More than any settings have; a larger file is refused."""
_BYTE_ORDER_MARK = "\ufeff"
_REMOTE = {"url", "httpUrl", "serverUrl", "uri"}
"""What an entry has that names a server on the network, with whose settings ours can't be mixed."""
_STRING_OR_COMMENT = later(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_STRING_OR_LAST_COMMA = later(r'"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])')
_NO_LINE_END = later(r"[^\n]")
_NAME = later(r'[\s,]*("(?:[^"\\]|\\.)*")\s*:\s*')
_COMMA = later(r"\s*,")
_SPACE_AFTER = later(r"[ \t]*")
_INDENTED = later(r"^([ \t]+)\S", re.MULTILINE)
_NOTHING = later(r"(:[ \t]*)(?:\{\s*\}|null|~)")
"""What may stand behind the name of servers of which there are none."""


class Refused(ValueError):
    """The settings can't be read or changed safely; nothing was written.

    Its text is a sentence without a full stop; `more` has lines that say what to do instead.
    """

    def __init__(self, reason: str, more: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.more = more


class Change(Struct, frozen=True):
    """A settings file, and the text that it is to have."""

    path: Path
    """The file, as its client names it: maybe a link."""
    content: bytes | None
    """Its bytes; None if it doesn't exist."""
    after: str

    @property
    def nothing(self) -> bool:
        """Whether the file is already as it is to be."""
        return self.after.encode() == (self.content or b"")

    def lines(self) -> Iterator[str]:
        """Yield the change as a unified diff, with three lines around it, without line ends."""
        before, after = (self.content or b"").decode().splitlines(), self.after.splitlines()
        former = "/dev/null" if self.content is None else str(self.path)
        yield from difflib.unified_diff(before, after, former, str(self.path), lineterm="")

    def make(self) -> None:
        """Replace the file in one step; what it was stays beside it, with `.before-agtrace` after its name.

        Permissions stay, and a link stays a link; a new file is its owner's alone. Raises `Refused`, and has changed
        nothing then.
        """
        if self.nothing:
            return
        with _about(self.path):
            try:
                target = self.path.resolve()
                target.parent.mkdir(parents=True, exist_ok=True)
                if _read(self.path) != self.content:
                    raise Refused("it was changed by another program meanwhile: run the command again")
                if self.content is not None:
                    _write(target.with_name(f"{target.name}.before-agtrace"), self.content, like=target)
                _write(target, self.after.encode(), like=target)
            except OSError as error:
                raise Refused(f"it can't be written: {error.strerror or error}") from error


class _Settings(Struct):
    path: Path
    content: bytes | None
    text: str
    """Without a byte order mark, with `\\n` at line ends."""
    data: Any
    """What it says: a mapping."""
    steps: tuple[str, ...]
    """The names that lead to the servers."""
    servers: Mapping[str, Any]
    """The servers; empty if there are none."""


def adding(client: Client, machine: Machine, executable: str, variables: Mapping[str, str]) -> Change:
    """Return the change that adds our server, or brings its entry up to date. Raises `Refused`."""
    entry = client.entry(executable, variables)
    by_hand = f"To add it by hand, put this below {'.'.join(client.path({}))}: {json.dumps({SERVER_NAME: entry})}"
    settings = _settings(client, machine)
    present = settings.servers.get(SERVER_NAME)
    wanted = entry if isinstance(present, Mapping) and not _REMOTE.isdisjoint(present) else _over(present, entry)
    if present == wanted:
        return _unchanged(settings)
    with _about(settings.path, by_hand):
        if client.language is Language.JSON:
            return _checked(client, settings, _put_json(settings.text, settings.steps, wanted), wanted)
        return _checked(client, settings, _put_yaml(settings.text, settings.steps, wanted), wanted)


def removing(client: Client, machine: Machine) -> Change:
    """Return the change that takes our server out, and the servers if there are no others. Raises `Refused`."""
    settings = _settings(client, machine)
    if SERVER_NAME not in settings.servers:
        return _unchanged(settings)
    with _about(settings.path):
        edit = _drop_json if client.language is Language.JSON else _drop_yaml
        return _checked(client, settings, edit(settings.text, settings.steps), None)


def where(client: Client, machine: Machine) -> tuple[Path, bool]:
    """Return the settings file, and whether it has our server. Raises `Refused`."""
    settings = _settings(client, machine)
    return settings.path, SERVER_NAME in settings.servers


@contextmanager
def _about(file: Path, *more: str) -> Iterator[None]:
    """Name the file in a refusal, and what to do instead."""
    try:
        yield
    except Refused as error:
        raise Refused(f"{file}: {error}", more) from error


def _unchanged(settings: _Settings) -> Change:
    return Change(settings.path, settings.content, (settings.content or b"").decode())


def _over(present: Any, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry with what else is set in the present one: variables, a time limit, that it is switched off."""
    result = dict(present) if isinstance(present, Mapping) else {}
    for name, value in entry.items():
        result[name] = _over(result.get(name), value) if isinstance(value, Mapping) else value
    return result


# -- files -----------------------------------------------------------------------------------------


def _settings(client: Client, machine: Machine) -> _Settings:
    """Return the file to edit: the one that has us, else the first that is there. Raises `Refused`."""
    there = []
    for path in client.files(machine):
        with _about(path):
            there.append(_parsed(client, path, _read(path)))
    return max(there, key=lambda one: (SERVER_NAME in one.servers, one.content is not None))  # the first of equals


def _parsed(client: Client, path: Path, content: bytes | None) -> _Settings:
    try:
        text = (content or b"").decode().removeprefix(_BYTE_ORDER_MARK).replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise Refused(f"byte {error.start + 1} isn't UTF-8") from error
    try:
        data = _from_yaml(text) if client.language is Language.YAML else _from_json(text)
    except RecursionError as error:
        raise Refused("the settings have too many levels") from error
    steps = client.path(_mapping(data, "the settings"))
    servers = data
    for step in steps:
        below = servers.get(step, {})
        servers = _mapping({} if below is None and client.language is Language.YAML else below, step)
    return _Settings(path, content, text, data, steps, servers)


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Refused(f"{name} must be names with values")
    return value


def _read(path: Path) -> bytes | None:
    """Return a settings file's bytes; None if there is none. Raises `Refused` if it isn't a file, or can't be read."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise Refused("it isn't a file")
        if status.st_size > MOST_BYTES:
            raise Refused(f"it has more than {MOST_BYTES:,} bytes")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refused(f"it can't be read: {error.strerror or error}") from error


def _write(path: Path, content: bytes, *, like: Path) -> None:
    """Put a file in its place in one step, with the permissions and, where that is allowed, the owner of another."""
    handle, written = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as new:
            new.write(content)
            new.flush()
            os.fsync(new.fileno())
        with suppress(FileNotFoundError):
            status = like.stat()
            if hasattr(os, "chown"):
                with suppress(PermissionError):
                    os.chown(written, status.st_uid, status.st_gid)
            Path(written).chmod(stat.S_IMODE(status.st_mode))
        Path(written).replace(path)
    finally:
        Path(written).unlink(missing_ok=True)


def _checked(client: Client, settings: _Settings, after: str, wanted: Mapping[str, Any] | None) -> Change:
    """Return the change after reading its text again: our entry is as wanted, and all else says what it said before."""
    rest = _rest_of_json if client.language is Language.JSON else _rest_of_yaml
    again = _parsed(client, settings.path, after.encode())
    if again.servers.get(SERVER_NAME) != wanted or rest(after, settings.steps) != rest(settings.text, settings.steps):
        raise Refused("it is written in a way that can't be edited safely")
    before = (settings.content or b"").decode()
    if "\r\n" in before:
        after = after.replace("\n", "\r\n")
    return Change(settings.path, settings.content, before[: before.startswith(_BYTE_ORDER_MARK)] + after)


# -- JSON ------------------------------------------------------------------------------------------


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    """Return a text with spaces for what isn't a string, so that every other character stays in its place."""

    def blank(match: re.Match[str]) -> str:
        return match[0] if match[0].startswith('"') else _NO_LINE_END.sub(" ", match[0])

    return pattern.sub(blank, text)


def _from_json(text: str) -> Any:
    text = _blanked(_STRING_OR_LAST_COMMA, _blanked(_STRING_OR_COMMENT, text))
    try:
        return json.loads(text, object_pairs_hook=_once) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise Refused(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except ValueError as error:  # a number of more digits than Python reads
        raise Refused(str(error)) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Two members of one name are refused: clients differ in which they take."""
    result = dict(pairs)
    if len(result) < len(pairs):
        twice = next(name for index, (name, _) in enumerate(pairs) if name in dict(pairs[:index]))
        raise Refused(f"{json.dumps(twice)} is there twice")
    return result


def _rest_of_json(text: str, steps: Sequence[str]) -> str:
    """Return what a text says besides our entry and empty servers."""
    holders = [_from_json(text)]
    for step in steps:
        holders.append(holders[-1].get(step, {}))
    holders[-1].pop(SERVER_NAME, None)
    if not holders[-1]:
        holders[-2].pop(steps[-1], None)
    return json.dumps(holders[0])


class _Member(NamedTuple):
    """A member of an object, and where it begins, its value begins, and it ends."""

    name: str
    begin: int
    value: int
    end: int


def _object_begin(text: str) -> int:
    return _blanked(_STRING_OR_COMMENT, text).index("{")


def _members(text: str, begin: int) -> dict[str, _Member]:
    """Return the members of the object that begins here, in a text that was read before."""
    plain = _blanked(_STRING_OR_LAST_COMMA, _blanked(_STRING_OR_COMMENT, text))
    found, at = {}, begin + 1
    while name := _NAME.match(plain, at):
        _, at = json.JSONDecoder().raw_decode(plain, name.end())
        found[json.loads(name[1])] = _Member(json.loads(name[1]), name.start(1), name.end(), at)
    return found


def _put_json(text: str, steps: Sequence[str], entry: Mapping[str, Any]) -> str:
    """Return a text with our entry below these names, in the place of one that is there."""
    if not text.strip():
        text = f"{{}}\n{text.lstrip()}"
    if "{" not in _blanked(_STRING_OR_COMMENT, text):
        text += "{}\n"
    begin, names = _object_begin(text), [*steps, SERVER_NAME]
    for depth, name in enumerate(names):
        member = _members(text, begin).get(name)
        if member is None:
            value: Any = entry
            for inner in reversed(names[depth + 1 :]):
                value = {inner: value}
            return _with_first(text, begin, name, value)
        if name == SERVER_NAME:
            return text[: member.value] + _value(text, entry, _margin(text, member.begin)) + text[member.end :]
        begin = member.value
    return text


def _with_first(text: str, begin: int, name: str, value: Any) -> str:
    """Return a text with a new first member in the object that begins here."""
    first = next(iter(_members(text, begin).values()), None)
    named = f"{json.dumps(name)}: "
    if first is not None and text[: first.begin].rstrip(" \t")[-1] != "\n":
        return text[: first.begin] + named + json.dumps(value, ensure_ascii=False) + ", " + text[first.begin :]
    outer = _margin(text, begin)
    margin = outer + _unit(text) if first is None else _margin(text, first.begin)
    written = f"\n{margin}{named}{_value(text, value, margin)}"
    if first is not None:
        return f"{text[: begin + 1]}{written},{text[begin + 1 :]}"
    end = _blanked(_STRING_OR_COMMENT, text).index("}", begin)
    inside = text[begin + 1 : end]
    return text[: begin + 1] + written + (inside if inside.strip() else f"\n{outer}") + text[end:]


def _value(text: str, value: Any, margin: str) -> str:
    if "\n" not in text.strip() and text.strip() != "{}":
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False, indent=_unit(text)).replace("\n", f"\n{margin}")


def _unit(text: str) -> str:
    match = _INDENTED.search(text)
    return match[1] if match else "  "


def _margin(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _drop_json(text: str, steps: Sequence[str]) -> str:
    begins = [_object_begin(text)]
    for step in steps:
        begins.append(_members(text, begins[-1])[step].value)
    name = SERVER_NAME
    if len(_members(text, begins[-1])) == 1:
        name = steps[-1]
        del begins[-1]
    members = list(_members(text, begins[-1]).values())
    index = next(number for number, member in enumerate(members) if member.name == name)
    gone, begin = members[index], members[index].begin
    plain = _blanked(_STRING_OR_COMMENT, text)
    comma = _COMMA.match(plain, gone.end)
    end = comma.end() if comma else gone.end
    before = text[:begin].rstrip()
    if "\n" in text[len(before) : begin] or index + 1 == len(members):
        begin = len(before)
    elif comma:
        end = _SPACE_AFTER.match(text, end).end()  # type: ignore[union-attr]  # it matches nothing, too
    if comma is None and index:
        former = plain.index(",", members[index - 1].end)
        return text[:former] + text[former + 1 : max(begin, former + 1)] + text[end:]
    rest = text[end:]
    if len(members) == 1 and plain[begins[-1] + 1 : begin].strip() == "" == rest[: rest.index("}")].strip():
        return text[: begins[-1] + 1] + rest.lstrip()
    return text[:begin] + rest


# -- YAML ------------------------------------------------------------------------------------------


def _from_yaml(text: str) -> Any:
    """Return a mapping that knows the lines of its keys."""
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        data = YAML().load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise Refused(f"{place}{(error.problem or error.context or '').strip()}") from error
    except (YAMLError, ValueError) as error:  # ValueError: a date such as 2026-13-01
        raise Refused(str(error).partition("\n")[0] or "this isn't YAML") from error
    return CommentedMap() if data is None else data


def _put_yaml(text: str, steps: Sequence[str], entry: Mapping[str, Any]) -> str:
    """Return a text with our entry below this one name, in the place of one that is there, or before the others."""
    (step,) = steps
    data, lines = _from_yaml(text), text.split("\n")
    servers = data.get(step)
    if (servers and servers.fa.flow_style()) or (data and data.fa.flow_style()):
        raise Refused("settings in { } can't be added to")
    if step not in data:
        margin = " " * (data.lc.key(next(iter(data)))[1] if data else 0)
        return "\n".join([*(lines if lines[-1] else lines[:-1]), f"{margin}{step}:", *_block(entry, f"{margin}  "), ""])
    line, column = data.lc.key(step)
    if not servers:
        lines[line] = _NOTHING.sub(r"\1", lines[line])
        lines[line + 1 : line + 1] = _block(entry, " " * (column + 2))
    elif SERVER_NAME in servers:
        begin, end = _lines_of(lines, *servers.lc.key(SERVER_NAME))
        lines[begin:end] = _block(entry, " " * servers.lc.key(SERVER_NAME)[1])
    else:
        lines[line + 1 : line + 1] = _block(entry, " " * servers.lc.key(next(iter(servers)))[1])
    return "\n".join(lines)


def _drop_yaml(text: str, steps: Sequence[str]) -> str:
    (step,) = steps
    data, lines = _from_yaml(text), text.split("\n")
    servers = data[step]
    if servers.fa.flow_style():
        raise Refused("settings in { } can't be edited")
    begin, end = _lines_of(lines, *servers.lc.key(SERVER_NAME))
    del lines[begin:end]
    if len(servers) == 1:
        del lines[data.lc.key(step)[0]]
    return "\n".join(lines)


def _lines_of(lines: Sequence[str], line: int, column: int) -> tuple[int, int]:
    """Return the first line of a key in a block, and the one after its last: the rest is indented further."""
    end = line + 1
    for at in range(end, len(lines)):
        if lines[at].strip():
            if not lines[at].startswith(" " * (column + 1)):
                break
            end = at + 1
    return line, end


def _rest_of_yaml(text: str, steps: Sequence[str]) -> str:
    """Return what a text says besides our entry and empty servers, with aliases as they are."""
    from ruamel.yaml import YAML

    yaml, written = YAML(typ="safe", pure=True), io.StringIO()
    root = yaml.compose(text)
    if root is None:
        return ""
    for key, value in root.value:
        if key.value == steps[0] and isinstance(value.value, list):
            value.value = [pair for pair in value.value if pair[0].value != SERVER_NAME]
    root.value = [
        pair for pair in root.value if pair[0].value != steps[0] or (isinstance(pair[1].value, list) and pair[1].value)
    ]
    yaml.serialize(root, written)
    said = (line for line in written.getvalue().splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return "\n".join(said) if root.value else ""


def _block(entry: Mapping[str, Any], margin: str) -> list[str]:
    from ruamel.yaml import YAML

    yaml, written = YAML(), io.StringIO()
    yaml.width = 2**30  # no line is broken
    yaml.indent(sequence=4, offset=2)
    yaml.dump({SERVER_NAME: json.loads(json.dumps(entry))}, written)
    return [f"{margin}{line}" for line in written.getvalue().splitlines()]
