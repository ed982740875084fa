"""Precision and recall of landmarks against labels: `python -m tests.finding.landmarks [labels.json]`.

`landmarks.json` was written by reading raw logs: `sessions` are logs below the folder of real logs that were read as a
whole, `landmarks` all that they hold, each with the line of its call. A landmark is right if its log, line and kind are
labelled, and its name too where the label has one; a pull request that is named again counts once. What is `optional`
may be found or not; kinds that are younger than the labels are `unlabelled`. Copies are left out, as they are by
everything that is asked.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
from collections import Counter, defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from agtrace_indexer.run import index

FOLDER = Path(__file__).parents[2].parent / "shared"
LABELS = Path(__file__).with_name("landmarks.json")

_FOUND = """
SELECT f.path, e.line, l.kind, l.name, l.verdict, l.detail, l.evidence
FROM landmark l JOIN event e USING (session_id, event_index) JOIN session s ON s.id = l.session_id
JOIN file f ON f.id = s.file_id
WHERE e.superseded_by IS NULL AND e.copy_of IS NULL ORDER BY f.path, e.line, l.number
"""
_NAMED = ("commit", "branch", "push", "pull_request", "issue", "release")
_JUDGED = ("test_run", "build")


class Found(NamedTuple):
    """A landmark in the index."""

    file: str
    line: int
    kind: str
    name: str | None
    verdict: str | None
    detail: str | None
    evidence: str


def main() -> None:
    """Print the figures, and every landmark that isn't labelled, missing, or judged otherwise."""
    labels = json.loads(Path(sys.argv[1]).read_text("utf-8") if sys.argv[1:] else LABELS.read_text("utf-8"))
    sessions = set(labels["sessions"])
    with tempfile.TemporaryDirectory() as folder:
        found = [landmark for landmark in landmarks(Path(folder) / "index.db") if landmark.file in sessions]
    unlabelled = set(labels.get("unlabelled", []))
    left_out = [one for one in found if one.kind in unlabelled]
    if left_out:
        _print(f"left out: {len(left_out)} of kinds that are younger than the labels ({', '.join(sorted(unlabelled))})")
    _compare(
        _once([one for one in found if one.kind not in unlabelled]), labels["landmarks"], labels.get("optional", [])
    )


def landmarks(database: Path) -> list[Found]:
    """Index the real logs and return their landmarks."""
    index(database, [str(FOLDER / "logs"), str(FOLDER / "logs_more")])
    with closing(sqlite3.connect(database)) as connection:
        rows = [Found(*row) for row in connection.execute(_FOUND)]
    return [row._replace(file=str(Path(row.file).relative_to(FOLDER))) for row in rows]


def _once(found: list[Found]) -> list[Found]:
    """Leave out a pull request that was linked where it, or the link, is there already."""
    known: set[tuple[str, str | None]] = {(one.file, one.name) for one in found if one.verdict in ("created", "merged")}
    kept = []
    for one in found:
        if one.verdict == "linked" and (one.file, one.name) in known:
            continue
        if one.verdict == "linked":
            known.add((one.file, one.name))
        kept.append(one)
    return kept


def _compare(found: list[Found], labels: list[dict[str, Any]], optional: list[dict[str, Any]]) -> None:
    waiting = defaultdict(list)
    for label in labels:
        waiting[label["file"], label["kind"]].append(label)
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    for one in found:
        label = next((label for label in waiting[one.file, one.kind] if _is_same(one, label)), None)
        if label is None and any(_is_same(one, may) for may in optional if _of(one, may)):
            continue
        if label is None:
            wrong[one.kind] += 1
            _print(f"not labelled: {one}")
            continue
        waiting[one.file, one.kind].remove(label)
        right[one.kind] += 1
        if one.kind in _JUDGED:
            judged[one.kind] += one.verdict == label["verdict"]
            if one.verdict != label["verdict"]:
                _print(f"judged {one.verdict}, labelled {label['verdict']}: {one}")
    missed = Counter(label["kind"] for left in waiting.values() for label in left)
    for left in waiting.values():
        for label in left:
            _print(f"missing: {label}")
    for kind in sorted({*right, *wrong, *missed}):
        verdicts = f", {judged[kind]} with the right verdict" if kind in _JUDGED else ""
        _print(f"{kind}: {right[kind]} right, {wrong[kind]} wrong, {missed[kind]} missing{verdicts}")
    hits, false, lost = right.total(), wrong.total(), missed.total()
    _print(f"precision {hits / max(hits + false, 1):.3f}, recall {hits / max(hits + lost, 1):.3f} of {hits + lost}")


def _of(one: Found, label: dict[str, Any]) -> bool:
    return (one.file, one.kind) == (label["file"], label["kind"])


def _is_same(one: Found, label: dict[str, Any]) -> bool:
    name = label.get("name")
    if one.kind == "pull_request":
        return str(name) == one.name
    if label.get("line") is not None and one.line != label["line"]:
        return False
    named = one.kind in _NAMED and name and one.name
    return not named or str(name).startswith(str(one.name)) or str(one.name).startswith(str(name))


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
