"""References: `ax://` addresses of sessions, events, analyses, reports, lessons, files, metrics, outputs, status."""

from __future__ import annotations

from typing import Literal, NamedTuple

from agtrace_schema.patterns import later

from agtrace.problems import InvalidArtifactRef
from agtrace.text.kept_texts import REFERENCE

_FORMS = {
    "session": later(r"ax://session/(?P<session>.+)"),
    "event": later(r"ax://event/(?P<session>.+)/(?P<event>[0-9]{1,15})"),
    "analysis": later(r"ax://analysis/(?P<session>.+)"),
    "report": later(r"ax://report(?:/(?P<since>[\w:.+-]{1,40}))?"),
    "lessons": later(r"ax://lessons(?:/(?P<project>[^?]{1,200}))?(?:\?since=(?P<since>[\w:.+-]{1,40}))?"),
    "why": later(r"ax://why/(?P<file>.+?)(?::(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?)?"),
    "metrics": later(r"ax://metrics(?:/(?P<since>[\w:.+-]{1,40}))?"),
    "health": later(r"ax://health"),
    "exec": later(rf"{REFERENCE}(?P<output>[0-9a-f]{{16}})"),
}


class Reference(NamedTuple):
    """The target of a reference."""

    kind: Literal["session", "event", "analysis", "report", "lessons", "why", "metrics", "health", "exec"]
    session: str = ""
    event_index: int = 0
    since: str | None = None
    """The start of a report, of lessons or of metrics, as in the arguments of list_sessions; None for all time."""
    project: str | None = None
    """The project that lessons are about, as in the arguments of list_sessions; None for all."""
    output: str = ""
    """The id of an output that `agtrace prune` keeps for a day."""
    file: str = ""
    lines: tuple[int, int] | None = None
    """The lines of the file that are meant; None for the whole file."""


def parse(text: str) -> Reference:
    """Parse a reference. Raises `InvalidArtifactRef` if it has none of the known forms."""
    for kind, form in _FORMS.items():
        if found := form.fullmatch(text.strip()):
            parts = found.groupdict()
            place = parts.get("session", ""), int(parts.get("event", 0)), parts.get("since"), parts.get("project")
            of_file = parts.get("file", ""), _lines(parts.get("first"), parts.get("last"))
            return Reference(kind, *place, parts.get("output", ""), *of_file)  # type: ignore[arg-type]
    raise InvalidArtifactRef(text)


def _lines(first: str | None, last: str | None) -> tuple[int, int] | None:
    return None if first is None else (int(first), int(last or first))


def session_in(text: str) -> str:
    """Return the session that a reference names; any other text unchanged."""
    if not text.startswith("ax://"):
        return text
    try:
        return parse(text).session or text
    except InvalidArtifactRef:
        return text
