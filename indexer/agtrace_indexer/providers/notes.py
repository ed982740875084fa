"""Notes in the state of a log: a limited number of values, and what a provider leaves out or doesn't know."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any, TypeAlias

from agtrace_schema.events import Notification, User, UserKind
from agtrace_schema.patterns import later

from agtrace_indexer.events.assembly import REQUESTS
from agtrace_indexer.events.drafts import Draft, LogState, Record, Retraction, Said
from agtrace_indexer.events.json_values import as_list, compact_json, digest, fields, image_placeholder, text
from agtrace_indexer.events.strings import identifier, masked

Known: TypeAlias = dict[str, Any]
"""The fields of a usage object that a parser reads, or that add nothing: name -> those of the object in it."""


_BASE64 = later(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{256,}={0,2}")
_BASE64_MARKS = ('"base64"', '"data":"', '"blob"')


def readable_json(value: Any) -> str:
    """Write a JSON value compactly, whatever it is, with base64 data replaced by its size.

    One that is nested too deeply can't be shown.
    """
    try:
        result = compact_json(value)
    except RecursionError:
        return "[nested too deeply to be shown]"
    if len(result) > 256 and any(mark in result for mark in _BASE64_MARKS):
        return _BASE64.sub(lambda data: f"[base64: {len(data.group()) * 3 // 4} bytes]", result)
    return result


def block_type(block: Any) -> str:
    """Read the type of a block of a message or a result; a plain string counts as text."""
    if isinstance(block, str):
        return "text"
    return text(fields(block).get("type")) or "untyped"


def block_text(block: Any) -> str:
    """Read a block as text: its text, a placeholder for an image or document, JSON for anything else."""
    if isinstance(block, str):
        return block
    if not isinstance(block, dict):
        return readable_json(block)
    result = block.get("text")
    if isinstance(result, str) and block.get("type") == "text":
        return result
    source = fields(block.get("source")) or block  # MCP images have no source
    if block.get("type") == "image" or isinstance(source.get("data"), str):
        return image_placeholder(source.get("media_type") or source.get("mimeType"), source.get("data"))
    return readable_json(block)


def joined_text(content: Any) -> str:
    """Read the content of a message or a result as one text, with a line break between blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(map(block_text, as_list(content)))


def plain_text(value: Any) -> str:
    """Return a text itself, and anything else as JSON; an empty text for None."""
    return value if isinstance(value, str) else "" if value is None else readable_json(value)


def dollars(value: Any) -> float | None:
    """Read a cost in dollars; 0 stands for a model whose price isn't known, or for a subscription."""
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e9
    return float(value) if known else None


def skip(kind: str, state: LogState) -> list[Draft]:
    """Leave the current record out: its type is noted, and it becomes no event."""
    state.skipped.append(kind)
    return []


_ID = later(r"[A-Za-z0-9_-]{1,64}")
_ELEMENT = later(r"\s*<([a-z]+(?:[-_][a-z]+)+)(?:\s[^<>]{0,500})?>")


def element_before(said: str) -> tuple[UserKind, str, str] | None:
    """Split a text that a program has begun with an element of its own: its kind, the element, and what follows.

    Its name has several words, as no name of HTML has. None if there is no such element, or it has no end.
    """
    begins = _ELEMENT.match(said)
    inside, ends, rest = said.partition(f"</{begins[1]}>") if begins else ("", "", "")
    if begins is None or not ends:
        return None
    tells = begins[1].endswith(("notification", "message", "event"))
    return UserKind.NOTIFICATION if tells else UserKind.INJECTED, inside + ends, rest.lstrip()


_REQUESTS_REMEMBERED = 64
_SHOWN = 80


def note_requests(said: Iterable[Said], record: Record, state: LogState, above: str | None = None) -> None:
    """Remember the line before the requests of a line of the log's own thread, the line, and how they begin.

    `above` is the nearest line with something of the conversation, if it isn't the line before.
    """
    users = (one.payload for one in said if isinstance(one, Draft) and not one.thread)
    asked = [user.text for user in users if isinstance(user, User) and user.kind in REQUESTS]
    if not asked:
        return
    before: list[list[str | None]] = state.memory.setdefault("before", [])
    parent, uuid = identifier(record.get("parentUuid")), identifier(record.get("uuid"))
    if uuid is None or all(line != uuid for _, line, *_ in before):
        before += [[parent, uuid, above or parent, masked(words[: 10 * _SHOWN], _SHOWN)] for words in asked]
        del before[:-_REQUESTS_REMEMBERED]


def left_behind(record: Record, state: LogState, above: str | None = None) -> list[str]:
    """Return the beginnings of the requests that are dropped by going on from the line before one of them."""
    before: list[list[str | None]] = state.memory.get("before", [])
    parent, uuid = identifier(record.get("parentUuid")), identifier(record.get("uuid"))
    same = (
        place
        for place, (was, _, was_above, _) in enumerate(before)
        if was == parent or (above and above in (was, was_above))
    )
    first = next(same, len(before))
    if any(line == uuid for _, line, *_ in before):
        return []  # the line itself is repeated
    dropped = [words or "" for *_, words in before[first:]]
    del before[first:]
    return dropped


def unknown(kind: str, value: Any, state: LogState, written: Callable[[Any], str] = readable_json) -> Notification:
    """Keep a record, or a part of one, that the provider doesn't know: its type is noted, and its JSON kept as text."""
    state.unknown.append(kind)
    return Notification(f"unknown/{kind}", written(value))


def log_name(id: Any, otherwise: str) -> str:
    """Return the name of a log in a database: its session's id, or a digest of a text if that can't be one."""
    return id if isinstance(id, str) and _ID.fullmatch(id) else digest(otherwise)


def requester(state: LogState) -> UserKind:
    """Return who writes what is typed in a session: in a sub-agent, its parent."""
    return UserKind.TASK if state.sessions[""].kind == "subagent" else UserKind.HUMAN


def numbered(name: str, state: LogState) -> str:
    """Return a step for a response without an id: the name with its number in the log."""
    state.memory[name] = state.memory.get(name, 0) + 1
    return f"{name}-{state.memory[name]}"


def identify(said: Iterable[Said], base: str | None) -> None:
    """Give drafts their identities: that of their record, and their place in it; none without one."""
    for number, draft in enumerate(said if base else ()):
        if isinstance(draft, Draft):
            draft.identity = f"{base}#{number}" if number else base


# -- versions --------------------------------------------------------------------------------------
# Messages that come again: what changed in them becomes events, what is gone is taken back. Drafts have their message
# and their part as their key, and the state has a short hash of each, so that only those that changed are returned
# again. In state and keys, ids are digests: half the length, and nothing like a token, for which ids would have to be
# searched.

Change: TypeAlias = Draft | Retraction

Parts: TypeAlias = dict[str, Draft]
"""The drafts of one version of a message by the name of their part, in reading order."""

_OF_MESSAGE, _OF_PART, _OF_CONTENT = 12, 8, 12
"""Hexadecimal digits: enough to tell apart the messages of a session, the parts of a message, versions of a part."""


def known_as(message: str) -> str:
    """Return what a message is called in states and keys."""
    return digest(message)[:_OF_MESSAGE]


def print_of(*told: object) -> int:
    """Return a short hash of what is known of something, to notice a change."""
    return int(digest(repr(told))[:_OF_CONTENT], 16)


def live_parts(state: LogState) -> dict[str, dict[str, int]]:
    """Return the messages of a session in their order, as they are called in states, with their parts' hashes."""
    live: dict[str, dict[str, int]] = state.memory.setdefault("messages", {})
    return live


def part_known_as(name: str) -> str:
    """Return what a part of a message is called in states and keys."""
    return digest(name)[:_OF_PART]


def replace_message(message: str, parts: Parts, state: LogState) -> list[Change]:
    """Return the differences between a version of a message and the one before."""
    live, known = live_parts(state), known_as(message)
    old = live.get(known, {})
    named = {part_known_as(name): draft for name, draft in parts.items()}
    new = live[known] = {name: print_of(draft.payload, draft.timestamp) for name, draft in named.items()}
    gone = [f"{known}/{name}" for name in old if name not in new]
    result: list[Change] = [Retraction(gone)] if gone else []
    for name, draft in named.items():
        if old.get(name) != new[name]:
            draft.key = f"{known}/{name}"
            result.append(draft)
    return result


def forget_messages(
    messages: Iterable[str], state: LogState, keeping: str = "", *, rolled_back: bool = False
) -> list[Change]:
    """Take back what messages said, given what they are called in states, except for the part `keeping`."""
    live, kept = live_parts(state), part_known_as(keeping)
    gone = [f"{known}/{name}" for known in messages for name in live.pop(known, {}) if name != kept]
    return [Retraction(gone, rolled_back=rolled_back)] if gone else []


def known(*paths: str) -> Known:
    """Return the fields at these paths: `input` or, in an object or the objects of a list, `cache.read`."""
    tree: Known = {}
    for path in paths:
        inner = tree
        for name in path.split("."):
            inner = inner.setdefault(name, {})
    return tree


def check_usage(usage: Any, expected: Known, state: LogState, place: str = "usage/") -> None:
    """Note the fields with a value that a parser doesn't know, or that is below zero: what they count is in no figure.

    So the totals of this log aren't exact (`index.queries.usage.not_understood`).
    """
    for name, value in usage.items() if isinstance(usage, dict) else ():
        inner = None if not value or (isinstance(value, (int, float)) and value < 0) else expected.get(name)
        if inner:
            for part in (value,) if isinstance(value, dict) else as_list(value):
                check_usage(part, inner, state, f"{place}{name}.")
        elif any(value.values()) if isinstance(value, dict) else value and inner is None:
            state.unknown.append(f"{place}{name}")


def no_document(_document: Any) -> None:
    """Recognize no document: `Parser.unroll` of an agent none of whose logs is one."""


def empty_state(_path: PurePath) -> LogState:
    """Return an empty state: `Parser.begin` of an agent whose records say all about their session."""
    return LogState()
