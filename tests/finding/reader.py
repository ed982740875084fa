"""`python -m tests.finding.reader [LOGS]`: the questions, answered by a reader without foresight.

He plays the obvious next call: he searches the words of a question, or makes the calls that it comes with (`plan`:
where descriptions of tools name a better one than searching, such as to sort, to count, or to look up a commit), then
follows hints. He is done when everything that the answer rests on (`seen`, or else `must`) has been shown to him. He
understands nothing, so what he needs is not what a model needs: he tells changes of the tools apart, for nothing, in a
few seconds.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agtrace_indexer.redact import redact

from tests.agtrace.asking import Asker, call_in
from tests.conftest import LOGS
from tests.finding.ranking import indexed
from tests.finding.transcripts import QUESTIONS, Investigation, is_found, table

MOST_CALLS = 5
"""The calls after which he gives up."""

_WORD = re.compile(r"[\w./'-]+")
_ASKING = frozenset(
    """
    a across added after all although an and answer as asked at be been before but by could did do does done each for
    from had has have how i if in into is it its just made make many me more most no not of on one only or our out
    over recorded said say says session sessions set should so some someone still than that the their them then there
    these they this those though to together tried up us used was we were what when where which who why will with
    worked would you
    """.split()  # noqa: SIM905
)
"""Words of questions, which nobody would search for."""


def investigate(asker: Asker, question: Mapping[str, Any]) -> Investigation:
    """Answer a question, or give up."""
    plan = [(tool, arguments) for tool, arguments in question.get("plan", ())]
    following = plan.pop(0) if plan else ("search_event_previews", {"query": words(question["question"])})
    shown, sizes, right = "", [], False
    while not right and following is not None and len(sizes) < MOST_CALLS:
        tool, arguments = following
        given = asker.anything(tool, **arguments)
        shown += given.text
        sizes.append(len(given.text.encode()))
        right = all(is_found(one, shown) for one in question.get("seen", question["must"]))
        hint = given.value.get("hint")
        following = plan.pop(0) if plan else call_in(hint) if hint else None
    return Investigation(question["id"], question["kind"], right, len(sizes), sum(sizes))


def words(question: str) -> str:
    """Return what one would search for to answer a question."""
    return " ".join(word.strip(".'") for word in _WORD.findall(question) if word.lower().strip(".'") not in _ASKING)


def main(arguments: list[str]) -> None:
    """Print what he needed."""
    redact("compile the rules")
    with tempfile.TemporaryDirectory() as folder:
        asker = indexed(Path(folder), Path(arguments[0]) if arguments else LOGS)
        found = [investigate(asker, question) for question in QUESTIONS]
    for one in found:
        _print(
            f"{one.question} {one.kind:8} {'' if one.right else 'not '}answered: {one.calls} calls, {one.bytes:,} bytes"
        )
    _print(table(found))


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
