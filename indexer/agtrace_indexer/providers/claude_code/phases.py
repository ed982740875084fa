"""Whether a turn of Claude Code goes on, by single records of its log: apart from the parser, as its status line waits.

Records of a response carry `stop_reason`, but in some versions it is null in all of them; newer ones also write
`turn_duration` and `stop_hook_summary` after a turn (observed in logs of 2.0 and 2.1). Permission prompts leave no
record: an open call may be running or waiting for one.
"""

from __future__ import annotations

from typing import Any

from agtrace_indexer.events.json_values import fields, listed, text
from agtrace_indexer.providers.provider import Phase

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
            said = (text(first) or "")[:_LOOKED_AT].lstrip()
            if any(leaves in said for leaves in _LEAVES):
                return Phase.CLOSED
            if said.startswith("[Request interrupted by user"):
                return Phase.OVER
            if not said.startswith((*_OF_COMMANDS, "<command-name>")) or _blocks(content, "tool_result"):
                return Phase.GOES_ON  # a result, a request or a text of the harness, but no command of the harness
    return None


def _blocks(content: Any, kind: str) -> list[dict[str, Any]]:
    return [block for block in map(fields, listed(content)) if block.get("type") == kind]
