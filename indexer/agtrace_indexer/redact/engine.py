"""Applying rules to texts: is there anything at all, where is it, and what stands there instead.

Nearly all texts hold no secret, so the question "is there any?" is asked first and must be cheap: a few patterns of
Rust's regex engine, which comes with pydantic, answer it for all rules. Where they open, halving finds the lines for
which they do, and Python's engine, which tells where exactly, sees nothing but these. Entropy is no sign of a secret:
ids, hashes and paths of logs would fall to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from agtrace_indexer.redact import disguises, rules
from agtrace_indexer.redact.checks import is_none
from agtrace_indexer.redact.gates import any_of, any_sign, search
from agtrace_indexer.redact.rules import Own, Rule, literals
from agtrace_indexer.redact.windows import Window, windows

BASE64 = "base64-secret"
"""What the mask of a run of base64 says, whatever was found in it."""

_MOST_PASSES = 8
_MOST_LAYERS = 3
"""Encodings within encodings that are looked into."""
_TOGETHER = 8
"""Rules that are asked for at once where their group opens."""
_LINE = 1000
"""Characters that a rule may look at from where it begins, in one line, before it knows that it found something."""
_LINES = 500
"""The same for a rule that reaches over line ends."""
_PATIENCE = 1.0
"""Seconds that a pattern of the user's may take for one text; a text that takes longer is masked whole."""

_WRAPPED = 16
"""Characters of a secret that may go on in the next line."""
_CONTINUED = re.compile(
    r"(?:(?:\\(?:\r?\n| )|(?:\\{3}|\\{6}|\\{12})n)[ \t]{0,20}[A-Za-z0-9_+/=.~-]{6,}+"
    r"|(?:\r?\n[ \t]{0,20}|[ \t]{2,20})(?=[^\s]{0,200}[0-9])"
    r"(?=[^\s]{0,200}[a-z])(?=[^\s]{0,200}[A-Z])[A-Za-z0-9_+/=-]{16,}+"
    r"(?:\.[A-Za-z0-9_-]{16,}+)*+(?=[ \t]*(?:\r?\n|\Z))"
    r"|(?P<quote>\\{0,15}[\"'])[ \t]{0,4}\+[ \t]{0,4}(?P=quote)[^\"'\\\s]{6,200}+)++"
)
"""The rest of a token that a terminal wrapped, or that a backslash or a plus joins."""

Span: TypeAlias = tuple[int, int, str]  # where a secret is, and of which kind
Gate: TypeAlias = Callable[[str], bool]


class _Few(NamedTuple):
    """Some rules of a group, and what opens for each of them."""

    opens: Gate
    rules: tuple[tuple[Gate, Rule], ...]


class _Group:
    """Rules that are asked for at once."""

    def __init__(self, group: rules.Group) -> None:
        self._gate, self._needs = search(group.gate), group.needs
        self.beyond_ascii = search(group.beyond_ascii) if group.beyond_ascii else None
        self.in_lines = _by_few([rule for rule in group.rules if not rule.lines])
        self.over_lines = [(search(rule.gate), rule) for rule in group.rules if rule.lines]

    def opens(self, text: str) -> bool:
        """Whether one of the rules may apply."""
        return (all(literal in text for literal in self._needs) and self._gate(text)) or (
            self.beyond_ascii is not None and not text.isascii() and self.beyond_ascii(text)
        )


def _by_few(all_of_them: Sequence[Rule]) -> list[_Few]:
    parts = [all_of_them[at : at + _TOGETHER] for at in range(0, len(all_of_them), _TOGETHER)]
    return [
        _Few(search(any_of(rule.gate for rule in part)), tuple((search(rule.gate), rule) for rule in part))
        for part in parts
    ]


class _Gates(NamedTuple):
    """What any text is asked, compiled once."""

    forms: Gate
    """Opens for a token by its form, and for disguises."""
    written: Gate
    """Opens for base64 and for markup. One pattern with the forms would be too large to be fast."""
    contexts: Gate
    """Opens for what stands before a secret, for the same reason by itself."""
    with_literals: tuple[_Group, ...]
    """Groups that few texts can open, for what they need: together with the contexts they would be too large, too."""
    beyond_ascii: Gate
    """What only a text with other letters has."""
    disguise: Gate
    base64: Gate
    groups: tuple[_Group, ...]


@cache
def _built_in_gates() -> _Gates:
    tokens, *others = rules.groups()
    base64 = disguises.base64_signs(literals())
    return _Gates(
        search(any_of([tokens.gate, disguises.GATE])),
        search(any_of([disguises.MARKUP, "|".join(map(re.escape, sorted(set(base64))))])),
        search(any_of(group.gate for group in others if not group.needs)),
        tuple(_Group(group) for group in others if group.needs),
        search(any_of([disguises.UNSEEN, *(group.beyond_ascii for group in others if group.beyond_ascii)])),
        search(any_of([disguises.GATE, disguises.MARKUP, disguises.UNSEEN])),
        any_sign(base64),
        tuple(map(_Group, (tokens, *others))),
    )


_SURROGATE = re.compile("[\ud800-\udfff]")


class Redactor:
    """The built-in rules with those of a user. Safe to use from several threads."""

    def __init__(self, own: Own) -> None:
        self._gates = _built_in_gates()
        self._any_of_mine = search(any_of(rule.gate for rule in own.rules)) if own.rules else None
        self._mine = [(search(rule.gate), rule) for rule in own.rules]
        self._allowed = own.allowed
        self._allows = search(any_of(own.allowed_patterns)) if own.allowed_patterns else None

    def suspicious(self, text: str) -> bool:
        """Whether a rule may apply to a text, or to any piece of it: gates look at nothing around what they find."""
        text, gates = _readable(text), self._gates
        return (
            gates.forms(text)
            or gates.contexts(text)
            or gates.written(text)
            or any(group.opens(text) for group in gates.with_literals)
            or (not text.isascii() and gates.beyond_ascii(text))
            or (self._any_of_mine is not None and self._any_of_mine(text))
        )

    def redact(self, text: str) -> str:
        """Mask every secret in a text as `[redacted: <kind>]`; a masked text stays as it is."""
        if not self.suspicious(text):
            return text
        for _ in range(_MOST_PASSES):  # a mask may lay bare the start of another secret
            spans = list(self._spans(_readable(text), _MOST_LAYERS))
            if not spans:
                break
            text = _masked(text, spans)
        return text

    def allows(self, secret: str) -> bool:
        """Whether the user says that this is none."""
        return secret in self._allowed or (self._allows is not None and self._allows(secret))

    def _spans(self, text: str, layers: int) -> Iterator[Span]:
        """Everything to be masked, in the text as it stands and as it is meant."""
        gates, beyond = self._gates, not text.isascii() and self._gates.beyond_ascii(text)
        tokens, *others = gates.groups
        if gates.forms(text) or gates.written(text) or beyond:
            yield from self._by_group(tokens, text)
            if layers:
                yield from self._as_meant(text, layers - 1)
                yield from self._in_base64(text, layers - 1)
        for group in others:
            yield from self._by_group(group, text)
        for gate, rule in self._mine:
            if gate(text):
                yield from self._by_own(rule, text)

    def _by_group(self, group: _Group, text: str) -> Iterator[Span]:
        if not group.opens(text):
            return
        for gate, rule in group.over_lines:
            for window in windows(text, gate, _LINES, in_lines=False):
                yield from self._by(rule, text, window)
        for window in windows(text, group.opens, _LINE):
            piece = text[window.start : window.end]
            for few in group.in_lines:
                if few.opens(piece):
                    for gate, rule in few.rules:
                        if gate(piece):
                            yield from self._by(rule, text, window)

    def _by(self, rule: Rule, text: str, window: Window) -> Iterator[Span]:
        """What a rule finds that begins in a window."""
        pattern = _compiled(rule.pattern)
        cut = len(text) if window.whole else window.end - _LINE // 2
        for found in pattern.finditer(text, window.start, window.end):
            if found.end() > cut:
                again = pattern.match(text, found.start())
                if again is None:
                    continue
                found = again
            yield from self._secret(rule, found)

    def _by_own(self, rule: Rule, text: str) -> Iterator[Span]:
        """What a rule of the user's finds, in bounded time."""
        try:
            for found in _timed(rule.pattern).finditer(text, timeout=_PATIENCE):
                yield from self._secret(rule, found)
        except TimeoutError:
            yield 0, len(text), rule.name

    def _secret(self, rule: Rule, found: Any) -> Iterator[Span]:
        """Where the secret is in what was found, unless it is none."""
        start, end = found.span("secret" if "secret" in found.re.groupindex else 0)
        if start == end or self.allows(found.string[start:end]):
            return
        if is_none(rule.unless, found.string[start : end + 1].rstrip("\"'`\\,; \t\r\n")):
            return
        more = _CONTINUED.match(found.string, end) if end - start >= _WRAPPED else None
        yield start, more.end() if more else end, rule.name

    def _as_meant(self, text: str, layers: int) -> Iterator[Span]:
        """What is found in a text without its disguises."""
        places = windows(text, self._gates.disguise, disguises.LONGEST)
        view = disguises.View(text, places) if places else None
        if view is None or view.text == text:
            return
        for group in self._gates.groups:
            for start, end, name in self._by_group(group, view.text):
                yield (*view.origin(start, end), name)
        for start, end, name in self._in_base64(view.text, layers) if layers else ():
            yield (*view.origin(start, end), name)

    def _in_base64(self, text: str, layers: int) -> Iterator[Span]:
        """Runs of base64 whose content has a secret."""
        if not self._gates.base64(text):
            return
        for start, end in disguises.runs(text):
            run = text[start:end]
            if not self._gates.base64(run) or self.allows(run):
                continue
            if len(run) > disguises.MOST or any(self._holds(said, layers) for said in disguises.meanings(run)):
                yield start, end, BASE64

    def _holds(self, text: str, layers: int) -> bool:
        return self.suspicious(text) and any(True for _ in self._spans(text, layers))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def _timed(pattern: str) -> Any:
    import regex  # 20 ms to import, and only a user's pattern can take too long

    return regex.compile(pattern)


def _readable(text: str) -> str:
    """The text without lone surrogates, which Rust doesn't read: something invisible stands in their places."""
    try:
        text.encode() if not text.isascii() else None
    except UnicodeEncodeError:
        return _SURROGATE.sub("\u200b", text)
    return text


def _masked(text: str, spans: Iterable[Span]) -> str:
    """The text with each secret, or what overlaps of several, as one mask: the first rule gives its name."""
    parts, end = [], 0
    for first, last, name in _merged(spans):
        parts += [text[end:first], f"[redacted: {name}]"]
        end = last
    return "".join([*parts, text[end:]])


def _merged(spans: Iterable[Span]) -> Iterator[Span]:
    """What overlaps as one, by the name of the rule that stands first in the file."""
    order = rules.order()
    start = end = 0
    name = ""
    for first, last, kind in sorted(spans):
        if first < end:
            end = max(end, last)
            name = min(name, kind, key=lambda each: order.get(each, len(order)))
            continue
        if end:
            yield start, end, name
        start, end, name = first, last, kind
    if end:
        yield start, end, name
