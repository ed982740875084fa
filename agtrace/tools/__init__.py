"""The MCP tools: a module for each, with its arguments, its description and the function that answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from agtrace.tools.tool import Tool


class Tools(Mapping[str, Tool]):
    """Tools by name; a tool's module is imported when the tool is first asked for. Safe to use from several threads.

    A command asks one tool; importing all of them takes longer than its answer.
    """

    def __init__(self, modules: Mapping[str, Callable[[], Any]]) -> None:
        self._modules = modules

    def __getitem__(self, name: str) -> Tool:
        found: Tool = self._modules[name]().TOOL
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


_MODULES: dict[str, Callable[[], Any]] = {
    "list_sessions": lambda: import_module("agtrace.tools.list_sessions"),
    "get_project_info": lambda: import_module("agtrace.tools.get_project_info"),
    "count_events": lambda: import_module("agtrace.tools.count_events"),
    "get_session_details": lambda: import_module("agtrace.tools.get_session_details"),
    "analyze_session": lambda: import_module("agtrace.tools.analyze_session"),
    "compare_sessions": lambda: import_module("agtrace.tools.compare_sessions"),
    "search_event_previews": lambda: import_module("agtrace.tools.search_event_previews"),
    "get_event_details": lambda: import_module("agtrace.tools.get_event_details"),
    "read_artifact": lambda: import_module("agtrace.tools.read_artifact"),
    "get_reasoning_chain": lambda: import_module("agtrace.tools.get_reasoning_chain"),
}

TOOLS = Tools(_MODULES)
"""Every tool that is listed, by name, from overview to detail."""

ANSWERED = Tools({**_MODULES, "search_events": lambda: import_module("agtrace.tools.search_events")})
"""Every tool that is answered: also a deprecated one, which isn't worth the bytes of a list."""
