"""Claude Code: `projects/<folder>/<sessionId>.jsonl` and the logs of its sub-agents (README.md)."""

from __future__ import annotations

from typing import Any

from agtrace_schema.patterns import later

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.providers.provider import Agent, Client, Home, Notices, Phase, Sign, Tested, loader

AGENT_TOOLS = ("Task", "Agent")
"""The tools that start a sub-agent: `Task` was seen until 2.1.50, `Agent` from 2.1.78 on."""

# Whether a turn goes on, by single records. Records of a response carry `stop_reason`, but in some versions it is null
# in all of them; newer ones also write `turn_duration` and `stop_hook_summary` after a turn (observed in logs of 2.0
# and 2.1). Permission prompts leave no record: an open call may be running or waiting for one.
_ENDS = frozenset({"end_turn", "stop_sequence", "max_tokens", "refusal"})
_AFTER_A_TURN = frozenset({"turn_duration", "stop_hook_summary"})
_OF_COMMANDS = ("<local-command-", "<bash-stdout>", "<bash-stderr>", "<command-message>", "Caveat: The messages below")
_LEAVES = ("<command-name>/exit</command-name>", "<command-name>/quit</command-name>")
_LOOKED_AT = 4_000


def phase(record: dict[str, Any]) -> Phase | None:
    """Return what a record says about the turn of the main session; None if it says nothing."""
    if record.get("isSidechain") is True:
        return None
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    match record.get("type"):
        case "system":
            return Phase.OVER if record.get("subtype") in _AFTER_A_TURN else None
        case "assistant":
            if record.get("isApiErrorMessage") is True:
                return Phase.OVER
            reason = message.get("stop_reason") if isinstance(message, dict) else None
            if _blocks(content, "tool_use") or not isinstance(reason, str):
                return Phase.GOES_ON
            return Phase.OVER if reason in _ENDS else Phase.GOES_ON
        case "user":
            first = content if isinstance(content, str) else next(iter(_blocks(content, "text")), {}).get("text")
            said = first[:_LOOKED_AT].lstrip() if isinstance(first, str) else ""
            if any(leaves in said for leaves in _LEAVES):
                return Phase.CLOSED
            if said.startswith("[Request interrupted by user"):
                return Phase.OVER
            if not said.startswith((*_OF_COMMANDS, "<command-name>")) or _blocks(content, "tool_result"):
                return Phase.GOES_ON  # a result, a request or a text of the harness, but no command of the harness
    return None


def _blocks(content: Any, kind: str) -> list[dict[str, Any]]:
    blocks = content if isinstance(content, list) else [content]
    return [block for block in blocks if isinstance(block, dict) and block.get("type") == kind]


_COWORK = tuple(f"Claude/local-agent-mode-sessions/{of}/local_*/.claude/projects" for of in ("*/*", "*/*/agent"))
"""Where Claude's desktop application has the logs of Claude Code that it runs for Cowork, each in a home of its own."""

CLAUDE_CODE = Agent(
    name="claude_code",
    title="Claude Code",
    parser=loader("claude_code.parser"),
    tested=Tested("2.1.283", "2026-11", "iterations of a response, cost-state, prompt snapshots, teammates"),
    home=Home(
        "CLAUDE_CONFIG_DIR", "the home of Claude Code's logs; default ~/.claude", ".claude", ("projects",), several=True
    ),
    elsewhere=(
        Home("", "", ".config/claude", ("projects",)),
        Home("", "", "Library/Developer/Xcode/CodingAssistant", ("*/projects",)),
        *(Home("", "", folder, _COWORK) for folder in (".config", "Library/Application Support", "AppData/Roaming")),
        Home("", "", "AppData/Local/Packages", tuple(f"Claude_*/LocalCache/Roaming/{logs}" for logs in _COWORK)),
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
    phase=phase,
    retention=loader("claude_code.parser:retention"),
    client=Client("claude-code", 49_100),  # with a link it adds up to 820 characters, and moves above 50,000 to a file
    keys_remembered=64,  # only lines of one response repeat a key, and they are close together
    repeats_lines=True,
)
"""Claude Code: its logs, tools, notifications and settings."""
