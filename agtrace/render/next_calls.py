"""The calls that a hint writes out, as the commands that a person types: a line each.

`search_event_previews(query='a b', words='event')` is `agtrace search 'a b' --words event`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

from rich.text import Text

from agtrace.render.terminal import OUT, command, plain

_VALUE = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\[[^\]]*\]|-?[0-9]+|True|False"""
_ARGUMENT = re.compile(rf"(\w+)=({_VALUE})")
_CALL = re.compile(rf"(\w+)\(((?:(?:, )?\w+=(?:{_VALUE}))*)\)")
_SIZE = re.compile(r" \([^()]* KB\)")
_HIDES = re.compile(r"\b(\w+)(?= hides)")

_COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "list_sessions": ("sessions", ()),
    "get_session_details": ("show", ("{session_id}",)),
    "get_event_details": ("show", ("{session_id}:{event_index}",)),
    "analyze_session": ("analyze", ("{session_id}",)),
    "compare_sessions": ("compare", ("{id1}", "{id2}")),
    "search_event_previews": ("search", ("{query}",)),
    "read_artifact": ("read", ("{ref}",)),
    "get_reasoning_chain": ("reasoning", ("{session_id}",)),
}
"""By tool its command, and what is named without an option."""

_NAMES = {
    "session_id": "--session", "project_hash": "--project", "event_type": "--type", "min_tokens": "--min-tokens",
    "detail_level": "--level", "turn_index": "--turn",
}  # fmt: skip
_FLAGS = {
    ("order", "oldest"): "--oldest", ("group_by", "session"): "--by-session", ("regex", True): "--regex",
    ("include_own", True): "--own", ("include_reasoning", True): "--reasoning",
    ("failed", True): "--failed", ("failed", False): "--not-failed",
    ("has_failures", True): "--failures", ("has_failures", False): "--no-failures",
}  # fmt: skip
_WITHOUT_OPTION = frozenset(
    {"order", "group_by", "regex", "include_own", "include_reasoning", "include_loops", "include_failures", "max_bytes"}
)


class Offer(NamedTuple):
    """A command, and what it does."""

    command: str
    says: str


def offer(answer: dict[str, Any]) -> bool:
    """Print the commands that an answer's hint offers, each on a line; whether there are any."""
    found = list(offers(answer.get("hint", "")))
    for call, says in found:
        OUT.print(Text(plain(call), style="cyan").append(f"  {plain(says)}", style="dim"), soft_wrap=True)
    return bool(found)


def offers(hint: str) -> Iterator[Offer]:
    """The calls of a hint as commands, with what the hint says of each; what has no command is left out."""
    calls = list(_CALL.finditer(hint))
    for call, following in zip_longest(calls, calls[1:]):
        if call[1] in _COMMANDS:
            arguments = {name: ast.literal_eval(value) for name, value in _ARGUMENT.findall(call[2])}
            end = following.start() if following else len(hint)
            yield Offer(_command(call[1], arguments), _said(hint[call.end() : end]))


def _said(text: str) -> str:
    first = re.split(r"[;.](?:\s|$)", _SIZE.sub("", text))[0]
    return _HIDES.sub(lambda name: _NAMES.get(name[1], f"--{name[1].replace('_', '-')}"), first).strip()


def _command(tool: str, arguments: dict[str, Any]) -> str:
    name, forms = _COMMANDS[tool]
    named = [form.format(**arguments) for form in forms]
    options = _options({key: value for key, value in arguments.items() if f"{{{key}}}" not in "".join(forms)})
    return command(name, *named, options=list(options))


def _options(arguments: dict[str, Any]) -> Iterator[str]:
    first, last = arguments.pop("start_line", None), arguments.pop("end_line", None)
    if first or last:
        yield from ("--lines", str(first) if first == last else f"{first or ''}:{last or ''}")
    for name, value in arguments.items():
        if flag := _FLAGS.get((name, value)) if isinstance(value, str | bool) else None:
            yield flag
        elif name not in _WITHOUT_OPTION:
            yield from (_NAMES.get(name, f"--{name}"), ",".join(value) if isinstance(value, list) else str(value))
