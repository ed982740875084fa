"""The MCP tools: a module for each, with its arguments, its description and the function that answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from agtrace.tools.tool import Tool


class Tools(Mapping[str, Tool]):
    """Tools by name; a tool's module is imported when the tool is first asked for. Safe to use from several threads.

    A command asks one tool; importing all of them takes longer than its answer.
    """

    def __init__(self, *names: str) -> None:
        self._names = names

    def __getitem__(self, name: str) -> Tool:
        if name not in self._names:
            raise KeyError(name)
        result: Tool = import_module(f"agtrace.tools.{name}").TOOL
        return result

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


TOOLS = Tools(
    "list_sessions",
    "get_project_info",
    "run_sql",
    "get_session_details",
    "analyze_session",
    "compare_sessions",
    "search_event_previews",
    "get_event_details",
    "read_artifact",
    "get_reasoning_chain",
)
"""Every tool that is listed, by name, from overview to detail."""

ANSWERED = Tools(*TOOLS, "search_events")
"""Every tool that is answered: also a deprecated one, which isn't worth the bytes of a list."""
