"""Texts in the user's role: a request in a tag, and what is put around it."""

from __future__ import annotations

from agtrace_schema.events import User, UserKind
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import LogState

_BEGINNING, _END = "<USER_REQUEST>", "</USER_REQUEST>"
_MODEL = later(r"`Model Selection` from .{1,200}? to (.{1,200}?)\.(?:\s|\Z)")


def user_texts(said: str, kind: UserKind) -> list[User]:
    """Divide a text into the request, which has this kind, and the rest; without a tag, all of it is the request."""
    before, tag, after = said.partition(_BEGINNING)
    if not tag:
        return [User(said, kind)] if said.strip() else []
    request, _, rest = after.partition(_END)
    around = "\n".join(filter(None, (before.strip(), rest.strip())))
    told = [User(request.strip("\n"), kind)] if request.strip() else []
    return [*told, User(around, UserKind.INJECTED)] if around else told


def note_model(said: str, state: LogState) -> None:
    """Take the model that the user chose last, which is only in the text of the next request."""
    chosen = _MODEL.findall(said)
    if chosen:
        state.sessions[""].model = chosen[-1]
