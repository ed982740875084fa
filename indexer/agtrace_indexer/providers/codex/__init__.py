"""OpenAI Codex: rollout files of three eras (README.md)."""

from __future__ import annotations

from typing import Any

from agtrace_schema.patterns import later

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.logs.discovery import forms
from agtrace_indexer.providers.provider import Agent, Client, Home, Notices, Phase, Sign, Tested, loader

# `task_started` and `task_complete` frame a turn (`turn_started` and `turn_complete` in newer versions); older rollouts
# have neither. Requests for approval are understood for versions that persist them; codex-rs shows them only.

_OF_EVENTS = {
    "task_started": Phase.GOES_ON,
    "turn_started": Phase.GOES_ON,
    "user_message": Phase.GOES_ON,
    "task_complete": Phase.OVER,
    "turn_complete": Phase.OVER,
    "turn_aborted": Phase.OVER,
    "shutdown_complete": Phase.CLOSED,
    "exec_approval_request": Phase.ASKS_PERMISSION,
    "apply_patch_approval_request": Phase.ASKS_PERMISSION,
    "request_permissions": Phase.ASKS_PERMISSION,
}
_AT_WORK = ("call", "call_output", "reasoning")


def phase(record: dict[str, Any]) -> Phase | None:
    """Return what a record says about the turn; None if it says nothing."""
    payload = record.get("payload")
    kind = payload.get("type") if isinstance(payload, dict) else None
    if not isinstance(kind, str):
        return None
    if record.get("type") == "event_msg":
        return _OF_EVENTS.get(kind)
    if record.get("type") == "response_item" and kind.endswith(_AT_WORK):
        return Phase.GOES_ON
    return None


_THREAD = later(r"rollout-(?:\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-)?([^_]+)(?:_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?")
_LIVE = (r"(.*)/sessions/\d{4}/\d\d/\d\d", r"(.*(?<!/archived_sessions))")
_ENDS = ("", r"\.zst")
_PLACES = [(place, end) for places in (_LIVE, ("(.*)/archived_sessions",)) for end in _ENDS for place in places]
"""Where rollouts are, live ones first, and how their names end: plain ones before compressed ones."""

_JETBRAINS = (".cache/JetBrains", "Library/Caches/JetBrains", "AppData/Local/JetBrains")
"""Where development environments of JetBrains keep the home of their Codex."""

CODEX = Agent(
    name="codex",
    title="Codex",
    parser=loader("codex.parser"),
    tested=Tested("0.154.0", "2026-11", "rotated rollouts, forks without the records of their parent, service tiers"),
    home=Home("CODEX_HOME", "the home of Codex's logs; default ~/.codex", ".codex", ("sessions", "archived_sessions")),
    elsewhere=(
        Home("", "", "Library/Developer/Xcode/CodingAssistant", ("codex/*sessions",)),
        *(Home("", "", folder, ("*/aia/codex/*sessions",)) for folder in _JETBRAINS),
    ),
    rewrites=True,
    forms=forms("rollout-", *(rf"{place}/(rollout-[^/]+)\.jsonl{end}" for place, end in _PLACES), pieces=_THREAD),
    tools=Tools(
        shells=frozenset({"container.exec", "exec", "exec_command", "local_shell", "shell", "shell_command"}),
        patching=frozenset({"exec", "exec_command", "local_shell", "shell", "shell_command"}),
        reading=frozenset({"view_image"}),
        waiting=frozenset({"write_stdin"}),
        asking=frozenset({"request_user_input"}),
        questioning=frozenset({"request_user_input"}),
        starting=frozenset({"spawn_agent", "resume_agent"}),
        unanswered=frozenset({"web_search"}),
        servers=("mcp__agtrace__", "agtrace.", "agtrace__"),  # with a namespace, in events
        commands=("command", "cmd", "script", "input"),
    ),
    notices=Notices(
        api_errors=frozenset({"error"}),
        retried_errors=frozenset({"stream_error"}),
        telling=frozenset({"thread_goal_updated", "thread_name_updated"}),
        interruptions=(Sign("turn_aborted", r"\Ainterrupted"),),
        compactions=(Sign("compacted"),),
        reviews=frozenset({"exited_review_mode"}),
    ),
    hidden_reasoning="encrypted or empty",
    output_header=later(
        r"\A(?:Command: (?:.*\n){1,200}?(?=Chunk ID: ))?"
        r"(?:(?:Chunk ID: |Exit code: |Wall time: |Process exited with code |Original token count: ).*\n|Output:\n)+"
    ),
    command="codex",
    resumes=("resume",),
    setup=loader("codex.parser:SETUP"),
    phase=phase,
    client=Client("codex-mcp-client", 11_900),  # with some models it removes the middle of anything over 12,000 bytes
    replays_items=True,
)
"""OpenAI Codex: its logs, tools, notifications and settings."""
