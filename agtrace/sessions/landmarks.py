"""What a session did, as answers show it: its landmarks one by one, and in figures."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from agtrace_indexer.index.questions import landmarks
from agtrace_indexer.index.questions.landmarks import Deeds, Landmark
from agtrace_schema.answers import Done, LandmarkItem
from agtrace_schema.landmarks import LandmarkKind, Verdict

from agtrace.text.lines import one_line
from agtrace.text.numbers import counted

_NAME, _DETAIL = 60, 80
_REQUESTS = 5
"""The most pull requests that are named; the newest ones."""

_MADE = (LandmarkKind.COMMIT, LandmarkKind.BRANCH, LandmarkKind.RELEASE)
"""The kinds that are there only if they were created."""


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


def done_by(connection: sqlite3.Connection, sessions: Iterable[int]) -> dict[int, Done]:
    """Return what sessions, given their row ids, did; without those that did nothing of the kind."""
    found = {row: _done(deeds) for row, deeds in landmarks.deeds(connection, sessions).items()}
    return {row: done for row, done in found.items() if done.model_dump(exclude_none=True)}


def _done(deeds: Deeds) -> Done:
    return Done(
        commits=deeds.commits or None,
        pull_requests=list(deeds.pull_requests[-_REQUESTS:]) or None,
        releases=deeds.releases or None,
        last_tests=Verdict(deeds.tests) if deeds.tests else None,
    )


def said(done: dict[str, Any]) -> str:
    """Return what a session did as a phrase: `3 commits, opened pull request 104, last tests passed`."""
    opened = done.get("pull_requests", [])
    phrases = (
        counted(done["commits"], "commit") if "commits" in done else "",
        f"opened pull request{'s' * (len(opened) > 1)} {', '.join(opened)}" if opened else "",
        counted(done["releases"], "release") if "releases" in done else "",
        f"last tests {done['last_tests']}" if "last_tests" in done else "",
    )
    return ", ".join(filter(None, phrases))
