"""Applying rules to texts: finding where a rule may begin, looking closely there, and masking what is found.

Nearly all texts have no secret. One pass of the scanner over a text shows where any rule may begin, and only these
places get a close look. Entropy is no sign of a secret: ids, hashes and paths in logs would fall victim to it.
"""

from __future__ import annotations

import re
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from agtrace_schema.patterns import later

from agtrace_indexer.redact import disguises, field_pairs, grammar, tables_in_text
from agtrace_indexer.redact.names import strength
from agtrace_indexer.redact.rules import CARRIERS, Carrier, Form, Own, forms, kinds, own_look
from agtrace_indexer.redact.scanner import Hit, Looking, Scanner, compiled
from agtrace_indexer.redact.values import (
    JUDGED,
    Sort,
    Span,
    Tier,
    is_example,
    is_jumbled,
    is_login,
    is_shown,
    is_title,
    sort,
)

BASE64 = "base64-secret"
"""The kind in the mask of a run of base64, whatever was found in it."""

_MOST_PASSES = 8
_MOST_LAYERS = 3
"""The most levels of nested encodings that are decoded."""
_BEFORE, _LONGEST = 500, 2000
"""Characters before the end of a first look in which its match began, and the longest token from there on."""
_BEGIN = 100
"""The most characters of a beginning."""
_MOST_BEGINS = 4
"""The most beginnings that are tried: those nearest to the end of a first look."""
_OPEN, _REPEATS = later(r"[*+]|\{[0-9]+,\}"), later(r"\{(?:[0-9]*,)?([0-9]+)")
_PATIENCE = 1.0
"""Seconds that a user's pattern may take for one text; a text that takes longer is masked whole."""

Finder: TypeAlias = Callable[[str, int, Looking], Iterator[Span]]
"""Looks closely at a text from a position in it."""

_WINDOW = 2048
"""How far a rule looks from one of very many places: the whole rest of the text from each would cost the square."""
_AFFORDABLE = 10_000_000
"""The most places of a rule times the characters of a text, up to which all of it is looked at from each."""


class _Hits(NamedTuple):
    """The scanner's findings in a text."""

    places: list[tuple[int, Finder]]
    """Where a close look is due, in order, each once."""
    disguised: Sequence[int]
    """Positions near disguises, where a text doesn't say what it means."""
    base64: bool


_UNKNOWN = _Hits([], (), base64=False)
"""Stands for a text that hasn't been looked at."""


class _BuiltIn:
    """The built-in rules, compiled once. Safe to use from several threads."""

    def __init__(self, path: Path | None) -> None:
        looked = [(form.look, _form_finder(form.rule)) for form in forms()]
        looked += [(carrier.look, _finder(carrier)) for carrier in CARRIERS]
        looked += [(look, grammar.find) for look in grammar.LOOKS]
        looked += [*tables_in_text.LOOKS, *field_pairs.LOOKS]
        self._finders = [find for _, find in looked]
        self._disguise, self._base64 = len(looked), len(looked) + len(disguises.LOOKS)
        self._scanner = Scanner([*(look for look, _ in looked), *disguises.LOOKS, *disguises.base64_looks()], path)

    def found(self, text: str) -> _Hits | None:
        """Return what may be in a text; None for nothing, as in nearly all texts."""
        hits = self._scanner.hits(text)
        return self._sorted(hits) if hits else None

    def found_in(self, texts: Iterable[str]) -> dict[str, _Hits | None]:
        """Do the same for many texts in one pass over all of them, which is faster than as many passes."""
        known = list(dict.fromkeys(texts))
        hits = self._scanner.hits_in(list(map(_readable, known)))
        return {text: self._sorted(hits[number]) if number in hits else None for number, text in enumerate(known)}

    def _sorted(self, hits: list[Hit]) -> _Hits:
        known = dict.fromkeys((place, self._finders[look]) for place, look in hits if look < self._disguise)
        disguised = [place for place, look in hits if self._disguise <= look < self._base64]
        return _Hits(list(known), disguised, any(look >= self._base64 for _, look in hits))


_building = Lock()
_built: list[_BuiltIn] = []
"""The built-in rules, once they have been needed: a process has them only once."""


def _built_in(path: Path | None) -> _BuiltIn:
    with _building:
        if not _built:
            _built.append(_BuiltIn(path))
        return _built[0]


def _finder(rule: Carrier) -> Finder:
    """Return the close look for a rule that begins with its first look, or with an earlier pattern of its own."""
    begins, flags = rule.begins or rule.look.pattern, re.IGNORECASE if rule.look.any_case else 0

    def find(text: str, at: int, looking: Looking) -> Iterator[Span]:
        open_ended = bool(rule.begins) or _OPEN.search(begins) is not None
        reach = _BEFORE if rule.begins else len(begins) + sum(map(int, _REPEATS.findall(begins))) + _BEFORE * open_ended
        since = max(0, at - reach, looking.last - _BEGIN)  # those before were tried when it looked from there
        looking.last = at
        for begin in deque(compiled(begins, flags).finditer(text, since, at), _MOST_BEGINS):
            if (open_ended or begin.end() == at) and begin.start() not in looking.tried:
                looking.tried.add(begin.start())
                yield from _secret_at(rule, text, begin.start(), looking.reach)

    return find


def _form_finder(rule: Carrier) -> Finder:
    """Return the close look for a token of a known form, which begins with its first look or before it."""

    def find(text: str, at: int, looking: Looking) -> Iterator[Span]:
        for match in compiled(rule.pattern).finditer(text, max(0, at - _BEFORE), at + _LONGEST):
            if match.start() >= at:
                return
            if match.end() >= at:
                yield from _secret_at(rule, text, match.start(), looking.reach)

    return find


def _secret_at(rule: Carrier, text: str, at: int, reach: int) -> Iterator[Span]:
    """Yield the position of a secret that matches here; what fills all that is looked at is followed to its end."""
    pattern = compiled(rule.pattern)
    match = pattern.match(text, at, at + reach)
    spans = list(secret_of(rule, match)) if match else []
    if spans and match and match.end() == at + reach:
        spans = list(secret_of(rule, pattern.match(text, at) or match))
    yield from spans


def secret_of(rule: Carrier, found: Any) -> Iterator[Span]:
    """Yield the position of the secret in a match, unless it isn't one."""
    start, end = found.span("secret" if "secret" in found.re.groupindex else 0)
    if start == end or ("name" in found.re.groupindex and not strength(found["name"])):
        return
    text = found.string[start : min(end, start + JUDGED)].rstrip("\"'`\\,; \t\r\n")
    behind = found.string[end : end + 1]
    if is_example(text + behind) or (rule.login and not is_login(text)):
        return
    if rule.least and is_shown(found.string, start, end):
        return
    tier = Tier.LIKELY if rule.least or rule.login else Tier.DEFINITE
    if tier is Tier.DEFINITE and start == found.start() and (is_title(text) or _in_base64(found.string, start, end)):
        return
    if rule.least:
        called = behind in ("(", "[", "{")
        found_sort = sort(text + behind * called, literal=not called)
        if found_sort < rule.least:
            tier = Tier.POSSIBLE
        if found_sort < max(Sort.WORD, rule.least - 1):
            return
    yield Span(start, disguises.end_of(found.string, start, end), rule.kind, tier)


_NOISE = later("[\x00-\x08\x0e-\x1f\ufffd]")
"""What a text that was packed doesn't have, but an image."""
_RUN_BEFORE = later(r"[A-Za-z0-9+/_-]{24,200}[+/_-]\Z")
_SEGMENT = later(r"[A-Za-z0-9]{8,}")
_RUNS_ON = later(r"[A-Za-z0-9+_-]")


def _in_base64(text: str, start: int, end: int) -> bool:
    """Whether this is amid a long run of base64, where any token's form turns up by chance, and not behind an id."""
    run = _RUN_BEFORE.search(text, max(0, start - 201), start) if _RUNS_ON.match(text, end) else None
    return run is not None and ("//" in run[0] or "AAA" in run[0] or any(map(is_jumbled, _SEGMENT.findall(run[0]))))


def _lookings(places: Sequence[tuple[int, Finder]], length: int) -> dict[Finder, Looking]:
    """Return how closely each rule looks at a text of this length from its places."""
    tables: dict[tuple[str, tuple[int, ...]], int] = {}
    counts = Counter(find for _, find in places) if len(places) * length > _AFFORDABLE else {}
    whole = max(length, _WINDOW + 1)
    return {
        find: Looking(whole if counts.get(find, 0) * length <= _AFFORDABLE else _WINDOW, tables, set())
        for _, find in places
    }


Noted: TypeAlias = tuple[str, str, str]
"""A secret that was found: its kind, how sure that is, and its fingerprint."""


class _OfThread(threading.local):
    """What a thread knows of texts, and what it does with what it finds; each thread has its own."""

    found: Mapping[str, _Hits | None] = MappingProxyType({})
    """The findings in texts that were looked at together."""
    noted: list[Noted] | None = None
    """All that is found, in order, if that is asked for."""
    least = Tier.LIKELY
    """The least tier that is masked."""


_thread = _OfThread()


@contextmanager
def looking(noted: list[Noted] | None = None, *, possible: bool = False) -> Iterator[None]:
    """Within this context, this thread masks also what is only possible, or notes in a list all that it finds."""
    before = _thread.noted, _thread.least
    _thread.noted, _thread.least = noted, Tier.POSSIBLE if possible else Tier.LIKELY
    try:
        yield
    finally:
        _thread.noted, _thread.least = before


class Redactor:
    """The built-in rules and a user's. Safe to use from several threads."""

    def __init__(self, own: Own, path: Path | None = None, fingerprint: Callable[[str], str] = str) -> None:
        """`kept` is a file that keeps the compiled built-in rules; a `fingerprint` tells a secret from others."""
        self._rules = _built_in(path)
        self._fingerprint, self._decisions = fingerprint, own.decisions
        self._mine = own.rules
        self._scanner = Scanner([own_look(form.pattern) for form in own.rules]) if own.rules else None
        self._allowed, self._allowed_patterns = own.allowed, own.allowed_patterns

    def suspicious(self, text: str) -> bool:
        """Whether a rule may apply to a text, or to any part of it: first looks don't depend on their surroundings."""
        return self._found(text) is not None or bool(self._scanner and self._scanner.hits(_readable(text)))

    def redact(self, text: str) -> str:
        """Mask every secret in a text as `[redacted: <kind>]`; a masked text stays unchanged."""
        for _ in range(_MOST_PASSES):  # a mask may expose the start of another secret
            found = self._found(text)
            if found is None and self._scanner is None:
                break
            readable = _readable(text)
            found_here = _merged(self._spans(readable, found, _MOST_LAYERS))
            spans = [span for span in found_here if self.masks(readable[span.start : span.end], span.kind, span.tier)]
            if not spans:
                break
            text = _masked(text, spans)
        return text

    def masks(self, secret: str, kind: str, tier: Tier = Tier.LIKELY) -> bool:
        """Whether a secret is masked: by its tier, unless the user decided about it. If asked for, it is noted."""
        if _thread.noted is None and not self._decisions:
            return tier >= _thread.least
        value = self._fingerprint(secret)
        decision = self._decisions.get(value)
        if decision == "allow":
            return False
        tier = max(tier, Tier.LIKELY) if decision else tier
        if _thread.noted is not None:
            _thread.noted.append((kind, tier.name.lower(), value))
        return tier >= _thread.least

    def _found(self, text: str) -> _Hits | None:
        known = _thread.found.get(text, _UNKNOWN)
        return self._rules.found(_readable(text)) if known is _UNKNOWN else known

    @contextmanager
    def looked_at(self, texts: Iterable[str]) -> Iterator[bool]:
        """Look at many texts in one pass; within this context, this thread knows what may be in them.

        Yield whether anything may be in any of them.
        """
        before, _thread.found = _thread.found, self._rules.found_in(texts)
        try:
            yield self._scanner is not None or any(_thread.found.values())
        finally:
            _thread.found = before

    def allows(self, secret: str) -> bool:
        """Whether the user says that this is not a secret."""
        return secret in self._allowed or any(_fits(pattern, secret) for pattern in self._allowed_patterns)

    def _spans(self, text: str, found: _Hits | None, layers: int) -> Iterator[Span]:
        """Yield everything to be masked, in the text as it is and as it is meant to be read."""
        for span in self._built_in(text, found, layers) if found else ():
            if not self.allows(text[span.start : span.end]):
                yield span
        for _, look in self._scanner.hits(text) if self._scanner else ():
            yield from self._by_own(self._mine[look], text)

    def _built_in(self, text: str, found: _Hits, layers: int) -> Iterator[Span]:
        covered: dict[Finder, int] = {}
        lookings = _lookings(found.places, len(text))
        for start, find in found.places:
            if start < covered.get(find, 0):  # within a value
                continue
            for span in find(text, start, lookings[find]):
                if span.tier > Tier.POSSIBLE:
                    covered[find] = max(covered.get(find, 0), span.end)
                yield span
        if layers and found.disguised:
            yield from self._as_meant(text, found.disguised, layers - 1)
        if layers and found.base64:
            yield from self._in_base64(text, layers - 1)

    def _as_meant(self, text: str, disguised: Iterable[int], layers: int) -> Iterator[Span]:
        """Yield the findings in a text without its disguises."""
        view = disguises.View(text, disguised)
        found = self._rules.found(view.text) if view.text != text else None
        if found is None:
            return
        for start, end, kind, tier in self._built_in(view.text, found._replace(disguised=()), layers):
            yield Span(*view.origin(start, end), kind, tier)

    def _in_base64(self, text: str, layers: int) -> Iterator[Span]:
        """Yield runs of base64 that contain a secret."""
        for start, end in disguises.runs(text):
            run = text[start:end]
            if len(run) > disguises.MOST or any(self._holds(said, layers) for said in disguises.meanings(run)):
                yield Span(start, end, BASE64)

    def _holds(self, text: str, layers: int) -> bool:
        spans = self._spans(text, self._rules.found(text), layers)
        return any(span.tier >= _thread.least and not _NOISE.search(text, span.start - 8, span.end) for span in spans)

    def _by_own(self, form: Form, text: str) -> Iterator[Span]:
        """Yield the findings of a user's rule, in bounded time."""
        try:
            for match in _timed(form.pattern).finditer(text, timeout=_PATIENCE):
                yield from (
                    span for span in secret_of(form.rule, match) if not self.allows(text[span.start : span.end])
                )
        except TimeoutError:
            yield Span(0, len(text), form.kind)


@cache
def _timed(pattern: str) -> Any:
    import regex  # takes 20 ms to import, and only a user's pattern can take too long

    return regex.compile(pattern)


def _fits(pattern: str, text: str) -> bool:
    try:
        return _timed(pattern).fullmatch(text, timeout=_PATIENCE) is not None
    except TimeoutError:
        return False


def _readable(text: str) -> str:
    """Return the text with lone surrogates, which UTF-8 can't have, replaced by something invisible."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\u200b", text)
    return text


_SURROGATE = later("[\ud800-\udfff]")


def _masked(text: str, spans: Iterable[Span]) -> str:
    """Return the text with a mask for each secret, or for several overlapping ones: the first rule names it."""
    parts, end = [], 0
    for first, last, name, _ in _merged(spans):
        parts += [text[end:first], f"[redacted: {name}]"]
        end = last
    return "".join([*parts, text[end:]])


def _merged(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield overlapping spans as one, with the surest tier and, of that tier, the kind that has precedence.

    What is only possible is dropped where it overlaps anything surer.
    """
    order = kinds()
    one: Span | None = None
    for span in sorted(spans):
        if one is None or span.start >= one.end:
            if one is not None:
                yield one
            one = span
            continue
        best = min(one, span, key=lambda each: (-each.tier, order.get(each.kind, len(order))))
        possible = min(one.tier, span.tier) is Tier.POSSIBLE < best.tier
        one = best if possible else Span(one.start, max(one.end, span.end), best.kind, best.tier)
    if one is not None:
        yield one
