"""Secrets in JSON values, recognized by the names of their fields."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from agtrace_schema.events import Json
from agtrace_schema.patterns import later

from agtrace_indexer.redact.engine import Redactor
from agtrace_indexer.redact.names import LONGEST, Strength, strength, words
from agtrace_indexer.redact.values import JUDGED, Context, Sort, Tier, is_login, sort, tier_of

_FORMS: dict[str, Callable[[str], object]] = {
    "auth": is_login,
    "secretid": re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch,
}
"""Names that indicate a secret only with texts of a certain form: the login of a registry, the secret id of Vault."""
_SHORTEST_NUMBER = 4
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


def redact_json(redactor: Redactor, value: Json) -> Json:
    """Mask the secrets in the keys and leaves of a JSON value, and whole texts under the name of a secret.

    Nearly all values have none, which one look at all their texts together shows.
    """
    if isinstance(value, str):
        return redactor.redact(value)
    if not isinstance(value, (dict, list)):
        return value
    texts: list[str] = []
    named = _gather(value, texts)
    with redactor.looked_at(texts) as suspicious:
        return _redacted(redactor, value) if named or suspicious else value


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


def _redacted(redactor: Redactor, value: Json, name: str = "") -> Json:
    """Mask every key and leaf, one by one; a text below the name of a secret unless it is a placeholder or a reference.

    Such a name holds also for the value of an object below it, and that of a password for the items of a list.
    """
    level = strength(name)
    if isinstance(value, list):
        return [_redacted(redactor, item, name if level is Strength.PASSWORD else "") for item in value]
    if isinstance(value, dict):
        outer = _named_value(value) or (name if level else "")
        return {
            redactor.redact(key): _redacted(redactor, item, outer if outer and key.lower() in _NAMED else key)
            for key, item in value.items()
        }
    if value is None or isinstance(value, (bool, float)):
        return value
    text = str(value)
    tier = _tier(level, name, text) if level or _bare(name) in _FORMS else None
    if tier and not redactor.allows(text) and redactor.masks(text, level.kind, tier):
        return f"[redacted: {level.kind}]"
    return redactor.redact(value) if isinstance(value, str) else value


def _named_value(value: dict[str, Json]) -> str | None:
    """Return the name of a secret whose value is in another field: `{"name": "DB_PASSWORD", "value": "..."}`."""
    for key, name in value.items():
        if key.lower() in _NAMING and isinstance(name, str) and len(name) <= LONGEST and strength(name):
            return name
    return None


def _tier(level: Strength, key: str, text: str) -> Tier | None:
    """Return how surely a whole text under a name is a secret: since its end is known, it may contain blanks."""
    if not level:
        secret = bool(_FORMS[_bare(key)](text))
    elif text.replace(".", "", 1).isdecimal():
        secret = level is Strength.PASSWORD and len(text) >= _SHORTEST_NUMBER
    elif level is not Strength.KEY and " " in text.strip():
        secret = sort(text[:JUDGED]) >= Sort.PLAIN and words("vocabulary").isdisjoint(text.lower().split())
    else:
        return tier_of(level, text, Context.TIGHT if key.isupper() else Context.LITERAL, literal=True)
    return Tier.LIKELY if secret else None
