"""The `<id>.json` next to a log: folder, title, parent and model of its session, and how its turns ended.

The agent writes it again after every turn. Only the JSONL has what was said, so it is the log; the sidecar yields
facts, and a notification after the lines of a turn that ended otherwise than usual. As such a notification belongs in
the middle of a log, one that comes when its turn has been read already makes the log be read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from agtrace_schema.events import Notification

from agtrace_indexer.events.drafts import Draft, LogState, SessionFacts
from agtrace_indexer.events.json_values import compact_json, fields, items, milliseconds, text
from agtrace_indexer.events.strings import identifier, masked
from agtrace_indexer.providers.beside import object_in

_LARGEST = 16 * 1024 * 1024
_USUAL = (None, "UserTurnEnd")
_ENDS_REMEMBERED = 1_000
_LONGEST_REASON = 2_000


def is_description(document: Any) -> bool:
    """Whether a document is such a file."""
    told = fields(document)
    return all(isinstance(told.get(key), str) for key in ("session_id", "cwd")) and "session_state" in told


def described(path: PurePath) -> LogState:
    """Return the state of a log before its first line, by the file next to it."""
    beside = object_in(path.with_name(f"{path.name.partition('.')[0]}.json"), _LARGEST)
    if not identifier(beside.get("session_id")):
        return LogState()
    session = fields(beside.get("session_state"))
    facts, ends = _facts(beside, session), _ends(session)
    return LogState({"": facts}, {"described": True} | ({"ends": ends} if ends else {}))


def refresh(state: LogState, begun: LogState) -> bool:
    """Take what the file next to a log says now; False if the log has to be read again (`Sidecar`)."""
    if "described" not in begun.memory:  # gone, or half-written: what is known stays
        return True
    before, now = state.sessions[""], begun.sessions[""]
    alike = before.kind == now.kind and state.memory.get("ends") == begun.memory.get("ends")
    state.sessions[""], state.memory["described"] = now, True
    return alike


def end_of_turn(message_id: str | None, state: LogState) -> list[Draft]:
    """Return a note on how a message's turn ended, if not as usual; the turn's next message replaces it."""
    said = state.memory.get("ends", {}).get(message_id)
    if said is None:
        return []
    kind, reason, at, turn = said
    return [Draft(Notification(kind, reason), at, key=f"end/{turn}", ends_turn=True)]


def _facts(beside: dict[str, Any], session: dict[str, Any]) -> SessionFacts:
    model = fields(fields(session.get("rts_model_state")).get("model_info"))
    parent = identifier(beside.get("parent_session_id"))
    facts = SessionFacts(id=identifier(beside.get("session_id")), parent_id=parent)
    facts.cwd, facts.title = text(beside.get("cwd")), text(beside.get("title"))
    facts.model = text(model.get("model_id")) or text(model.get("model_name"))
    if parent is not None:  # the reason alone says `subagent` of others as well
        facts.kind = "subagent" if beside.get("session_created_reason") == "subagent" else "fork"
        facts.agent_type = text(session.get("agent_name")) if facts.kind == "subagent" else None
    return facts


def _ends(session: dict[str, Any]) -> dict[str, list[Any]]:
    """Return kind, text, time and number of the unusual ends of turns by the ids of the turns' messages."""
    turns = items(fields(session.get("conversation_metadata")).get("user_turn_metadatas"))
    found: dict[str, list[Any]] = {}
    for number, turn in enumerate(map(fields, turns)):
        kind, reason = _end(turn)
        if kind:
            said = [kind, masked(reason)[:_LONGEST_REASON], milliseconds(turn.get("end_timestamp")), number]
            found |= dict.fromkeys(_ids(turn), said)
    return dict(list(found.items())[-_ENDS_REMEMBERED:])


def _end(turn: dict[str, Any]) -> tuple[str, str]:
    result, reason = turn.get("result"), turn.get("end_reason")
    if isinstance(result, dict) and "Err" in result:
        return "turn_error", result["Err"] if isinstance(result["Err"], str) else compact_json(result["Err"])
    return ("", "") if reason in _USUAL else ("turn_end", reason if isinstance(reason, str) else compact_json(reason))


def _ids(turn: dict[str, Any]) -> Iterator[str]:
    return filter(None, map(identifier, items(turn.get("message_ids"))))
