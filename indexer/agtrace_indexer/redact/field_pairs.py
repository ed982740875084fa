"""Secrets whose name is the value of another field, manifests of secrets for Kubernetes, and keys by their end."""

from __future__ import annotations

from collections.abc import Iterator

from agtrace_schema.patterns import later

from agtrace_indexer.redact.names import Strength, strength
from agtrace_indexer.redact.scanner import Look, Looking
from agtrace_indexer.redact.values import Context, Sort, Span, sort, tier_of

_MANIFEST_LOOK = Look(r"kind[\\\"']*:[ \t]*[\\\"']*secret", any_case=True, from_start=True)
_PAIR_LOOK = Look(
    r"(?:(?:value|default)[\\\"'`]{0,4}[ \t]{0,4}[:=]|content=)[ \t]{0,4}"
    r"(?:[\"'`\\]{1,6}[^\n]{4}|[^\s\"'`\\,;{}\[\]<>&|]{6})",
    any_case=True,
    from_start=True,
)
_MANIFEST = 8000
"""Characters of a manifest on either side of its kind."""

_BREAK = r"(?:\r?\n|\\{1,15}r?\\{0,15}n)"
_MARGIN = r"(?:[ \t]*[0-9]{1,6}(?:[→|:\t]|\\t)|[+>-](?![+>-])|\\t|[\t→|])*"
_DATA = later(
    rf"(?:\A|(?<=\n)|(?<=\\n)){_MARGIN}[ \t]*(?P<quote>\\*\"?)(?:string)?[dD]ata(?P=quote)"
    rf":[ \t]*(?:(?=\{{)|(?:\#[^\n]*)?(?={_BREAK}))"
)
_ENTRY = later(
    rf"{_BREAK}{_MARGIN}(?P<indent>[ \t]*)(?:\#[^\n]*|[A-Za-z0-9._-]{{1,100}}:[ \t]*(?:"
    rf"[|>][+-]?[0-9]?[ \t]*{_BREAK}{_MARGIN}(?P=indent)[ \t]+(?P<block>[^\n\\]+"
    rf"(?:{_BREAK}{_MARGIN}(?P=indent)[ \t]+[^\n\\]+)*)"
    r"|[\"']?(?P<secret>[^\s\\\"'#][^\n\\\"']{2,}?)[\"']?(?=[ \t]+\#|[ \t]*(?:\r?\n|\\|\Z))[^\n\\]*))"
)
_PAIR = later(
    r"\\*\"?(?:\s|\\{1,7}n)*[{,](?:\s|\\{1,7}n)*\\*\"[\w.-]{1,100}\\*\"\s*:\s*\\*\"(?P<secret>[^\"\\]{3,})(?P<block>(?!))?"
)


def in_manifest(text: str, at: int, _: Looking) -> Iterator[Span]:
    """Yield the values of a Kubernetes secret in YAML or JSON, wherever in it the kind is."""
    first, last = max(0, at - _MANIFEST), min(at + _MANIFEST, len(text))
    start = max(first, text.rfind("kind", first, at) + 1, text.rfind("\n---", first, at) + 1)
    ends = (text.find(sign, at + len("kind: Secret"), last) for sign in ("\n---", "kind"))
    end = min(place if place >= 0 else last for place in ends)
    for head in _DATA.finditer(text, start, end):
        entries, at = _PAIR if text.startswith("{", head.end()) else _ENTRY, head.end()
        while entry := entries.match(text, at, end):
            at = entry.end()
            group = "block" if entry["block"] else "secret"
            said = entry[group] or ""
            template = said.startswith(("{{", "[redacted"))
            if said and not template and (group == "block" or sort(said) > Sort.NOTHING):
                yield Span(*entry.span(group), "kubernetes-secret")


_KEY_END = Look(r"-----END [A-Z0-9 ]*PRIVATE KEY", from_start=True)
_LONGEST_KEY = 10_000
"""The most characters before the end of a private key that can belong to it."""
_BACKWARDS = later(r"[\s>|+→\"'\\]*+[A-Za-z0-9+/=]{1,100}+(?:[\s>|+→\"'\\]++[A-Za-z0-9+/=]{32,100}+)*+")


def before_key_end(text: str, at: int, _: Looking) -> Iterator[Span]:
    """Yield the lines of a private key before its end, of which the beginning may be cut off."""
    match = _BACKWARDS.match(text[max(0, at - _LONGEST_KEY) : at][::-1])
    if match is not None and match.end() > _SHORTEST_KEY:
        yield Span(at - len(match[0].rstrip()), at - len(match[0]) + len(match[0].lstrip()), "private-key")


_SHORTEST_KEY = 32
_QUOTE = r"\\{0,15}[\"'`]"
_PAIRED = later(
    rf"(?i:value|default|content)(?:{_QUOTE})?[ \t]{{0,4}}[:=][ \t]{{0,4}}(?:(?P<quote>{_QUOTE})"
    rf"(?P<quoted>(?:(?!(?<!\\)(?P=quote))[^\n]){{4,500}})|(?P<bare>[^\s\"'\\,;{{}}\[\]<>&|]{{6,}}))"
)
_BRACE = later(r"[{}]")
_NAMINGS = tuple(
    later(naming)
    for naming in (
        rf"(?i:(?<![a-z])(?:name|key|variable|header|type))(?:{_QUOTE})?[ \t]{{0,4}}[:=][ \t]{{0,4}}(?:{_QUOTE})?"
        rf"(?P<name>[\w./-]{{1,80}})",
        rf"(?P<name>--[\w-]{{1,60}}){_QUOTE},",
        rf"(?P<name>[\w.-]{{1,80}}){_QUOTE}[ \t]{{0,4}}:?[ \t]{{0,4}}\{{",
    )
)
"""Patterns for the name of a pair's value, which precedes it in the same object."""


def in_pair(text: str, at: int, _: Looking) -> Iterator[Span]:
    """Yield the value of `{"name": "DB_PASSWORD", "value": "..."}`, or of `"db_password": {"value": "..."}`."""
    match = _PAIRED.match(text, at)
    if match is None:
        return
    names = (each for naming in _NAMINGS for each in naming.finditer(text, max(0, at - 400), at))
    levels = (strength(each["name"]) for each in names if not _BRACE.search(text, each.end(), at))
    level = max(levels, default=Strength.NONE)  # the strongest name in the same object counts
    kind = "bare" if match["bare"] else "quoted"
    context = Context.LITERAL if kind == "quoted" else Context.TIGHT if level is Strength.PASSWORD else Context.SETTING
    if level and (tier := tier_of(level, match[kind], context, literal=context is not Context.SETTING)):
        yield Span(*match.span(kind), level.kind, tier)


LOOKS = ((_PAIR_LOOK, in_pair), (_MANIFEST_LOOK, in_manifest), (_KEY_END, before_key_end))
"""First looks, each with its closer look."""
