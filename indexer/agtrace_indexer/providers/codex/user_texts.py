"""Texts in the user's role: who speaks in them, without doubles (`doubles`)."""

from __future__ import annotations

from agtrace_schema.events import Notification, User, UserKind
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.events.json_values import fields, items, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.codex.content import content_text, image, image_of
from agtrace_indexer.providers.codex.doubles import is_double
from agtrace_indexer.providers.codex.replay import is_replaying
from agtrace_indexer.providers.codex.steps import close_step
from agtrace_indexer.providers.notes import skip

_KINDS: list[tuple[str, UserKind]] = [
    ("<turn_aborted>", UserKind.INTERRUPTION),
    ("<subagent_notification>", UserKind.NOTIFICATION),
    ("<user_shell_command>", UserKind.COMMAND),
    ("<user_action>", UserKind.COMMAND),
    ("Another language model started to solve this problem", UserKind.COMPACTION_SUMMARY),
    *(
        (prefix, UserKind.INJECTED)
        for prefix in (
            "<environment_context>",
            "<user_instructions>",
            "# AGENTS.md instructions",
            "<INSTRUCTIONS>",
            "<recommended_plugins>",
            "<skill>",
            "<skills_instructions>",
            "<apps_instructions>",
            "<plugins_instructions>",
            "<permissions instructions>",
            "<collaboration_mode>",
            "<model_switch>",
            "<personality_spec>",
        )
    ),
]
"""The beginnings of texts that Codex itself writes in the user's role, with their kinds (indexer/README.md)."""

_IMAGE_TAG = later(r"\s*</?image\b[^>]*>\s*")
_CWD = later(r"<cwd>([^<]+)</cwd>|Current working directory: ([^\n]+)")


def _kind_of(said: str) -> UserKind:
    start = said.lstrip()
    return next((kind for prefix, kind in _KINDS if start.startswith(prefix)), UserKind.HUMAN)


def _user_text(shown: str, typed: str, stream: str, state: LogState, at: int | None) -> list[Draft]:
    """Return a text in the user's role unless the other stream had it; `typed` is the part that both streams have."""
    if not shown:
        return skip("message/empty", state)
    kind = _kind_of(typed)
    if is_double(typed, "user", stream, state):
        return skip("user_message/double", state)
    if kind is UserKind.INJECTED:
        _learn_cwd(typed, state)
    elif kind is UserKind.HUMAN and state.sessions[""].kind == "subagent" and not is_replaying(state):
        kind = UserKind.TASK
    close_step(state)
    return [Draft(User(shown, kind), at)]


def _learn_cwd(said: str, state: LogState) -> None:
    """Take the directory from an injected text, as bare logs name it nowhere else (indexer/README.md)."""
    if is_replaying(state):
        return
    if state.sessions[""].cwd is None and "<environment_context>" in said and (found := _CWD.search(said)):
        state.sessions[""].cwd = (found[1] or found[2]).strip()


def user_item(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a user message, separating injected parts from the user's own."""
    shown: dict[UserKind, list[str]] = {}
    typed: dict[UserKind, list[str]] = {}
    content = payload.get("content")
    for part in [content] if isinstance(content, str) else items(content):
        words = part if isinstance(part, str) else fields(part).get("text")
        if not isinstance(words, str):
            _append(shown, UserKind.HUMAN, image(fields(part)))
            continue
        _append(shown, _kind_of(words), words)
        _append(typed, _kind_of(words), None if _IMAGE_TAG.fullmatch(words) else words)
    found: list[Draft] = []
    for kind, parts in shown.items():
        found += _user_text("\n".join(parts), "\n".join(typed.get(kind, [])), "item", state, at)
    return found if shown else skip("message/empty", state)


def _append(groups: dict[UserKind, list[str]], kind: UserKind, part: str | None) -> None:
    if part is not None:
        groups.setdefault(kind, []).append(part)


def user_event(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a `user_message`: the typed text, and its images."""
    typed = text(payload.get("message")) or ""
    pictures = [image_of(url) for url in items(payload.get("images")) + items(payload.get("local_images")) if text(url)]
    return _user_text("\n".join([typed, *pictures] if typed else pictures), typed, "event", state, at)


def user_turn_item(item: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a `UserMessage`, which a paginated thread has instead of `user_message`."""
    parts = [fields(part) for part in items(item.get("content"))]
    typed = "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    addresses = [part.get("image_url") or part.get("url") or part.get("path") for part in parts if "text" not in part]
    return user_event({"message": typed, "images": addresses}, state, at)


def developer_item(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a message in the role of the developer or the system, in which Codex itself speaks."""
    said = content_text(payload.get("content"))
    return [Draft(User(said, UserKind.INJECTED), at)] if said else skip("message/empty", state)


def agent_mail(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a message between agents (from 0.145): a parent's message to a sub-agent is its task."""
    said = content_text(payload.get("content"))
    if not said:
        return skip("agent_message/encrypted", state)
    path = state.memory.get("path")
    if path and identifier(payload.get("author")) == path:
        return [Draft(Notification("agent_message", said), at)]
    elsewhere = path and identifier(payload.get("recipient")) not in (None, path)
    addressed = state.sessions[""].kind == "subagent" and not elsewhere
    close_step(state)
    return [Draft(User(said, UserKind.TASK if addressed else UserKind.NOTIFICATION), at)]
