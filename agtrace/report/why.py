"""Who wrote lines of a file, and for which request: by edits of sessions, else by their commits, else by their uses."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from agtrace_indexer.index.queries import events, landmarks, sessions, turns
from agtrace_indexer.index.queries.sessions import Session
from agtrace_indexer.providers.registry import AGENTS
from agtrace_indexer.redact import redact
from agtrace_schema.patterns import later
from agtrace_schema.reports import Last, Sure, Why, WhyCommit, WhyFileSession, WhyLines, WhySession
from msgspec import Struct, field

from agtrace.conversation.cleaning import Cleaner
from agtrace.conversation.items import ItemReader, typed_before, when
from agtrace.problems import InvalidParameter, InvalidRange
from agtrace.report.replay import Author, FileEdit, Uses, agreeing, authors, lines_of, uses_of
from agtrace.sessions.projects import labels
from agtrace.sessions.query import resuming, short_id
from agtrace.settings.environment import for_git
from agtrace.text.lines import LABEL, NO_TOOL, USER_MESSAGE, cut, named_path, one_line
from agtrace.text.next_call import showing
from agtrace.text.numbers import counted, size
from agtrace.times import iso

# -- git -------------------------------------------------------------------------------------------
# What git knows of a file: what was committed, by whom, and under which names. For folders that nobody vouches for. A
# repository's configuration can name programs: hooks, a file system monitor, filters, converters for diffs,
# transports. Only commands are used that run none of them: they read commits, never the work tree, and reach no other
# repository.

_SAFELY = (
    "--no-optional-locks", "--no-pager", "--no-replace-objects", "--literal-pathspecs",
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.sshCommand=false",
    "-c", "core.attributesFile=/dev/null", "-c", "protocol.allow=never", "-c", "log.showSignature=false",
    "-c", "blame.ignoreRevsFile=", "-c", "diff.external=", "-c", "safe.bareRepository=explicit", "-c", "gc.auto=0",
)  # fmt: skip
_SECONDS = 10
_LARGEST = 50_000_000
_COMMIT = later(r"([0-9a-f]{40,64}) \d+ (\d+)(?: (\d+))?")
_RENAME = re.compile(rb"R\d+\0([^\0]+)\0([^\0]+)\0")


class Commit(Struct, frozen=True):
    """A commit."""

    hash: str
    author: str
    at: str | None
    """The author's date (UTC)."""
    subject: str


class Tracked(Struct, frozen=True):
    """A file in a repository."""

    root: str
    path: str
    """Below the root, with slashes."""
    content: str | None
    """As in the newest commit; None if it isn't there."""


def tracked(file: Path) -> Tracked | None:
    """Return a file as the repository around it has it; None without one, without git, or if git refuses it."""
    root = _run(file.parent, "rev-parse", "--show-toplevel")
    if root is None:
        return None
    top = root.decode(errors="surrogateescape").rstrip("\n")
    try:
        path = (Path(os.path.realpath(file.parent)) / file.name).relative_to(top).as_posix()
    except ValueError:
        return None
    size = _run(Path(top), "cat-file", "-s", f"HEAD:{path}")
    if size is None or not size.strip().isdigit() or int(size) > _LARGEST:
        return Tracked(top, path, None)
    content = _run(Path(top), "cat-file", "blob", f"HEAD:{path}")
    return Tracked(top, path, None if content is None else content.decode(errors="replace"))


def commits_of(file: Tracked, lines: Iterable[int]) -> dict[int, Commit]:
    """Return the commits that wrote these lines, counted from 1, of a file as it was committed."""
    wanted = sorted(set(lines))
    if not wanted:
        return {}
    spans = [option for first, last in _spans(wanted) for option in ("-L", f"{first},{last}")]
    said = _run(Path(file.root), "blame", "--no-textconv", "--porcelain", *spans, "HEAD", "--", file.path)
    return {} if said is None else _blamed(said.decode(errors="replace"))


def former_names(file: Tracked) -> list[str]:
    """Return the paths that a file had before it was renamed, below the root, newest first."""
    options = ("--follow", "--diff-filter=R", "--name-status", "-M", "-z", "--format=", "--no-ext-diff")
    said = _run(Path(file.root), "log", *options, "HEAD", "--", file.path)
    return [old.decode(errors="surrogateescape") for old, _ in _RENAME.findall(said or b"")]


def _spans(numbers: list[int]) -> list[tuple[int, int]]:
    """Return runs of successive numbers as their first and last one."""
    spans: list[tuple[int, int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1] = spans[-1][0], number
        else:
            spans.append((number, number))
    return spans


def _blamed(said: str) -> dict[int, Commit]:
    facts: dict[str, dict[str, str]] = {}
    of_line: dict[int, str] = {}
    current = ""
    for line in said.split("\n"):
        head = _COMMIT.fullmatch(line)
        if head:
            current = head[1]
            of_line[int(head[2])] = current
            facts.setdefault(current, {})
        elif current and not line.startswith("\t"):
            name, _, value = line.partition(" ")
            facts[current].setdefault(name, value)
    return {number: _read_commit(hash, facts[hash]) for number, hash in of_line.items()}


def _read_commit(hash: str, facts: dict[str, str]) -> Commit:
    try:
        at = datetime.fromtimestamp(int(facts.get("author-time", "")), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        at = None
    return Commit(hash, facts.get("author", ""), at, facts.get("summary", ""))


def _run(folder: Path, *command: str) -> bytes | None:
    try:
        run = subprocess.run(
            ["git", *_SAFELY, *command], cwd=folder, env=for_git(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_SECONDS, check=False, start_new_session=True,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stdout if run.returncode == 0 else None


# -- the file and its authors ------------------------------------------------------------------------

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
    lines: list[str] | None
    """Without secrets, as edits are kept in the index; None if it can't be compared."""
    why_not: str | None = None


class _Known(Struct):
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
    asked = lines is not None
    try:
        facts = os.stat(path)
        if stat.S_ISDIR(facts.st_mode):
            raise InvalidParameter("file", f"{named_path(path, _LONGEST_PATH)} is a folder")
        content = _read(path, facts)
    except OSError as error:
        content = _Content(None, f"can't be read: {(error.strerror or str(error)).lower()}")
    if content.lines is None and asked:
        raise InvalidParameter("file", f"{named_path(path, _LONGEST_PATH)} {content.why_not}; leave out the line")
    if lines is not None:
        _check(path, content, lines)
    known = _find_authors(connection, path, uses, content, lines, in_clones=not named_only)
    total = None if content.lines is None else len(content.lines)
    if lines is not None:
        note = None if known.uses.touched else _NOWHERE
        return Why(path=path, total_lines=total, lines=_described(known, *lines), note=note)
    return Why(path=path, total_lines=total, sessions=_writers(known), note=_note(known))


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


def _find_authors(
    connection: sqlite3.Connection,
    path: str,
    uses: Uses,
    content: _Content,
    lines: tuple[int, int] | None,
    *,
    in_clones: bool,
) -> _Known:
    """Find the authors of a file's lines, also under the names that it had before if it was renamed in git."""
    result = _Known(connection, uses, content, _authors(content, uses.file_edits), names=labels(connection))
    if content.lines is None:
        return result
    first, last = lines or (1, len(content.lines))
    missing = None in result.authors[first - 1 : last]
    if lines is not None or missing:
        result.tracked = tracked(Path(path))
    if missing and result.tracked is not None:
        former = [os.path.join(result.tracked.root, name) for name in former_names(result.tracked)]
        if former:
            result.uses = uses_of(connection, [path, *former], in_clones=in_clones)
            result.authors = _authors(content, result.uses.file_edits)
    return result


def _authors(content: _Content, file_edits: Sequence[FileEdit]) -> list[Author | None]:
    if content.lines is None:
        return []
    return authors(content.lines, [edit.edit for edit in file_edits], [edit.copy for edit in file_edits])


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
                session=None
                if origin.session is None
                else _session(known, origin.session, origin.event_index, origin.last),
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
    return committed, commits_of(known.tracked, committed.values())


def _origin(known: _Known, number: int, commit: Commit | None, committed: dict[int, int]) -> _Origin:
    """Return the origin of a line: its edit, else its commit, else the last use of the file."""
    uncommitted = known.tracked is not None and number not in committed
    author = known.authors[number - 1]
    if author is not None:
        edit = known.uses.file_edits[author.edit]
        return _Origin(
            "edit matches" if author.sure else "edit may match",
            edit.session.id,
            edit.event_index,
            None,
            commit,
            uncommitted,
        )
    made = landmarks.committer(known.connection, commit.hash) if commit else None
    if made:
        return _Origin("commit made by session", *made, None, commit)
    writing = list(_writing(known.uses))
    touched = writing or [(session, use.event_index) for session, use in known.uses.touched]
    if touched:
        session, event_index = touched[-1]
        return _Origin("only touched", session.id, event_index, "edit" if writing else "use", commit, uncommitted)
    return _Origin("unknown", commit=commit, uncommitted=uncommitted)


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
    telling = ItemReader(connection, session, Cleaner(()))
    return one_line(found[0].request or typed_before(connection, session, telling, found[0]), USER_MESSAGE) or None


def _commit(commit: Commit) -> WhyCommit:
    author, subject = one_line(commit.author, LABEL), one_line(commit.subject, USER_MESSAGE)
    return WhyCommit(hash=commit.hash, author=author, at=commit.at, subject=subject)


# -- whole files -----------------------------------------------------------------------------------


def _writers(known: _Known) -> list[WhyFileSession]:
    by_edit = Counter(author.edit for author in known.authors if author is not None and author.sure)
    lines = Counter[int]()
    for edit, count in by_edit.items():
        lines[known.uses.file_edits[edit].session.id] += count
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


# -- wording ---------------------------------------------------------------------------------------

_ABBREVIATED = 10
_SURE = {
    "edit matches": "an edit of this session put it here",
    "edit may match": "an edit of this session put this text everywhere; the line may have had it before",
    "commit made by session": "this session made the commit",
    "only touched": "no edit matches; this session only touched the file",
    "unknown": "no session in the index wrote it",
}


def text(found: Why) -> str:
    """Return an answer as text, ending with a newline."""
    lines = [*_line_groups(found), *_file_sessions(found)]
    lines += [found.note] if found.note else []
    return "".join(f"{line}\n" for line in lines)


def _line_groups(found: Why) -> Iterator[str]:
    told: set[tuple[str, int | None]] = set()
    for number, part in enumerate(found.lines or ()):
        if number:
            yield ""
        yield from _part(found.path, part, told)


def _part(path: str, part: WhyLines, told: set[tuple[str, int | None]]) -> Iterator[str]:
    """Yield some lines with their origin: how sure it is, the session, its request, the edit, the commit.

    `told` are the sessions and turns that were named before, of which only the edit is named again.
    """
    place = f"{part.first_line}-{part.last_line}" if part.last_line > part.first_line else str(part.first_line)
    yield f"{path}:{place}"
    width = len(str(part.last_line))
    for number, line in enumerate(part.text.split("\n"), part.first_line):
        yield f"  {number:>{width}}  {line}".rstrip()
    yield f"{part.sure}: {_SURE[part.sure]}"
    if part.session is not None:
        turn = part.session.id, part.session.turn_index
        yield from _session_lines(part.session, again=turn in told)
        told.add(turn)
    if part.commit is not None:
        day = when(part.commit.at)[:10]
        hash = part.commit.hash[:_ABBREVIATED]
        yield "  " + "  ".join(filter(None, (f"commit {hash}", day, part.commit.author, part.commit.subject)))
    elif part.uncommitted:
        yield "  not committed yet"


def _file_sessions(found: Why) -> Iterator[str]:
    if not found.sessions:
        return
    yield f"{found.path}: written by {counted(len(found.sessions), 'session')}, newest first"
    for each in found.sessions:
        yield ""
        now = "" if each.lines is None else f", {counted(each.lines, 'line')} of it now"
        first, *rest = _session_lines(each.session)
        yield first.strip()
        yield f"  {counted(each.edits, 'edit')}{now}"
        yield from rest


def _session_lines(session: WhySession, *, again: bool = False) -> Iterator[str]:
    facts = (session.id, session.title, session.project or "", AGENTS[session.provider].title, when(session.at))
    yield f"  {session.id}  as above" if again else "  " + "  ".join(filter(None, facts))
    if session.request and session.request != session.title and not again:
        yield f"  turn {session.turn_index}: {session.request}"
    if session.event:
        call = f"Last {session.last} of the file" if session.last else session.tool
        yield f"  {call}: {showing(session.event)}"
    if session.resume and not again:
        yield f"  continue it: {session.resume}"
