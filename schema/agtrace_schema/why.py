"""The models of `agtrace why`: which session, request and edit wrote the lines of a file."""

from __future__ import annotations

from typing import Literal

from agtrace_schema.model import Model

Sure = Literal["edit matches", "edit may match", "commit made by session", "only touched", "unknown"]
"""edit matches: a session's edit put the line there. edit may match: a session's edit replaced a text everywhere, and
the line has the new one, but may have had it before. commit made by session: a session made the commit that the line is
from. only touched: none of these is known, but the session wrote the file, or else read it. unknown: no session is
known."""

Last = Literal["edit", "use"]
"""edit: the last call that wrote the file. use: the last one that named it, where none is known to have written it."""


class WhySession(Model):
    """A session that has to do with a file."""

    id: str
    """The shortest prefix that is unique."""
    session_id: str
    title: str
    project: str | None = None
    provider: str
    at: str | None = None
    """When it made the edit or the commit, or last touched the file (UTC)."""
    turn_index: int | None = None
    request: str | None = None
    """The beginning of the request that opened the turn."""
    event: str | None = None
    """`ax://event/<session>/<index>` of the call."""
    tool: str | None = None
    last: Last | None = None
    """What the call is if it isn't known to have written the lines; absent for an edit or a commit that did."""
    resume: str | None = None
    """A shell command that continues the session, if the agent has one."""


class WhyCommit(Model):
    """The commit that a line is from, according to git."""

    hash: str
    author: str
    at: str | None = None
    """The author's date (UTC)."""
    subject: str


class WhyLines(Model):
    """Successive lines that have the same origin."""

    first_line: int
    last_line: int
    text: str
    """The lines as they are now, without secrets; long ones are cut."""
    sure: Sure
    session: WhySession | None = None
    commit: WhyCommit | None = None
    uncommitted: bool | None = None
    """True if the file is in a git repository and these lines aren't in its newest commit."""


class WhyFileSession(Model):
    """A session that wrote a file."""

    session: WhySession
    """With its last edit of the file."""
    edits: int
    """Its calls that wrote the file and didn't fail."""
    lines: int | None = None
    """Lines of the present file that it surely wrote; absent if that can't be known."""


class Why(Model):
    """Who wrote a file, or lines of it."""

    path: str
    total_lines: int | None = None
    lines: list[WhyLines] | None = None
    """If lines were asked for."""
    sessions: list[WhyFileSession] | None = None
    """If the whole file was asked for: newest first."""
    note: str | None = None
    """What can't be answered, and why."""
