"""What a name says about its value: `DB_PASSWORD` names a password, `token_count` doesn't, nor does `cacheKey`.

A name is read word by word, as people write it, whatever joins the words. The last meaningful word decides. Words
after it may not matter (`password_2`, `secret_key_base`) or may show that the value is something else
(`password_file`), and words before it may show that it is not a secret (`public_key`, `max_tokens`).
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache

from agtrace_schema.patterns import later


class Strength(IntEnum):
    """How strongly a name indicates a secret: the weaker, the more its value must look like one."""

    NONE = 0
    KEY = 1
    """It may be one (`STORAGE_KEY`, `signature`): the value must look random."""
    SECRET = 2
    """It is one (`api_key`, `token`), unless the value reads like words, code or a reference."""
    PASSWORD = 3
    """It is one, and people choose the value, so that it may be nearly anything."""


PASSWORDS = (
    "password", "passwords", "passwd", "passwds", "passphrase", "passcode", "passwort", "kennwort",
    "contraseña", "contrasena",
    "senha", "motdepasse", "wachtwoord", "lösenord", "losenord", "hasło", "haslo", "heslo", "salasana", "jelszó",
    "jelszo", "şifre", "sifre", "parola", "parole", "пароль", "пароля", "密码", "密碼", "口令", "パスワード",
    "暗証番号", "비밀번호", "암호", "पासवर्ड", "סיסמה", "κωδικός", "mậtkhẩu", "كلمةالمرور", "requirepass",
    "masterauth",
    "userpass", "dbpass", "storepass", "keypass", "sshpass", "smtppass", "mailpass", "mysqlpwd", "sqlpwd",
    "rootpw", "bindpw", "ldappw", "userpw", "dbpwd", "userpwd",
    "convertfrompassword", "securestring", "palabraclave",
)  # fmt: skip
"""Endings of the names of passwords."""

WHOLE_PASSWORDS = frozenset({"pass", "pwd", "pw", "pin", "otp", "mdp", "clave"})
"""Words that name a password only if they stand alone."""

SECRETS = (
    "secret", "token", "apikey", "accesskey", "secretkey", "privatekey", "privkey", "encryptionkey", "signingkey",
    "masterkey", "validationkey", "decryptionkey",
    "accountkey", "authkey", "sharedkey", "adminkey", "appkey", "storagekey", "sessionkey", "servicekey",
    "hmackey", "jwtkey", "licensekey", "subscriptionkey", "webhookkey", "deploykey", "keybase", "serverkey",
    "consumerkey", "integrationkey", "rootkey", "writekey", "presharedkey", "psk", "clientkeydata", "secretstring",
    "connectionstring", "credential", "credentials", "mnemonic", "seedphrase", "bearer", "geheimnis",
    "schlüssel", "schluessel",
    "secreto", "segredo", "jeton", "claveapi", "chaveapi", "cléapi", "cleapi", "clésecrète", "секрет", "токен",
    "секретныйключ", "密钥", "密鑰", "令牌", "トークン", "シークレット", "秘密鍵", "비밀키", "토큰", "totp",
    "recoverycode",
    "backupcode", "unsealkey", "authorization", "passkey",
)  # fmt: skip
"""Endings of the names of machine-made secrets."""

WHOLE_SECRETS = frozenset({"creds", "pat", "secrets", "jwt", "salt", "sas", "community"})
KEYS = frozenset({"key", "keys", "auth", "cookie", "sig", "session", "dsn", "hash", "seed", "sid", "tokens"})
"""Words that may name a secret."""

OF_NO_ACCOUNT = frozenset(
    """
    base value val b64 base64 hex text plain plaintext raw env default prod production dev development staging test
    live sandbox old new current previous next primary secondary main here str string data again confirm confirmation v
    a b db the backup eu us ci local root admin user app json
    """.split()  # noqa: SIM905
)
"""Words after a name that change nothing: whose it is, where, which of several."""

NO_SECRETS = frozenset(
    """
    public publishable pub max min num number count total n page continuation sync cancel cancellation pad eos bos unk
    sep cls mask stop special design input output cached reasoning prompt completion no is has had use uses show hide
    toggle invalid wrong missing expired if def every any avg estimated remaining used budget per encode decode syntax
    lex
    """.split()  # noqa: SIM905
)
"""Words before a name that show it is not a secret's."""

OF_PAGES = frozenset({"forgot", "forget", "reset", "change", "update"})
"""Words before `password` that show it is a page, a question or a button."""
NO_KEYS = frozenset(
    """
    primary foreign sort partition range cache composite unique natural surrogate join object row column map dict hash
    group lookup index idx idempotency dedupe query react translation i18n message msg item file path route event
    config setting settings option state host known fingerprint ssh gpg pgp site routing lock redis bucket s3 data
    field property prop attr attribute label tag meta hot keyboard arrow enter escape ctrl shift alt tab modifier bind
    binding issue project jira shard distribution order parent child root metric feature recv trusted flag test node
    element entity record resource job task run build version commit git content etag checksum password dataset model
    block tx txn transaction image layer package lockfile workflow restore search sorted new old string integrity
    context trace span request response this self last first
    """.split()  # noqa: SIM905
)
"""Words before a possible key, hash or session that show it need not be kept secret."""

_TOO_PLAIN = {"key", "keys", "hash", "session", "seed", "tokens", "auth", "cookie"}
"""Those of `KEYS` that say nothing on their own."""
_WORDS = later(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|[0-9]+")
_BESIDE = ("publickey", "tokenizer", "applicationserverkey")
_WITH_KEY = ("api", "access", "secret", "private", "encryption", "signing", "master", "account", "auth", "shared",
             "admin", "app", "storage", "session", "service", "hmac", "jwt", "license", "subscription", "webhook",
             "deploy", "server", "consumer", "integration", "root", "write", "unseal", "client", "aes",
             "crypt", "crypto", "cipher", "vault", "django", "flask", "rails", "laravel", "signature", "cookie",
             "token",
             "password", "sas", "instrumentation", "ingest", "ingestion", "preshared", "wrapping", "recovery"
             )  # fmt: skip
"""Words that make a following `key` a secret."""
LONGEST = 100
"""The number of final characters of a name that are read; any before them are ignored."""


@lru_cache(maxsize=4096)
def strength(name: str) -> Strength:
    """Return how strongly a name, of any length and spelling, indicates that its value is a secret."""
    words = [word.lower() for word in _WORDS.findall(name[-LONGEST:])]
    while len(words) > 1 and (words[-1].isdecimal() or words[-1] in OF_NO_ACCOUNT):
        words.pop()
    if not words or any(word in NO_SECRETS for word in words[:-1]):
        return Strength.NONE
    *before, last = words
    joined = "".join(words)
    if joined.endswith(_BESIDE):
        return Strength.NONE
    if last in WHOLE_PASSWORDS or joined.endswith(PASSWORDS):
        return Strength.NONE if any(word in OF_PAGES for word in before) else Strength.PASSWORD
    if (
        joined.endswith(SECRETS)
        or last in WHOLE_SECRETS
        or (last == "key" and bool(before) and before[-1] in _WITH_KEY)
    ):
        return Strength.SECRET
    may_be = last in KEYS and (bool(before) or last not in _TOO_PLAIN)
    return Strength.KEY if may_be and not any(word in NO_KEYS for word in before) else Strength.NONE
