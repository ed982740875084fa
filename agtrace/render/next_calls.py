"""The calls that an answer suggests, as commands for a person to type, one a line.

`search_event_previews(query='a b', kind='error')` is `agtrace search 'a b' --kind error`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from rich.text import Text

from agtrace.render.terminal import OUT, plain
from agtrace.text.next_call import NextCall, command

_COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "list_sessions": ("sessions", ()),
    "count_events": ("count", ()),
    "get_session_details": ("show", ("{session_id}",)),
    "get_event_details": ("show", ("{session_id}:{event_index}",)),
    "analyze_session": ("analyze", ("{session_id}",)),
    "compare_sessions": ("compare", ("{id1}", "{id2}")),
    "search_event_previews": ("search", ("{query}",)),
    "read_artifact": ("read", ("{ref}",)),
    "get_reasoning_chain": ("reasoning", ("{session_id}",)),
}
"""The command of each tool, and its arguments that aren't options."""

_NAMES = {
    "session_id": "--session", "event_type": "--type", "min_tokens": "--min-tokens",
    "detail_level": "--level", "turn_index": "--turn", "context_focus_question": "--focus",
}  # fmt: skip
_FLAGS = {
    ("order", "oldest"): "--oldest", ("order", "newest"): "--newest",
    ("group_by", "session"): "--by-session", ("regex", True): "--regex",
    ("include_reasoning", True): "--reasoning",
    ("failed", True): "--failed", ("failed", False): "--not-failed",
    ("has_failures", True): "--failures", ("has_failures", False): "--no-failures",
}  # fmt: skip
_IN_COMMAND = {("count_events", "group_by"): "by"}
"""Arguments that the command of one tool calls otherwise."""

_WITHOUT_OPTION = frozenset(
    {"order", "group_by", "regex", "include_reasoning", "include_loops", "include_failures", "max_bytes"}
)


class Offer(NamedTuple):
    """A command, and what it does."""

    command: str
    says: str


def offer(next_calls: Iterable[NextCall]) -> bool:
    """Print the commands for these calls, one a line; return whether there were any."""
    found = list(offers(next_calls))
    for typed, says in found:
        OUT.print(Text(plain(typed), style="cyan").append(f"  {plain(says)}", style="dim"), soft_wrap=True)
    return bool(found)


def offers(next_calls: Iterable[NextCall]) -> Iterator[Offer]:
    """Yield the calls as commands, with what each does; calls without a command are left out."""
    for call in next_calls:
        if call.tool in _COMMANDS:
            yield Offer(_command(call.tool, call.arguments), call.says_of(map(_option, call.names)))


def _command(tool: str, arguments: Mapping[str, Any]) -> str:
    name, forms = _COMMANDS[tool]
    named = [form.format(**arguments) for form in forms]
    left = {key: value for key, value in arguments.items() if f"{{{key}}}" not in "".join(forms)}
    options = _options({_IN_COMMAND.get((tool, key), key): value for key, value in left.items()})
    return command(name, *named, options=list(options))


def _options(arguments: dict[str, Any]) -> Iterator[str]:
    first, last = arguments.pop("start_line", None), arguments.pop("end_line", None)
    if first or last:
        yield from ("--lines", str(first) if first == last else f"{first or ''}:{last or ''}")
    for name, value in arguments.items():
        if flag := _FLAGS.get((name, value)) if isinstance(value, str | bool) else None:
            yield flag
        elif name not in _WITHOUT_OPTION:
            yield from (_option(name), ",".join(value) if isinstance(value, list) else str(value))


def _option(argument: str) -> str:
    return _NAMES.get(argument, f"--{argument.replace('_', '-')}")
