"""Secrets by the names of their fields in JSON values, in the languages that people name them in."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from agtrace_schema.events import Json

from agtrace_indexer.redact.checks import CHECKS
from agtrace_indexer.redact.engine import Redactor

MASK = "[redacted: named-secret]"

_PASSWORDS = (
    "password", "passwords", "passwd", "passphrase", "passcode", "userpass", "dbpass", "dbpwd", "userpwd", "passwort",
    "kennwort", "contraseña", "contrasena", "senha", "motdepasse", "wachtwoord", "lösenord", "losenord", "hasło",
    "haslo", "heslo", "salasana", "jelszó", "şifre", "пароль", "密码", "密碼", "口令", "パスワード", "暗証番号",
    "비밀번호", "암호", "पासवर्ड", "סיסמה",
)  # fmt: skip
_KEYS = (
    "secret", "authorization", "apikey", "accesskey", "secretkey", "privatekey", "encryptionkey", "signingkey",
    "masterkey", "accountkey", "authkey", "sharedkey", "clientkeydata", "secretstring", "secretaccesskey",
    "accesstoken", "authtoken", "refreshtoken", "bearertoken", "apitoken", "sessiontoken", "securitytoken",
    "connectionstring", "mnemonic", "seedphrase", "geheimnis", "schlüssel", "schluessel", "secreto", "segredo",
    "секрет", "токен", "密钥", "密鑰", "令牌", "トークン", "シークレット", "秘密鍵", "비밀키", "토큰",
    "clésecrète", "jeton",
)  # fmt: skip
_SECRETS = (*_PASSWORDS, *_KEYS)
_WHOLE = frozenset(
    {"pass", "pwd", "pw", "pin", "otp", "totp", "cookie", "setcookie", "credentials", "passkey"}
    | {"mdp", "clave", "parola"}
)
"""Names that say so only where nothing stands before them."""

_NO_TOKENS = ("nextpagetoken", "pagetoken", "nexttoken", "continuationtoken", "synctoken", "canceltoken", "padtoken",
              "eostoken", "bostoken", "unktoken")  # fmt: skip
_FORMS: dict[str, Callable[[str], object]] = {
    "auth": lambda text: not CHECKS["no_basic"](text),
    "secretid": re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch,
}
"""Names that say so only of texts of a form: the login of a registry, the secret id of Vault."""
_SHORTEST_TOKEN = 8
_SHORTEST_NUMBER = 4
_LONGEST_NAME = 64
_NAMING, _NAMED = ("name", "key", "variable", "header"), ("value", "secret", "default")
_SEPARATORS = re.compile(r"[_\-.\s]+")


def names_secret(key: str) -> bool:
    """Whether a text may be masked for the name of its key alone; a very long key always may."""
    return _says_secret(key) or key.lower() in _NAMING


def _says_secret(key: str) -> bool:
    return len(key) > _LONGEST_NAME or _kind(key) is not None


@lru_cache(maxsize=1024)
def _kind(key: str) -> str | None:
    """What a name says of its value: `password`, `secret`, `token`, one of `_FORMS`; None for nothing."""
    name = _bare(key)
    if name.endswith(_PASSWORDS) or name in _WHOLE or key.lower().endswith(("_pass", "_pwd", "-pass")):
        return "password"
    if name.endswith(_SECRETS):
        return "secret"
    if name in _FORMS:
        return name
    is_token = key.lower().endswith("_pat") or (name.endswith("token") and not name.endswith(_NO_TOKENS))
    return "token" if is_token else None


def _bare(key: str) -> str:
    return _SEPARATORS.sub("", key.lower())


def redact_json(redactor: Redactor, value: Json) -> Json:
    """Mask the secrets in the keys and leaves of a JSON value, and whole texts under a secret's name.

    Nearly all values hold none: one look at all their texts together tells, as a look at each would.
    """
    if isinstance(value, str):
        return redactor.redact(value)
    if not isinstance(value, (dict, list)):
        return value
    texts: list[str] = []
    if _gather(value, texts) and not redactor.suspicious("\n".join(texts)):
        return value
    if isinstance(value, list):
        return [redact_json(redactor, item) for item in value]
    named = _named_value(value)
    return {
        redactor.redact(key): _field(redactor, named or key if key.lower() in _NAMED else key, item)
        for key, item in value.items()
    }


def _gather(value: Json, texts: list[str]) -> bool:
    """Collect the texts of a value; False where a key's name may tell of a secret."""
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, list):
        return all(_gather(item, texts) for item in value)
    elif isinstance(value, dict):
        texts += value
        named = any(map(_says_secret, value)) or _named_value(value) is not None
        return not named and all(_gather(item, texts) for item in value.values())
    return True


def _named_value(value: dict[str, Json]) -> str | None:
    """The name of a secret whose value is another field: `{"name": "DB_PASSWORD", "value": "..."}`."""
    for key, name in value.items():
        if key.lower() in _NAMING and isinstance(name, str) and len(name) <= _LONGEST_NAME and _kind(name):
            return name
    return None


def _field(redactor: Redactor, key: str, value: Json) -> Json:
    """Mask a text by the name of its key, unless it is a placeholder or a reference."""
    kind = _kind(key) if len(key) <= _LONGEST_NAME else _kind(key[-_LONGEST_NAME:])
    if kind is None or value is None or isinstance(value, bool):
        return redact_json(redactor, value)
    if kind == "password" and isinstance(value, list):
        return [_field(redactor, key, item) for item in value]
    if isinstance(value, dict):
        return {
            redactor.redact(inner): _field(redactor, key if inner.lower() in _NAMED else inner, item)
            for inner, item in value.items()
        }
    if not isinstance(value, (str, int)):
        return redact_json(redactor, value)
    text = str(value)
    if _is_secret(kind, text) and not redactor.allows(text):
        return MASK
    return redactor.redact(value) if isinstance(value, str) else value


def _is_secret(kind: str, text: str) -> bool:
    if kind in _FORMS:
        return bool(_FORMS[kind](text))
    if text.replace(".", "", 1).isdecimal():
        return kind == "password" and len(text) >= _SHORTEST_NUMBER
    if kind == "token":
        return len(text) >= _SHORTEST_TOKEN and not CHECKS["no_secret"](text)
    return not CHECKS["no_value"](text)
