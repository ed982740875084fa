"""The settings: a model of them, the sources they come from, and how a running server notices a change.

What is here is what everything else needs without loading the model, which has all other ranges and defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agtrace.settings.model import Settings

ABSOLUTE_MAX_BYTES = 102_400
"""The largest size of an answer about traces, whatever is requested."""

UNPROTECTED_BYTES = 1_048_576
"""The largest size of any answer, also of one that a setting leaves unprotected."""

SMALLEST_MAX_BYTES = 2_048
SEARCH_TIMEOUT_SECONDS = 30
"""The time limit of a search, unless the user sets another."""

LONGEST_SEARCH = 3600
SHORTEST_TOKEN = 16
"""Characters; a shorter token could be guessed."""

LONGEST_KEPT = 36_500
"""Days."""

LARGEST_CURSOR_TTL = 366 * 24 * 3600


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings. Raises `SettingError` for what can't be used, naming what is expected."""
    from agtrace.settings.sources import read

    return read(environment).settings


def is_token(text: str) -> bool:
    """Whether a text can be a token: long enough, and valid in a header."""
    return len(text) >= SHORTEST_TOKEN and text.isascii() and text.isprintable() and " " not in text


def variables() -> dict[str, str]:
    """Return every variable that agtrace reads, with its meaning: its own, and those that say where logs are kept."""
    from agtrace_indexer.providers.registry import HOMES

    from agtrace.settings.sources import variables

    return variables() | {home.variable: home.meaning for home in HOMES if home.variable}
