"""References: `ax://` addresses of a session, an event, an analysis and the health of the server (R-085)."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from agtrace.problems import InvalidArtifactRef

_FORMS = {
    "session": re.compile(r"ax://session/(?P<session>.+)"),
    "event": re.compile(r"ax://event/(?P<session>.+)/(?P<event>[0-9]{1,15})"),
    "analysis": re.compile(r"ax://analysis/(?P<session>.+)"),
    "health": re.compile(r"ax://health"),
}


class Reference(NamedTuple):
    """What a reference refers to."""

    kind: Literal["session", "event", "analysis", "health"]
    session: str = ""
    event_index: int = 0


def parse(text: str) -> Reference:
    """Read a reference. Raises `InvalidArtifactRef` for what has none of the four forms."""
    for kind, form in _FORMS.items():
        if found := form.fullmatch(text.strip()):
            parts = found.groupdict()
            return Reference(kind, parts.get("session", ""), int(parts.get("event", 0)))  # type: ignore[arg-type]
    raise InvalidArtifactRef(text)


def session_in(text: str) -> str:
    """The session that a reference is about; any other text as it is."""
    if not text.startswith("ax://"):
        return text
    try:
        return parse(text).session or text
    except InvalidArtifactRef:
        return text
