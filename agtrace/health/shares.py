"""Where the tokens of a session went: by turn as the log has it, by tool and by file as their results are long."""

from __future__ import annotations

from collections import Counter

from agtrace_schema.analysis import Share, TokenShares

from agtrace.health.detectors.tokens import CHARS_PER_TOKEN
from agtrace.health.facts.file_reads import files_read
from agtrace.health.history import History
from agtrace.text.lines import shown_path

LARGEST = 3
"""Shares of each kind."""


def token_shares(history: History) -> TokenShares:
    """The turns, tools and files that took the most; what results took is estimated by their characters."""
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
