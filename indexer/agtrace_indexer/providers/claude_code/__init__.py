"""Claude Code: `projects/<folder>/<sessionId>.jsonl` and the logs of its sub-agents (README.md)."""

from __future__ import annotations

from agtrace_schema.patterns import later

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.providers.provider import Agent, Client, Home, Notices, Sign, Tested, loader

AGENT_TOOLS = ("Task", "Agent")
"""The tools that start a sub-agent: `Task` was seen until 2.1.50, `Agent` from 2.1.78 on."""

CLAUDE_CODE = Agent(
    name="claude_code",
    title="Claude Code",
    parser=loader("claude_code.parser"),
    tested=Tested("2.1.270", "2026-11", "iterations of a response, cost-state, prompt snapshots, teammates"),
    home=Home(
        "CLAUDE_CONFIG_DIR", "the home of Claude Code's logs; default ~/.claude", ".claude", ("projects",), several=True
    ),
    tools=Tools(
        shells=frozenset({"Bash", "PowerShell"}),
        reading=frozenset({"LS", "LSP", "Glob"}),
        waiting=frozenset({"BashOutput", "TaskOutput", "AgentOutputTool", "Monitor", "ScheduleWakeup"}),
        asking=frozenset({"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"}),
        questioning=frozenset({"AskUserQuestion"}),
        starting=frozenset(AGENT_TOOLS),
        answering=frozenset({"StructuredOutput"}),
        servers=("mcp__agtrace__", "mcp__plugin_agtrace_agtrace__"),  # the second if installed as a plugin
        commands=("command",),
        paths=("file_path", "notebook_path"),
        removed=("old_string",),
        added=("new_string",),
        contents=("content", "new_source"),
    ),
    notices=Notices(
        api_errors=frozenset({"api_error"}),
        retried_errors=frozenset({"system/api_error", "system/error"}),
        telling=frozenset({"system/away_summary", "pr-link"}),
        cache_misses=frozenset({"cache_miss"}),
        compactions=(Sign("system/compact_boundary"),),
    ),
    no_messages=frozenset({"No response requested."}),  # when a session continues after a command
    hidden_reasoning="as signatures only",
    output_header=later(r"\A<tool_use_error>|</tool_use_error>\s*\Z"),
    longest_command_ms=600_000,
    command="claude",
    resumes=("--resume",),
    setup=loader("claude_code.parser:SETUP"),
    phase=loader("claude_code.phases:phase"),
    retention=loader("claude_code.parser:retention"),
    client=Client("claude-code", 50_000),
    keys_remembered=64,  # only lines of one response repeat a key, and they are close together
    repeats_lines=True,
)
"""Claude Code: its logs, tools, notifications and settings."""
