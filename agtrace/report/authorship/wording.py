"""Who wrote a file, as lines for people and agents."""

from __future__ import annotations

from collections.abc import Iterator

from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.why import Why, WhyFileSession, WhyLines, WhySession

from agtrace.text.next_call import showing
from agtrace.text.numbers import counted

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
    lines = [*_lines(found), *_sessions(found)]
    lines += [found.note] if found.note else []
    return "".join(f"{line}\n" for line in lines)


def _lines(found: Why) -> Iterator[str]:
    for number, part in enumerate(found.lines or ()):
        if number:
            yield ""
        yield from _part(found.path, part)


def _part(path: str, part: WhyLines) -> Iterator[str]:
    """Yield some lines with their origin: how sure it is, the session, its request, the edit, the commit."""
    place = f"{part.first_line}-{part.last_line}" if part.last_line > part.first_line else str(part.first_line)
    yield f"{path}:{place}"
    width = len(str(part.last_line))
    for number, line in enumerate(part.text.split("\n"), part.first_line):
        yield f"  {number:>{width}}  {line}".rstrip()
    yield f"{part.sure}: {_SURE[part.sure]}"
    if part.session is not None:
        yield from _session(part.session)
    if part.commit is not None:
        day = (part.commit.at or "")[:10]
        hash = part.commit.hash[:_ABBREVIATED]
        yield "  " + "  ".join(filter(None, (f"commit {hash}", day, part.commit.author, part.commit.subject)))
    elif part.uncommitted:
        yield "  not committed yet"


def _sessions(found: Why) -> Iterator[str]:
    if not found.sessions:
        return
    yield f"{found.path}: written by {counted(len(found.sessions), 'session')}, newest first"
    for each in found.sessions:
        yield ""
        yield from _writer(each)


def _writer(each: WhyFileSession) -> Iterator[str]:
    now = "" if each.lines is None else f", {counted(each.lines, 'line')} of it now"
    first, *rest = _session(each.session)
    yield first.strip()
    yield f"  {counted(each.edits, 'edit')}{now}"
    yield from rest


def _session(session: WhySession) -> Iterator[str]:
    at = f"{session.at[:16].replace('T', ' ')} UTC" if session.at else ""
    facts = (session.id, session.title, session.project or "", AGENTS[session.provider].title, at)
    yield "  " + "  ".join(filter(None, facts))
    if session.request and session.request != session.title:
        yield f"  turn {session.turn_index}: {session.request}"
    if session.event:
        call = f"Last {session.last} of the file" if session.last else session.tool
        yield f"  {call}: {showing(session.event)}"
    if session.resume:
        yield f"  continue it: {session.resume}"
