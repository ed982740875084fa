"""The settings; this is the only module that reads the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from agtrace.problems import SettingError

ABSOLUTE_MAX_BYTES = 102_400
"""The largest size of an answer about traces, whatever is requested."""

SMALLEST_MAX_BYTES = 2_048
SEARCH_TIMEOUT_SECONDS = 30
"""The time limit of a search, unless the user sets another."""

LONGEST_SEARCH = 3600
SHORTEST_TOKEN = 16
"""Characters; a shorter token could be guessed."""

LONGEST_KEPT = 36_500
"""Days."""

LARGEST_CURSOR_TTL = 366 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Settings:
    """The values that a user can set; `VARIABLES` documents each."""

    data_dir: Path
    max_response_bytes: int
    cursor_ttl_seconds: int
    environment: Mapping[str, str] = field(repr=False)
    """The variables that set the agents' home folders."""
    prices: Path | None = None
    """The user's price table, which overrides the built-in one."""
    search_timeout_seconds: int = SEARCH_TIMEOUT_SECONDS
    search_events: bool = False
    """Whether to offer the deprecated tool search_events."""
    telemetry: bool = True
    """Whether a server records figures of the requests that it answers."""
    keep_days: int | None = None
    """After how many days without an event a session is forgotten; None means never."""
    http_token: str | None = field(default=None, repr=False)
    """The token that clients of the HTTP transport must send; None if the user set none."""
    http_hosts: tuple[str, ...] = ()
    http_origins: tuple[str, ...] = ()

    @property
    def database(self) -> Path:
        """The path of the index."""
        return self.data_dir / "index.sqlite3"

    @property
    def key_file(self) -> Path:
        """The file with the key that signs cursors."""
        return self.data_dir / "cursor.key"

    @property
    def token_file(self) -> Path:
        """The file with the token for the HTTP transport if the user set none."""
        return self.data_dir / "http.token"

    @property
    def telemetry_file(self) -> Path:
        """The file with the figures of answered requests."""
        return self.data_dir / "telemetry.sqlite3"

    @property
    def version(self) -> str:
        """12 characters that identify a configuration, not counting the token and the places of the logs."""
        return sha256(repr(self).encode()).hexdigest()[:12]


VARIABLES: dict[str, str] = {
    "AGTRACE_DATA_DIR": "the folder of the index; default: the platform's folder for user data",
    "AGTRACE_MAX_RESPONSE_BYTES": (
        f"the largest size of any answer in bytes, {SMALLEST_MAX_BYTES} to {ABSOLUTE_MAX_BYTES}; "
        f"default {ABSOLUTE_MAX_BYTES}; each tool also has a budget of its own"
    ),
    "AGTRACE_CURSOR_TTL_SECONDS": "how long a cursor stays valid at least; default 3600",
    "AGTRACE_SEARCH_TIMEOUT_SECONDS": f"the seconds after which a search is stopped; default {SEARCH_TIMEOUT_SECONDS}",
    "AGTRACE_PRICES": (
        "a price table in JSON that overrides the built-in one; default: none. If it can't be used, the server says so "
        "on stderr and continues without it"
    ),
    "AGTRACE_KEEP_DAYS": (
        f"the days without an event after which a session is forgotten, 1 to {LONGEST_KEPT:,}, counted back from the "
        "newest event; a session that continues comes back; default: never"
    ),
    "AGTRACE_TELEMETRY": (
        "0: a server records no figures of the requests that it answers (`agtrace metrics`); default 1"
    ),
    "AGTRACE_SEARCH_EVENTS": "1 offers the deprecated tool search_events; default 0",
    "AGTRACE_HTTP_TOKEN": (
        f"with `agtrace mcp --http`: the token that clients must send as `Authorization: Bearer`, {SHORTEST_TOKEN} "
        "characters or more; default: a generated one, kept in http.token in the data folder"
    ),
    "AGTRACE_HTTP_HOSTS": (
        "with `agtrace mcp --http`: comma-separated host names by which clients reach it, in addition to loopback; "
        "default: none"
    ),
    "AGTRACE_HTTP_ORIGINS": (
        "with `agtrace mcp --http`: comma-separated web origins whose pages may use it, in addition to loopback; "
        "default: none"
    ),
}
"""The variables of agtrace itself, with their meaning."""


def variables() -> dict[str, str]:
    """Return every variable that agtrace reads, with its meaning: its own, and those that say where logs are kept."""
    from agtrace_indexer.providers.registry import AGENTS

    return VARIABLES | {agent.home.variable: agent.home.meaning for agent in AGENTS.values()}


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings. Raises `SettingError` for an invalid value, naming what is expected."""
    values = os.environ if environment is None else environment
    return Settings(
        data_dir=data_dir(values),
        max_response_bytes=_whole_number(
            values, "AGTRACE_MAX_RESPONSE_BYTES", ABSOLUTE_MAX_BYTES, SMALLEST_MAX_BYTES, ABSOLUTE_MAX_BYTES
        ),
        cursor_ttl_seconds=_whole_number(values, "AGTRACE_CURSOR_TTL_SECONDS", 3600, 1, LARGEST_CURSOR_TTL),
        search_timeout_seconds=_whole_number(
            values, "AGTRACE_SEARCH_TIMEOUT_SECONDS", SEARCH_TIMEOUT_SECONDS, 1, LONGEST_SEARCH
        ),
        prices=Path(values["AGTRACE_PRICES"]).expanduser() if values.get("AGTRACE_PRICES") else None,
        keep_days=_whole_number(values, "AGTRACE_KEEP_DAYS", 0, 1, LONGEST_KEPT) or None,
        telemetry=_switch(values, "AGTRACE_TELEMETRY", default=True),
        search_events=_switch(values, "AGTRACE_SEARCH_EVENTS"),
        http_token=_token(values),
        http_hosts=_list(values, "AGTRACE_HTTP_HOSTS"),
        http_origins=_list(values, "AGTRACE_HTTP_ORIGINS"),
        environment=values,
    )


def data_dir(environment: Mapping[str, str] | None = None) -> Path:
    """Return the data folder, whatever the other settings are."""
    given = (os.environ if environment is None else environment).get("AGTRACE_DATA_DIR")
    if given:
        return Path(given).expanduser()
    from platformdirs import user_data_path  # only if needed: it takes 20 ms

    return user_data_path("agtrace", appauthor=False)


def _whole_number(values: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = values.get(name, "").strip()
    if not text:
        return default
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise SettingError(f"{name}: expected a whole number from {least} to {most}, got {text!r}")
    return number


def _switch(values: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    text = values.get(name, "").strip() or str(int(default))
    if text not in ("0", "1"):
        raise SettingError(f"{name}: expected 0 or 1, got {text!r}")
    return text == "1"


def is_token(text: str) -> bool:
    """Whether a text can be a token: long enough, and valid in a header."""
    return len(text) >= SHORTEST_TOKEN and text.isascii() and text.isprintable() and " " not in text


def _token(values: Mapping[str, str]) -> str | None:
    """Return the token, or None; a message about it never quotes it."""
    token = values.get("AGTRACE_HTTP_TOKEN", "").strip()
    if not token:
        return None
    if not is_token(token):
        raise SettingError(
            f"AGTRACE_HTTP_TOKEN: expected {SHORTEST_TOKEN} or more visible ASCII characters, got something else"
        )
    return token


def _list(values: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in values.get(name, "").split(",") if part.strip())
