"""Applying rules to texts: is there anything at all, where is it, and what stands there instead.

Nearly all texts hold no secret, so the question "is there any?" is asked first and must be cheap:
the gates of all rules are one pattern of Rust's regex engine, which comes with pydantic. Only a text that passes is
looked at rule by rule. Entropy is no sign of a secret: ids, hashes and paths of logs would fall to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from agtrace_indexer.redact import disguises, rules
from agtrace_indexer.redact.checks import CHECKS
from agtrace_indexer.redact.rules import Own, Rule, any_of, any_sign, literals, search

BASE64 = "base64-secret"
"""What the mask of a run of base64 says, whatever was found in it."""

_MOST_PASSES = 8
_SHORT = 2000
_PATIENCE = 1.0
"""Seconds that a pattern of the user's may take for one text; a text that takes longer is masked whole."""

Span: TypeAlias = tuple[int, int, str]  # where a secret is, and of which kind


class _Group(NamedTuple):
    """Rules that are asked for at once."""

    signs: Callable[[str], bool]
    gate: Callable[[str], bool] | None
    in_lines: tuple[Rule, ...]
    over_lines: tuple[Rule, ...]

    def opens(self, text: str) -> bool:
        """Whether one of the rules may apply."""
        return self.signs(text) and (self.gate is None or self.gate(text))


class _Gates(NamedTuple):
    """What any text is asked, compiled once."""

    signs: Callable[[str], bool]
    """Whether there is a sign of anything: nearly always in a long text, seldom in a short one."""
    encoded: Callable[[str], bool]
    """Whether anything may stand in another form than its own."""
    unseen: Callable[[str], bool]
    groups: tuple[_Group, ...]
    disguise: Callable[[str], bool]
    base64: Callable[[str], bool]


@cache
def _built_in_gates() -> _Gates:
    groups, base64 = rules.groups(), disguises.base64_signs(literals())
    return _Gates(
        any_sign([*base64, *disguises.SIGNS, *(sign for group in groups for sign in group.signs)]),
        any_sign([*base64, *disguises.SIGNS]),
        search(disguises.UNSEEN),
        tuple(map(_group, groups)),
        search(disguises.GATE),
        any_sign(base64),
    )


def _group(group: rules.Group) -> _Group:
    return _Group(
        any_sign(group.signs),
        search(group.gate) if group.gate else None,
        tuple(rule for rule in group.rules if not rule.lines),
        tuple(rule for rule in group.rules if rule.lines),
    )


_SURROGATE = re.compile("[\ud800-\udfff]")


class Redactor:
    """The built-in rules with those of a user. Safe to use from several threads."""

    def __init__(self, own: Own) -> None:
        self._gates = _built_in_gates()
        self._any_of_mine = search(any_of(rule.gate for rule in own.rules)) if own.rules else None
        self._mine = own.rules
        self._allowed = own.allowed
        self._allows = search(any_of(own.allowed_patterns)) if own.allowed_patterns else None

    def suspicious(self, text: str) -> bool:
        """Whether a rule may apply to a text, or to any piece of it: gates look at nothing around what they find."""
        if self._any_of_mine is not None and self._any_of_mine(_readable(text)):
            return True
        gates, text = self._gates, _readable(text)
        if not text.isascii() and gates.unseen(text):
            return True
        if len(text) < _SHORT and not gates.signs(text):
            return False
        return any(group.opens(text) for group in gates.groups) or (
            gates.encoded(text) and (gates.disguise(text) or gates.base64(text))
        )

    def redact(self, text: str) -> str:
        """Mask every secret in a text as `[redacted: <kind>]`; a masked text stays as it is."""
        if not self.suspicious(text):
            return text
        for _ in range(_MOST_PASSES):  # a mask may lay bare the start of another secret
            spans = self._spans(_readable(text))
            if not spans:
                break
            text = _masked(text, spans)
        return text

    def allows(self, secret: str) -> bool:
        """Whether the user says that this is none."""
        return secret in self._allowed or (self._allows is not None and self._allows(secret))

    def _spans(self, text: str) -> list[Span]:
        """Everything to be masked, in the text as it stands and as it is meant."""
        groups = [group for group in self._gates.groups if group.opens(text)]
        spans = [span for group in groups for span in self._by(group.over_lines, text, 0)]
        spans += self._by(self._mine, text, 0)
        for piece, at in _pieces(text, lambda piece: any(group.opens(piece) for group in groups)):
            for group in groups:
                if group.opens(piece):
                    spans += self._by(group.in_lines, piece, at)
        if self._gates.disguise(text):
            for piece, at in _pieces(text, self._gates.disguise):
                spans += self._as_meant(piece, at)
            spans += self._blocks_as_meant(text)
        if self._gates.base64(text):
            spans += self._in_base64(text)
        return spans

    def _as_meant(self, text: str, at: int) -> Iterator[Span]:
        """What is found in a text without its disguises."""
        view = disguises.View(text)
        if view.text == text or not self.suspicious(view.text):
            return
        for group in self._gates.groups:
            if group.opens(view.text):
                for start, end, name in self._by((*group.in_lines, *group.over_lines), view.text, 0):
                    first, last = view.origin(start, end)
                    yield at + first, at + last, name

    def _blocks_as_meant(self, text: str) -> Iterator[Span]:
        """What reaches over line ends in a text without its disguises."""
        blocks = [rule for group in self._gates.groups for rule in group.over_lines if rule.signs]
        if any(sign in text for rule in blocks for sign in rule.signs):
            view = disguises.View(text)
            for start, end, name in self._by(blocks, view.text, 0):
                yield (*view.origin(start, end), name)

    def _by(self, rules: Iterable[Rule], text: str, at: int) -> Iterator[Span]:
        for rule in rules:
            if rule.signs and not any(sign in text for sign in rule.signs):
                continue
            if rule.gate and not _gate(rule.gate)(text):
                continue
            if rule.own:
                yield from self._by_own(rule, text, at)
                continue
            pattern = _compiled(rule.pattern)
            for line, start in [(text, 0)] if rule.lines or not rule.gate else _lines(text, _gate(rule.gate)):
                yield from self._secrets(rule, pattern.finditer(line), at + start)

    def _by_own(self, rule: Rule, text: str, at: int) -> Iterator[Span]:
        """What a rule of the user's finds, in bounded time."""
        try:
            yield from self._secrets(rule, _timed(rule.pattern).finditer(text, timeout=_PATIENCE), at)
        except TimeoutError:
            yield at, at + len(text), rule.name

    def _secrets(self, rule: Rule, matches: Iterator[Any], at: int) -> Iterator[Span]:
        unless = CHECKS[rule.unless] if rule.unless else None
        for found in matches:
            start, end = found.span("secret" if "secret" in found.re.groupindex else 0)
            if start == end:
                continue
            if unless and unless(found.string[start : end + 1].rstrip("\"'`\\,; \t\r\n")):
                continue
            if not self.allows(found.string[start:end]):
                yield at + start, at + end, rule.name

    def _in_base64(self, text: str) -> Iterator[Span]:
        """Runs of base64 whose content has a secret."""
        for start, end, contents in disguises.runs(text):
            run = text[start:end]
            if not self._gates.base64(run) or self.allows(run):
                continue
            if not contents or any(self._spans(content) for content in contents):
                yield start, end, BASE64


_gate = cache(search)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def _timed(pattern: str) -> Any:
    import regex  # 20 ms to import, and only a user's pattern can take too long

    return regex.compile(pattern)


def _pieces(text: str, suspicious: Callable[[str], bool], at: int = 0) -> Iterator[tuple[str, int]]:
    """The suspicious lines of a long text and where they begin, found by halves."""
    if not suspicious(text):
        return
    middle = max(text.find("\n", len(text) // 2), text.rfind("\n", 0, len(text) // 2))
    if middle < 0 or len(text) < _SHORT:
        yield text, at
    else:
        yield from _pieces(text[:middle], suspicious, at)
        yield from _pieces(text[middle + 1 :], suspicious, at + middle + 1)


def _lines(text: str, gate: Callable[[str], bool]) -> Iterator[tuple[str, int]]:
    """The lines for which a gate opens, and where they begin: Python's engine is slow."""
    start = 0
    for line in text.split("\n"):
        if gate(line):
            yield line, start
        start += len(line) + 1


def _readable(text: str) -> str:
    """The text without lone surrogates, which Rust doesn't read: something invisible stands in their places."""
    try:
        text.encode() if not text.isascii() else None
    except UnicodeEncodeError:
        return _SURROGATE.sub("\u200b", text)
    return text


def _masked(text: str, spans: list[Span]) -> str:
    """The text with each secret, or what overlaps of several, as one mask: the first rule gives its name."""
    parts, end = [], 0
    for first, last, name in _merged(spans):
        parts += [text[end:first], f"[redacted: {name}]"]
        end = last
    return "".join([*parts, text[end:]])


def _merged(spans: list[Span]) -> Iterator[Span]:
    order = {span: place for place, span in reversed(list(enumerate(spans)))}
    current: list[Span] = []
    for span in sorted(spans):
        if current and span[0] >= max(end for _, end, _ in current):
            yield _joined(current, order)
            current = []
        current.append(span)
    if current:
        yield _joined(current, order)


def _joined(spans: list[Span], order: dict[Span, int]) -> Span:
    name = min(spans, key=order.__getitem__)[2]
    return spans[0][0], max(end for _, end, _ in spans), name
