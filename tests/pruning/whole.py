"""`python -m tests.pruning.whole`: tokens and calls of a scripted agent on labelled tasks, with and without questions.

For each case the agent reads the text as a file through the running server. Without a question it gets the text. With
one it gets what the pruner keeps, and as long as a line that it needs is missing, it reads the gaps, the smallest
first: as an agent does that notices that something is missing, but not where. A token is counted as four characters,
of calls and of answers.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.pruning.driving import Server, server
from tests.pruning.labelled import KINDS, Case, read_cases

_GAP = re.compile(r"\((\d+) lines? left out: (\d+)-(\d+)\)")


class Spent(NamedTuple):
    """What a task took."""

    calls: int
    characters: int


def main() -> None:
    """Print a table by kind."""
    cases, found = read_cases(), defaultdict[str, list[tuple[Spent, Spent]]](list)
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as running:
        for case in cases:
            (Path(folder) / "text").write_text(case.text)
            found[case.kind].append((_without(running), _with(running, case)))
    rows = [(kind, found[kind]) for kind in KINDS] + [("all", [one for kind in KINDS for one in found[kind]])]
    sys.stdout.write(
        "| text | tasks | tokens without | with | ratio | calls without | with |\n|---|--:|--:|--:|--:|--:|--:|\n"
    )
    for name, pairs in rows:
        sys.stdout.write(f"| {name} | {len(pairs)} | {_cells(pairs)} |\n")


def _cells(pairs: Sequence[tuple[Spent, Spent]]) -> str:
    before, after = (sum(one[side].characters for one in pairs) // 4 for side in (0, 1))
    calls = [sum(one[side].calls for one in pairs) for side in (0, 1)]
    return f"{before:,} | {after:,} | {after / before:.2f} | {calls[0]} | {calls[1]}"


def _asked(running: Server, arguments: dict[str, Any]) -> tuple[str, dict[str, Any], int]:
    """Call `read`; return the text, what is said about it, and the characters of call and answer."""
    answer = running.call("read", arguments)
    blocks = answer.message["result"]["content"]
    return answer.text, answer.about, len(json.dumps(arguments)) + sum(len(block["text"]) for block in blocks)


def _without(running: Server) -> Spent:
    _, _, characters = _asked(running, {"file_path": "text", "mode": "verbose"})
    return Spent(1, characters)


def _with(running: Server, case: Case) -> Spent:
    asked = {"file_path": "text", "mode": "verbose", "context_focus_question": case.question}
    text, about, characters = _asked(running, asked)
    calls = 1
    if not about["pruning"]["applied"]:
        return Spent(calls, characters)
    gaps = [(int(found[2]), int(found[3])) for found in _GAP.finditer(text)]
    missing = {number for number in case.required if any(first <= number <= last for first, last in gaps)}
    for first, last in sorted(gaps, key=lambda gap: gap[1] - gap[0]):
        if not missing:
            break
        calls += 1
        characters += _asked(running, {"file_path": "text", "mode": "verbose", "start_line": first, "end_line": last})[
            2
        ]
        missing -= set(range(first, last + 1))
    return Spent(calls, characters)


if __name__ == "__main__":
    main()
