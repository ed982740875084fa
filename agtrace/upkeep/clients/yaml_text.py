"""Putting our server into settings in YAML, and taking it out, with every other byte left as it was.

PyYAML says where each key and value is, and only the lines of our entry are written. A library that keeps comments and
writes the file again (ruamel.yaml) changes indentation, quotes and line breaks, so its result can't be undone to the
byte. As in JSON, what was there before is seen from the form: an entry on one line was put into servers that were there
but empty; one over several lines, alone in its mapping, was put in together with the mapping.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from agtrace_schema.patterns import later

from agtrace.upkeep.clients.entries import merged
from agtrace.upkeep.clients.refusal import Refused, refused_at

_NEWLINE = later(r"\r\n|\n|\r")
_AFTER_A_MEMBER = later(r"\s*,\s*")


def servers(text: str, path: Sequence[str]) -> Mapping[str, Any]:
    """Return the servers below the one name of a path; none if it isn't there. Raises `Refused`."""
    (name,) = path
    root = _root(text)
    found = _value(text, root, name) if root is not None else None
    if found is None or _is_empty(found):
        return {}
    known = _constructed(_mapping(text, found))
    return {str(key): value for key, value in known.items()}


def put(text: str, path: Sequence[str], name: str, entry: Mapping[str, Any]) -> str:
    """Return a text with a server of this name below the one name of the path. Raises `Refused`.

    A server that is there already is written again, with the values that the entry doesn't have.
    """
    (key,) = path
    root = _root(text)
    below = _value(text, root, key) if root is not None else None
    if root is None or below is None:
        return _begun(text, root, {key: {name: entry}})
    line, _ = _pair(root, key)
    if _is_empty(below) and not below.value:
        return _below(text, line, " " * (_column(line) + 2) + _one_line(name, entry))
    known = _mapping(text, below)
    present = _value(text, known, name)
    if present is not None:
        return _again(text, known, name, merged(_constructed(present), entry))
    if known.flow_style:
        return _within_braces(text, known, _one_line(name, entry))
    return _below(text, line, _block({name: entry}, _column(known.value[0][0])))


def drop(text: str, path: Sequence[str], name: str) -> str:
    """Return a text without the server of this name, and without the mapping of servers if `put` made it."""
    (key,) = path
    root = _root(text)
    below = _value(text, root, key) if root is not None else None
    if root is None or not isinstance(below, yaml.MappingNode) or _value(text, below, name) is None:
        return text
    if below.flow_style:
        return _without_member(text, below, name)
    ours = _value(text, below, name)
    ours_alone = len(below.value) == 1 and ours.start_mark.line != ours.end_mark.line
    return _without_lines(text, *(_pair(root, key) if ours_alone else _pair(below, name)))


def rest(text: str, path: Sequence[str], name: str) -> str:
    """Return what a text says besides the server of this name: equal for two texts that differ in nothing else."""
    root = _root(text)
    if root is None:
        return ""
    (key,) = path
    below = _value(text, root, key)
    if isinstance(below, yaml.MappingNode):
        below.value = [pair for pair in below.value if pair[0].value != name]
    if below is not None and (_is_empty(below) or not below.value):
        root.value = [pair for pair in root.value if pair[0].value != key]
    return yaml.serialize(root, Dumper=yaml.SafeDumper) if root.value else ""


def _root(text: str) -> Any:
    """Return the node of the one document; None if there is nothing but comments. Raises `Refused`."""
    try:
        documents = [node for node in yaml.compose_all(text, Loader=yaml.SafeLoader) if node is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise refused_at(text, mark.index if mark else 0, error.problem or "this isn't YAML") from error
    except yaml.reader.ReaderError as error:
        raise refused_at(text, error.position, "a character that YAML doesn't allow") from error
    except RecursionError as error:
        raise Refused("the settings have too many levels") from error
    if len(documents) > 1:
        raise refused_at(text, documents[1].start_mark.index, "a second document begins here")
    return _mapping(text, documents[0]) if documents and not _is_empty(documents[0]) else None


def _mapping(text: str, node: Any) -> Any:
    if not isinstance(node, yaml.MappingNode):
        raise refused_at(text, node.start_mark.index, "names with values are expected here")
    return node


def _is_empty(node: Any) -> bool:
    """Whether a node is null, which is what a key without a value has."""
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _value(text: str, mapping: Any, name: str) -> Any:
    """Return the node of a name in a mapping; None if there is none. Two of one name are refused."""
    found = [(key, value) for key, value in mapping.value if key.value == name]
    if len(found) > 1:
        raise refused_at(text, found[1][0].start_mark.index, f"{name} is here for the second time")
    return found[0][1] if found else None


def _pair(mapping: Any, name: str) -> tuple[Any, Any]:
    """Return the nodes of a name in a mapping and of its value, which are known to be there."""
    return next((key, value) for key, value in mapping.value if key.value == name)


def _column(node: Any) -> int:
    return int(node.start_mark.column)


def _constructed(node: Any) -> dict[Any, Any]:
    """Return a mapping as Python has it. Raises `Refused` for what only a program of its own could read."""
    try:
        loader = yaml.SafeLoader("")
        value = loader.construct_document(node)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2026-13-01
        raise Refused("the settings have values of a kind of their own") from error
    return dict(value) if isinstance(value, dict) else {}


def _block(value: Mapping[str, Any], margin: int) -> str:
    """Write a mapping over several lines, without the end of the last one."""
    written = yaml.safe_dump(
        _plain(value), sort_keys=False, allow_unicode=True, width=sys.maxsize, default_flow_style=False
    )
    return "\n".join(" " * margin + line for line in written.splitlines())


def _one_line(name: str, entry: Mapping[str, Any]) -> str:
    written = yaml.safe_dump(
        _plain(entry), sort_keys=False, allow_unicode=True, width=sys.maxsize, default_flow_style=True
    )
    return f"{name}: {written.strip()}"


def _plain(value: Any) -> Any:
    """Return a value of new dictionaries and lists, so that none is written as an alias of another."""
    if isinstance(value, Mapping):
        return {name: _plain(below) for name, below in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _in_its_lines(text: str, written: str) -> str:
    return written.replace("\n", _newline(text))


def _begun(text: str, root: Any, value: Mapping[str, Any]) -> str:
    """Return a text with a mapping at its end, among the names of the outermost one."""
    if root is not None and root.flow_style:
        raise refused_at(text, root.start_mark.index, "settings on one line, in { }, can't be added to")
    margin = _column(root.value[0][0]) if root is not None and root.value else 0
    return _appended(text, _block(value, margin))


def _within_braces(text: str, mapping: Any, written: str) -> str:
    """Return a text with a member before the first one of a mapping in { }."""
    if not mapping.value:
        inside = mapping.start_mark.index + 1
        return text[:inside] + written + text[inside:]
    first = mapping.value[0][0].start_mark.index
    return f"{text[:first]}{written}, {text[first:]}"


def _appended(text: str, written: str) -> str:
    """Return a text with lines after its last one; without an end of the last line if there was none."""
    lines = _in_its_lines(text, written)
    if not text or text.endswith(("\n", "\r")):
        return text + lines + _newline(text)
    return text + _newline(text) + lines


def _below(text: str, key: Any, written: str) -> str:
    """Return a text with lines below that of a key."""
    end = _line_end(text, key.end_mark.index)
    return text[:end] + _newline(text) + _in_its_lines(text, written) + text[end:]


def _line_end(text: str, position: int) -> int:
    found = _NEWLINE.search(text, position)
    return found.start() if found else len(text)


def _content_end(text: str, node: Any) -> int:
    """Return the end of the last line that a node has something on; the node's own end may be at the next node."""
    last = node
    while isinstance(last, yaml.CollectionNode) and not last.flow_style and last.value:
        last = last.value[-1]
        last = last[1] if isinstance(last, tuple) else last
    end = last.end_mark.index
    if isinstance(last, yaml.ScalarNode) and last.style in ("|", ">"):
        end = len(text[:end].rstrip())
    return _line_end(text, end)


def _lines(text: str, key: Any, value: Any) -> tuple[int, int]:
    """Return the positions of the beginning and the end of the lines of a key with its value."""
    return key.start_mark.index - _column(key), max(_content_end(text, value), _line_end(text, key.end_mark.index))


def _again(text: str, mapping: Any, name: str, entry: Mapping[str, Any]) -> str:
    """Return a text in which a server is written again."""
    key, value = _pair(mapping, name)
    if _constructed(value) == entry:
        return text
    if mapping.flow_style or value.start_mark.line == value.end_mark.line:
        written = _one_line(name, entry)
        return text[: key.start_mark.index] + written + text[value.end_mark.index :]
    begin, end = _lines(text, key, value)
    return text[:begin] + _in_its_lines(text, _block({name: entry}, _column(key))) + text[end:]


def _without_lines(text: str, key: Any, value: Any) -> str:
    begin, end = _lines(text, key, value)
    following = _NEWLINE.match(text, end)
    if following:
        return text[:begin] + text[following.end() :]
    before = text[:begin]
    return before.removesuffix("\r\n") if before.endswith("\r\n") else before.removesuffix("\n")


def _without_member(text: str, mapping: Any, name: str) -> str:
    """Return a text without a member of a mapping in { }, and without one of the commas around it."""
    key, value = _pair(mapping, name)
    begin, end = key.start_mark.index, value.end_mark.index
    following = _AFTER_A_MEMBER.match(text, end)
    if following:
        return text[:begin] + text[following.end() :]
    before = text[:begin].rstrip()
    return (before[:-1] if before.endswith(",") else text[:begin]) + text[end:]
