"""Texts of a log made fit to pass on: without secrets, which are counted, control characters and the home folder."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from agtrace_indexer.redact import redact, redact_json
from agtrace_indexer.redact.rules import kinds
from agtrace_schema.patterns import later

from agtrace.text.lines import in_texts, one_line, without_controls
from agtrace.text.numbers import counted

_OF_NO_KIND = "secret"
"""What a secret is called of which nothing else is known."""
_MASK = later(r"\[redacted: ([^\[\]\n]{1,60})\]")
_HOME = later(r"(?:/home|/Users)/[^/\\\s:]+|/root(?=/|$)|[A-Za-z]:[\\/]Users[\\/][^\\/]+")
_OF_ANYBODY = (
    r"(?:/home|/Users)/[\w.-]+",
    r"[A-Za-z]:[\\/]{1,4}Users[\\/]{1,4}(?:[^\\/:*?\"'<>|\s]+(?: [^\\/:*?\"'<>|\s]+){0,3}(?=[\\/])|[\w.-]+)",
)
"""Home folders by their form, in JSON and commands with doubled separators, too."""
_NAMED_FOR_ANYBODY = r"-(?:home|Users)-[A-Za-z0-9]+"
_NOT_HOMES = frozenset({"", "/"})
_LONGEST_LINE = 4_000
"""The characters of a text that are looked at for one line of it, far beyond any cut."""

_SPELLED = {
    "github": "GitHub", "gitlab": "GitLab", "openai": "OpenAI", "aws": "AWS", "npm": "npm", "npmrc": ".npmrc",
    "pypi": "PyPI", "huggingface": "Hugging Face", "digitalocean": "DigitalOcean", "jwt": "JWT", "api": "API",
    "id": "id", "pat": "token", "xai": "xAI", "nuget": "NuGet", "sendgrid": "SendGrid", "mongodb": "MongoDB",
    "openrouter": "OpenRouter", "rubygems": "RubyGems", "url": "URL", "otp": "OTP", "dsn": "DSN", "json": "JSON",
    "sql": "SQL", "vpn": "VPN", "ntlm": "NTLM", "rsa": "RSA", "netrc": ".netrc", "paypal": "PayPal",
    "circleci": "CircleCI", "hubspot": "HubSpot", "posthog": "PostHog",
}  # fmt: skip
_COMMON = frozenset({
    "access", "account", "auth", "authorization", "basic", "bearer", "beside", "call", "chat", "client", "codes",
    "command", "cookie", "database", "encryption", "hash", "header", "jar", "key", "list", "login", "masked",
    "message", "mnemonic", "pair", "parameter", "passphrase", "password", "private", "proof", "recovery", "refresh",
    "request", "secret", "secure", "seed", "session", "signature", "string", "token", "user", "value", "web",
    "webhook", "wifi",
})  # fmt: skip
"""Words of kinds that are no names."""


class Cleaner:
    """Cleans the texts of one session, and counts what it masks by kind. For one thread.

    Paths in these homes begin with a tilde; with `of_anybody`, so do those in whatever looks like somebody's home.
    `verbatim` keeps control characters, for a form that escapes them.
    """

    def __init__(self, homes: Iterable[str | None], *, of_anybody: bool = False, verbatim: bool = False) -> None:
        self.masked: Counter[str] = Counter()
        self._verbatim = verbatim
        found = sorted({home.rstrip("/\\") for home in homes if home} - _NOT_HOMES, key=len, reverse=True)
        folders = [r"[\\/]{1,2}".join(map(re.escape, re.split(r"[\\/]", home))) for home in found]
        names = [re.escape(re.sub("[^A-Za-z0-9]", "-", home)) for home in found if re.search(r"[\\/].*[\\/]", home)]
        if of_anybody:
            folders, names = [*folders, *_OF_ANYBODY], [*names, _NAMED_FOR_ANYBODY]
        never = ["(?!)"]
        whole = rf"(?:(?<=file://)|(?<![\w.~/-]))(?:{'|'.join(folders or never)})(?![\w-]|\.\w)"
        self._homes = re.compile(rf"{whole}|(?<!\w)(?P<name>{'|'.join(names or never)})(?=-)")

    def text(self, text: str) -> str:
        """Return a text without secrets, control characters and home folders; masks in it are counted."""
        cleaned = redact(text if self._verbatim else without_controls(text))
        return self._counted(cleaned)

    def line(self, text: str, most: int) -> str:
        """Return a text on one line of at most this many characters, cleaned before it is cut; nothing is counted."""
        return one_line(self._homes.sub(_tilde, redact(without_controls(text[:_LONGEST_LINE]))), most)

    def value(self, value: Any) -> Any:
        """Return a JSON value whose keys and texts are cleaned as by `text`."""
        return in_texts(redact_json(value if self._verbatim else in_texts(value, without_controls)), self._counted)

    def _counted(self, text: str) -> str:
        if "[redacted: " in text:
            known = kinds()
            self.masked.update(kind if kind in known else _OF_NO_KIND for kind in _MASK.findall(text))
        return self._homes.sub(_tilde, text)


def home_in(folder: str | None) -> str | None:
    """Return the home folder that a path is in, judged by its form; None if it is in none."""
    match = _HOME.match(folder or "")
    return match[0] if match else None


def in_words(masked: Mapping[str, int]) -> str:
    """Say what was masked: `3 secrets: 2 GitHub tokens, 1 password`; `nothing` if nothing was."""
    total = sum(masked.values())
    if not total:
        return "nothing"
    ranked = sorted(masked.items(), key=lambda item: (item[0] == _OF_NO_KIND, -item[1], item[0]))
    if masked.keys() == {_OF_NO_KIND}:
        return counted(total, "secret")
    return f"{counted(total, 'secret')}: {', '.join(counted(number, _kind(kind)) for kind, number in ranked)}"


def _kind(kind: str) -> str:
    if kind == _OF_NO_KIND:
        return "other"
    words = (_SPELLED.get(word, word if word in _COMMON else word.capitalize()) for word in kind.split("-"))
    name = " ".join(words)
    return name if name[-1:] != "s" else f"{name} entry"


def _tilde(match: re.Match[str]) -> str:
    return "-~" if match["name"] else "~"
