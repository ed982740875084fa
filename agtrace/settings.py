"""The settings, and the only module that reads the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from agtrace.problems import SettingError

ABSOLUTE_MAX_BYTES = 102_400
"""No answer about traces is larger, whatever is asked for."""

SMALLEST_MAX_BYTES = 2_048
SEARCH_TIMEOUT_SECONDS = 30
"""A search is stopped after this, unless the user sets another time."""

LONGEST_SEARCH = 3600
SHORTEST_TOKEN = 16
"""Characters: a shorter one can be guessed."""

LONGEST_KEPT = 36_500
"""Days."""

LARGEST_CURSOR_TTL = 366 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user can set; `variables` has the documentation of each."""

    data_dir: Path
    max_response_bytes: int
    cursor_ttl_seconds: int
    environment: Mapping[str, str] = field(repr=False)
    """The variables that tell where the agents' homes are."""
    prices: Path | None = None
    """The user's price table, laid over the built-in one."""
    search_timeout_seconds: int = SEARCH_TIMEOUT_SECONDS
    search_events: bool = False
    """Whether the deprecated tool is offered."""
    keep_days: int | None = None
    """After how many days without an event a session is forgotten; None is never."""
    http_token: str | None = field(default=None, repr=False)
    """What a client of the HTTP transport must show; None where the user named none."""
    http_hosts: tuple[str, ...] = ()
    http_origins: tuple[str, ...] = ()

    @property
    def database(self) -> Path:
        """The index."""
        return self.data_dir / "index.sqlite3"

    @property
    def key_file(self) -> Path:
        """The key that signs cursors."""
        return self.data_dir / "cursor.key"

    @property
    def token_file(self) -> Path:
        """What a client of the HTTP transport must show where the user named nothing."""
        return self.data_dir / "http.token"

    @property
    def version(self) -> str:
        """Tells one configuration from another, in 12 characters: the token and where the logs lie are not in it."""
        return sha256(repr(self).encode()).hexdigest()[:12]


VARIABLES: dict[str, str] = {
    "AGTRACE_DATA_DIR": "where the index lies; default: the platform's folder for user data",
    "AGTRACE_MAX_RESPONSE_BYTES": (
        f"clamps every answer's size in bytes, {SMALLEST_MAX_BYTES} to {ABSOLUTE_MAX_BYTES}; "
        f"default {ABSOLUTE_MAX_BYTES}, with each tool's own budget below it"
    ),
    "AGTRACE_CURSOR_TTL_SECONDS": "how long a cursor stays valid, at least; default 3600",
    "AGTRACE_SEARCH_TIMEOUT_SECONDS": f"after how many seconds a search is stopped; default {SEARCH_TIMEOUT_SECONDS}",
    "AGTRACE_PRICES": (
        "a price table in JSON, laid over the built-in one; default: none. The server says on stderr if it can't be "
        "used, and goes on without it"
    ),
    "AGTRACE_KEEP_DAYS": (
        f"after how many days without an event a session is forgotten, 1 to {LONGEST_KEPT:,}, counted back from the "
        "newest event; one that goes on comes back; default: never"
    ),
    "AGTRACE_SEARCH_EVENTS": "1 offers the deprecated tool search_events; default 0",
    "AGTRACE_HTTP_TOKEN": (
        f"with `agtrace mcp --http`: what clients must send as `Authorization: Bearer`, {SHORTEST_TOKEN} characters or "
        "more; default: one that is made and kept in http.token in the data folder"
    ),
    "AGTRACE_HTTP_HOSTS": (
        "with `agtrace mcp --http`: names, comma-separated, by which clients reach it besides loopback's; default: none"
    ),
    "AGTRACE_HTTP_ORIGINS": (
        "with `agtrace mcp --http`: web origins, comma-separated, whose pages may use it besides loopback's; "
        "default: none"
    ),
}
"""The variables of agtrace's own, with their meaning."""


def variables() -> dict[str, str]:
    """Every variable that agtrace reads, with its meaning: its own, and those that tell where agents keep logs."""
    from agtrace_indexer.providers.registry import AGENTS

    return VARIABLES | {agent.home.variable: agent.home.meaning for agent in AGENTS.values()}


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings. Raises `SettingError` for a value that can't be used, naming what is allowed."""
    values = os.environ if environment is None else environment
    return Settings(
        data_dir=_data_dir(values),
        max_response_bytes=_whole_number(
            values, "AGTRACE_MAX_RESPONSE_BYTES", ABSOLUTE_MAX_BYTES, SMALLEST_MAX_BYTES, ABSOLUTE_MAX_BYTES
        ),
        cursor_ttl_seconds=_whole_number(values, "AGTRACE_CURSOR_TTL_SECONDS", 3600, 1, LARGEST_CURSOR_TTL),
        search_timeout_seconds=_whole_number(
            values, "AGTRACE_SEARCH_TIMEOUT_SECONDS", SEARCH_TIMEOUT_SECONDS, 1, LONGEST_SEARCH
        ),
        prices=Path(values["AGTRACE_PRICES"]).expanduser() if values.get("AGTRACE_PRICES") else None,
        keep_days=_whole_number(values, "AGTRACE_KEEP_DAYS", 0, 1, LONGEST_KEPT) or None,
        search_events=_switch(values, "AGTRACE_SEARCH_EVENTS"),
        http_token=_token(values),
        http_hosts=_list(values, "AGTRACE_HTTP_HOSTS"),
        http_origins=_list(values, "AGTRACE_HTTP_ORIGINS"),
        environment=values,
    )


def _data_dir(values: Mapping[str, str]) -> Path:
    given = values.get("AGTRACE_DATA_DIR")
    if given:
        return Path(given).expanduser()
    from platformdirs import user_data_path  # only where the folder isn't given: it costs 20 ms

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
        raise SettingError(f"{name}={text!r} can't be used: a whole number from {least} to {most} is needed")
    return number


def _switch(values: Mapping[str, str], name: str) -> bool:
    text = values.get(name, "").strip()
    if text not in ("", "0", "1"):
        raise SettingError(f"{name}={text!r} can't be used: 0 or 1 is needed")
    return text == "1"


def is_token(text: str) -> bool:
    """Whether a text can be a token: long enough, and what a header can hold."""
    return len(text) >= SHORTEST_TOKEN and text.isascii() and text.isprintable() and " " not in text


def _token(values: Mapping[str, str]) -> str | None:
    """The token, or None; a message about it never quotes it."""
    token = values.get("AGTRACE_HTTP_TOKEN", "").strip()
    if not token:
        return None
    if not is_token(token):
        raise SettingError(
            f"AGTRACE_HTTP_TOKEN can't be used: {SHORTEST_TOKEN} or more visible ASCII characters are needed"
        )
    return token


def _list(values: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in values.get(name, "").split(",") if part.strip())
