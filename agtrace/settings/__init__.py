"""The settings: a model of them, the sources they come from, and how a running server notices a change.

What is here is what everything else needs without loading the model, which has all other ranges and defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

SHORTEST_TOKEN = 16
"""Characters; a shorter token could be guessed."""


def load(environment: Mapping[str, str] | None = None, tell: Callable[[str], None] | None = None) -> Settings:
    """Return the settings; `tell` gets a sentence for each unknown key, which sets nothing.

    Raises `SettingError` for what can't be used, naming what is expected. If nothing is set but the data folder,
    pydantic isn't loaded.
    """
    from agtrace.settings.environment import anything_set, data_dir, environment_of
    from agtrace.settings.model import Settings

    if not anything_set(environment):
        return Settings(data_dir=data_dir(environment), environment=environment_of(environment))
    from agtrace.settings.sources import InvalidSettings, fault_sentences, read

    found = read(environment)
    if found.faults:
        raise InvalidSettings(found.faults)
    if tell is not None:
        for one in fault_sentences(found.unknown):
            tell(one)
    return found.settings


def is_token(text: str) -> bool:
    """Whether a text can be a token: long enough, and valid in a header."""
    return len(text) >= SHORTEST_TOKEN and text.isascii() and text.isprintable() and " " not in text


def variables() -> dict[str, str]:
    """Return every variable that agtrace reads, with its meaning: its own, and those that say where logs are kept."""
    from agtrace_indexer.providers.registry import HOMES

    from agtrace.settings.environment import CONFIG
    from agtrace.settings.schema import keys

    result = {CONFIG: "the configuration file, in TOML, YAML or JSON; default: config.toml in the platform's folder"}
    result |= {key.variable: key.meaning for key in keys().values()}
    for home in HOMES:
        result |= home.variables
    return result
