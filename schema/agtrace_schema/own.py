"""The names under which agents call agtrace's own tools: what agtrace told them isn't their own work."""

from __future__ import annotations

from itertools import product

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
)
"""All tools that the server has ever had."""

_PREFIXES = (
    "mcp__agtrace__",  # Claude Code, Codex
    "mcp__plugin_agtrace_agtrace__",  # Claude Code, from a plugin
    "agtrace.",  # Codex, with a namespace
    "agtrace__",  # Codex's events; Gemini CLI where two servers have a tool of this name
    "mcp_agtrace_",  # Gemini CLI
    "",  # Gemini CLI, before 2026
)

OWN_TOOLS = frozenset(map("".join, product(_PREFIXES, TOOLS)))
"""Every spelling of a tool's name in a log at the time of version 4 of the tables, with a server called agtrace: the
migration marks these. In logs read since, the indexer knows them from each agent's package."""
