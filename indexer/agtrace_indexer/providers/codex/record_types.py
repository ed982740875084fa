"""Every type of record that Codex writes, with its reader: lines, response items, events, and TurnItems."""

from __future__ import annotations

from collections.abc import Sequence

from agtrace_indexer.events.drafts import LogState, Record, Said
from agtrace_indexer.events.json_values import fields, text
from agtrace_indexer.providers.codex import (
    agents,
    model_texts,
    sessions,
    tokens,
    tool_calls,
    tool_events,
    tool_results,
    user_texts,
)
from agtrace_indexer.providers.codex.handlers import Handler, notifying, skipping, unknown_record


def response_item(payload: Record, state: LogState, at: int | None) -> Sequence[Said]:
    """Read an item of the model's side. In odd published logs each has cwd and model."""
    kind = item_kind(payload)
    if "cwd" in payload or "model" in payload:
        sessions.note_context(payload, state)
    handler = ITEMS.get(kind) if kind else None
    return (
        handler(payload, state, at)
        if handler
        else unknown_record(f"response_item/{kind or 'untyped'}", payload, state, at)
    )


def item_kind(payload: Record) -> str | None:
    """Return the item's type, or the type that its fields show if it is missing."""
    if "type" in payload:
        return text(payload["type"])
    if "role" in payload and "content" in payload:
        return "message"
    if "call_id" not in payload:
        return None
    return "function_call_output" if "output" in payload else "function_call" if "name" in payload else None


def message(payload: Record, state: LogState, at: int | None) -> Sequence[Said]:
    """Read a message, by its role."""
    role = text(payload.get("role"))
    handler = _ROLES.get(role) if role else None
    return (
        handler(payload, state, at) if handler else unknown_record(f"response_item/message/{role}", payload, state, at)
    )


def event(payload: Record, state: LogState, at: int | None) -> Sequence[Said]:
    """Read an event of the screen's side, by its type."""
    kind = text(payload.get("type"))
    handler = EVENTS.get(kind) if kind else None
    return (
        handler(payload, state, at) if handler else unknown_record(f"event_msg/{kind or 'untyped'}", payload, state, at)
    )


def item_completed(payload: Record, state: LogState, at: int | None) -> Sequence[Said]:
    """Read a TurnItem of a paginated thread (from 0.144), which replaces the older events."""
    item = fields(payload.get("item"))
    kind = text(item.get("type"))
    handler = TURN_ITEMS.get(kind) if kind else None
    return (
        handler(item, state, at)
        if handler
        else unknown_record(f"event_msg/item_completed/{kind or 'untyped'}", payload, state, at)
    )


_ROLES: dict[str, Handler] = {
    "user": user_texts.user_item,
    "assistant": model_texts.assistant_item,
    "developer": user_texts.developer_item,
    "system": user_texts.developer_item,
}

ITEMS: dict[str, Handler] = {
    "message": message,
    "reasoning": model_texts.reasoning_item,
    "function_call": tool_calls.function_call,
    "custom_tool_call": tool_calls.custom_call,
    "local_shell_call": tool_calls.local_shell_call,
    "web_search_call": tool_calls.web_search_call,
    "tool_search_call": tool_calls.tool_search_call,
    "image_generation_call": tool_results.image_call,
    "function_call_output": tool_results.output_item,
    "custom_tool_call_output": tool_results.output_item,
    "local_shell_call_output": tool_results.output_item,
    "mcp_tool_call_output": tool_results.output_item,
    "tool_search_output": tool_results.tool_search_output,
    "agent_message": user_texts.agent_mail,
    "token_count": tokens.bare_token_count,
    "tool_call": tool_calls.legacy_call,
    "tool_result": tool_results.legacy_result,
    "ghost_snapshot": skipping("ghost_snapshot"),
    "compaction": skipping("compaction/encrypted"),
    "compaction_summary": skipping("compaction/encrypted"),
    "context_compaction": skipping("compaction/encrypted"),
}
"""Response items by type, with the names in indexer/README.md and in published fixtures."""

EVENTS: dict[str, Handler] = {
    "user_message": user_texts.user_event,
    "agent_message": model_texts.assistant_event,
    "agent_reasoning": model_texts.reasoning_event,
    "agent_reasoning_raw_content": model_texts.reasoning_event,
    "item_completed": item_completed,
    "token_count": tokens.token_count,
    "exec_command_begin": tool_events.exec_begin,
    "exec_command_end": tool_events.exec_end,
    "patch_apply_begin": tool_events.patch_begin,
    "patch_apply_end": tool_events.patch_end,
    "mcp_tool_call_begin": tool_events.mcp_begin,
    "mcp_tool_call_end": tool_events.mcp_end,
    "dynamic_tool_call_request": tool_events.dynamic_begin,
    "dynamic_tool_call_response": tool_events.dynamic_end,
    "image_generation_end": tool_events.image_end,
    "view_image_tool_call": tool_events.image_view,
    "web_search_end": tool_events.web_search_end,
    "thread_name_updated": sessions.thread_name,
    "task_complete": sessions.task_complete,
    "turn_complete": sessions.task_complete,
    "error": sessions.error,
    "turn_aborted": sessions.turn_aborted,
    "thread_rolled_back": sessions.rolled_back,
    "entered_review_mode": sessions.review_mode("entered_review_mode", entered=True),
    "exited_review_mode": sessions.review_mode("exited_review_mode", entered=False),
    "sub_agent_activity": agents.starting(notifying("sub_agent_activity")),
    "collab_agent_spawn_end": agents.starting(skipping("collab_agent_spawn_end")),
    "thread_settings_applied": sessions.settings_applied,
    **{kind: sessions.turn_started(kind) for kind in ("task_started", "turn_started")},
    **{kind: notifying(kind) for kind in ("guardian_assessment", "thread_goal_updated")},
    **{kind: notifying(kind, "message") for kind in ("stream_error", "warning", "background_event")},
    **{kind: notifying(kind, "message") for kind in ("undo_completed", "deprecation_notice", "model_reroute")},
    "turn.completed": notifying("turn.completed"),
    **{
        kind: skipping(kind)
        for kind in (
            "context_compacted",
            "item_started",
            "web_search_begin",
            "image_generation_begin",
            "exec_command_output_delta",
            "agent_reasoning_section_break",
            "turn_diff",
            "plan_update",
            "undo_started",
            "mcp_startup_update",
            "mcp_startup_complete",
            "shutdown_complete",
            "collab_agent_spawn_begin",
            "collab_agent_interaction_begin",
            "collab_agent_interaction_end",
            "collab_waiting_begin",
            "collab_waiting_end",
            "collab_close_begin",
            "collab_close_end",
            "account/rateLimits/updated",
            "codex/event/raw_item",
        )
    },
}
"""Events by type: doubles of items, events for the screen only, and events that add nothing to the items."""

TURN_ITEMS: dict[str, Handler] = {
    "UserMessage": user_texts.user_turn_item,
    "AgentMessage": model_texts.assistant_turn_item,
    "Reasoning": model_texts.reasoning_turn_item,
    "Plan": notifying("plan", "text"),
    "CommandExecution": tool_events.exec_end,
    "FileChange": tool_events.patch_end,
    "McpToolCall": tool_events.mcp_end,
    "DynamicToolCall": tool_events.dynamic_end,
    "ImageGeneration": tool_events.image_end,
    "ImageView": tool_events.image_view,
    "WebSearch": tool_events.web_search_end,
    "Extension": tool_events.web_search_end,
    "CollabAgentToolCall": agents.starting(skipping("collab_agent_tool_call")),
    "SubAgentActivity": agents.starting(notifying("sub_agent_activity")),
    "ContextCompaction": skipping("context_compacted"),
    "EnteredReviewMode": sessions.review_mode("entered_review_mode", entered=True),
    "ExitedReviewMode": sessions.review_mode("exited_review_mode", entered=False),
}
"""The items of `item_completed` by type."""

LINES: dict[str, Handler] = {
    "session_meta": sessions.session_meta,
    "response_item": response_item,
    "event_msg": event,
    "turn_context": sessions.turn_context,
    "compacted": sessions.compacted,
    "world_state": skipping("world_state"),
    "inter_agent_communication": notifying("inter_agent_communication"),
    "inter_agent_communication_metadata": skipping("inter_agent_communication_metadata"),
    "token_usage_record": skipping("token_usage_record"),
}
"""Lines of an enveloped log by type."""
