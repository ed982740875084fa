"""Masking of secrets, by their known forms and by the names they are assigned to.

Nearly all texts hold no secret, so the question "is there any?" is asked first and must be cheap:
the gates of all rules are one pattern of Rust's regex engine, which comes with pydantic and searches
for literals with vector instructions. Only a text that passes is looked at rule by rule. Entropy
is no sign of a secret: ids, hashes and paths of logs would fall to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from agtrace_schema.events import Json
from pydantic_core import SchemaValidator, core_schema

_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"  # \b fails where JSON is quoted in JSON: the n of \n is a letter
_OWN_RUN = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"  # keeps the search linear, too: one start per run of letters
_QUOTE = r"""\\{0,3}["']"""
_ASSIGNED = rf"(?:{_QUOTE})?[ \t]{{0,4}}(?::=|=>|=|:)[ \t]{{0,4}}"
_NAME = r"(?:passwd|password|passphrase|secret|token|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key)"
_TOKEN = r"[A-Za-z0-9._~+/=-]"

_PLACEHOLDER = (
    r"\$[A-Za-z_{(]|[<{\[(]|%[s({A-Z]|\*{2}|\.{3}|\Z|your|redacted|example|placeholder|change[_-]?me|x{4}"
    r"|(?:none|null|true|false|undefined)[^A-Za-z0-9]?\Z"
)
_REFERENCE = (
    r"(?:\.{1,2}|~)?/[\w.@-]+(?:/[\w.@-]*)*\Z|[A-Za-z]:\\|[a-z][a-z0-9+.-]*://"
    r"|[^\n]*[(\[{]\Z|[^\n]*(?:\$\{|\{\{|\$\()"
)
_OWN_NAME = rf"(?:[A-Za-z]+[_-])*{_NAME}s?\Z"
_DOTTED = r"[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)+\W?\Z"
_NO_VALUE = re.compile(rf"(?i:{_PLACEHOLDER}|{_REFERENCE})")
_NO_SECRET = re.compile(rf"(?i:{_PLACEHOLDER}|{_REFERENCE}|{_OWN_NAME})")
_NO_UNQUOTED_SECRET = re.compile(rf"(?i:{_PLACEHOLDER}|{_REFERENCE}|{_OWN_NAME})|{_DOTTED}")
_NO_BARE_SECRET = re.compile(  # in lower case it may as well be code: a name, a number, the start of a sentence
    rf"(?i:{_PLACEHOLDER}|{_REFERENCE}|{_OWN_NAME})|{_DOTTED}|[^0-9]*\Z|[0-9.,:_-]*\Z"
)
_NO_DIGIT = re.compile(r"[^0-9]*\Z")


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret."""

    name: str
    """What the mask says: `[redacted: <name>]`."""
    pattern: re.Pattern[str]
    """Where the secret is; only the group `secret` is masked where there is one."""
    source: str
    """Who says that secrets look so."""
    positive: str
    """A made-up secret that must be masked."""
    near_miss: str
    """A similar text that must stay."""
    gate: str
    """A pattern in Rust's syntax that is found in every text in which `pattern` is found."""
    unless: re.Pattern[str] | None = None
    """What is no secret although it stands where one would: matched on it and the character behind it."""


def _rule(
    name: str,
    pattern: str,
    source: str,
    positive: str,
    near_miss: str,
    gate: str = "",
    unless: re.Pattern[str] | None = None,
) -> Rule:
    gate = gate or pattern.replace("(?P<secret>", "(?:")
    return Rule(name, re.compile(pattern), source, positive, near_miss, gate, unless)


_A20 = "abcDEF0123456789ghij"  # twenty characters that no generator ever made
_HEX32 = "0123456789abcdef" * 2
_GITHUB = "GitHub docs, 'About authentication to GitHub: token formats'"
_GITLAB = "GitLab docs, 'Token overview: token prefixes'"
_GITLEAKS = "gitleaks, config/gitleaks.toml"

RULES: tuple[Rule, ...] = (
    _rule(
        "private-key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:[^-]|-(?!----))*+-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"|(?:(?:\s|\\{1,3}[nr])*+[A-Za-z0-9+/=]{40,}+)+(?:(?:\s|\\{1,3}[nr])*+[A-Za-z0-9+/=]{0,39}={1,2})?)",
        "RFC 7468; OpenSSH and PGP armour; the second form is a block that was cut off",
        "-----BEGIN RSA PRIVATE KEY-----\\nMIIEpAIBAAKCAQEA" + _A20 + "\\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG\n-----END PUBLIC KEY-----",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY",
    ),
    _rule(
        "jwt",
        _OWN_RUN + r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",
        'RFC 7519; `eyJ` is base64 of `{"`',
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.c2lnbmF0dXJl",
        "eyJhbGciOiJIUzI1NiJ9 alone",
        r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8}",
    ),
    _rule(
        "anthropic-key",
        r"sk-ant-[A-Za-z0-9_-]{16,}",
        "Anthropic docs; " + _GITLEAKS,
        "sk-ant-api03-" + _A20,
        "sk-ant-api03",
    ),
    _rule("openrouter-key", r"sk-or-v1-[0-9a-f]{32,}", "OpenRouter docs", "sk-or-v1-" + _HEX32, "sk-or-v1-beta"),
    _rule(
        "openai-key",
        _START + r"sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{16,}|[A-Za-z0-9]{20,})",
        "OpenAI docs; " + _GITLEAKS,
        "sk-proj-" + _A20,
        "task-0123456789abcdef0123456789, risk-based, disk-usage, sk-fading-circle-container",
        r"sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{16}|[A-Za-z0-9]{20})",
    ),
    _rule("github-token", r"gh[pousr]_[A-Za-z0-9]{20,}", _GITHUB, "ghp_" + _A20 * 2, "ghp_short, high_priority"),
    _rule("github-pat", r"github_pat_[A-Za-z0-9_]{20,}", _GITHUB, "github_pat_" + _A20 + "_" + _A20, "github_pat_name"),
    _rule("gitlab-token", r"gl(?:pat|ptt|rt|dt)-[A-Za-z0-9_-]{20,}", _GITLAB, "glpat-" + _A20, "glpat-short"),
    _rule(
        "aws-key-id",
        r"(?:(?<![A-Za-z0-9+/])|(?<=\\[nrt]))A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9+/=])",
        "AWS IAM docs, 'Understanding unique ID prefixes'",
        "AKIA0123456789ABCDEF",
        "AKIA0123456789ABCDEF0123, AKIA",
        r"A[KS]IA[A-Z0-9]{16}",
    ),
    _rule(
        "aws-secret-key",
        rf"(?i:aws_?secret_?(?:access_?)?key){_ASSIGNED}(?:{_QUOTE})?(?P<secret>[A-Za-z0-9/+]{{40}})",
        "AWS CLI docs, 'Configuration and credential file settings'",
        "aws_secret_access_key = " + _A20 * 2,
        "aws_secret_access_key = ${SECRET}",
    ),
    _rule("google-api-key", r"AIza[A-Za-z0-9_-]{30,}", _GITLEAKS, "AIza" + _A20 + "klmnopqrstuvwxy", "AIzaSy"),
    _rule("google-oauth-token", r"ya29\.[A-Za-z0-9_-]{20,}", "Google OAuth 2.0 docs", "ya29." + _A20, "ya29.short"),
    _rule(
        "slack-token", r"xox[abeoprs]-[A-Za-z0-9-]{10,}", "Slack docs, 'Tokens'", "xoxb-123456789012-abc", "xoxb-one"
    ),
    _rule(
        "slack-webhook",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_+-]{20,})",
        "Slack docs, 'Incoming webhooks': the URL is the secret",
        "https://hooks.slack.com/services/T00000000/B00000000/" + _A20,
        "https://hooks.slack.com/services/...",
    ),
    _rule(
        "stripe-key",
        _START + r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
        "Stripe docs, 'API keys'",
        "sk_live_" + _A20,
        "disk_test_0123456789abcdef",
        r"[sr]k_(?:live|test)_[A-Za-z0-9]{16}",
    ),
    _rule("stripe-webhook-secret", r"whsec_[A-Za-z0-9+/]{20,}={0,2}", "Stripe docs", "whsec_" + _A20, "whsec_name"),
    _rule(
        "npm-token", r"npm_[A-Za-z0-9]{30,}", "npm docs, 'About access tokens'", "npm_" + _A20 * 2, "npm_config_cache"
    ),
    _rule(
        "pypi-token", r"pypi-AgE[A-Za-z0-9_-]{16,}", "PyPI help: macaroons", "pypi-AgEIcHlwaS5vcmc" + _A20, "pypi-AgE"
    ),
    _rule("hugging-face-token", r"hf_[A-Za-z0-9]{30,}", "Hugging Face docs", "hf_" + _A20 * 2, "hf_hub_download"),
    _rule(
        "sendgrid-key",
        r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}",
        "SendGrid docs, 'API keys'",
        "SG." + _A20 + "." + _A20 * 2,
        "SG.short.name",
    ),
    _rule(
        "twilio-key",
        _START + r"SK[0-9a-f]{32}(?![A-Za-z0-9])",
        "Twilio docs, 'API keys'",
        "SK" + _HEX32,
        "TASK" + _HEX32,
        r"SK[0-9a-f]{32}",
    ),
    _rule("digitalocean-token", r"do[opr]_v1_[0-9a-f]{40,}", "DigitalOcean docs", "dop_v1_" + _HEX32 * 2, "dop_v1_x"),
    _rule(
        "telegram-token",
        r"(?<![0-9])[0-9]{8,10}:A[A-Za-z0-9_-]{34}(?![A-Za-z0-9_-])",
        "Telegram docs, 'Bots: authorizing your bot'",
        "1234567890:AAE" + _A20 + "klmnopqrstuv",
        "12345678:Another line",
        r":A[A-Za-z0-9_-]{34}",
    ),
    _rule(
        "discord-token",
        _OWN_RUN + r"[MNO][DTjz][AEIMQUYcgk][w-z0-5][A-Za-z0-9_-]{18,24}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}",
        "Discord docs, 'Authentication'; the first part is the bot's number in base64",
        "MTIz" + _A20 + ".GabcDE." + _A20 + "klmnopqrst",
        "MTIz." + _A20,
        r"[MNO][DTjz][AEIMQUYcgk][w-z0-5][A-Za-z0-9_-]{18,24}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}",
    ),
    _rule(
        "discord-webhook",
        r"discord(?:app)?\.com/api/(?:v[0-9]{1,2}/)?webhooks/[0-9]{15,20}/(?P<secret>[A-Za-z0-9_-]{40,})",
        "Discord docs, 'Webhook resource': the URL is the secret",
        "https://discord.com/api/webhooks/123456789012345678/" + _A20 * 3,
        "https://discord.com/api/webhooks/123456789012345678/token",
    ),
    _rule(
        "azure-storage-key",
        r"AccountKey=(?P<secret>[A-Za-z0-9+/]{80,88}={0,2})",
        "Azure docs, 'Configure Azure Storage connection strings'",
        "AccountName=a;AccountKey=" + _A20 * 4 + "==",
        "AccountKey=<key>",
    ),
    _rule(
        "url-password",
        r"""://[^\s/:@"'<>`]{0,100}:(?P<secret>[^\s/?#"'<>`]+)@(?=[A-Za-z0-9\[])""",
        "RFC 3986 3.2.1, deprecated there for this reason",
        "postgres://app:hunter2@db.example.org/app",
        "https://example.org:8080/@scope, postgres://app:${PASSWORD}@db",
        r"""://[^\s/:@"'<>`]{0,100}:[^\s/?#"'<>`]+@[A-Za-z0-9\[]""",
        re.compile(r"[$<{%*]|x{3}|\[redacted", re.I),
    ),
    _rule(
        "authorization-header",
        rf"(?i:authorization){_ASSIGNED}(?:{_QUOTE})?(?i:bearer|basic|bot|token|apikey)[ \t]{{1,4}}"
        rf"(?P<secret>{_TOKEN}{{8,}})",
        "RFC 9110 11.6.2, RFC 6750, RFC 7617",
        "Authorization: Basic dXNlcjpwYXNzd29yZA==",
        "Authorization: Bearer $TOKEN",
        unless=_NO_SECRET,
    ),
    _rule(
        "bearer-token",
        rf"(?i:bearer)[ \t]{{1,4}}(?P<secret>{_TOKEN}{{16,}})",
        "RFC 6750 2.1; without a digit it is prose",
        "bearer 0123456789abcdefXYZ",
        "bearer authentication-mechanisms",
        unless=_NO_DIGIT,
    ),
    _rule(
        "quoted-secret",
        rf"(?i:{_NAME}){_ASSIGNED}(?P<quote>{_QUOTE})(?P<secret>[^\s\"'\\]{{8,}}+)(?P=quote)",
        "assigned to a name that says so",
        '"db_password": "correct-horse"',
        'password: "${DB_PASSWORD}", token = "your-token-here", max_tokens: "4096000000"',
        rf"(?i:{_NAME}){_ASSIGNED}{_QUOTE}[^\s\"'\\]{{8}}",
        _NO_SECRET,
    ),
    _rule(
        "environment-secret",
        r"(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|API_?KEY|ACCESS_?KEY|SECRET_?KEY|PRIVATE_?KEY)="
        r"(?P<secret>[^\s\"'\\`,;&|<>(){}\[\]]{8,}+)",
        ".env files and shell commands",
        "export DB_PASSWORD=correcthorse",
        "DB_PASSWORD=$(pass db), TOKEN=/run/secrets/token, API_KEY=your_api_key",
        r"(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|KEY)=[^\s\"'\\`,;&|<>(){}\[\]]{8}",
        _NO_UNQUOTED_SECRET,
    ),
    _rule(
        "assigned-secret",
        rf"(?i:{_NAME})(?:{_QUOTE})?(?:=|:[ \t]{{1,4}})(?P<secret>[^\s\"'\\`,;&|<>(){{}}\[\]]{{8,}}+)",
        "YAML, queries of URLs, options of commands; with a digit, or it is code",
        "?access_token=abc123def456",
        "token=self.token1, password=get_password2(), token: str = None, api_key=api_key_value",
        rf"(?i:{_NAME})(?:{_QUOTE})?(?:=|:[ \t]{{1,4}})[^\s\"'\\`,;&|<>(){{}}\[\]]{{8}}",
        _NO_BARE_SECRET,
    ),
)
"""In the order of their use: a kind that is told by its form goes before those told by their names."""


def _search(pattern: str) -> Callable[[str], bool]:
    """Compile a test for Rust's regex engine: linear time, so no text can make it slow."""
    schema = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex", strict=True)
    return SchemaValidator(schema).isinstance_python


_any_gate = _search("|".join(f"(?:{rule.gate})" for rule in RULES))
_well_formed = _search("")
_of_blocks, *_of_lines = [(rule, _search(rule.gate)) for rule in RULES]
_MOST_PASSES = 8
_SHORT = 2000


def redact(text: str) -> str:
    """Mask every secret in a text as `[redacted: <kind>]`; a masked text stays as it is."""
    if not suspicious(text):
        return text
    for _ in range(_MOST_PASSES):  # a mask may lay bare the start of another secret
        masked = _masked(text)
        if masked == text:
            break
        text = masked
    return text


def suspicious(text: str) -> bool:
    """Whether a rule may apply to a text, or to any piece of it: gates look at nothing around what they find.

    Rust reads no lone surrogates, so a text with some always is.
    """
    return _any_gate(text) or not (text.isascii() or _well_formed(text))


def _masked(text: str) -> str:
    """Apply every rule once."""
    return _in_lines(_by_rules([_of_blocks], text))


def _in_lines(text: str) -> str:
    """Apply the rules whose secrets have no line ends, only to the suspicious lines of a long text: by halves."""
    if not suspicious(text):
        return text
    middle = max(text.find("\n", len(text) // 2), text.rfind("\n", 0, len(text) // 2))
    if middle < 0 or len(text) < _SHORT:
        return _by_rules(_of_lines, text)
    return _in_lines(text[:middle]) + "\n" + _in_lines(text[middle + 1 :])


def _by_rules(rules: list[tuple[Rule, Callable[[str], bool]]], text: str) -> str:
    readable = _well_formed(text)
    for rule, gate in rules:
        if not readable or gate(text):
            text = rule.pattern.sub(_Mask(rule), text)
    return text


class _Mask:
    """The replacement of what a rule found."""

    def __init__(self, rule: Rule) -> None:
        self._rule, self._group = rule, "secret" if "secret" in rule.pattern.groupindex else 0

    def __call__(self, found: re.Match[str]) -> str:
        start, end = found.span(self._group)
        if self._rule.unless and self._rule.unless.match(found.string[start : end + 1].rstrip("\"'\\,; \t\r\n")):
            return found[0]
        before, after = found.string[found.start() : start], found.string[end : found.end()]
        return f"{before}[redacted: {self._rule.name}]{after}"


_KEY_NAMES = ("apikey", "accesskey", "secretkey", "privatekey")
_TOKEN_NAMES = ("accesstoken", "authtoken", "refreshtoken", "bearertoken", "apitoken")
_SECRET_NAMES = ("password", "passwd", "passphrase", "secret", "authorization", *_KEY_NAMES, *_TOKEN_NAMES)
_NAMED_MASK = "[redacted: named-secret]"
_SHORTEST_TOKEN = 8
_LONGEST_NAME = 64


def names_secret(key: str) -> bool:
    """Whether a text may be masked for the name of its key alone; a very long key always may."""
    return len(key) > _LONGEST_NAME or _named_secret(key)


@lru_cache(maxsize=1024)
def _named_secret(key: str) -> bool:
    return _bare(key).endswith((*_SECRET_NAMES, "token"))


def _bare(key: str) -> str:
    return key.lower().replace("_", "").replace("-", "")


def redact_json(value: Json) -> Json:
    """Mask the secrets in the keys and leaves of a JSON value, and whole texts under a secret's name."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact(key): _field(key, item) for key, item in value.items()}
    if isinstance(value, list):
        return [redact_json(item) for item in value]
    return value


def _field(key: str, value: Json) -> Json:
    """Mask a text by the name of its key, unless it is a placeholder, a reference or a number."""
    if not isinstance(value, str):
        return redact_json(value)
    if value.replace(".", "", 1).isdecimal():
        return value
    name = _bare(key)
    if name.endswith(_SECRET_NAMES):
        return redact(value) if _NO_VALUE.match(value) else _NAMED_MASK
    if name.endswith("token") and len(value) >= _SHORTEST_TOKEN:
        return redact(value) if _NO_SECRET.match(value) else _NAMED_MASK
    return redact(value)
