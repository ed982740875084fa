"""Who wrote lines of a file, and for which request: by edits of sessions, else by their commits, else by their uses."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from agtrace_indexer.index.questions import events, landmarks, sessions, turns
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.redact import redact
from agtrace_schema.patterns import later
from agtrace_schema.why import Last, Sure, Why, WhyCommit, WhyFileSession, WhyLines, WhySession
from msgspec import Struct, field

from agtrace.problems import InvalidParameter, InvalidRange
from agtrace.report.authorship import git
from agtrace.report.authorship.git import Commit, Tracked
from agtrace.report.authorship.replay import Author, agreeing, authors, lines_of
from agtrace.report.authorship.strokes import Stroke, Uses, uses_of
from agtrace.report.conversation.cleaning import Cleaner
from agtrace.report.conversation.telling import Telling, typed_before
from agtrace.sessions.projects import labels
from agtrace.sessions.query import short_id
from agtrace.sessions.resuming import resuming
from agtrace.text.lines import LABEL, NO_TOOL, USER_MESSAGE, cut, named_path, one_line
from agtrace.text.numbers import counted, size
from agtrace.times import iso

LARGEST = 4_000_000
"""Bytes of a file beyond which its lines aren't compared."""

MOST_LINES = 400
"""The most lines that are asked about at once."""

_LOOKED_AT = 8_000
"""Bytes at the beginning of a file among which a NUL tells that it isn't text, as for git."""

_LONGEST_LINE = 300
_LONGEST_PATH = 300


_NOWHERE = (
    "No session in the index named this file. Clones are recognized by their git remote; otherwise give the path used "
    "in the session."
)


class _Content(Struct, frozen=True):
    """A file as it is now."""

    lines: list[str] | None
    """Without secrets, as edits are kept in the index; None if it can't be compared."""
    why_not: str | None = None


class _Known(Struct):
    """What is known of a file."""

    connection: sqlite3.Connection
    uses: Uses
    content: _Content
    authors: list[Author | None]
    tracked: Tracked | None = None
    names: dict[int, str] = field(default_factory=dict)
    """Projects by row id."""


_OF_WINDOWS = later(r"[A-Za-z]:[\\/]")
"""A path as sessions on Windows name it, which is none of this machine's unless that is one."""


def why(connection: sqlite3.Connection, file: Path, lines: tuple[int, int] | None, *, named_only: bool = False) -> Why:
    """Return who wrote some lines of a file, counted from 1, or which sessions wrote it.

    With `named_only`, a file that no call in the index named is neither opened nor looked at: whoever asks may not be
    the one whose files these are.

    Raises `InvalidParameter` for what isn't a file with lines, and `InvalidRange` for lines that it doesn't have.
    """
    path = str(file) if os.name != "nt" and _OF_WINDOWS.match(str(file)) else os.path.abspath(file)
    uses = uses_of(connection, [path], in_clones=not named_only)
    if named_only and not uses.touched:
        return Why(path=path, note="No session in the index named this file.")
    content = _content(path, asked=lines is not None)
    if lines is not None:
        _check(path, content, lines)
    known = _known(connection, path, uses, content, lines, in_clones=not named_only)
    total = None if content.lines is None else len(content.lines)
    if lines is not None:
        note = None if known.uses.touched else _NOWHERE
        return Why(path=path, total_lines=total, lines=_described(known, *lines), note=note)
    return Why(path=path, total_lines=total, sessions=_writers(known), note=_note(known))


def _content(path: str, *, asked: bool) -> _Content:
    """Read a file, unless it can't be compared. Raises `InvalidParameter` for such a one if lines were asked for."""
    try:
        facts = os.stat(path)
        if stat.S_ISDIR(facts.st_mode):
            raise InvalidParameter("file", f"{named_path(path, _LONGEST_PATH)} is a folder")
        found = _read(path, facts)
    except OSError as error:
        found = _Content(None, f"can't be read: {(error.strerror or str(error)).lower()}")
    if found.lines is None and asked:
        raise InvalidParameter("file", f"{named_path(path, _LONGEST_PATH)} {found.why_not}; leave out the line")
    return found


def _read(path: str, facts: os.stat_result) -> _Content:
    if not stat.S_ISREG(facts.st_mode):
        return _Content(None, "is not a regular file")
    if facts.st_size > LARGEST:
        return _Content(None, f"is too large to be compared line by line ({size(facts.st_size)})")
    data = Path(path).read_bytes()
    if b"\0" in data[:_LOOKED_AT]:
        return _Content(None, "is binary and has no lines")
    text = data.decode("utf-8", errors="replace")
    shown = lines_of(redact(text))
    if len(shown) != len(lines_of(text)):  # a secret of several lines
        shown = [redact(line) for line in lines_of(text)]
    return _Content(shown)


def _check(path: str, content: _Content, lines: tuple[int, int]) -> None:
    """Raise `InvalidRange` for lines that a file doesn't have."""
    total = len(content.lines or ())
    if not 1 <= lines[0] <= lines[1]:
        raise InvalidRange("lines are counted from 1, the lower number first", requested=lines[0])
    if lines[1] > total:
        raise InvalidRange(f"{named_path(path, _LONGEST_PATH)} has {total:,} lines", requested=lines[1], maximum=total)
    if lines[1] - lines[0] >= MOST_LINES:
        raise InvalidRange(f"at most {MOST_LINES} lines can be asked about at once", maximum=MOST_LINES)


def _known(
    connection: sqlite3.Connection,
    path: str,
    uses: Uses,
    content: _Content,
    lines: tuple[int, int] | None,
    *,
    in_clones: bool,
) -> _Known:
    """Find the authors of a file's lines, also under the names that it had before if it was renamed in git."""
    found = _Known(connection, uses, content, _authors(content, uses.strokes), names=labels(connection))
    if content.lines is None:
        return found
    first, last = lines or (1, len(content.lines))
    missing = None in found.authors[first - 1 : last]
    if lines is not None or missing:
        found.tracked = git.tracked(Path(path))
    if missing and found.tracked is not None:
        former = [os.path.join(found.tracked.root, name) for name in git.former_names(found.tracked)]
        if former:
            found.uses = uses_of(connection, [path, *former], in_clones=in_clones)
            found.authors = _authors(content, found.uses.strokes)
    return found


def _authors(content: _Content, strokes: Sequence[Stroke]) -> list[Author | None]:
    if content.lines is None:
        return []
    return authors(content.lines, [stroke.edit for stroke in strokes], [stroke.copy for stroke in strokes])


# -- lines -----------------------------------------------------------------------------------------


class _Origin(Struct, frozen=True):
    """Where a line is from; equal for lines that are described together."""

    sure: Sure
    session: int | None = None
    event_index: int = 0
    last: Last | None = None
    commit: Commit | None = None
    uncommitted: bool = False


def _described(known: _Known, first: int, last: int) -> list[WhyLines]:
    """Return these lines with their origins, successive ones with the same origin together."""
    assert known.content.lines is not None
    committed, commits = _commits(known, first, last)
    origins = [
        _origin(known, number, commits.get(committed.get(number, 0)), committed) for number in range(first, last + 1)
    ]
    found, at = [], first
    for origin, group in groupby(origins):
        count = len(list(group))
        shown = known.content.lines[at - 1 : at - 1 + count]
        found.append(
            WhyLines(
                first_line=at,
                last_line=at + count - 1,
                text="\n".join(cut(line, _LONGEST_LINE) for line in shown),
                sure=origin.sure,
                session=_session_of(known, origin),
                commit=None if origin.commit is None else _commit(origin.commit),
                uncommitted=origin.uncommitted or None,
            )
        )
        at += count
    return found


def _commits(known: _Known, first: int, last: int) -> tuple[dict[int, int], dict[int, Commit]]:
    """Return where present lines are in the newest commit, and the commit of each line there."""
    if known.tracked is None or known.tracked.content is None or known.content.lines is None:
        return {}, {}
    there = lines_of(redact(known.tracked.content))
    unchanged = {
        here + offset: line + offset
        for line, here, length in agreeing(there, known.content.lines)
        for offset in range(1, length + 1)
    }
    committed = {number: unchanged[number] for number in range(first, last + 1) if number in unchanged}
    return committed, git.commits_of(known.tracked, committed.values())


def _origin(known: _Known, number: int, commit: Commit | None, committed: dict[int, int]) -> _Origin:
    """Return the origin of a line: its edit, else its commit, else the last use of the file."""
    uncommitted = known.tracked is not None and number not in committed
    author = known.authors[number - 1]
    if author is not None:
        stroke = known.uses.strokes[author.edit]
        return _Origin(
            "edit matches" if author.sure else "edit may match",
            stroke.session.id,
            stroke.event_index,
            None,
            commit,
            uncommitted,
        )
    made = landmarks.committers(known.connection, commit.hash) if commit else []
    if made:
        return _Origin("commit made by session", made[0].session_row, made[0].event_index, None, commit)
    writing = list(_writing(known.uses))
    touched = writing or [(session, use.event_index) for session, use in known.uses.touched]
    if touched:
        session, event_index = touched[-1]
        return _Origin("only touched", session.id, event_index, "edit" if writing else "use", commit, uncommitted)
    return _Origin("unknown", commit=commit, uncommitted=uncommitted)


def _session_of(known: _Known, origin: _Origin) -> WhySession | None:
    return None if origin.session is None else _session(known, origin.session, origin.event_index, origin.last)


def _session(known: _Known, session_row: int, event_index: int, last: Last | None) -> WhySession:
    """Return a session with one of its calls, perhaps the last one of a kind, and the request of that turn."""
    connection = known.connection
    (session,) = sessions.in_rows(connection, [session_row])
    event = events.one(connection, session_row, event_index)
    shown = short_id(connection, session.uid)
    return WhySession(
        id=shown,
        session_id=session.uid,
        title=one_line(session.title or session.snippet or "", USER_MESSAGE) or "Untitled session",
        project=known.names.get(session.project_id or 0),
        provider=session.provider,
        at=iso(event.ts),
        turn_index=event.turn_index,
        request=_request(connection, session, event.turn_index),
        event=f"ax://event/{shown}/{event_index}",
        tool=one_line(event.name or NO_TOOL, LABEL),
        last=last,
        resume=resuming(connection, session).line or None,
    )


def _request(connection: sqlite3.Connection, session: Session, turn_index: int | None) -> str | None:
    """Return the request that opened a turn, or the command that led to it."""
    found = [] if turn_index is None else turns.several(connection, session.id, [turn_index])
    if not found:
        return None
    telling = Telling(connection, session, Cleaner(()))
    return one_line(found[0].request or typed_before(connection, session, telling, found[0]), USER_MESSAGE) or None


def _commit(commit: Commit) -> WhyCommit:
    author, subject = one_line(commit.author, LABEL), one_line(commit.subject, USER_MESSAGE)
    return WhyCommit(hash=commit.hash, author=author, at=commit.at, subject=subject)


# -- whole files -----------------------------------------------------------------------------------


def _writers(known: _Known) -> list[WhyFileSession]:
    """Return the sessions that wrote a file, the one that did so last first."""
    by_edit = Counter(author.edit for author in known.authors if author is not None and author.sure)
    lines = Counter[int]()
    for edit, count in by_edit.items():
        lines[known.uses.strokes[edit].session.id] += count
    last: dict[int, tuple[Session, int]] = {}
    calls = Counter[int]()
    for session, use in _writing(known.uses):
        last.pop(session.id, None)
        last[session.id] = session, use
        calls[session.id] += 1
    return [
        WhyFileSession(
            session=_session(known, row, event_index, "edit"),
            edits=calls[row],
            lines=None if known.content.lines is None else lines[row],
        )
        for row, (_, event_index) in reversed(last.items())
    ]


def _writing(uses: Uses) -> Iterator[tuple[Session, int]]:
    return ((session, use.event_index) for session, use in uses.touched if use.access == "write")


def _note(known: _Known) -> str | None:
    """Say what can't be answered of a file, if anything."""
    said = [] if known.content.why_not is None else [f"The file {known.content.why_not}."]
    if not any(_writing(known.uses)):
        readers = len({session.id for session, _ in known.uses.touched})
        said.append(f"No session in the index wrote it; {readers} read it." if readers else
                    _NOWHERE)  # fmt: skip
    else:
        said += _not_sure(known.authors)
    return " ".join(said) or None


def _not_sure(authors: Sequence[Author | None]) -> Iterator[str]:
    """Say how many lines no edit wrote, and of how many that isn't sure."""
    none, doubted = authors.count(None), sum(author is not None and not author.sure for author in authors)
    if none:
        yield f"{counted(none, 'line')} {'was' if none == 1 else 'were'} written by no edit in the index."
    if doubted:
        yield f"{counted(doubted, 'line')} may be from an edit that replaced a text everywhere, or older."
