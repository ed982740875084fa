"""What a command sets out to do that would be a landmark, and what its end would say of that."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from agtrace_schema.landmarks import LandmarkKind
from agtrace_schema.patterns import later

from agtrace_indexer.events.clues import FORGES
from agtrace_indexer.events.shell import Part, parts
from agtrace_indexer.landmarks import git, programs
from agtrace_indexer.landmarks.wrappers import unwrapped

_MOST = 100
"""The attempts of a command that are looked for in its output: nobody runs so many checks in one command."""

_LONGEST = 60_000
"""The most characters of a command that is looked into: a description of a pull request is long."""

_SHORT = 500

_WORD = later(r"[\w.+-]+")
_DOCUMENT = r"<<-?\s*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)(?P<rest>[^\n]*)\n(?P<body>.*?)\n[^\S\n]*(?P=end)\b"
_MESSAGE = later(r"\$\(\s*cat\s*" + _DOCUMENT + r"\s*\)", re.DOTALL)
_GIVEN = later(r"(?:(-[a-z]*)F|--file)[ =]?-\s+" + _DOCUMENT, re.DOTALL)
_VALUE = later(r"(?<==)\$\((?:pwd|date|mktemp|realpath|dirname|git rev-parse)\b[^()\n]*\)")
"""What an assignment before a program is given; it does nothing of the kind."""

_HARMLESS = frozenset(
    """
    [ : . builtin cat cd cp date echo env eval export head ls mkdir mv popd printenv printf pushd pwd rm set sleep
    source tail touch true type ulimit umask unset wc which
    """.split()  # noqa: SIM905
)
"""Programs that hardly ever fail: where one of them stands before a test with `&&`, the test is what failed."""
_HARMLESS_OF_GIT = frozenset({"add", "branch", "diff", "fetch", "log", "rev-parse", "show", "status"})

_LEFT_BEHIND = later(r"[^&]&\s*\Z")
_SHOWN_STATUS = later(r"([^$\n]{0,60})\$\{?\?\}?")


class Place(NamedTuple):
    """Where an attempt stands in its command, and so what the end of the command says of it."""

    succeeds: bool
    """Whether the command can only succeed if this did."""
    fails: bool
    """Whether the command can only fail because this did."""
    runs: bool
    """Whether it runs however the command ends."""
    runs_if_well: bool
    """Whether it ran if the command succeeded."""
    shown: str | None = None
    """The text before its exit code if the command prints that: `exit: ` of `pytest; echo "exit: $?"`."""
    behind: bool = False
    """Whether it runs only if the attempt before it succeeded."""


class Attempt(NamedTuple):
    """Something that a command sets out to do. JSON values only: it waits for its result between two runs."""

    kind: LandmarkKind
    how: str
    """How it is recognized in the output: the subcommand of git or of a forge; empty for tests and builds."""
    name: str | None
    detail: str | None
    place: Place


def attempts(command: str) -> tuple[Attempt, ...]:
    """Return what a command sets out to do, in order; short commands are remembered, as agents repeat them."""
    return _remembered(command) if len(command) <= _SHORT else _attempts(command)


def _attempts(command: str) -> tuple[Attempt, ...]:
    words = frozenset(_WORD.findall(command))
    if not (git.is_meant(words) or programs.is_meant(words, command)):
        return ()  # most set out to do nothing of the kind, and aren't taken apart
    plain = _MESSAGE.sub(_first_line, command) if "<<" in command else command
    if "<<" in plain:  # a message that is given on standard input becomes a word
        plain = _GIVEN.sub(lambda given: f'{given[1] or "-"}m "{_first_line(given)}"{given["rest"]}', plain)
    plain = _VALUE.sub("value", plain) if "=$(" in plain else plain
    found = parts(plain, _LONGEST)
    told = ((number, _told(part)) for number, part in enumerate(found))
    meant = dict(islice(((number, one) for number, one in told if one is not None), _MOST))
    return tuple(Attempt(*told, _place(number, found, meant, plain)) for number, told in meant.items())


_remembered = lru_cache(maxsize=2_048)(_attempts)


def stored(found: Sequence[Attempt]) -> list[list[Any]]:
    """Return attempts as JSON values."""
    return [[str(kind), how, name, detail, [*place]] for kind, how, name, detail, place in found]


def restored(values: Sequence[Sequence[Any]]) -> list[Attempt]:
    """Return the attempts that `stored` wrote."""
    return [Attempt(LandmarkKind(kind), how, name, detail, Place(*place)) for kind, how, name, detail, place in values]


def _told(part: Part) -> git.Told | None:
    words = unwrapped(part.words)
    words = words[words[:2] == ("rtk", "git") :]  # which shortens what git prints
    if not words:
        return None
    if words[0] == "git":
        return git.attempted(words[1:])
    if words[0] in FORGES:
        return git.asked_of_forge(words)
    task = programs.task_of(words)
    return task and (task.kind, "", task.name, None)


def _first_line(message: re.Match[str]) -> str:
    """Return the first line of a here-document that is given as a word, without what a shell would read in it."""
    line = next((line.strip() for line in message["body"].split("\n") if line.strip()), "")
    return git.QUOTING.sub("", line)


def _place(number: int, found: Sequence[Part], meant: Collection[int], command: str) -> Place:
    part = found[number]
    last = max((other for other in meant if other < number), default=None)
    after = [other for other in found[number + 1 :] if not other.substituted]
    before = [other for other in found[:number] if not other.substituted]
    piped = bool(after) and after[0].after in ("|", "|&")
    left_behind = _LEFT_BEHIND.search(command) is not None  # the shell doesn't wait for it
    leads = all(other.after in ("&&", "|", "|&") for other in after) and not (part.substituted or left_behind)
    chain = _chain(part, before)
    succeeds = leads and chain is not None and (not piped or "pipefail" in command)
    certain = chain is not None and all(map(_is_harmless, chain))
    alone = all(_is_harmless(other) or other.after in ("|", "|&") for other in after)
    return Place(
        succeeds=succeeds,
        fails=succeeds and certain and alone,
        runs=certain,
        runs_if_well=certain or (leads and chain is not None),
        shown=None if piped else _shown_status(after),
        behind=last is not None and any(other is found[last] for other in chain or ()),
    )


def _chain(part: Part, before: Sequence[Part]) -> list[Part] | None:
    """Return the parts that must succeed before one runs; None if it only runs where another fails (`||`)."""
    chain: list[Part] = []
    operator = part.after
    for other in reversed(before):
        if operator in ("||", "&"):
            return None if operator == "||" else chain
        if operator not in ("&&", "|", "|&"):
            return chain
        if operator == "&&":
            chain.append(other)
        operator = other.after
    return chain


def _is_harmless(part: Part) -> bool:
    if not part.words:
        return True
    return part.program in _HARMLESS or (part.program == "git" and git.subcommand(part.words[1:]) in _HARMLESS_OF_GIT)


def _shown_status(after: Sequence[Part]) -> str | None:
    """Return the text that an `echo` right behind a part puts before its exit code."""
    if not after or after[0].program not in ("echo", "printf"):
        return None
    match = _SHOWN_STATUS.match(" ".join(word for word in after[0].words[1:] if not re.fullmatch(r"-[neE]+", word)))
    return match and match[1].replace("\\n", "").lstrip("\n")
