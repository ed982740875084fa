"""References: `ax://` addresses of a session, an event, an analysis, a report and the health of the server."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from agtrace.problems import InvalidArtifactRef

_FORMS = {
    "session": re.compile(r"ax://session/(?P<session>.+)"),
    "event": re.compile(r"ax://event/(?P<session>.+)/(?P<event>[0-9]{1,15})"),
    "analysis": re.compile(r"ax://analysis/(?P<session>.+)"),
    "report": re.compile(r"ax://report(?:/(?P<since>[\w:.+-]{1,40}))?"),
    "health": re.compile(r"ax://health"),
}


class Reference(NamedTuple):
    """What a reference refers to."""

    kind: Literal["session", "event", "analysis", "report", "health"]
    session: str = ""
    event_index: int = 0
    since: str | None = None
    """Of a report: as in the arguments of list_sessions; None is all the time."""


def parse(text: str) -> Reference:
    """Read a reference. Raises `InvalidArtifactRef` for what has none of these forms."""
    for kind, form in _FORMS.items():
        if found := form.fullmatch(text.strip()):
            parts = found.groupdict()
            place = parts.get("session", ""), int(parts.get("event", 0)), parts.get("since")
            return Reference(kind, *place)  # type: ignore[arg-type]
    raise InvalidArtifactRef(text)


def session_in(text: str) -> str:
    """The session that a reference is about; any other text as it is."""
    if not text.startswith("ax://"):
        return text
    try:
        return parse(text).session or text
    except InvalidArtifactRef:
        return text
