"""Who wrote each line of a text, given the edits that are known of it, oldest first.

The edits are undone, newest first, to find what the file was before them; then they are done again, and each line
remembers the edit that put it there. A line that an edit only repeats, as context or in a file written whole, keeps its
author. An edit whose text isn't there, because something else changed the file in between, is left out of that.
Lines that nobody wrote are then looked for in other copies of the file, one after the other, in the same way, and at
the end compared with what edits added, those first that were left out.

An edit that replaces a text everywhere doesn't say where. Undoing it, every place counts at which its new text is now,
but for lines that an earlier edit wrote just as they are. Of a line that no edit is known to have written before, it
remains in doubt whether the new text wasn't in it all along.
"""

from __future__ import annotations

import ntpath
import os
import posixpath
import sqlite3
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import NamedTuple

from agtrace_indexer.index.projects import project_root
from agtrace_indexer.index.queries import events, files, sessions
from agtrace_indexer.index.queries.events import text_reader
from agtrace_indexer.index.queries.files import Use
from agtrace_indexer.index.queries.sessions import Session

from agtrace.health.facts.changes import Edit, Replacement, edits, tells
from agtrace.problems import UnknownProject
from agtrace.sessions.counting import checkout_of, file_key
from agtrace.sessions.projects import known_as, resolved

# -- places ----------------------------------------------------------------------------------------


class Span(NamedTuple):
    """Lines of a text in which another one is."""

    start: int
    """Where the first of them begins."""
    stop: int
    """Where the last one ends."""
    first: int
    """The number of the first line, counted from 0."""
    end: int
    """That of the one behind the last."""
    places: list[int]

    def put(self, text: str, part: Replacement) -> str:
        """Return these lines after a replacement at these places."""
        lines = text[self.start : self.stop]
        for place in reversed(self.places):  # from the end, as later ones move
            at = place - self.start
            lines = f"{lines[:at]}{part.new}{lines[at + len(part.old) :]}"
        return lines


def places_of(text: str, part: Replacement) -> Iterator[int]:
    """Yield where a replacement can be made, without overlaps; whole lines only where lines begin and end."""
    at = text.find(part.old)
    while at >= 0:
        if not part.lines or is_whole(text, at, part.old):
            yield at
            at = text.find(part.old, at + len(part.old))
        else:
            at = text.find(part.old, at + 1)


def is_whole(text: str, place: int, sought: str) -> bool:
    """Whether a text at this place of another one begins and ends with lines."""
    end = place + len(sought)
    return (place == 0 or text[place - 1] == "\n") and (end == len(text) or text[end] == "\n")


def spans_of(text: str, places: Iterable[int], part: Replacement) -> list[Span]:
    """Return the lines that a replacement changes at these places, in order; those together that share one."""
    spans: list[Span] = []
    first = counted = 0
    for place in places:
        start, stop = text.rfind("\n", 0, place) + 1, text.find("\n", place + len(part.old))
        stop = len(text) if stop < 0 else stop
        first, counted = first + text.count("\n", counted, start), start
        end = first + text.count("\n", start, stop) + 1
        if spans and start <= spans[-1].stop:
            last = spans.pop()
            spans.append(Span(last.start, stop, last.first, end, [*last.places, place]))
        else:
            spans.append(Span(start, stop, first, end, [place]))
    return spans


def replaced_in(text: str, spans: Iterable[Span], part: Replacement) -> tuple[str, list[Span]]:
    """Return a text after a replacement in some lines, and where these are then."""
    pieces, moved, done, longer, more = list[str](), list[Span](), 0, 0, 0
    for span in spans:
        put = span.put(text, part)
        pieces += [text[done : span.start], put]
        start, first = span.start + longer, span.first + more
        moved.append(Span(start, start + len(put), first, first + put.count("\n") + 1, []))
        done, longer, more = span.stop, moved[-1].stop - span.stop, moved[-1].end - span.end
    return "".join([*pieces, text[done:]]), moved


# -- authors -----------------------------------------------------------------------------------------

_MOST_COMPARED = 4_000_000
"""Pairs of lines beyond which lines that are frequent don't begin a match, which is less exact and much faster."""

_LEAST_RUN = 2
"""Lines that must agree, one after the other, unless a single one is there but once."""

_MOST_PLACES = 20
"""Places that are tried to undo an edit."""


class Author(NamedTuple):
    """The edit that wrote a line."""

    edit: int
    """Its position among all that are known."""
    sure: bool = True
    """Whether the line was another one before, as far as edits tell."""


class Run(NamedTuple):
    """Lines that two texts have in common."""

    one: int
    """The first of them in one text, counted from 0."""
    other: int
    size: int


def authors(present: Sequence[str], edits: Sequence[Edit], copies: Sequence[str | None]) -> list[Author | None]:
    """Return the author of each line, None if it has none, given the copy of the file that each edit was made to.

    None is the file itself; in other copies it may have been written before it came here.
    """
    found: list[Author | None] = [None] * len(present)
    done: set[int] = set()
    for copy in sorted(dict.fromkeys(reversed(copies)), key=lambda copy: copy is not None):
        if None in found:
            own = [number for number, edit in enumerate(edits) if copies[number] == copy and not edit.cell]
            done |= _replay(present, edits, own, found)
    newest_first = sorted(range(len(edits)), key=lambda number: (number in done, -number))
    _by_text(present, (_Text(number, *text) for number in newest_first for text in _added(edits[number])), found)
    return found


def _replay(present: Sequence[str], edits: Sequence[Edit], own: Sequence[int], found: list[Author | None]) -> set[int]:
    before, kept = _before(present, [edits[number] for number in own])
    state = _State(before)
    done = {number for n, number in enumerate(own) if n not in kept and state.apply(edits[number], Author(number))}
    for there, here, size in agreeing(state.lines, present):
        for offset in range(size):
            found[here + offset] = found[here + offset] or state.authors[there + offset]
    return done


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without their ends, whether these are LF or CRLF, as an editor numbers them."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


class _State:
    """A file at a moment of its history, with the author of each line."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)
        self.authors: list[Author | None] = [None] * len(self.lines)

    def apply(self, edit: Edit, author: Author) -> bool:
        if edit.deletes or edit.whole is not None:
            self._put(0, len(self.lines), lines_of(edit.whole or ""), author)
            return True
        done = [self._replace(part, author) for part in edit.replacements]
        return all(done)

    def _replace(self, part: Replacement, author: Author | None) -> bool:
        if not part.old:
            return self._insert(part, author)
        text = "\n".join(self.lines)
        places = list(places_of(text, part))
        if not part.every:  # tools refuse a text that isn't unique: the others weren't there
            places = sorted(places, key=lambda place: not is_whole(text, place, part.old))[:1]
        spans = spans_of(text, places, part)
        for span in reversed(spans):
            is_known = all(author is not None and author.sure for author in self.authors[span.first : span.end])
            certain = len(spans) == 1 or part.old in part.new or is_known
            self._replace_in(text, span, part, author and author._replace(sure=certain))
        return bool(spans)

    def _replace_in(self, text: str, span: Span, part: Replacement, author: Author | None) -> None:
        """Replace the text in some of all lines, joined, and with it these lines."""
        whole = span.put(text, part)
        self._put(span.first, span.end, whole.split("\n") if whole or not part.lines else [], author)

    def undo(self, part: Replacement, earlier: Sequence[Edit]) -> bool:
        """Undo a replacement where its text is; if at several places, where it can have been made. Return whether."""
        new = part.new if part.old else part.new.removesuffix("\n")
        undone = Replacement(new, part.old, lines=part.lines or not part.old, every=part.every)
        if not part.old:
            return self._replace(undone, None)
        text = "\n".join(self.lines)
        if part.every:
            spans = spans_of(text, places_of(text, undone), undone)
            if undone.new not in undone.old:  # else the text would have been replaced in those as well
                spans = _newer(text, spans, undone, earlier)
            for span in reversed(spans):
                self._replace_in(text, span, undone, None)
            return bool(spans)
        places = list(islice(places_of(text, undone), _MOST_PLACES))
        for place in places:
            before = f"{text[:place]}{undone.new}{text[place + len(undone.old) :]}"
            if len(places) == 1 or before.count(part.old) == 1:  # tools refuse a text that isn't unique
                self._replace_in(text, spans_of(text, [place], undone)[0], undone, None)
                return True
        return False

    def _insert(self, part: Replacement, author: Author | None) -> bool:
        new = lines_of(part.new)
        place = len(self.lines)
        if isinstance(part.after, int):
            place = min(max(part.after, 0), place)
        elif part.after is not None:
            stripped = [line.strip() for line in self.lines]
            if part.after not in stripped:
                return False
            place = stripped.index(part.after) + 1
        self._put(place, place, new, author)
        return True

    def _put(self, first: int, end: int, new: Sequence[str], author: Author | None) -> None:
        by: list[Author | None] = [author] * len(new)
        for old, now, size in agreeing(self.lines[first:end], new):
            by[now : now + size] = self.authors[first + old : first + old + size]
        self.lines[first:end], self.authors[first:end] = new, by


def _newer(text: str, spans: Sequence[Span], undone: Replacement, earlier: Sequence[Edit]) -> list[Span]:
    """Return those lines that weren't like this before a replacement that is undone, going by earlier edits.

    Replacing a text everywhere leaves it nowhere: lines that have what it replaces are none of these. Others were like
    this if the last edit after which they were there, as they are or as undoing makes them, left them like this, or an
    earlier replacement would have changed what undoing makes of them.
    """
    spans = [span for span in spans if undone.new not in text[span.start : span.stop]]
    before, undone_spans = replaced_in(text, spans, undone)
    as_now = _last_with(text, spans, undone.old, earlier)
    as_before = _last_with(before, undone_spans, undone.new, earlier)
    return [
        span
        for span, then, now, at in zip(spans, undone_spans, as_now, as_before, strict=True)
        if _is_replaced(text[span.start : span.stop], earlier[now + 1 :])
        or (now <= at and not _is_replaced(before[then.start : then.stop], earlier[at + 1 :]))
    ]


def _is_replaced(lines: str, edits: Sequence[Edit]) -> bool:
    """Whether one of these edits would have replaced a text in these lines, as it did so everywhere, for good."""
    everywhere = [part for edit in edits for part in edit.replacements if part.every]
    last = next((part for part in reversed(everywhere) if part.old in lines or part.new in lines), None)
    return last is not None and last.new not in lines


def _last_with(text: str, spans: Sequence[Span], having: str, edits: Sequence[Edit]) -> list[int]:
    lines = text.split("\n")
    found: list[Author | None] = [Author(-1)] * len(lines)  # nobody asks about others
    for span in spans:
        found[span.first : span.end] = [None] * (span.end - span.first)
    afterwards = (
        _Text(number, new, [True] * len(new))
        for number in reversed(range(len(edits)))
        for new, _ in _added(edits[number])
        if any(having in line for line in new)
    )
    _by_text(lines, afterwards, found)
    return [max((author.edit for author in found[span.first : span.end] if author), default=-1) for span in spans]


def _before(present: Sequence[str], edits: Sequence[Edit]) -> tuple[list[str], set[int]]:
    """Return the lines that a file had before its first edit, and the edits that are still in them.

    What was there before a file was written whole isn't known, and taken to be the same.
    """
    whole = next((number for number, edit in enumerate(edits) if edit.whole is not None), len(edits))
    if whole == 0 and edits:
        return [], set()
    state, kept = _State(present), set()
    for number, edit in reversed(list(enumerate(edits))):
        if edit.whole is not None:
            state = _State(lines_of(edit.whole))
            continue
        undone = [state.undo(part, edits[:number]) for part in reversed(edit.replacements) if part.new]
        if number < whole and not all(undone):
            kept.add(number)
    return state.lines, kept


def agreeing(one: Sequence[str], other: Sequence[str]) -> Iterator[Run]:
    """Yield runs of lines that two texts have in common, in order.

    Lines that each text has but once are matched first, and the others between them ("patience diff", by Bram Cohen):
    brackets and blank lines, which are everywhere, don't decide what belongs together.
    """
    most = min(len(one), len(other))
    begin = next((n for n in range(most) if one[n] != other[n]), most)
    end = next((n for n in range(most - begin) if one[-1 - n] != other[-1 - n]), most - begin)
    if begin:
        yield Run(0, 0, begin)
    here, there = begin, begin
    for n, m in [*_anchors(one, other, begin, end), (len(one) - end, len(other) - end)]:
        yield from _between(one, other, Run(here, there, 0), (n, m))
        if n < len(one) - end:
            yield Run(n, m, 1)
        here, there = n + 1, m + 1
    if end:
        yield Run(len(one) - end, len(other) - end, end)


def _anchors(one: Sequence[str], other: Sequence[str], begin: int, end: int) -> list[tuple[int, int]]:
    """Return the longest series of lines that each text has but once, in the same order in both: where in each."""
    first, second = one[begin : len(one) - end], other[begin : len(other) - end]
    counts, others = Counter(first), Counter(second)
    places = {line: place for place, line in enumerate(second, begin) if others[line] == 1}
    pairs = [
        (n, places[line]) for n, line in enumerate(first, begin) if counts[line] == 1 and line in places and tells(line)
    ]
    tails: list[int] = []  # the smallest end of an increasing series of each length, and the pair that it ends with
    ends: list[int] = []
    behind: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(tails, place)
        behind.append(ends[length - 1] if length else -1)
        tails[length : length + 1], ends[length : length + 1] = [place], [number]
    found: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        found.append(pairs[at])
        at = behind[at]
    return found[::-1]


def _between(one: Sequence[str], other: Sequence[str], begin: Run, end: tuple[int, int]) -> Iterator[Run]:
    """Yield the runs in common between two places of both texts."""
    first, second = one[begin.one : end[0]], other[begin.other : end[1]]
    if not first or not second:
        return
    rough = len(first) * len(second) > _MOST_COMPARED
    for here, there, size in SequenceMatcher(None, first, second, autojunk=rough).get_matching_blocks():
        if size:
            yield Run(begin.one + here, begin.other + there, size)


class _Text(NamedTuple):
    edit: int
    lines: list[str]
    counted: list[bool]
    """Whether each line is the edit's."""


def _by_text(present: Sequence[str], texts: Iterable[_Text], found: list[Author | None]) -> None:
    """Give lines without an author to the first of the edits whose lines they are."""
    times = Counter(present)
    for number, new, counted in texts:
        if None not in found:
            return
        for here, there, size in agreeing(present, new):
            run = [line for line in new[there : there + size] if tells(line)]
            if not run or (size < _LEAST_RUN and times[run[0]] > 1):
                continue
            for offset in range(size):
                if found[here + offset] is None and counted[there + offset]:
                    found[here + offset] = Author(number)


def _added(edit: Edit) -> Iterator[tuple[list[str], list[bool]]]:
    """Yield the texts that an edit puts in, as lines, with whether each is new."""
    parts = edit.replacements if edit.whole is None else (Replacement("", edit.whole),)
    for part in parts:
        new = lines_of(part.new)
        is_new = [True] * len(new)
        for _, now, size in agreeing(lines_of(part.old) if part.old else [], new):
            is_new[now : now + size] = [False] * size
        yield new, is_new


# -- edits of a file -------------------------------------------------------------------------------
# The calls of all sessions that wrote a file, as edits in the order of time.

_MOST_NAMES = 8
"""The former names of a file that are followed."""


class FileEdit(NamedTuple):
    """An edit of a file by a call."""

    session: Session
    event_index: int
    at: int
    """Milliseconds since 1970 UTC; 0 is unknown."""
    edit: Edit
    copy: str | None
    """The checkout of the repository in which it was made; None if it was made to this very file."""


class Uses(NamedTuple):
    """What sessions did with a file."""

    file_edits: list[FileEdit]
    touched: list[tuple[Session, Use]]
    """Every use, oldest first: also those of which it isn't known what they wrote, and reading."""


def uses_of(connection: sqlite3.Connection, names: Iterable[str], *, in_clones: bool) -> Uses:
    """Return what sessions did with a file, given its absolute path, and those that it had before.

    With `in_clones`, the git configuration around it is read to know other clones of its repository.
    """
    paths = list(dict.fromkeys(names))
    found: dict[tuple[int, int], tuple[Session, Use]] = {}
    file_edits: dict[tuple[int, int], list[FileEdit]] = {}
    seen = 0
    while seen < min(len(paths), _MOST_NAMES):
        target = _Target(connection, paths[seen], in_clones=in_clones)
        seen += 1
        for session, use, copy in target.uses():
            place = session.id, use.event_index
            if place in found and file_edits.get(place):
                continue
            found[place] = session, use
            made = list(_file_edits(connection, target, session, use, copy)) if use.access == "write" else []
            file_edits[place] = made
            moved = (edit.edit.moved_from for edit in made if not copy and edit.edit.moved_from)
            paths += [path for each in moved if (path := file_key(each, session.cwd, None)) not in paths]
    ordered = sorted(found, key=lambda place: found[place][1].row)
    ordered.sort(key=lambda place: found[place][1].at)
    return Uses([edit for place in ordered for edit in file_edits[place]], [found[place] for place in ordered])


class _Target:
    def __init__(self, connection: sqlite3.Connection, path: str, *, in_clones: bool) -> None:
        self._connection, self._path = connection, path
        self._alike = {path, os.path.realpath(path)}
        self._root = root = project_root(posixpath.dirname(path))
        self._below = file_key(path, None, root) if root else path
        try:
            self._folders = set(resolved(connection, known_as(connection, root) if in_clones else root, roughly=False))
        except UnknownProject:
            self._folders = set()

    def copy(self, named: str, session: Session) -> str | None:
        """Return the checkout with the file that a session names; empty if it is this very file, None if neither."""
        file = file_key(named, session.cwd, None)
        if file in self._alike:
            return ""
        if session.project_id not in self._folders:
            return None
        checkout = checkout_of(session) or ""
        if file_key(named, session.cwd, checkout).replace("\\", "/") == self._below:
            return checkout or "."
        top = file.replace("\\", "/").removesuffix(f"/{self._below}")
        return top if top != file.replace("\\", "/") and self._is_checkout(top, session) else None

    def _is_checkout(self, folder: str, session: Session) -> bool:
        """Whether a folder in which a session worked is one of its repository, or is gone, as worktrees soon are."""
        gone = "/" in self._below and not os.path.lexists(folder)
        return gone or project_root(folder) in (self._root, session.root_path)

    def uses(self) -> Iterator[tuple[Session, Use, str]]:
        """Yield the calls that named the file and didn't fail, with the checkout that it was in."""
        names = ntpath if ntpath.splitdrive(self._path)[0] else posixpath
        found = list(files.uses(self._connection, names.basename(self._path)))
        rows = {use.session_row for use in found}
        known = {session.id: session for session in sessions.in_rows(self._connection, rows)}
        for use in found:
            copy = self.copy(use.path, known[use.session_row])
            if copy is not None:
                yield known[use.session_row], use, copy


def _file_edits(
    connection: sqlite3.Connection, target: _Target, session: Session, use: Use, copy: str
) -> Iterator[FileEdit]:
    event = text_reader(connection)(events.one(connection, session.id, use.event_index))
    for edit in edits(event.row.name or "", event.rest.get("arguments"), writes=True):
        if any(name and target.copy(name, session) is not None for name in (edit.path, edit.moved_from)):
            yield FileEdit(session, use.event_index, use.at, edit, copy or None)
