"""What a session did, as answers show it: its landmarks one by one, and in figures."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from agtrace_indexer.index.queries import events, landmarks
from agtrace_indexer.index.queries.events import with_texts
from agtrace_indexer.index.queries.landmarks import Landmark
from agtrace_indexer.providers.registry import TOOLS
from agtrace_schema.answers import Done, LandmarkItem
from agtrace_schema.events import Json
from agtrace_schema.landmarks import LandmarkKind, Verdict
from agtrace_schema.model import dump
from msgspec import Struct
from msgspec.structs import replace

from agtrace.text.lines import one_line
from agtrace.text.numbers import counted

_NAME, _DETAIL, _FAILURE = 60, 80, 140
_REQUESTS = 5
"""The most pull requests that are named; the newest ones."""

_MADE = (LandmarkKind.COMMIT, LandmarkKind.BRANCH, LandmarkKind.RELEASE)
"""The kinds that are there only if they were created."""

_TELLING = frozenset(
    {
        LandmarkKind.COMMIT,
        LandmarkKind.PUSH,
        LandmarkKind.PULL_REQUEST,
        LandmarkKind.ISSUE,
        LandmarkKind.RELEASE,
        LandmarkKind.COMPACTION,
    }
)
_OF_COURSE = frozenset({(LandmarkKind.COMPACTION, None), (LandmarkKind.BUILD, Verdict.PASSED)})
_ENDINGS = frozenset({LandmarkKind.TEST_RUN, LandmarkKind.BUILD})
_SHOWN, _NEAREST, _ALL = 6, 4, 1 << 62


class OverviewLandmarks(Struct, frozen=True):
    """Landmarks of an overview."""

    items: list[LandmarkItem]
    total: int
    """All landmarks of the session."""


def landmark_item(landmark: Landmark, figures: str | None = None) -> LandmarkItem:
    """Return a landmark as a list shows it; of a compaction, `figures` is what its log tells of it."""
    detail = landmark.detail or figures
    untold = landmark.verdict is Verdict.CREATED and landmark.kind in _MADE
    return LandmarkItem(
        event_index=landmark.event_index,
        kind=landmark.kind,
        name=landmark.name and one_line(landmark.name, _NAME),
        verdict=None if untold else landmark.verdict,
        detail=one_line(detail, _DETAIL) if detail else None,
    )


def landmark_items(connection: sqlite3.Connection, session_row: int, found: Sequence[Landmark]) -> list[LandmarkItem]:
    """Return landmarks of a session as a list shows them; compactions with the figures in their logs."""
    compactions = [one.event_index for one in found if one.kind is LandmarkKind.COMPACTION]
    told = with_texts(connection, events.several(connection, session_row, compactions)) if compactions else []
    figures = {event.event_index: event.text.partition("\n")[2] for event in told}
    items = [landmark_item(one, figures.get(one.event_index)) for one in found]
    return _with_outputs(connection, session_row, items)


def _with_outputs(connection: sqlite3.Connection, session_row: int, items: list[LandmarkItem]) -> list[LandmarkItem]:
    """Return landmarks with what their outputs say: how much a commit changed, why a test run or a build failed."""
    told = [item.event_index for item in items if item.kind is LandmarkKind.COMMIT or _failed(item)]
    calls = events.several(connection, session_row, told) if told else []
    results = {call.link: call.event_index for call in calls if call.link is not None}
    said = with_texts(connection, events.several(connection, session_row, results)) if results else []
    texts = {results[result.event_index]: result.text for result in said}
    return [_with_output(item, texts[item.event_index]) if item.event_index in texts else item for item in items]


def _with_output(item: LandmarkItem, output: str) -> LandmarkItem:
    if _failed(item):
        from agtrace.text.signatures import telling_failure  # takes 10 ms, which lists of sessions don't need

        return item if item.detail else replace(item, detail=one_line(telling_failure(output), _FAILURE))
    found = re.search(_COMMITTED.format(re.escape(item.name)), output) if item.name else None
    extent = one_line(", ".join(filter(None, found.groups())), _DETAIL) if found else None
    return replace(item, detail=f"{item.detail or ''} ({extent})".strip()) if extent else item


def _failed(item: LandmarkItem) -> bool:
    return item.kind in _ENDINGS and item.verdict is Verdict.FAILED


_COMMITTED = (
    r"\[([^\]\n]{{1,200}}?)(?: \(root-commit\))? {}[0-9a-f]*\][^\n]*"
    r"(?:\n(?: (?:Author|Date):[^\n]*\n)*\s*(\d+ files? changed[^\n]*))?"
)
"""What `git commit` prints of a commit: its branch, and in another line what it changed."""


def titled_landmarks(connection: sqlite3.Connection, session_row: int, found: Sequence[Landmark]) -> list[LandmarkItem]:
    """Return landmarks as a list shows them; pull requests that the session opened with their titles."""
    opening = [
        one.event_index for one in found if one.kind is LandmarkKind.PULL_REQUEST and one.verdict is Verdict.CREATED
    ]
    calls = with_texts(connection, events.several(connection, session_row, opening)) if opening else []
    titles = {call.event_index: _title(call.row.name or "", call.rest.get("arguments")) for call in calls}
    return [_titled(landmark_item(one), titles.get(one.event_index)) for one in found]


def _titled(item: LandmarkItem, title: str | None) -> LandmarkItem:
    if not title:
        return item
    return replace(item, detail=f"{item.detail or ''} {one_line(title, _DETAIL)}".strip())


def _title(tool: str, arguments: Json) -> str | None:
    """Return the title that a call gives a pull request: an argument of its own, or an option of a forge's program."""
    if isinstance(arguments, dict) and isinstance(arguments.get("title"), str):
        return str(arguments["title"])
    from agtrace_indexer.events.clues import FORGES  # few sessions open pull requests
    from agtrace_indexer.events.commands import shell_command
    from agtrace_indexer.events.shell import parts

    command = shell_command(tool, arguments, TOOLS)
    for part in parts(command.text) if command else ():
        if part.program not in FORGES:
            continue
        for word, following in pairwise((*part.words, "")):
            if word in ("--title", "-t"):
                return following
            if word.startswith("--title="):
                return word.removeprefix("--title=")
    return None


def telling_landmarks(
    connection: sqlite3.Connection, session_row: int, last_event: int, *, near: int | None = None
) -> OverviewLandmarks:
    """Return what an overview shows of a session's landmarks: the last ones of those that tell how it went.

    Of test runs and builds that is the last one, and the last one that failed. Compactions come without their figures.
    Near an event, the nearest ones are shown, without compactions and builds that passed.
    """
    then = events.snapshot(connection, session_row, last_event)
    found = landmarks.landmarks_then(connection, session_row, then, behind=None, most=_ALL)
    checks = [one for one in found if one.kind in _ENDINGS]
    last = {one.kind: one for one in checks}, {one.kind: one for one in checks if one.verdict is Verdict.FAILED}
    ending = {id(one) for some in last for one in some.values()}
    shown = [one for one in found if one.kind in _TELLING or id(one) in ending]
    if near is not None:
        shown = [one for one in shown if (one.kind, one.verdict) not in _OF_COURSE]
        shown = sorted(shown, key=lambda one: abs(one.event_index - near))[:_NEAREST]
        shown.sort(key=lambda one: one.event_index)
    items = _with_outputs(connection, session_row, list(map(landmark_item, shown[-_SHOWN:])))
    return OverviewLandmarks(items, len(found))


def done_by(connection: sqlite3.Connection, sessions: Iterable[int]) -> dict[int, Done]:
    """Return what sessions, given their row ids, did; without those that did nothing of the kind."""
    found = {
        row: Done(
            commits=commits or None,
            pull_requests=(requests or "").split()[-_REQUESTS:] or None,
            releases=releases or None,
            last_tests=Verdict(tests) if tests else None,
        )
        for row, commits, requests, tests, releases in landmarks.deeds(connection, sessions)
    }
    return {row: done for row, done in found.items() if dump(done)}


def deeds_phrase(done: dict[str, Any]) -> str:
    """Return what a session did as a phrase: `3 commits, opened pull request 104, last tests passed`."""
    opened = done.get("pull_requests", [])
    phrases = (
        counted(done["commits"], "commit") if "commits" in done else "",
        f"opened pull request{'s' * (len(opened) > 1)} {', '.join(opened)}" if opened else "",
        counted(done["releases"], "release") if "releases" in done else "",
        f"last tests {done['last_tests']}" if "last_tests" in done else "",
    )
    return ", ".join(filter(None, phrases))
