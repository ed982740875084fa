"""The words of all answers about sessions, each with one meaning, for commands, tools, pages and documents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agtrace_indexer.providers.registry import AGENTS

if TYPE_CHECKING:
    from agtrace_schema.analysis import Ending
    from agtrace_schema.events import Provider

TERMS = {
    "session": "what one agent did, from one log: a main session, a fork or a continuation; an event that several "
    "share counts in one; a mere start of an agent is none",
    "sub-agent": "a session that another one started: it is part of that one, or a session if that one isn't known",
    "failed": "the result of the call is an error, by the log's flag or exit code, else by its text; a rejected or "
    "interrupted call isn't failed",
    "how it ended": "finished (the model had the last word), waiting for an answer, interrupted, abandoned (a request "
    "without an answer), cut off mid-call, ended on an error",
    "since, until": "the sessions in which something happened between them, both included; for costs and events, what "
    "happened between them",
    "day": "a day in the machine's time zone (`TZ`)",
    "cost": "a session's own in lists; with its sub-agents in `report`, `cost` and `projects`",
    "exact, partial, estimated": "all figures are in the logs; some aren't; list prices were used",
}
"""Term -> its meaning."""

ENDINGS: dict[Ending, str] = {
    "finished": "finished", "question_left": "waiting for an answer", "interrupted": "interrupted",
    "abandoned": "abandoned", "tool_left": "cut off mid-call", "error_left": "ended on an error",
    "unknown": "end unknown",
}  # fmt: skip
"""The endings of sessions in words, from best to worst."""


# -- failures ----------------------------------------------------------------------------------------


def failures_known(provider: Provider, calls: int) -> bool:
    """Whether a log of this agent with so many tool calls says how many of them failed."""
    return not calls or AGENTS[provider].logs_results


def known_failures(provider: Provider, calls: int, failed: int) -> int | None:
    """Return the number of failed calls; None if it is unknown, which isn't none."""
    return failed if failures_known(provider, calls) else None


def known_failures_of_all(providers: Iterable[Provider], failed: int) -> int | None:
    """Return the number of failed calls in sessions of these agents; None if no log of theirs tells it."""
    return failed if any(AGENTS[provider].logs_results for provider in providers) else None


# -- times -------------------------------------------------------------------------------------------

_FIRST, _AFTER_LAST = 1_262_304_000_000, 4_102_444_800_000
"""The beginnings of 2010 and 2100: no agent ran before the first, and a time after the second is from a wrong clock."""


def believable(moment: int | None) -> int:
    """Return a time in milliseconds since 1970 UTC, or 0 if no correct clock can have recorded it."""
    return moment if moment is not None and _FIRST <= moment < _AFTER_LAST else 0


def is_active_within(began: int, ended: int | None, since: int | None, until: int | None) -> bool:
    """Whether something happened in a session in a period; times are in milliseconds since 1970 UTC.

    One without a time (0) is in no period, unless none is given.
    """
    last = believable(ended) or began
    return since is until is None or (bool(began) and (since or 0) <= last and (until is None or began <= until))
