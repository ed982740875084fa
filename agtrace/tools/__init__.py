"""The MCP tools: a module for each, with its arguments, its description and the function that answers."""

from __future__ import annotations

from agtrace.settings import Settings
from agtrace.tools import (
    analyze_session,
    compare_sessions,
    count_events,
    get_event_details,
    get_project_info,
    get_reasoning_chain,
    get_session_details,
    list_sessions,
    read_artifact,
    search_event_previews,
    search_events,
)
from agtrace.tools.tool import Tool

TOOLS: dict[str, Tool] = {
    module.TOOL.name: module.TOOL
    for module in (
        list_sessions,
        get_project_info,
        count_events,
        get_session_details,
        analyze_session,
        compare_sessions,
        search_event_previews,
        get_event_details,
        read_artifact,
        get_reasoning_chain,
    )
}
"""Every tool that needs no setting, by name, from overview to detail."""


def tools_for(settings: Settings) -> dict[str, Tool]:
    """Return the tools that these settings offer, by name."""
    return TOOLS | ({search_events.TOOL.name: search_events.TOOL} if settings.search_events else {})


__all__ = ["TOOLS", "tools_for"]
