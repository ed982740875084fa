"""Whether a turn of Claude Code goes on, by single records of its log.

Records of a response carry `stop_reason`, but in some versions it is null in all of them; newer ones also write
`turn_duration` and `stop_hook_summary` after a turn (observed in logs of 2.0 and 2.1). Permission prompts leave no
record: an open call may be running or waiting for one.
"""

from __future__ import annotations

from typing import Any

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
            if _has(content, "tool_use") or not isinstance(reason, str):
                return Phase.GOES_ON
            return Phase.OVER if reason in _ENDS else Phase.GOES_ON
        case "user":
            return _of_user(content)
    return None


def _of_user(content: Any) -> Phase | None:
    """A result, a request or a text of the harness starts the model; commands of the harness don't."""
    said = _first_text(content)[:_LOOKED_AT].lstrip()
    if any(leaves in said for leaves in _LEAVES):
        return Phase.CLOSED
    if said.startswith("[Request interrupted by user"):
        return Phase.OVER
    if said.startswith((*_OF_COMMANDS, "<command-name>")) and not _has(content, "tool_result"):
        return None
    return Phase.GOES_ON


def _first_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = (block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text")
    return next((text for text in texts if isinstance(text, str)), "")


def _has(content: Any, kind: str) -> bool:
    blocks = content if isinstance(content, list) else []
    return any(isinstance(block, dict) and block.get("type") == kind for block in blocks)
