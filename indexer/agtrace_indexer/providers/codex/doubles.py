"""Doubled streams: what is said is in a log twice but is one event.

Codex writes what is said twice, as a `response_item` (the model's side) and as an `event_msg` (the
screen's side; in paginated threads as `item_completed`), one to three lines apart in either order.
A log is read while it grows, so nothing may depend on what comes later. The rule: **the first of
the two is the event; a text of the other stream that equals a recent, not yet paired one is its
double and left out.** Each text pairs once, so a sentence said twice in one stream is two events; a
text waits for its double for `_REACH` lines, and at most `_WAITING` texts wait. Texts are compared
without white space; after an IDE's preface, only the request itself is compared. A reasoning item is
compared by its summary parts, each of which has an event of its own. While a review runs, its prompt
is repeated within one stream: any repetition of a user's text is then a double.
"""

from __future__ import annotations

from typing import Any

from agtrace_indexer.events.drafts import LogState
from agtrace_indexer.events.json_values import digest
from agtrace_indexer.events.searchable_text import without_preface

_REACH = 60  # lines that a text waits for its double; in real logs it comes within three
_WAITING = 32
_IDE_PREFACES = ("# Context from my IDE setup:", "# Files mentioned by the user")


def fingerprint(said: str) -> str:
    """Return a digest of what both streams have of a text: no white space, and of an IDE's text only the request."""
    if said.lstrip().startswith(_IDE_PREFACES):
        said = without_preface(said)
    return digest("".join(said.split()))


def note_review(state: LogState, *, entered: bool) -> None:
    """Note that a review begins or ends; what was said before isn't repeated after that."""
    state.memory["review"] = entered
    state.memory["waiting"] = [text for text in state.memory.get("waiting", []) if text[0] != "user"]


def is_double(said: str, role: str, stream: str, state: LogState) -> bool:
    """Whether the other stream said this recently (they are then paired); if not, the text now waits for its double."""
    waiting: list[list[Any]] = state.memory.setdefault("waiting", [])
    mark, line = fingerprint(said), state.memory["n"]
    repeats = role == "user" and bool(state.memory.get("review"))
    for place, (other_role, other_stream, other_mark, other_line) in enumerate(waiting):
        if (other_mark, other_role) != (mark, role) or line - other_line > _REACH:
            continue
        if repeats or other_stream != stream:
            if not repeats:
                del waiting[place]
            return True
    waiting.append([role, stream, mark, line])
    del waiting[:-_WAITING]
    return False
