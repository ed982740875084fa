"""Why a call failed: the line of its result that names the cause."""

from __future__ import annotations

from collections import defaultdict

from agtrace_indexer.events.shell import parts
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import command_of
from agtrace.health.facts.checks import is_check
from agtrace.health.history import Call, History, derived
from agtrace.text.failing_lines import failing_lines_in as failures_in
from agtrace.text.signatures import Signature, signatures_in

_NUMBER = later(r"[\d.]+")
_BEFORE_ERROR = later(r"^\[[^\]\n]{1,120}\] ?")
WELL = later(r"(?i)\bok\b(?!.*\b(?:not|failed|error)\b)|\b[1-9]\d* passed\b(?!.*\b[1-9]\d* (?:failed|errors?)\b)")
"""What is printed when all goes well."""
_FEWEST_CHARS = 12
"""A shorter line stands in many outputs by chance."""


def cause_of(call: Call, history: History) -> Signature | None:
    """Return the most telling line of a failed call, surely an error's if it has one; None if it says nothing.

    A line that the same program also prints when all goes well is no cause.
    """
    known = _causes(history)
    if call.event_index not in known:
        well = _printed_when_well(history)
        harmless = {line for program in _programs(call) for line in well[program]}
        told = [
            one for one in signatures_in(call.result) if _bare(one.line) not in harmless and not WELL.search(one.line)
        ]
        sure = next((one for one in told if one.sure), None)
        test = _failed_test(call, harmless)
        first = sure if "git commit" not in (command_of(call) or "") else test  # its hooks' passing tests print errors
        known[call.event_index] = first or sure or test or (told[0] if told else None)
    return known[call.event_index]


def _failed_test(call: Call, harmless: set[str]) -> Signature | None:
    """Return the first failed test that a result names, what it expected, or what its runner sums up."""
    lines = call.result.splitlines()
    failing = [(told.kind, lines[place].strip()) for place, told in failures_in(lines)]
    failing = [(kind, line) for kind, line in failing if _bare(line) not in harmless]
    named = [
        line
        for kind in ("test", "detail", "verdict")
        for it, line in failing
        if it == kind and _bare(line) not in harmless
    ]
    return Signature(_NUMBER.sub("#", named[0]), named[0]) if named else None


@derived
def _causes(_history: History) -> dict[int, Signature | None]:
    """Return the causes that were asked for, by the event of the call."""
    return {}


@derived
def _printed_when_well(history: History) -> defaultdict[str, set[str]]:
    """Return the lines that commands printed that went well, by their program, if the session has failures of it."""
    result: defaultdict[str, set[str]] = defaultdict(set)
    failing = {program for call in history.calls if call.failed for program in _programs(call)}
    for call in history.calls:
        for program in failing.intersection(_programs(call)) if not call.failed and command_of(call) else ():
            result[program].update(
                _bare(line) for line in map(str.strip, call.result.splitlines()) if len(line) >= _FEWEST_CHARS
            )
    return result


def _bare(line: str) -> str:
    """Return a line without its numbers, and without what stands before the word that says that it is an error."""
    return _NUMBER.sub("#", _BEFORE_ERROR.sub("", line, count=1))


def _programs(call: Call) -> list[str]:
    """Return the program that a call runs, the one after `cd`, or its tool; and `checks` if it runs some, as a commit's
    hooks do.
    """
    command = command_of(call) or ""
    programs = (part.program for part in parts(command))
    own = next((program for program in programs if program not in ("cd", "export", "set", "")), call.tool)
    return [own, "checks"] if is_check(call) or "git commit" in command else [own]
