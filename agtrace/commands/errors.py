"""Which message and exit code a command ends with for each error; the texts are those of the errors themselves.

Commands don't catch errors; `explained` turns those that have an explanation into a message on stderr and an exit code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TypeVar

import click
from msgspec import Struct

from agtrace.problems import NotInstalled, NotStarted, Problem, SettingError
from agtrace.text.next_call import Hint, text_of

TROUBLE = 1
"""A command that looks for trouble found some."""

USAGE = 2
"""The command was called wrongly."""

UNREADABLE = 3
"""Data can't be read."""

_USAGE_CODES = {
    *("invalid_parameter", "invalid_cursor", "invalid_range", "invalid_event_index", "invalid_artifact_ref"),
    *("session_not_found", "ambiguous_session_prefix"),
}
"""Error codes that mean a wrong call; any other means that data can't be read."""

_NEXT_STEPS = {
    "session_not_found": "`agtrace sessions` lists the newest ids, `agtrace index` reads the logs.",
    "invalid_cursor": "Leave out --cursor to start again.",
}

Done = TypeVar("Done")


class NoIndex(Exception):
    """There is no index yet."""


class Explanation(Struct, frozen=True):
    """The message that a person reads about an error, and the exit code."""

    code: int
    message: str
    more: tuple[str, ...] = ()
    """Lines below the message."""


@contextmanager
def explained() -> Iterator[None]:
    """End the process with the explanation of an error raised in the block; an error without one passes through."""
    try:
        yield
    except Exception as error:
        found = None if _is_click_s_own(error) else _explanation(error)
        if found is None:
            raise
        fail(found.message, found.code, *found.more)


def explanation_of(code: str, message: str, hint: Hint | None, details: dict[str, Any]) -> Explanation:
    """Explain the error of an answer: ids that may be meant, and what to do next."""
    matches = (f"  {match}" for match in details.get("matches", ()))
    steps = [_NEXT_STEPS[code]] if code in _NEXT_STEPS else []
    hints = [text_of(hint or "")] if code == "index_unavailable" else []
    return Explanation(USAGE if code in _USAGE_CODES else UNREADABLE, message, (*matches, *steps, *hints))


def fail(message: str, code: int, *more: str) -> NoReturn:
    """Print an error and end the process; each of `more` is printed on a line of its own."""
    tell(message, *more)
    sys.exit(code)


def tell(sentence: str, *more: str) -> None:
    """Print a sentence on stderr, and lines below it; secrets in them are masked and line breaks removed.

    They may quote what was typed, paths, and names from logs.
    """
    from agtrace_indexer.redact import redact

    from agtrace.text.lines import unbroken

    use_rules_at_hand()
    lines = (unbroken(redact(line)) for line in (f"agtrace: {sentence}", *more))
    sys.stderr.write("".join(f"{line}\n" for line in lines))


def use_rules_at_hand() -> None:
    """Use the rules next to the index, if they can be read: they are compiled there already."""
    from agtrace_indexer.redact import UnusableRules, use

    from agtrace.settings.environment import data_dir

    with suppress(UnusableRules, OSError):
        use(data_dir())


def patiently(work: Callable[[float], Done], seconds: float) -> Done:
    """Call `work`, which writes the index, with the seconds to wait for another writer; say so before a long wait."""
    from agtrace_indexer.index.opening import Busy

    try:
        return work(1)
    except Busy:
        tell("another agtrace is indexing: waiting for it")
    return work(seconds)


def _is_click_s_own(error: Exception) -> bool:
    """Whether Click itself prints this error and exits; secrets in what was typed are masked."""
    if isinstance(error, click.UsageError):
        from agtrace_indexer.redact import redact

        use_rules_at_hand()
        vars(error)["message"] = redact(error.message)
    return isinstance(error, (click.ClickException, click.Abort, click.exceptions.Exit))


def _explanation(error: Exception) -> Explanation | None:
    if isinstance(error, Problem):
        return explanation_of(error.code, error.message, error.hint, error.details)
    if isinstance(error, SettingError):
        first, *more = str(error).split("\n")
        return Explanation(USAGE, first, tuple(more))
    if isinstance(error, NotStarted):
        return Explanation(error.exit_code, str(error))
    if isinstance(error, NotInstalled):
        return Explanation(TROUBLE, str(error))
    if isinstance(error, NoIndex):
        return Explanation(UNREADABLE, "there is no index yet: run `agtrace index`")
    return _explanation_of_indexing(error)


def _explanation_of_indexing(error: Exception) -> Explanation | None:
    import sqlite3

    from agtrace_indexer.index.catalog import NotRebuilt
    from agtrace_indexer.index.opening import Busy
    from agtrace_indexer.index.roots import UnknownRoot
    from agtrace_indexer.redact import UnusableRules
    from agtrace_team.problems import TeamProblem

    from agtrace.upkeep.client_settings import Refused

    if isinstance(error, Refused):
        return Explanation(UNREADABLE, f"{error}; nothing was changed", error.more)
    if isinstance(error, UnknownRoot):
        return Explanation(USAGE, f"{error} is not kept fresh: `agtrace roots` lists what is")
    for kinds, code in ((UnusableRules, USAGE), (TeamProblem, TROUBLE), ((Busy, NotRebuilt), UNREADABLE)):
        if isinstance(error, kinds):
            return Explanation(code, str(error))
    if not isinstance(error, (sqlite3.Error, OSError)):
        return None
    from agtrace.index.trouble import explained
    from agtrace.settings.environment import data_dir

    problem = explained(error, data_dir() / "index.sqlite3")  # why it can't be opened, read or written
    return Explanation(UNREADABLE, problem.message, (problem.hint or "",))
