"""Where the tokens of a session went: by turn from the log, by tool and file estimated from the length of results."""

from __future__ import annotations

from collections import Counter

from agtrace_schema.analysis import Share, TokenShares

from agtrace.health.detectors.tokens import CHARS_PER_TOKEN
from agtrace.health.facts.file_reads import files_read
from agtrace.health.history import History
from agtrace.text.lines import shown_path

LARGEST = 3
"""The most shares of each kind."""


def token_shares(history: History) -> TokenShares:
    """Return the turns, tools and files that took the most tokens; those of results are estimated from characters."""
    turns: Counter[str] = Counter()
    tools: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for usage in history.usages:
        if usage.turn is not None:
            turns[str(usage.turn)] += usage.total
    for call in history.calls:
        if call.result_event is None:
            continue
        tools[call.tool] += call.result_chars
        read = files_read(call)
        for path in read:
            files[path] += call.result_chars // len(read)
    return TokenShares(
        turns=_largest(turns), tools=_largest(tools, CHARS_PER_TOKEN), files=_largest(files, CHARS_PER_TOKEN)
    )


def _largest(found: Counter[str], per_token: int = 1) -> list[Share]:
    largest = sorted(found.items(), key=lambda share: (-share[1], share[0]))[:LARGEST]
    return [Share(name=shown_path(name), tokens=amount // per_token) for name, amount in largest if amount >= per_token]
