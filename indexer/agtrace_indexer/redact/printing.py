"""Commands that print a secret, such as `pass show`: their output is masked as a whole.

They are data, in `printers.txt`: a line has the names of programs and a pattern for their arguments, with one
blank between them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from agtrace_schema.patterns import later

from agtrace_indexer.redact.scanner import compiled

KIND = "printed-secret"
PRINTED = f"[redacted: {KIND}]"
"""The mask of an output."""
_LONGEST = 4000
"""The most characters of a command that are looked at."""
_NAME = later(r"[\w-]+")
_BLANKS = later(r"(?:[ \t]|\\\r?\n)+")
_TOKEN = later(r"'[^']*'?|\"(?:[^\"\\]|\\.)*\"?|\$\(|&&|\|\||[;|\n()`]|[^'\"$;|\n()`&]+|.")
_OPERATORS = frozenset(("$(", "&&", "||", ";", "|", "\n", "(", ")", "`"))
_PREFIX = later(r"(?:[ {]|(?:do|then|else|sudo|exec|time|env|command|npx) |[A-Za-z_]\w*=[^ '\"]* )*(?:[\w.~-]*/)*")
_OPTION = later(r"-[^ ]+ ")
_VALUE = later(r"[^ -][^ ]* ")
_TO_A_FILE = later(r"(?<![0-9&<>])>{1,2}(?!&)")
_SHOWN = later(r"[ {]*(?:echo|printf|cat)\b")
_RUN = later(r"[ {]*(?:sudo )?(?:ssh|(?:ba|z|da)?sh|su|docker|kubectl|echo|printf) ")
_QUOTED = later(r"'([^']+)'|\"((?:[^\"\\]|\\.)+)\"")
_FILTER = later(
    r" ?(?:sudo )?(?:base64|jq|yq|head|tail|tr|cut|sed|awk|grep|rg|cat|tee|sort|fold|xargs|openssl|gunzip|less|python3?"
    r"|node|ruby|perl|xxd|od|strings|column)\b"
)
"""What prints what is piped into it."""


@cache
def _printers() -> Mapping[str, str]:
    """Return the patterns for the arguments of each program."""
    known: dict[str, list[str]] = defaultdict(list)
    for line in Path(__file__).with_name("printers.txt").read_text("utf-8").splitlines():
        programs, _, arguments = line.partition(" ")
        for program in programs.split("|"):
            known[program].append(arguments)
    return MappingProxyType({program: "|".join(patterns) for program, patterns in known.items()})


def prints_secret(command: str) -> bool:
    """Whether a command prints a secret: what does so isn't kept in a variable, nor goes to a file or a program."""
    if _printers().keys().isdisjoint(_NAME.findall(command[:_LONGEST])):
        return False
    parts: list[tuple[str, str]] = [("", "")]  # (the operator before it, a command)
    for token in _TOKEN.findall(_BLANKS.sub(" ", command[:_LONGEST])):
        parts.append((token, "")) if token in _OPERATORS else parts.append((parts[-1][0], parts.pop()[1] + token))
    return any(_prints(parts, number) for number in range(len(parts)))


def _prints(parts: list[tuple[str, str]], number: int) -> bool:
    operator, said = parts[number]
    if operator in ("$(", "`") and not _SHOWN.match(parts[number - 1][1]):
        return False
    if not _is_printer(said):
        quoted = _QUOTED.findall(said) if _RUN.match(said) else []
        shows = _SHOWN.match(said) is not None
        return any(
            prints_secret(f"echo {two}" if shows else one or two)
            for one, two in quoted
            if not shows or "$(" in two or "`" in two
        )
    while not _TO_A_FILE.search(parts[number][1]):
        number += 1
        if number == len(parts) or parts[number][0] != "|":
            return True
        if not _FILTER.match(parts[number][1]):
            return False
    return False


def _is_printer(said: str) -> bool:
    """Whether a command is in the table; options before its arguments don't matter."""
    prefix = _PREFIX.match(said)
    program, _, arguments = said[prefix.end() if prefix else 0 :].partition(" ")
    if program not in _printers():
        return False
    known = compiled(_printers()[program])
    while True:
        if known.match(arguments):
            return True
        option = _OPTION.match(arguments)
        if option is None:
            return False
        value = _VALUE.match(arguments, option.end())
        if value is not None and known.match(arguments, value.end()):
            return True
        arguments = arguments[option.end() :]
