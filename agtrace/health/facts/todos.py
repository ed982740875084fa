"""The model's own list of what is to do, as its last call left it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agtrace_schema.events import Json, Outcome
from agtrace_schema.patterns import later

from agtrace.health.facts.tool_names import own_name
from agtrace.health.history import Call, History

_WHOLE_LISTS = frozenset({"todowrite", "todo_write", "write_todos", "update_plan"})
_SINGLE_TASKS = frozenset({"taskcreate", "taskupdate"})
_LISTS, _TEXTS = ("todos", "plan"), ("content", "step", "description", "subject")
_DONE = frozenset({"completed", "cancelled", "canceled", "deleted"})
_MADE = (Outcome.OK, Outcome.UNKNOWN)
"""Codex doesn't log how its calls for this ended."""
_NUMBER = later(r"#(\d{1,9})\b")


class Todos(NamedTuple):
    """A list of what is to do."""

    event_index: int
    """The call that left it so."""
    open: tuple[str, ...]
    """What isn't done."""
    of: int
    """Everything on the list, done or not."""


class Ticked(NamedTuple):
    """Something that was ticked off."""

    event_index: int
    """The call that did."""
    since: int
    """The call before that had it still open."""
    text: str


def ticked_off(history: History) -> Iterator[Ticked]:
    """Yield what was ticked off of lists that are written as a whole, in the order in which that happened."""
    before: dict[str, str] = {}
    last = 0
    for call in history.calls:
        if own_name(call.tool) not in _WHOLE_LISTS or call.outcome not in _MADE:
            continue
        if isinstance(call.arguments, dict):
            now = dict(_items(call.arguments))
            for text, status in now.items():
                if status == "completed" and before.get(text, "completed") not in _DONE:
                    yield Ticked(call.event_index, last, text)
            before, last = now, call.event_index


def todos(history: History) -> Todos | None:
    """Return the list as it was at the end; None if the model kept none, or its form isn't known."""
    last: Todos | None = None
    tasks: dict[str, tuple[str, str]] = {}
    for call in history.calls:
        tool = own_name(call.tool)
        if call.outcome not in _MADE or not isinstance(call.arguments, dict):
            continue
        if tool in _WHOLE_LISTS:
            items = list(_items(call.arguments))
            last = Todos(call.event_index, tuple(text for text, status in items if status not in _DONE), len(items))
        elif tool in _SINGLE_TASKS:
            _of_one(call, call.arguments, tasks)
            left = tuple(text for text, status in tasks.values() if status not in _DONE)
            last = Todos(call.event_index, left, len(tasks))
    return last


def keeps_list(call: Call) -> bool:
    """Whether a call writes such a list, or a part of it."""
    return own_name(call.tool) in _WHOLE_LISTS or own_name(call.tool) in _SINGLE_TASKS


def _items(arguments: dict[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield the texts of a whole list with their statuses."""
    listed = next((arguments[name] for name in _LISTS if isinstance(arguments.get(name), list)), [])
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, dict):
            text = next((said for name in _TEXTS if isinstance(said := item.get(name), str)), "")
            yield text, str(item.get("status") or "pending")


def _of_one(call: Call, arguments: dict[str, Json], tasks: dict[str, tuple[str, str]]) -> None:
    """Record a task that was made or changed; Claude Code gives its number in the result of the call that makes it."""
    if own_name(call.tool) == "taskcreate":
        number = _NUMBER.search(call.result)
        if number:
            tasks[number[1]] = str(arguments.get("subject") or ""), "pending"
        return
    task = str(arguments.get("taskId"))
    if task in tasks and isinstance(status := arguments.get("status"), str):
        tasks[task] = tasks[task][0], status
