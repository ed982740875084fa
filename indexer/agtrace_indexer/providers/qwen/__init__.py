"""Qwen Code: `projects/<folder>/chats/<session>.jsonl` and the logs of its sub-agents (README.md)."""

from __future__ import annotations

from typing import Any

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.providers.provider import Agent, Home, Notices, Phase, Sign, Tested, loader

# Whether a turn of Qwen Code goes on, by single records of its log.
# A response is written whole, with its calls: one without calls is the answer. A sub-agent's is written in pieces, so
# its texts say nothing. Requests for permission go to the screen only.

_ASIDE = ("notification",)


def phase(record: dict[str, Any]) -> Phase | None:
    """Return what a record says about the turn; None if it says nothing."""
    kind, message = record.get("type"), record.get("message")
    if kind == "tool_result":
        return Phase.GOES_ON
    if kind == "user":
        return None if record.get("subtype") in _ASIDE else Phase.GOES_ON
    if kind != "assistant" or not isinstance(message, dict):
        return None
    given = message.get("parts")
    parts = given if isinstance(given, list) else []
    calls = any(isinstance(part, dict) and "functionCall" in part for part in parts)
    if calls:
        return Phase.GOES_ON
    return None if record.get("isSidechain") is True else Phase.OVER


QWEN = Agent(
    name="qwen",
    title="Qwen Code",
    parser=loader("qwen.parser"),
    tested=Tested("0.21.13", "2026-11", "rewinds, prompts in the midst of a turn, notifications, titles"),
    home=Home("QWEN_RUNTIME_DIR", "the home of Qwen Code's logs; default ~/.qwen", ".qwen", ("projects", "tmp")),
    elsewhere=(Home("QWEN_HOME", "the home of Qwen Code, if its logs are there", None, ("projects", "tmp")),),
    tools=Tools(
        shells=frozenset({"run_shell_command"}),
        reading=frozenset({"glob", "grep_search", "list_directory", "lsp", "web_fetch", "web_search"}),
        asking=frozenset({"ask_user_question", "exit_plan_mode"}),
        questioning=frozenset({"ask_user_question"}),
        starting=frozenset({"agent", "task"}),
        servers=("mcp__agtrace__",),
        commands=("command",),
        paths=("file_path", "absolute_path"),
        removed=("old_string",),
        added=("new_string",),
        contents=("content",),
    ),
    notices=Notices(
        api_errors=frozenset({"api_error"}),
        compactions=(Sign("system/chat_compression"),),
    ),
    phase=phase,
    reports_agents=True,
    command="qwen",
    resumes=("--resume",),
)
"""Qwen Code: its logs, tools, notifications and settings."""
