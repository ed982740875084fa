"""Reviews of what the model had changed, by another model, and the problems that they found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

import orjson
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.events import Json, Outcome
from agtrace_schema.patterns import later

from agtrace.health.facts.changes import changed_files, writes_by_shell
from agtrace.health.history import Call, History, Notice

_TITLE = later(r'"title": ?"((?:[^"\\]|\\.)+)"')
_MINOR = later(r"\[P[3-9]\]")
"""How a title begins that is only about style."""


class Review(NamedTuple):
    """A review that found something."""

    event_index: int
    turn: int | None
    problems: tuple[str, ...]
    """The titles of what it found, as the log has them; not those in the middle of a very long review."""


def reviews(history: History) -> list[Review]:
    """Return the reviews that found something in what this session had changed, in file order.

    Problems of files that it hadn't changed don't count, nor do those that the reviewer calls minor.
    """
    found: list[Review] | None = history.derived.get("reviews")
    if found is None:
        found = history.derived["reviews"] = list(_reviews(history))
    return found


def problems_in(text: str) -> list[str]:
    """Return the titles of the problems in the text of a review; none if it isn't one."""
    return [title for title, _ in _problems(text)] if '"review_output"' in text else []


def _reviews(history: History) -> Iterator[Review]:
    kinds = AGENTS[history.provider].notices.reviews
    changed: set[str] = set()
    somewhere = False
    for entry in history.entries if kinds else ():
        if isinstance(entry, Call) and entry.outcome is Outcome.OK:
            changed |= {PurePosixPath(path).name for path in changed_files(entry)}
            somewhere |= writes_by_shell(entry)
        elif isinstance(entry, Notice) and entry.kind in kinds and (changed or somewhere):
            problems = tuple(
                title
                for title, path in _problems(entry.text)
                if not _MINOR.match(title) and (somewhere or path is None or PurePosixPath(path).name in changed)
            )
            if problems:
                yield Review(entry.event_index, entry.turn, problems)


def _problems(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the title of each problem, with its file if that is known; a long review is cut in the middle."""
    try:
        review: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        yield from ((title, None) for title in _TITLE.findall(text))
        return
    output = review.get("review_output") if isinstance(review, dict) else None
    findings = output.get("findings") if isinstance(output, dict) else None
    for finding in findings if isinstance(findings, list) else ():
        title = finding.get("title") if isinstance(finding, dict) else None
        if isinstance(finding, dict) and isinstance(title, str):
            place = finding.get("code_location")
            path = place.get("absolute_file_path") if isinstance(place, dict) else None
            yield title, path if isinstance(path, str) else None
