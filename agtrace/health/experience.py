"""What a session learned: each failed command, and what made it work.

That is the same command, changed: without a wrapper or with one, with another option, under another name of its
program; or an installer or a formatter before it. Failures of the product's own tests are no experience: they are what
the work was about. Nothing that destroys anything is a remedy.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from agtrace_indexer.events.shell import Part, parts
from agtrace_indexer.landmarks.wrappers import unwrapped
from agtrace_schema.events import Outcome
from agtrace_schema.patterns import later

from agtrace.health.examination import Experience, How
from agtrace.health.facts.actions import command_of, is_passed_over, is_poll, only_reads
from agtrace.health.facts.causes import cause_of
from agtrace.health.facts.checks import OF_THE_MACHINE, is_check
from agtrace.health.history import Call, History
from agtrace.text.lines import one_line

_AHEAD = 25
"""The most calls after a failure among which the one that succeeded is looked for."""
_LONGEST = 160
_MOST_CHANGED = 3
"""The most words by which a command may differ from the one that failed."""
_VERSION = "0123456789."
_ABSENT = later(r"command not found|not recognized as")
_MOST_MS = 30 * 60_000
_RUNS_TASKS = frozenset({"run", "exec", "x", "dlx", "-m"})
_PREPARING = frozenset({"cd", "export", "set", "source", "sleep", "echo", "true", "env", "."})

_FILE = later(r"[\"']?[\w.@-]*(?:/[\w.@\[\]-]+)+\.\w+[\"']?(?:\.\.)?")
_WRITERS = frozenset("git gh cat sed echo mkdir chmod bash sh cmd cp mv ls touch".split())  # noqa: SIM905
_WRAPPER = later(r"[a-z][\w ./-]*$")
_LINTS = later(r"\b(?:check|lint|format|fmt|biome|eslint|prettier|ruff|oxlint)\b(?!:types)")

_FORMATTER = later(
    r"--(?:fix|write)\b|[\w-]:(?:fix|format|fmt)\b|\b(?:fmt|format)\b(?!:check|.*--(?:check|diff))"
    r"|\b(?:gofmt|goimports) -\w*w"
)
_INSTALLER = later(
    r"\b(?:npm|pnpm|yarn|bun) (?:ci|i|install|add)\b|\bpip3? install\b|\buv (?:sync|add|pip install)\b"
    r"|\bcorepack enable\b"
    r"|\b(?:apt|apt-get|brew|bundle|cargo|composer|dnf|go|mise|playwright|poetry|pipx) (?:install|add|fetch|get|mod)\b"
    r"|\bdotnet restore\b|\bterraform init\b"
)
_DESTROYS = later(
    r"\brm\b|(?<!\w)(?:--force\S*|-f|--hard|--no-verify|--allow-empty\S*|-D)(?!\w)"
    r"|\b(?:drop|delete|destroy|prune|truncate|kill\w*|revert)\b"
    r"|\bgit (?:stash|reset|checkout|clean|restore)\b"
)
"""What is never advised, whatever it made work."""

_CUT = later(r"(?:\s+2>&1)?\s*\|\s*(?:head|tail)\b[^|;&\n]*\Z|\s+2>&1\Z")
"""What shows only a part of an output, or its errors too: no part of what a command does."""

_SHELL_ERRORS = later(r"(?:\(eval\)|(?:/bin/)?(?:bash|zsh|sh)): ?(?:line \d+: |\d+: ?)?")


_NO_FOLDER = later(r"\bcd:")
"""A command was run in the wrong place, which is another one each time."""


class _Remedy(NamedTuple):
    place: int
    """Of the call that succeeded."""
    how: How
    worked: str
    way: str


def experiences(history: History) -> list[Experience]:
    """Return what a session experienced, in file order; the same error again and again is one experience."""
    calls = history.calls
    usages = [usage for usage in history.usages if usage.total]
    told: dict[tuple[str, str], tuple[int, int]] = {}
    found: list[Experience] = []
    for place, call in enumerate(calls):
        if not call.failed or is_passed_over(call) or is_poll(call) or _only_looks(call):
            continue
        what, cause = _what(call), cause_of(call, history)
        if what is None or cause is None or _NO_FOLDER.search(cause.line):
            continue
        remedy = _remedy(calls, place)
        if is_check(call) and not OF_THE_MACHINE.search(call.result) and (remedy is None or remedy.how != "before"):
            continue
        key = what, cause.key
        until, number = told.get(key, (-1, 0))
        if until >= place:
            found[number] = found[number]._replace(times=found[number].times + 1)
            continue
        told[key] = (place + _AHEAD if remedy is None else remedy.place), len(found)
        until_call = call if remedy is None else calls[remedy.place]
        took = max((until_call.answered_at or until_call.at) - call.at, 0) if call.at and history.timed else 0
        found.append(
            Experience(
                what=what,
                error=cause.key,
                line=one_line(_SHELL_ERRORS.sub("", cause.line), _LONGEST),
                tried=_shown(call),
                failed_event=call.evidence,
                at=call.at,
                worked_event=None if remedy is None else until_call.event_index,
                how=None if remedy is None else remedy.how,
                worked=None if remedy is None else remedy.worked,
                way=None if remedy is None else remedy.way,
                milliseconds=min(took, _MOST_MS),
                tokens=sum(
                    usage.total for usage in usages if call.event_index < usage.event_index <= until_call.evidence
                ),
            )
        )
    return found


def _only_looks(call: Call) -> bool:
    """Whether a command only looked for something that wasn't there: looking elsewhere is no fix."""
    return command_of(call) is not None and only_reads(call) and not _ABSENT.search(call.result)


def _main(command: str) -> Part | None:
    """Return the part of a command that did the work: the first one that doesn't only prepare it, as `cd` does."""
    found = [part for part in parts(_CUT.sub("", command)) if not part.substituted and part.words]
    return next((part for part in found if part.program not in _PREPARING), None)


def _what(call: Call) -> str | None:
    """Return what a command tried, equal for all that try the same: a program with its subcommand."""
    part = _main(command_of(call) or "")
    return None if part is None else " ".join(_naming_words(unwrapped(part.words))) or None


def _naming_words(words: Sequence[str]) -> list[str]:
    """Return the words that name what is done: the program, its subcommand, the task that it runs."""
    named = [word for word in words if not word.startswith("-") and "=" not in word]
    if len(named) > 1 and not re.fullmatch(r"[a-z][\w:-]*", named[1]):
        return named[:1]
    return named[: 3 if len(named) > 1 and named[1] in _RUNS_TASKS else 2]


def _remedy(calls: Sequence[Call], place: int) -> _Remedy | None:
    """Return what first made the command work that failed at this place."""
    failed = calls[place]
    command = _CUT.sub("", command_of(failed) or "")
    helped, edited = None, False
    for number in range(place + 1, min(place + 1 + _AHEAD, len(calls))):
        call = calls[number]
        then = _CUT.sub("", command_of(call) or "")
        edited = edited or bool(call.writes)
        if call.outcome is not Outcome.OK or not then or _DESTROYS.search(then):
            continue
        part = _main(then)
        said = " ".join(part.words) if part is not None and part.program not in _WRITERS else ""
        if f"{command} " not in f"{then} " and (_INSTALLER.search(said) or (_FORMATTER.search(said) and not edited)):
            helped = call
        if then == command and helped is not None and (_formats(failed, helped) or not _mends(helped)):
            return _before(number, helped)
        if way := _difference(command, then):
            return _Remedy(number, "instead", _shown(call), way)
    return _before(calls.index(helped), helped) if helped is not None and _formats(failed, helped) else None


def _formats(failed: Call, helped: Call) -> bool:
    """Whether a command puts right what another one complained of, so that this needn't be run again."""
    return _mends(helped) and _LINTS.search(_what(failed) or "") is not None


def _mends(helped: Call) -> bool:
    return _FORMATTER.search(command_of(helped) or "") is not None


def _before(place: int, helped: Call) -> _Remedy:
    """Return a command that was run first as a remedy: without the files that it was given."""
    shown = _shown(helped)
    without_files = " ".join(word for word in shown.split() if not _FILE.fullmatch(word))
    return _Remedy(place, "before", without_files, _what(helped) or shown)


def _difference(failed: str, worked: str) -> str | None:
    """Return what of a command was changed; None if it isn't the same one, or nothing was."""
    one, other = _main(failed), _main(worked)
    if one is None or other is None or failed == worked:
        return None
    tried, given = list(one.words), list(other.words)
    if tried == given:
        before = _set_up(worked) - _set_up(failed)
        return f"after {min(before)}" if before else None
    for longer, shorter, sign in ((tried, given, "without"), (given, tried, "with")):
        for most in range(1, min(len(longer), _MOST_CHANGED + 1)):
            same = _naming_words(longer[most:]) == _naming_words(shorter) and longer[most] == shorter[0]
            if same and len(shorter) > 1 and longer[0] not in _WRITERS and _WRAPPER.match(" ".join(longer[:most])):
                return f"{sign} {' '.join(longer[:most])}"
    name, another = unwrapped(one.words), unwrapped(other.words)
    if name[1:] == another[1:] and name[:1] != another[:1]:
        same = bool(name[1:]) and name[0].rstrip(_VERSION) == another[0].rstrip(_VERSION) != ""
        return f"{name[0]} as {another[0]}" if same else None
    if _naming_words(name) != _naming_words(another):
        return None
    changed = [
        (tried[a:b], given[c:d])
        for kind, a, b, c, d in SequenceMatcher(None, tried, given, autojunk=False).get_opcodes()
        if kind != "equal"
    ]
    if sum(max(len(gone), len(new)) for gone, new in changed) > _MOST_CHANGED or not changed:
        return None
    return "; ".join(f"{' '.join(gone)} -> {' '.join(new)}" for gone, new in changed)


def _set_up(command: str) -> set[str]:
    """Return what a command sets up in its shell first."""
    return {" ".join(part.words) for part in parts(command) if part.program in ("export", "source", ".")}


def _shown(call: Call) -> str:
    return one_line(_CUT.sub("", command_of(call) or call.tool), _LONGEST)
