"""Texts that are not secrets, although they are where one would be: placeholders, references, code, prose.

Each check gets the text that a rule found and the one character after it, which distinguishes a call from a value.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from agtrace_schema.patterns import later

from agtrace_indexer.redact.names import Strength

_PLACEHOLDER = (
    r"\$[A-Za-z_][A-Za-z0-9_]*(?:[.:\[/)}?-].*)?\Z|\$[{(\[]|\.[*+]|\?|[<{\[(]|%[s({]|%[A-Z_]+%|@{1,2}[A-Z_]+@"
    r"|@[\w./~-]+\.[a-z]{2,5}\W?\Z|#\{|\*{2}|"
    r"\.{3}"
    r"|\u2026|\u2022|\Z"
    r"|(?:your|my|the|some|any|enter|insert|replace|put|add|use|set|fill)[^A-Za-z0-9]|redacted|masked|hidden|example"
    r"|your[a-z]*\Z|sample|placeholder|dummy|change[_-]?(?:me|this|it)|to[_-]?do\b|fix[_-]?me|x{3}|-+\Z|_+\Z|n/a\Z"
    r"|ssm:/|@Microsoft\.KeyVault|[A-Za-z0-9_.-]{0,12}(?:_REDACTED_|\u2022{3})|[a-z0-9]{1,6}_?[a-z]{1,4}\.\.\."
    r"|(?:none|null|nil|true|false|undefined|empty|unset|unknown|not[_ -]?set|same-origin|include|omit)[^A-Za-z0-9]?\Z"
    r"|(?:string|str|text|number|int|boolean|bool|object|any|bytes|required|optional|varchar|secretstr)"
    r"(?![A-Za-z0-9])(?!.*[0-9].*[0-9])"
    r"|ENC\[|\{cipher\}|!vault|!ref|!sub|!getatt|valueFrom|\\u003c|&lt;"
)
_REFERENCE = (
    r"(?![A-Za-z0-9+/]{42,86}=)(?:\.{1,2}|~)?/[\w.@-]+(?:/[\w.@-]*)*\W?\Z|[A-Za-z]:\\|[a-z][a-z0-9+.-]*://"
    r"|arn:aws|(?:env|file|vault|op|ref|cmd):\S"
    r"|[^\n]*[(\[{]\Z|[^\n]*(?:\$\{|\{\{|\$\()|(?:process|sys|import\.meta)\.(?:env|argv)|os\.(?:environ|getenv)|Sy"
    r"stem\.getenv"
    r"|(?:ENV|env|secrets|vars|settings|config|self|this|args|opts|options|props|ctx|data|req|request|body|params|user|"
    r"values|local|var|module|credentials?)[.\[]|[A-Za-z_][\w.:]*\("
)
_NAME = (
    r"(?:passw(?:or)?d|passwort|contraseña|senha|passphrase|pass|pwd|secret|token|credential|auth|(?:(?:api|access|"
    r"secret|private"
    r"|auth)[_-]?)?key)"
)
_OWN_NAME = (
    rf"_{{0,2}}(?:my|your|the|a)?(?:[A-Za-z]+[_-])*{_NAME}s?(?:[_-](?:here|value|name|id|file|path|env|var|ref|goes"
    rf"|placeholder)+)*_{{0,2}}\W?\Z"
)
_RANDOM = r"(?:[^\n]*(?:[0-9]{3}|[0-9][A-Za-z_]+[0-9]+[A-Za-z_]+[0-9])|(?:[^\n]*[A-Za-z][0-9]{1,2}[A-Za-z]){2})"
_TYPE = (
    r"[a-z]+(?:[A-Z][a-z]+)*(?:Token|Key|Password|Secret)s?\W?\Z|"
    r"(?:[A-Za-z_]\w*\.)*[A-Z][A-Za-z0-9]*?(?:Key|Token|Secret|Password|Credential)(?:s|Types?|V[0-9]+)?\W?\Z"
    r"|[A-Z]+(?:_[A-Z0-9]+){2,}\W?\Z|[a-z]+(?:\.[a-z]+){3,}\W?\Z"
)
_NUMBERED = r"[^\n]*[._](?!(?:sha|md|u?int|float|base|utf|aes|arm|v|x|oauth|http|ipv)[0-9])[A-Za-z]+[0-9]{2,4}\W?\Z"
"""Words of which the last is followed by a number, as in passwords that people choose."""
_SEGMENT = (
    r"(?>_{0,2}(?:[a-z]+(?:_[a-z0-9]+)*[0-9]?|(?:[a-z]+|[A-Z][a-z]+)(?:[A-Z][a-z]+)*[0-9]?"
    r"|(?:[A-Z]?[a-z]{2,}+[0-9]?)+|[A-Z]+(?:_[A-Z0-9]+)*)(?=\??\.|\W?\Z))"
)
"""A word as programs join them with dots; it can end in only one way, or all ways would be tried on a long value."""
_DOTTED = rf"(?!{_RANDOM}|{_NUMBERED}){_SEGMENT}(?:\??\.{_SEGMENT})+\W?\Z"
_PROSE = (
    r"(?i:(?=[^\n]*\s)[^\n]*(?<!\w)(?:passwords?|passphrase|enter|your|must|please|forgot|forgotten|new"
    r"|confirm|invalid|wrong"
    r"|incorrect|required|reset|the|is|are|was|at least|change|old|current|not|no|cannot|can't|and|or|of|to|for|with"
    r"|from|in|contraseña|senha|passe|passwort|пароль|token|secret)(?!\w))"
)
_CODE = r"[^\n]*(?:=>|&&|\|\||\?\?|\)\s*[;{]|;\s*$|function|return|===)"
_STATE = (
    r"(?i:(?:en|dis)abled|required|optional|missing|invalid|valid|expired|incorrect|correct|failed|failure|success|"
    r"accepted"
    r"|rejected|changed|updated|removed|deleted|created|provided|supplied|encrypted|decrypted|hashed|stored|saved|p"
    r"rotected"
    r"|generated|automatic|manual|default|inherit|prompt|interactive|always|never|string|secret|unknown|unset|publi"
    r"c|private"
    r"|bearer|basic|header|cookie|plaintext|bcrypt|argon|scrypt|sha|none|text|input|field|value|varchar|nullable)\W?\Z"
)
"""Words that describe a value and are not values themselves."""
_CODEC = (
    r"(?i:base64|hex|utf.?(?:8|16|32)|latin.?1|ascii|(?:scram-)?sha|md5|aes|[hrep]s(?:256|384|512)|rsa|ed25519|x255"
    r"19)[\w-]{0,16}\W?\Z"
)
"""Encodings and algorithms."""
_VERSIONED = r"[a-z]+(?:[:/-][a-z]+)*[:/]v[0-9]{1,2}\W?\Z"
"""Words joined by colons, followed by a version: keys of caches and of storage."""
_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\W?\Z"
_NO_DIGIT = r"[^0-9]*\Z"
_ONLY_NUMBER = r"[0-9.,:_%-]*\Z"

_VALUE = rf"(?i:{_PLACEHOLDER}|{_REFERENCE})"
_SECRET = rf"(?i:{_PLACEHOLDER}|{_REFERENCE}|{_OWN_NAME})|{_TYPE}"

_PATTERNS = {
    "no_value": _VALUE,
    "no_secret": rf"{_SECRET}|{_CODE}|[^\n]*x{{4}}\W?\Z",
    "no_quoted_secret": rf"{_SECRET}|{_CODE}|{_VERSIONED}|[^\n]*x{{4}}\W?\Z|[^\n]*\s",
    "no_unquoted_secret": rf"{_SECRET}|{_DOTTED}",
    "no_bare_secret": rf"{_SECRET}|{_DOTTED}|{_NO_DIGIT}|{_ONLY_NUMBER}|0x[0-9A-Fa-f]{{1,16}}\W?\Z",
    "no_bare_password": rf"{_SECRET}|{_DOTTED}|(?=[^0-9]*\Z)(?![^\n]*[!@#$%^*+~][^\n]*\w)|(?:[0-9.,:_-]{{0,5}}\W?"
    rf"|[0-9]+/[0-9]+\W?|[0-9]*[.,][0-9]*)\Z",
    "no_quoted_password": rf"[A-Za-z ]*[:?]\s*\Z|{_CODEC}|{_DOTTED}|{_SECRET}|{_PROSE}"
    rf"|{_CODE}|(?i:fail|pass|error|skipp?|ok)(?:ed"
    rf")?\Z"
    r"|[A-Za-z]+[:!?]\Z|type=|[0-9]{1,3}\Z",
    "no_login_option": rf"{_SECRET}|-|[0-9.]+(?::[0-9.]+)*(?:/[a-z]+)?\Z|{_DOTTED}|[0-9.]+:[0-9:]+|[a-z_]{{1,12}}\Z",
    "no_option": rf"{_SECRET}|-|[0-9.]+(?::[0-9.]+)*(?:/[a-z]+)?\Z|{_DOTTED}|[0-9.]+:[0-9:]+",
    "no_url_password": r"(?i:pass(?:word)?|passwd|pwd|pw|guest|admin|root|postgres|user(?:name)?|test|secret)@?\Z|\$"
    r"[A-Za-z_{(]|<|\{|%[s({]|%[A-Z_]+%|\*|x{3}|\["
    r"|(?i:\[redacted)|\.{3}|\u2026|@?:",
    "no_login": rf"{_VALUE}|(?i:pass(?:word)?|passwd|pwd|pw|guest|admin|secret|token|api_?key|test)\W?\Z",
    "no_entry": rf"{_VALUE}|[0-9]*\Z",
    "no_called": rf"{_SECRET}|{_PROSE}|{_DOTTED}|{_NO_DIGIT}|[^\n]*[\s(){{}}]|.{{0,7}}\Z|[a-z]+(?:[_/-][a-z]+)*[_/-]"
    rf"?[0-9]{{1,2}}\W?\Z|[A-Z_]+[0-9]*\W?\Z",
    "no_prose": _PROSE,
    "no_digit": rf"{_NO_DIGIT}|{_ONLY_NUMBER}|\[redacted",
    "no_mixture": rf"{_NO_DIGIT}|[^A-Za-z]*\Z|{_VALUE}",
    "no_header_secret": rf"{_SECRET}|{_NO_DIGIT}",
    "no_mixed": rf"{_SECRET}|{_DOTTED}|{_PROSE}|{_NO_DIGIT}|[^A-Za-z]*\Z|{_UUID}"
    r"|(?!(?:[a-z]*[0-9]){3}[a-z0-9]{20,})(?:(?![^\n]*[A-Z])|(?![^\n]*[a-z]))(?![^\n]*[!@#$%^*+~])[^\n]*\Z|[0-9a-f]"
    r"*\W?\Z|[^\n<]*[(){}>=]|[^\n<]*<(?!/|\Z)",
    "no_key": rf"{_SECRET}|{_DOTTED}|{_CODE}|{_NO_DIGIT}|[^A-Za-z]*\Z|{_UUID}|[a-z]+(?:[_-][a-z0-9]+)+\W?\Z"
    r"|[^\n]*[^A-Za-z0-9+/=_.~!@#$%^*-]\w|.{0,15}\Z|[^\n]*[./-][a-z]{2,4}\W?\Z",
    "no_told": rf"{_SECRET}|{_DOTTED}|{_NO_DIGIT}|[^A-Za-z]*\Z|{_UUID}|[^\n<]*[(){{}}>]|[a-z]+[-_]?[0-9]\W?\Z"
    r"|(?:[0-9a-f]{7,31}|[0-9]+[a-z]{1,4})\W?\Z|[^\n]*[/@]|v?[0-9]+(?:\.[0-9]+)+|[0-9]{4}-[0-9]{2}",
    "no_tagged": rf"{_SECRET}|{_DOTTED}|{_CODE}|{_ONLY_NUMBER}|[A-Za-z][a-z]{{0,7}}\W?\Z",
    "no_letters": rf"{_SECRET}|{_DOTTED}|{_PROSE}|{_STATE}|[a-z]+(?:[A-Z][a-z]{{2,}})+\W?\Z|[^\n]*"
    rf"[(){{}}\[\]<>=:,;/]|[a-z]+(?:_[a-z]+)+\W?\Z|.{{0,5}}\Z"
    r"|[A-Za-z]+[_.-][A-Za-z]+\W?\Z|[A-Z][a-z]{2,}(?:[A-Z][a-z]{2,})*\W?\Z",
    "no_unquoted_sql": rf"{_SECRET}|{_DOTTED}|[^\n]*[(){{}}]|[a-z_]*\W?\Z",
    "no_sql": rf"{_SECRET}|{_PROSE}|{_CODE}|[a-z]{{1,9}}\Z|[^\n]*[:?]\s*\Z",
    "no_passed": rf"{_NO_DIGIT}|{_CODEC}|[a-z]+(?:[ _-][a-z]+)+[0-9]?\W?\Z|{_SECRET}|{_PROSE}|{_CODE}|[^\n]*\s|.{{0,"
    rf"5}}\Z|[^\n]*(?:[(){{}}]|=>)",
    "no_pushed": rf"{_SECRET}|-|[^\n]*[/\\]|(?![0-9a-f-]{{32,}}\W?\Z)(?:{_NO_DIGIT}|[^A-Za-z]*\Z|.{{0,9}}\Z)|v?[0-9]"
    rf"+(?:\.[0-9]+)+",
    "no_named_option": rf"{_SECRET}|@|[0-9.]+\Z",
    "no_signature": rf"{_NO_DIGIT}|[^A-Za-z]*\Z|{_VALUE}|[a-z]+(?:[_-][a-z0-9]+)+\W?\Z",
    "no_cookie": rf"GA1\.[0-9.-]+|{_VALUE}|{_NO_DIGIT}|{_ONLY_NUMBER}",
    "no_session": rf"{_VALUE}|{_NO_DIGIT}|{_ONLY_NUMBER}|{_UUID}",
}


_EXAMPLE = later(
    r"[^\n\s]{0,24}?(?:\*{4}|REPLACE|your-)|[A-Za-z0-9_-]{0,12}?(?:(?:EXAMPLE|YOUR)[A-Z_]*)+\W?\Z"
    r"|[A-Za-z]{0,6}-(?:x{4,}-?)+\W?\Z|"
    r"[A-Za-z0-9_/-]{0,24}?(?:(?:[xX]{8,}|0{16,}[0-9]?)\W?\Z|(?:\.{3}|\u2026)(?:\W|\Z))"
    r"|[A-Za-z0-9/+]{13,33}EXAMPLE(?:KEY)?\W?\Z"
    r"|-----BEGIN[^\n\\]{0,60}-----(?:[\s+>#]|\\+n)*(?:\.{3}|\u2026|<[^>\n]*>|\[[^\]\n]*\]|(?:[xX*.]{3,}(?:[\s+>#]|"
    r"\\+n)*)+)(?:[\s+>#]|\\+n)*-----END"
)
"""The placeholders of documentation for secrets of any kind, such as AWS's examples."""


def is_none(check: str, found: str) -> bool:
    """Whether a found text, including the character after it, is an example or fails the rule's check, if any."""
    return is_example(found) or bool(check and fails(check, found))


def is_example(found: str) -> bool:
    """Whether a text is a placeholder of documentation for secrets of any kind."""
    return _EXAMPLE.match(found) is not None


def _no_basic(found: str) -> bool:
    """Whether a text is not the base64 of a user and a password (RFC 7617)."""
    packed = found.rstrip(" \t\"'\\,;)")
    try:
        said = base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
    except (binascii.Error, ValueError):
        return len(packed) < _LONG or packed.isalpha()
    return b":" not in said[:-1] or not all(byte >= 0x20 for byte in said)


_LONG = 30
"""The number of characters from which a text is a registry's token rather than chance."""


@cache
def _check(name: str) -> Callable[[str], object]:
    """Return the check with this name, true for texts that aren't secrets; compiled on first use."""
    return _no_basic if name == "no_basic" else re.compile(_PATTERNS[name]).match


def fails(check: str, found: str) -> bool:
    """Whether the named check says that the found text is not a secret."""
    return bool(_check(check)(found))


# --- values after a name


class Value(NamedTuple):
    """The value after a name."""

    text: str
    quoted: bool
    behind: str
    """The one character after it, empty at the end of the text: it distinguishes a call from a value."""
    tight: bool
    """Whether it is assigned as in a shell or a settings file: an upper-case name, `=`, no blanks."""
    ends_line: bool
    """Whether nothing but blanks or a comment follows."""


_OF_PROSE = frozenset({
    "about", "above", "access", "account", "admin", "after", "allow", "also", "and", "anything", "auth",
    "authentication", "based", "because", "been", "before", "below", "bootstrap", "button", "change", "changed",
    "check", "checker", "class", "client", "component", "config", "confirm", "contains", "controller", "correct",
    "create", "credentials", "current", "custom", "default", "details", "dialog", "does", "empty", "encoder", "enter",
    "environment", "error", "event", "example", "exception", "expired", "factory", "field", "file", "flow", "for",
    "forgot", "form", "free", "from", "generator", "given", "grant", "handler", "hash", "hasher", "have", "help",
    "here", "hidden", "icon", "incorrect", "input", "into", "invalid", "keep", "key", "label", "least", "length",
    "less", "like", "login", "long", "make", "manager", "manual", "match", "missing", "module", "must", "name",
    "need", "needs", "never", "new", "not", "old", "only", "option", "page", "param", "passphrase", "password",
    "phrase", "placeholder", "please", "plugin", "policy", "prompt", "protected", "provide", "provided", "provider",
    "random", "request", "required", "reset", "response", "reuse", "rotation", "same", "secret", "server", "service",
    "set", "should", "show", "some", "store", "string", "strong", "super", "test", "text", "than", "that", "the",
    "them", "then", "there", "they", "this", "toggle", "token", "type", "update", "use", "used", "user", "using",
    "validator", "value", "variable", "verifier", "view", "want", "were", "when", "where", "which", "will", "with",
    "words", "wrong", "you", "your",
})  # fmt: skip
"""Words that prose, names and examples are made of, but passphrases are not."""
_CHOSEN = later(r"[a-z]{4,10}(?:-[a-z]{3,10}){3,8}|(?:[A-Z][a-z]{3,9}){3,6}")
"""Four words or more joined by dashes, or three or more with capitals."""
_CHOSEN_WORD = later(r"[A-Za-z][a-z]+")


def is_passphrase(text: str) -> bool:
    """Whether a text consists of words that have no meaning together, as people join them into a passphrase."""
    if _CHOSEN.fullmatch(text) is None:
        return False
    return all(word.lower() not in _OF_PROSE for word in _CHOSEN_WORD.findall(text))


_SHORTEST = {Strength.PASSWORD: 4, Strength.SECRET: 8, Strength.KEY: 16}
"""The least length of a value; a bare password needs one character more."""


@lru_cache(1024)  # what recurs in a text recurs soon
def is_secret(strength: Strength, value: Value) -> bool:
    """Whether a value is a secret, judging by the strength of its name and by its looks."""
    text = value.text.rstrip("\"'`\\,; \t\r\n") if value.quoted else value.text
    shortest = 6 if value.tight and strength is Strength.SECRET else _SHORTEST[strength]
    if len(text) < shortest or is_example(text):
        return False
    if strength is Strength.PASSWORD and is_passphrase(text) and (value.quoted or "-" in text or value.ends_line):
        return True
    return not any(fails(check, text if value.quoted else text + value.behind) for check in _checks(strength, value))


def _checks(strength: Strength, value: Value) -> Iterator[str]:
    """Yield the checks that reject a value; it is a secret if none of them does."""
    if strength is Strength.KEY:
        yield "no_key"
    elif value.quoted:
        yield "no_quoted_password" if strength is Strength.PASSWORD else "no_quoted_secret"
    elif value.tight:
        yield "no_unquoted_secret"
    elif strength is Strength.SECRET:
        yield "no_bare_secret"
    elif value.ends_line and not any(map(str.isdecimal, value.text)):
        yield "no_letters"
    else:
        yield "no_bare_password"
