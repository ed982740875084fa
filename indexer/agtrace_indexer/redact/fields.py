"""Secrets in JSON values, recognized by the names of their fields."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from agtrace_schema.events import Json
from agtrace_schema.patterns import later

from agtrace_indexer.redact.engine import Redactor
from agtrace_indexer.redact.names import LONGEST, Strength, strength, words
from agtrace_indexer.redact.values import Sort, Tier, is_login, is_secret, sort

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


def redact_json(redactor: Redactor, value: Json) -> Json:
    """Mask the secrets in the keys and leaves of a JSON value, and whole texts under the name of a secret.

    Nearly all values have none, which one look at all their texts together shows as well as a look at each.
    """
    if isinstance(value, str):
        return redactor.redact(value)
    if not isinstance(value, (dict, list)):
        return value
    texts: list[str] = []
    if not _gather(value, texts) and not redactor.suspicious("\n".join(texts)):
        return value
    with redactor.looked_at(texts):
        return _redacted(redactor, value)


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


def _redacted(redactor: Redactor, value: Json) -> Json:
    """Mask every key and leaf, one by one."""
    if isinstance(value, str):
        return redactor.redact(value)
    if isinstance(value, list):
        return [_redacted(redactor, item) for item in value]
    if not isinstance(value, dict):
        return value
    named = _named_value(value)
    return {
        redactor.redact(key): _field(redactor, named or key if key.lower() in _NAMED else key, item)
        for key, item in value.items()
    }


def _named_value(value: dict[str, Json]) -> str | None:
    """Return the name of a secret whose value is in another field: `{"name": "DB_PASSWORD", "value": "..."}`."""
    for key, name in value.items():
        if key.lower() in _NAMING and isinstance(name, str) and len(name) <= LONGEST and strength(name):
            return name
    return None


def _field(redactor: Redactor, key: str, value: Json) -> Json:
    """Mask a text because of its key's name, unless it is a placeholder or a reference."""
    level = strength(key)
    if (not level and _bare(key) not in _FORMS) or value is None or isinstance(value, bool):
        return _redacted(redactor, value)
    if level is Strength.PASSWORD and isinstance(value, list):
        return [_field(redactor, key, item) for item in value]
    if isinstance(value, dict):
        return {
            redactor.redact(inner): _field(redactor, key if inner.lower() in _NAMED else inner, item)
            for inner, item in value.items()
        }
    if not isinstance(value, (str, int)):
        return _redacted(redactor, value)
    text = str(value)
    if _is_secret(level, key, text) and not redactor.allows(text):
        return f"[redacted: {level.name.lower() if level else 'secret'}]"
    return redactor.redact(value) if isinstance(value, str) else value


def _is_secret(level: Strength, key: str, text: str) -> bool:
    """Whether a whole text under a name is a secret: since its end is known, it may contain blanks."""
    if not level:
        return bool(_FORMS[_bare(key)](text))
    if text.replace(".", "", 1).isdecimal():
        return level is Strength.PASSWORD and len(text) >= _SHORTEST_NUMBER
    if level is not Strength.KEY and " " in text.strip():
        return sort(text[:500]) >= Sort.PLAIN and words("vocabulary").isdisjoint(text.lower().split())
    return is_secret(level, text, Tier.TIGHT if key.isupper() else Tier.LITERAL, literal=True)
