"""What a session learned: each failed call, and the call that first succeeded at the same thing.

A fix is what was done differently: another command of the same program, a command or a change in between, or a look
into the file first. Failures of the product's own tests are no experience: they are what the work was about; those of
linters and formatters are if a command of theirs put it right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agtrace_indexer.events.shell import Part, parts
from agtrace_indexer.landmarks.wrappers import unwrapped
from agtrace_schema.events import Outcome
from agtrace_schema.patterns import later

from agtrace.health.examination import Experience, How
from agtrace.health.facts.actions import command_of, is_passed_over, is_poll, only_reads
from agtrace.health.facts.checks import OF_THE_MACHINE, is_check
from agtrace.health.history import Call, History, Usage
from agtrace.text.lines import one_line
from agtrace.text.signatures import signature_of

_AHEAD = 25
"""The most calls after a failure among which the one that succeeded is looked for."""
_LONGEST = 160
_SAME = 2 / 3
"""The share of a command's words that another one must have to try the same."""
_VERSION = "0123456789."
_ABSENT = later(r"command not found|not recognized as")
_MOST_MS = 30 * 60_000

_FIXER = later(
    r"--(?:fix|write)\b|[\w-]:(?:fix|format|fmt)\b|\b(?:fmt|format)\b(?!.*--(?:check|diff))|\b(?:gofmt|goimports) -\w*w"
)
"""A command that puts right what a linter or a formatter complains about."""

_CUT = later(r"(?:\s+2>&1)?\s*\|\s*(?:head|tail)\b[^|;&\n]*\Z|\s+2>&1\Z")
"""What shows only a part of an output, or its errors too: no part of what a command does."""

_SHELL_ERRORS = later(r"(?:\(eval\)|bash|zsh|sh): (?:line \d+: )?")


def experiences(history: History) -> list[Experience]:
    """Return what a session experienced, in file order; the same error again and again is one experience."""
    calls = history.calls
    usages = [usage for usage in history.usages if usage.total]
    told: dict[tuple[str, str], tuple[int, int]] = {}
    found: list[Experience] = []
    for place, call in enumerate(calls):
        if not call.failed or is_passed_over(call) or is_poll(call) or _only_looks(call):
            continue
        signature = signature_of(call.result)
        what = _what(call)
        if signature is None or what is None:
            continue
        solved = _solved(calls, place)
        if is_check(call) and not OF_THE_MACHINE.search(call.result) and not _fixers(calls, place, solved):
            continue
        key = what, signature.key
        until, number = told.get(key, (-1, 0))
        if until >= place:
            found[number] = found[number]._replace(times=found[number].times + 1)
            continue
        told[key] = (place + _AHEAD if solved is None else solved), len(found)
        found.append(_experience(calls, usages, place, solved, key, signature.line))
    return found


def _only_looks(call: Call) -> bool:
    """Whether a command only looked for something that wasn't there: looking elsewhere is no fix."""
    return command_of(call) is not None and only_reads(call) and not _ABSENT.search(call.result)


def _fixers(calls: Sequence[Call], place: int, solved: int | None) -> list[Call]:
    """Return the commands after a failure, up to the one that succeeded, that put right what they complain about."""
    found = [] if solved is None else calls[place + 1 : solved + 1]
    return [call for call in found if call.outcome is Outcome.OK and _FIXER.search(command_of(call) or "")]


def _what(call: Call) -> str | None:
    """Return what a call tried, equal for all that try the same: a program with its subcommand, or a tool."""
    command = command_of(call)
    if command is None:
        return call.tool
    part = _main(command)
    if part is None:
        return None
    words = [word for word in unwrapped(part.words) if not word.startswith("-") and "=" not in word]
    named = words[:2] if len(words) > 1 and re.fullmatch(r"[a-z][\w:-]*", words[1]) else words[:1]
    return " ".join(named) or None


def _main(command: str) -> Part | None:
    """Return the part of a command that did the work: the first one that doesn't only prepare it, as `cd` does."""
    found = [part for part in parts(command) if not part.substituted and part.words]
    for part in found:
        if part.program not in ("cd", "export", "set", "source", "sleep", "echo", "true", "env"):
            return part
    return None


def _solved(calls: Sequence[Call], place: int) -> int | None:
    """Return the place of the first call that succeeded at the same thing."""
    failed = calls[place]
    what, file = _what(failed), failed.writes or failed.reads
    for solved in range(place + 1, min(place + 1 + _AHEAD, len(calls))):
        call = calls[solved]
        if call.outcome is not Outcome.OK:
            continue
        if command_of(failed) is not None and _tries_the_same(failed, call):
            return solved
        if command_of(failed) is None and call.tool == what and (not file or file == (call.writes or call.reads)):
            return solved
    return None


def _tries_the_same(failed: Call, call: Call) -> bool:
    command = command_of(call)
    if command is None:
        return False
    wanted, given = _words(command_of(failed) or ""), _words(command)
    if _what(call) == _what(failed):
        return len(wanted & given) >= _SAME * len(wanted)
    return _is_another_name(command_of(failed) or "", command)


def _is_another_name(failed: str, command: str) -> bool:
    """Whether a command is another one but for the name of its program, which has a version: `python`, `python3`."""
    one, other = _main(failed), _main(command)
    if one is None or other is None:
        return False
    (program, *rest), (another, *others) = unwrapped(one.words) or [""], unwrapped(other.words) or [""]
    return bool(rest) and rest == others and program.rstrip(_VERSION) == another.rstrip(_VERSION) != ""


def _words(command: str) -> set[str]:
    """Return the words of a command that aren't options: with other options, it tries the same."""
    return {word for part in parts(_CUT.sub("", command)) for word in part.words if not word.startswith("-")}


def _experience(
    calls: Sequence[Call], usages: Sequence[Usage], place: int, solved: int | None, key: tuple[str, str], line: str
) -> Experience:
    failed = calls[place]
    how, worked = (None, None) if solved is None else _difference(calls, place, solved)
    until = failed if solved is None else calls[solved]
    last = until.evidence
    took = max((until.answered_at or until.at) - failed.at, 0) if failed.at else 0
    spent = sum(usage.total for usage in usages if failed.event_index < usage.event_index <= last)
    return Experience(
        what=key[0],
        error=key[1],
        line=one_line(_SHELL_ERRORS.sub("", line), _LONGEST),
        tried=_shown(failed),
        failed_event=failed.evidence,
        at=failed.at,
        worked_event=None if solved is None else calls[solved].event_index,
        how=how,
        worked=worked,
        milliseconds=min(took, _MOST_MS),
        tokens=spent,
    )


def _difference(calls: Sequence[Call], place: int, solved: int) -> tuple[How | None, str | None]:
    """Return what was different when it worked; None if nothing was."""
    failed, worked = calls[place], calls[solved]
    between = [call for call in calls[place + 1 : solved] if call.outcome is Outcome.OK]
    if command_of(failed) is None:
        files = {*failed.writes, *failed.reads}
        if any(call.outcome is Outcome.OK and set(call.reads) & files for call in calls[:place]):
            return None, None  # it had been looked at: looking once more isn't what was missing
        looked = [call for call in between if set(call.reads) & files]
        return ("look", looked[0].tool) if looked else (None, None)
    if is_check(failed) and (fixers := _fixers(calls, place, solved)):
        return "before", _shown(fixers[-1])
    if command_of(worked) != command_of(failed):
        return "instead", _shown(worked)
    prepared = [
        call for call in between if command_of(call) is not None and not only_reads(call) and not is_check(call)
    ]
    return ("before", _shown(prepared[-1])) if len(prepared) == 1 else (None, None)


def _shown(call: Call) -> str:
    return one_line(_CUT.sub("", command_of(call) or call.tool), _LONGEST)
