"""Commands that print a secret, such as `pass show`: what they print is masked.

They are data, in `printers.txt`: a line has the names of programs and a pattern for their arguments, with one
blank between them. A pattern with the group `name` looks anywhere in the arguments for the name of a secret.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType

from agtrace_schema.patterns import later

from agtrace_indexer.redact import masks
from agtrace_indexer.redact.names import Strength, strength
from agtrace_indexer.redact.scanner import compiled
from agtrace_indexer.redact.values import JUDGED, Sort, sort

KIND = "printed-secret"
PRINTED = f"[redacted: {KIND}]"
"""The mask of an output."""


class Prints(IntEnum):
    """What a command prints."""

    NO_SECRET = 0
    ALSO_A_SECRET = 1
    ONLY_A_SECRET = 2


_LONGEST = 2000
"""The most characters of a command that are looked at."""
_WORD = later(r"(?<= )(?:printenv|getenv|cat|head|tail)(?= )")
_NAME = later(r"[\w-]+")
_EVERYDAY = ("awk", "cat", "cut", "docker", "echo", "git", "grep", "head", "jq", "node", "npm", "printf", "python",
             "python3", "rg", "sed", "tail")  # fmt: skip
_HINTS = ("pass", "secret", "token", "key", "pwd", "cred", "shadow", "netrc", "_rsa", "id_ed", "kube", "auth", "header",
          "random", "my.cnf", "docker/c")  # fmt: skip
"""What stands in a command of an everyday program if it prints a secret."""
_BLANKS = later(r"(?:[ \t]|\\\r?\n)+")
_TOKEN = later(r"'[^']*'?|\"(?:[^\"\\]|\\.)*\"?|\$\(|&&|\|\||[;|\n()`]|[^'\"$;|\n()`&]+|.")
_OPERATORS = frozenset(("$(", "&&", "||", ";", "|", "\n", "(", ")", "`"))
_PREFIX = later(
    r"(?:[ {]|(?:do|then|else|sudo|exec|time|env|npx|(?:uv|poetry|bundle) (?:run|exec)) |[A-Za-z_]\w*=[^ '\"]* )*"
    r"(?:[\w.~-]*/)*"
)
_OPTION = later(r"-[^ ]+ ")
_VALUE = later(r"[^ -][^ ]* ")
_TO_A_FILE = later(r"(?<![0-9&<>])>{1,2}(?!&)")
_SHOWN = later(r"[ {]*(?:echo|printf|cat)\b")
_RUN = later(
    r"[ {]*(?:sudo )?(?:ssh|(?:ba|z|da)?sh|su|docker|podman|kubectl|oc|fly(?:ctl)?|heroku|railway|op|doppler|infisical"
    r"|echo|printf|vagrant|wsl|chroot|nsenter|dotenv|lxc|incus|aws-vault|env) "
)
"""What runs another command."""
_GETS = later(
    r"(?!git show)[^'\"]*?(?<![\w./-])-{0,2}(?:get|getenv|show|read|view|reveal|lookup|print|export|value|config)[ =-]"
    r"(?:[^|]*[ '\"/.:=])?(?P<name>[\w-]+)['\")}\]]*(?: -[^|]*)?\Z"
)
"""A program of any name that gets something by its name."""
_QUOTED = later(r"'([^']+)'|\"((?:[^\"\\]|\\.)+)\"")
_FILTER = later(
    r" ?(?:sudo )?(?:base64|jq|yq|head|tail|tr|cut|sed|awk|grep|rg|cat|tee|sort|fold|xargs|openssl|gunzip|less|python3?"
    r"|node|ruby|perl|xxd|od|strings|column)\b"
)
"""What prints what is piped into it."""
_SILENT = later(
    r"[ {}]*(?:(?:cd|pushd|export|set|unset|source|\.|mkdir|true|:|sleep|test|\[{1,2}|read|umask|rm|mv|cp|chmod|touch"
    r"|eval|if|for|while|fi|done|wait|echo|printf)(?![^ ])[^$]*"
    r"|(?:[A-Za-z_]\w*=(?:[^ '\"]|'[^']*'|\"[^\"]*\")*[ ]*)*)\Z"
)
"""What prints nothing, or nothing of use, by itself."""
_FAILED = later(
    r"(?i)[^\n]*(?<![a-z])(?:errors?|fatal|fail(?:ed|ure)|no|not|cannot|can't|denied|unauthorized|forbidden|invalid|usage"
    r"|missing|unknown|expired|must|unable)(?![a-z])"
)
"""The first line of a message that says why a secret wasn't printed."""
_MESSAGE = 10
"""The most lines of such a message, each of which has blanks."""


@cache
def _printers() -> Mapping[str, tuple[str, ...]]:
    """Return the patterns for the arguments of each program."""
    known: dict[str, list[str]] = defaultdict(list)
    for line in Path(__file__).with_name("printers.txt").read_text("utf-8").splitlines():
        programs, _, arguments = line.partition(" ")
        for program in programs.split("|"):
            known[program].append(arguments)
    return MappingProxyType({program: tuple(patterns) for program, patterns in known.items()})


def prints(command: str) -> Prints:
    """Return what a command prints: no secret that is kept in a variable, or goes to a file or to a program."""
    command = command[:_LONGEST]
    programs = _printers().keys() & set(_NAME.findall(command))
    if programs.issubset(_EVERYDAY) and not any(map(command.lower().__contains__, _HINTS)):
        return Prints.NO_SECRET
    pipelines: list[tuple[str, list[str]]] = [("", [""])]  # (the operator before it, its commands)
    for token in _TOKEN.findall(_BLANKS.sub(" ", command)):
        if token == "|":
            pipelines[-1][1].append("")
        elif token in _OPERATORS:
            pipelines.append((token, [""]))
        else:
            pipelines[-1][1][-1] += token
    found = others = False
    before = ""
    for operator, commands in pipelines:
        inner = operator in ("$(", "`")
        if (not inner or _SHOWN.match(before)) and _prints_secret(commands):
            found = True
        else:
            others |= not inner and not _SILENT.match(commands[-1]) and not _TO_A_FILE.search(commands[-1])
        before = commands[-1]
    gets = _GETS.match(commands[0]) if len(commands) == 1 else None
    named = gets is not None and gets["name"] != "secrets" and strength(gets["name"]) >= Strength.TOKEN
    return Prints(2 - others if found else named)


def _prints_secret(commands: list[str]) -> bool:
    """Whether a pipeline prints a secret that one of its commands does, and the following ones let pass."""
    for place, said in enumerate(commands):
        behind = commands[place + 1 :]
        if any(map(_TO_A_FILE.search, commands[place:])) or not all(map(_FILTER.match, behind)):
            continue
        shows, runs = _SHOWN.match(said) is not None, _RUN.match(said)
        starts = (0, *(word.start() for word in _WORD.finditer(said, runs.end()))) if runs else (0,)
        if any(_is_printer(" |".join((said[start:], *behind))) for start in starts):
            return True
        for one, two in _QUOTED.findall(said) if runs else ():
            if (not shows or "$(" in two or "`" in two) and prints(f"echo {two}" if shows else one or two):
                return True
    return False


def _is_printer(said: str) -> bool:
    """Whether a command is in the table; options before its arguments don't matter."""
    prefix = _PREFIX.match(said)
    program, _, arguments = said[prefix.end() if prefix else 0 :].partition(" ")
    for pattern in map(compiled, _printers().get(program, ())):
        if "name" in pattern.groupindex:
            found = any(strength(each["name"]) >= Strength.TOKEN for each in pattern.finditer(arguments))
        else:
            found = any(pattern.match(arguments, start) for start in _starts(arguments))
        if found:
            return True
    return False


def _starts(arguments: str) -> Iterator[int]:
    """Yield where arguments may begin, behind options and their values."""
    start = 0
    yield start
    while option := _OPTION.match(arguments, start):
        start = option.end()
        yield start
        if value := _VALUE.match(arguments, start):
            yield value.end()


def mask_output(text: str, printing: Prints, *, failed: bool) -> str:
    """Return what a printing command printed, masked as a whole, or line by line if it isn't only a secret."""
    lines = text.split("\n")
    message = len(lines) <= _MESSAGE and _FAILED.match(text) and all(" " in each or not each.strip() for each in lines)
    if message or failed or printing is Prints.ALSO_A_SECRET:
        least = Sort.CHOSEN if message or failed or text.strip().count("\n") else Sort.WORD
        return "\n".join(
            PRINTED if _is_value(line.strip(), least) and masks(line.strip(), KIND) else line for line in lines
        )
    return PRINTED if text.strip() and masks(text, KIND) else text


def _is_value(line: str, least: Sort) -> bool:
    """Whether a line is nothing but a secret, of this sort at least."""
    return bool(line) and " " not in line and sort(line[:JUDGED]) >= least
