"""The models of lessons: what keeps failing across sessions, and what worked in the end."""

from __future__ import annotations

from typing import Literal

from agtrace_schema.model import Model


class Lesson(Model):
    """A failure that came again and again."""

    what: str
    """The program with its subcommand, or the tool."""
    error: str
    """The line of the output that says most."""
    times: int
    sessions: int
    """The sessions in which it failed."""
    overcome: int
    """How many of the failures were followed by a success at the same thing."""
    last: str | None = None
    """When it failed last (UTC)."""
    seconds: int
    """From each failure to the success that followed, at most half an hour each."""
    tokens: int
    tried: str
    """The command or tool that failed."""
    how: Literal["instead", "before", "look"]
    """instead: `worked` worked in its place; before: it worked after `worked`; look: after `worked` showed the file."""
    worked: str
    advice: str
    """A sentence for CLAUDE.md or AGENTS.md."""
    failed: str
    """`ax://event/<session>/<index>` of a failure."""
    succeeded: str
    """That of the call that worked."""


class Unsolved(Model):
    """A failure that came again and again, and that nothing is known to fix."""

    what: str
    """The program with its subcommand, or the tool."""
    error: str
    times: int
    sessions: int
    failed: str
    """The newest one, as a reference (`ax://event/...`)."""


class Lessons(Model):
    """The lessons of some sessions."""

    selection: str
    """The filters, as a sentence."""
    sessions: int
    lessons: list[Lesson]
    """Those of the most sessions first."""
    unsolved: int
    """Failures that came as often, and that nothing fixed in the same way twice."""
    worst_unsolved: list[Unsolved]
    """The first of them, that of the most sessions first."""
    made_at: str | None = None
