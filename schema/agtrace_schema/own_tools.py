"""The names of agtrace's own tools: agtrace's answers aren't an agent's own work."""

from __future__ import annotations

TOOLS = (
    "list_sessions",
    "get_project_info",
    "get_session_details",
    "analyze_session",
    "compare_sessions",
    "search_event_previews",
    "search_events",
    "get_event_details",
    "read_artifact",
    "get_reasoning_chain",
    "count_events",
    "run_sql",
)
"""All tools that the server has ever had."""

PRUNING_TOOLS = ("read", "bash", "grep")
"""The tools of `agtrace prune`. An agent does its own work with them."""
