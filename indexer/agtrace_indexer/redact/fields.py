"""Secrets in JSON values, recognized by the names of their fields."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from agtrace_schema.events import Json
from agtrace_schema.patterns import later

from agtrace_indexer.redact.engine import Redactor
from agtrace_indexer.redact.names import LONGEST, Strength, strength, words
from agtrace_indexer.redact.values import Context, Sort, Span, Tier, is_login, sort, tier_of

_FORMS: dict[str, Callable[[str], object]] = {
    "auth": is_login,
    "secretid": re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch,
}
"""Names that indicate a secret only with texts of a certain form: the login of a registry, the secret id of Vault."""
_SHORTEST_NUMBER, _SHORTEST_SECRET = 4, 6
_NAMING, _NAMED = ("name", "key", "variable", "header"), ("value", "secret", "default")
_SEPARATORS = later(r"[_\-.\s]+")


def names_secret(key: str) -> bool:
    """Whether a text may be masked because of its key's name alone; always true for a very long key."""
    return _says_secret(key) or key.lower() in _NAMING


@lru_cache(maxsize=4096)
def _says_secret(key: str) -> bool:
    return len(key) > LONGEST or bool(strength(key)) or _bare(key) in _FORMS


def _bare(key: str) -> str:
    return _SEPARATORS.sub("", key.lower())


class _Treatment(NamedTuple):
    """What is done with the texts of a JSON value, each time returning the text that is to stand there."""

    text: Callable[[str], str]
    named: Callable[[str, Span], str]
    """With a text that is a secret as a whole because of its name."""


def redact_json(redactor: Redactor, value: Json) -> Json:
    """Mask the secrets in the keys and leaves of a JSON value, and whole texts under the name of a secret.

    Nearly all values have none, which one look at all their texts together shows as well as a look at each.
    """
    if isinstance(value, str):
        return redactor.redact(value)
    if not isinstance(value, (dict, list)):
        return value
    texts: list[str] = []
    named_any = _gather(value, texts)

    def named(text: str, span: Span) -> str:
        surely = not redactor.allows(text) and redactor.masks(text, span.kind, span.tier)
        return f"[redacted: {span.kind}]" if surely else redactor.redact(text)

    with redactor.looked_at(texts) as suspicious:
        return _treated(_Treatment(redactor.redact, named), value) if named_any or suspicious else value


def secrets(redactor: Redactor, value: Json) -> list[tuple[str, Span]]:
    """Return all that is found in the keys and leaves, with the text of each, and also what is only possible."""
    found: list[tuple[str, Span]] = []

    def within(text: str) -> str:
        found.extend((text, span) for span in redactor.secrets(text))
        return text

    def named(text: str, span: Span) -> str:
        if not redactor.allows(text):
            found.append((text, span))
        return text if span.tier > Tier.POSSIBLE else within(text)

    _treated(_Treatment(within, named), value)
    return found


def _gather(value: Json, texts: list[str]) -> bool:
    """Collect the texts of a value; return whether the name of any key may indicate a secret."""
    if isinstance(value, str):
        texts.append(value)
        return False
    named, items = False, value if isinstance(value, list) else []
    if isinstance(value, dict):
        texts += value
        named = any(map(_says_secret, value)) or _named_value(value) is not None
        items = list(value.values())
    for item in items:
        named |= _gather(item, texts)
    return named


def _treated(treatment: _Treatment, value: Json) -> Json:
    """Treat every key and leaf, one by one."""
    if isinstance(value, str):
        return treatment.text(value)
    if isinstance(value, list):
        return [_treated(treatment, item) for item in value]
    if not isinstance(value, dict):
        return value
    named = _named_value(value)
    return {
        treatment.text(key): _field(treatment, named or key if key.lower() in _NAMED else key, item)
        for key, item in value.items()
    }


def _named_value(value: dict[str, Json]) -> str | None:
    """Return the name of a secret whose value is in another field: `{"name": "DB_PASSWORD", "value": "..."}`."""
    for key, name in value.items():
        if key.lower() in _NAMING and isinstance(name, str) and len(name) <= LONGEST and strength(name):
            return name
    return None


def _field(treatment: _Treatment, key: str, value: Json) -> Json:
    """Treat a text because of its key's name, unless it is a placeholder or a reference."""
    level = strength(key)
    if (not level and _bare(key) not in _FORMS) or value is None or isinstance(value, bool):
        return _treated(treatment, value)
    if level is Strength.PASSWORD and isinstance(value, list):
        return [_field(treatment, key, item) for item in value]
    if isinstance(value, dict):
        return {
            treatment.text(inner): _field(treatment, key if inner.lower() in _NAMED else inner, item)
            for inner, item in value.items()
        }
    if not isinstance(value, (str, int)):
        return _treated(treatment, value)
    text = str(value)
    tier = _tier(level, key, text)
    if tier is None:
        return treatment.text(value) if isinstance(value, str) else value
    span = Span(0, len(text), level.name.lower() if level else "secret", tier)
    treated = treatment.named(text, span)
    return value if treated == text else treated


def _tier(level: Strength, key: str, text: str) -> Tier | None:
    """Return how surely a whole text under a name is a secret: since its end is known, it may contain blanks."""
    if not level:
        secret = bool(_FORMS[_bare(key)](text))
    elif text.replace(".", "", 1).isdecimal():
        secret = level is Strength.PASSWORD and len(text) >= _SHORTEST_NUMBER
    elif level is not Strength.KEY and " " in text.strip():
        secret = sort(text[:500]) >= Sort.PLAIN and words("vocabulary").isdisjoint(text.lower().split())
    else:
        return tier_of(level, text, Context.TIGHT if key.isupper() else Context.LITERAL, literal=True)
    return Tier.LIKELY if secret else None
