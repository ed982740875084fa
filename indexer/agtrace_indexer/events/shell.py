"""A parser of shell commands: the programs and their words, without running or expanding anything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from agtrace_schema.patterns import later
from msgspec import Struct, field
from msgspec.structs import replace

LONGEST_COMMAND = 4_000
"""The most characters of a command that is parsed unless more is asked for; a longer one isn't understood."""

_TOKEN = later(
    r"""
      (?P<blank>   (?:[^\S\n]|\\\n)++ | (?<![^\s;&|(])\#[^\n]*+ )
    | (?P<operator> && | \|\| | \|& | ;; | &(?!>) | [;|\n()] )
    | (?P<redirect> \d*+(?: <<< | <<-? | <& | <> | < | >> | >\| | >& | > ) | &>>? )
    | (?P<word>    (?: [^\s;&|()<>'"\\$]++ | '[^']*+' | "(?:[^"\\]|\\.)*+" | \\. | [^\s;&|()<>'"\\]
                     | (?<=\$)\{[^}\n]*+\} | (?<=\$)\(\([^()\n]*+\)\) )++
                 | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED = later(r"""'([^']*+)'|"((?:[^"\\]|\\.)*+)"|\\(.)""", re.DOTALL)
_QUOTING = frozenset("'\"\\")
_ASSIGNMENT = later(r"[A-Za-z_]\w*\+?=")
_NOWHERE = later(r"/dev/(?:null|stdout|stderr|tty)|\$null|NUL|\d+|-")
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh"})
_KEYWORDS = frozenset({"do", "then", "else", "elif", "if", "while", "until", "{", "!", "time", "nohup", "builtin"})
_ENDS = frozenset({"done", "fi", "esac", "}", "for", "case", "select", "function"})
_TAKES_VALUE = {
    "env": frozenset({"-u", "-C", "-S"}),
    "sudo": frozenset({"-u", "-g", "-h", "-C"}),
    "timeout": frozenset({"-s", "-k"}),
    "nice": frozenset({"-n"}),
    "stdbuf": frozenset({"-o", "-e", "-i"}),
    "xargs": frozenset({"-I", "-n", "-P", "-L", "-d", "-s", "-a", "-E"}),
    "exec": frozenset({"-a"}),
}
"""Programs that run another one, and their options that take a value."""


class Part(Struct, frozen=True):
    """One program of a command."""

    words: tuple[str, ...]
    """Without quotes, leading assignments, keywords of the shell and programs that only run it (`sudo`, `timeout 9`);
    empty if nothing is left, such as for `done`."""
    after: str
    """The operator before it: `&&`, `||`, `|`, `;`, `&` or a bracket; empty for the first."""
    writes: bool
    """Whether its output goes to a file."""
    expands: bool
    """Whether its words include the output of further commands that aren't parsed."""
    substituted: bool = False
    """Whether its output is a word of another part, so that its exit code decides nothing."""

    @property
    def program(self) -> str:
        """The name of the program, without its folder, in lower case."""
        if not self.words:
            return ""
        name = self.words[0].replace("\\", "/").rpartition("/")[2].lower()
        return name.removesuffix(".exe") or self.words[0]


class _Open(Struct):
    """A part that is being read."""

    after: str = ""
    substituted: bool = False
    words: list[str] = field(default_factory=list)
    writes: bool = False
    expands: bool = False

    def closed(self) -> Part:
        return Part(tuple(map(_bare, _run_words(self.words))), self.after, self.writes, self.expands, self.substituted)


def parts(command: str, longest: int = LONGEST_COMMAND) -> tuple[Part, ...]:
    """Return the programs of a command in order, in linear time; empty for a command that is longer than this.

    The quoted command of `bash -c` is parsed too, and so are subshells. No input is an error: if quotes are broken,
    words are separated by spaces.
    """
    if len(command) > longest:
        return ()
    return _remembered(command) if len(command) <= LONGEST_COMMAND else _parsed(command)


def programs(command: str) -> Iterator[Part]:
    """Yield the programs of a command of any length, each parsed when it is asked for."""
    return _unwrapped(_read(command))


def _parsed(command: str) -> tuple[Part, ...]:
    return tuple(programs(command))


_remembered = lru_cache(maxsize=2_048)(_parsed)


def _read(command: str) -> Iterator[Part]:
    """Yield the parts of a command; substitutions (`$(...)`, `<(...)`) come before the part that contains them."""
    part, target, place, closed = _Open(), "", 0, 0
    around: list[_Open | None] = []
    delimiters: list[str] = []
    while match := _TOKEN.match(command, place):
        kind, text, place = match.lastgroup, match[0], match.end()
        if kind == "redirect":
            target = text.lstrip("0123456789")
        elif kind == "word" and match.start() == closed and part.words[-1:] and part.words[-1].endswith("$"):
            part.words[-1] += text
        elif kind == "word":
            _add(part, text, target, delimiters)
            target = ""
        elif text == "(" and (target or (part.words and part.words[-1].endswith("$"))):
            part.writes |= ">" in target
            around.append(part)
            part, target = _Open(after=text, substituted=True), ""
        elif kind == "operator":
            yield part.closed()
            outer = around.pop() if text == ")" and around else None
            closed = place if outer else closed
            if text == "(":
                around.append(None)
            part, target = outer or _Open(";" if text in ("\n", ";;") else text, part.substituted), ""
            place = _behind_documents(command, place, delimiters) if text == "\n" else place
    yield part.closed()
    yield from (outer.closed() for outer in reversed(around) if outer)


def _add(part: _Open, word: str, target: str, delimiters: list[str]) -> None:
    """Add a word to a part: as the target of a redirection, as the end mark of a here-document, or as its own word."""
    if target.startswith("<<") and target != "<<<":
        delimiters.append(_bare(word))
    elif target:
        part.writes |= ">" in target and not _NOWHERE.fullmatch(_bare(word))
    else:
        part.words.append(word)
        part.expands |= "`" in word or ('"' in word and "$(" in word)


def _behind_documents(command: str, place: int, delimiters: list[str]) -> int:
    """Return where a command continues after its here-documents (`<<`), which aren't commands."""
    for delimiter in delimiters:
        end = re.compile(rf"^\t*{re.escape(delimiter)}[^\S\n]*$", re.MULTILINE).search(command, place)
        place = end.end() if end else len(command)
    delimiters.clear()
    return place


def _run_words(words: list[str]) -> list[str]:
    """Return the words from the program that is really run on."""
    at = 0
    while at < len(words):
        word = words[at]
        if word in _ENDS:
            return []
        looks_up = word == "command" and (at + 1 == len(words) or words[at + 1].startswith("-"))
        if word in _KEYWORDS or (word == "command" and not looks_up) or _ASSIGNMENT.match(word):
            at += 1
        elif word in _TAKES_VALUE and at + 1 < len(words):
            at = _behind_options(words, at)
        else:
            break
    return words[at:]


def _behind_options(words: list[str], at: int) -> int:
    """Return the place of the program that the one at `at` runs."""
    runner = words[at]
    at += 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _TAKES_VALUE[runner] else 1
    return at + 1 if runner == "timeout" else at


def _unwrapped(found: Iterator[Part], deep: int = 3) -> Iterator[Part]:
    """Yield the parts, with those of the command inside `bash -c "..."` in its place."""
    for part in found:
        options = enumerate(part.words[1:], 1) if deep and part.program in _SHELLS else ()
        flag = next((n for n, word in options if re.fullmatch(r"-\w*c", word)), 0)
        if flag and flag + 1 < len(part.words):
            for number, inner in enumerate(_unwrapped(_read(part.words[flag + 1]), deep - 1)):
                after = inner.after if number else part.after
                substituted = inner.substituted or part.substituted
                yield replace(inner, after=after, writes=inner.writes or part.writes, substituted=substituted)
        elif part.words or part.writes or part.expands:
            yield part


def _bare(word: str) -> str:
    """Remove the quotes of a word."""
    if not _QUOTING.intersection(word):
        return word
    return _QUOTED.sub(lambda found: found[1] or found[2] or found[3] or "", word)
