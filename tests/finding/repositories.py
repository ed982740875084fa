"""`python -m tests.finding.repositories [LOGS]`: the folders of the real logs, joined to repositories, rightly or not.

The truth was read from the names of the logs' folders (`<owner>+<repository>`) and from the logs, by hand: the folders
that belong together, by the beginnings of their hashes; all others are repositories of their own.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from agtrace_indexer.redact import redact

from tests.agtrace.asking import Asker, query
from tests.conftest import LOGS
from tests.finding.ranking import indexed

TOGETHER: dict[str, tuple[str, ...]] = {
    "cli": ("7e8989f7", "41d597d6", "9beecfae", "f0c8ea0c", "f42b49aa", "c5e66485", "2517dc10"),
    "git-sync": ("cc3f0367", "34ab2609", "82880444", "3fbc3339"),
    "skills": ("df27ee86", "516479dd", "38b0c55e", "497e6d3c"),
    "entire-graph, once entire-sem": ("837e9515", "7c2a1122"),
    "claude-code-log": ("876ff361", "8c676975", "89949733"),
    "agent-sample": ("55bddef6", "9126edde"),
    "polylogue": ("851305e3", "65c09cfb"),
}

_FOLDERS = """
SELECT substr(p.hash, 1, 8), f.repository_id, count(*) FROM session s JOIN project p ON p.id = s.project_id
JOIN repository_folder f ON f.project_id = p.id WHERE s.kind != 'warmup' GROUP BY p.id ORDER BY p.hash
"""


class Joined(NamedTuple):
    """How folders were joined."""

    groups: int
    truth: int
    """How many groups there are in truth."""
    wrong: list[tuple[str, str]]
    """Folders that were joined though they are of two repositories."""
    in_group: int
    """Sessions in the group that most sessions of their repository are in."""
    sessions: int


def joined(asker: Asker) -> Joined:
    """Compare the repositories of an index with the truth."""
    truth = {hash: name for name, hashes in TOGETHER.items() for hash in hashes}
    found: list[tuple[str, int, int]] = [(hash, group, count) for hash, group, count in query(asker, _FOLDERS)]
    groups: dict[int, list[str]] = {}
    sizes: dict[str, Counter[int]] = {}
    for hash, group, count in found:
        groups.setdefault(group, []).append(hash)
        sizes.setdefault(truth.get(hash, hash), Counter())[group] += count
    pairs = (pair for members in groups.values() for pair in combinations(members, 2))
    return Joined(
        len(groups),
        len(sizes),
        [(one, other) for one, other in pairs if truth.get(one, one) != truth.get(other, other)],
        sum(max(counts.values()) for counts in sizes.values()),
        sum(count for _, _, count in found),
    )


def main(arguments: list[str]) -> None:
    """Print the comparison."""
    redact("compile the rules")
    with tempfile.TemporaryDirectory() as folder:
        found = joined(indexed(Path(folder), Path(arguments[0]) if arguments else LOGS))
    sys.stdout.write(
        f"{found.groups} groups (in truth {found.truth}); {len(found.wrong)} pairs of folders joined wrongly "
        f"{found.wrong or ''}; {found.in_group} of {found.sessions} sessions in their group "
        f"({found.in_group / found.sessions:.1%})\n"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
