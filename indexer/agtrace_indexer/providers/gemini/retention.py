"""How long Gemini CLI keeps its logs: `general.sessionRetention`, with `enabled` and `maxAge` (its settings reference).

Since March 2026 it deletes sessions after 30 days unless that is switched off; before, it kept all unless it was
switched on. The version isn't known here, so without the setting neither is certain.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agtrace_schema.patterns import later

from agtrace_indexer.providers.gemini import GEMINI
from agtrace_indexer.providers.provider import Retention
from agtrace_indexer.providers.retention import runs_agtrace, settings_in

_SETTING, _DAYS = "general.sessionRetention", 30.0
_TO_KEEP = f"set {_SETTING}.enabled to false"
_AGE = later(r"([0-9]{1,6})([hdwm])")
_UNITS = {"h": 1 / 24, "d": 1.0, "w": 7.0, "m": 30.0}
"""Days; the CLI counts a month as 30."""


def retention(environment: Mapping[str, str], home: Path) -> list[Retention]:
    """Return how long it keeps its logs."""
    return [_of(root.parent / "settings.json") for root in GEMINI.home.roots(environment, home)]


def _of(file: Path) -> Retention:
    settings = settings_in(file)
    general = settings.get("general")
    found = general.get("sessionRetention") if isinstance(general, dict) else None
    enabled = found.get("enabled") if isinstance(found, dict) else None
    days = None if enabled is False else _days(found)
    return Retention(
        days, isinstance(enabled, bool), _SETTING, str(file), found is not None, _TO_KEEP, runs_agtrace(settings)
    )


def _days(found: Any) -> float:
    age = found.get("maxAge") if isinstance(found, dict) else None
    read = _AGE.fullmatch(age) if isinstance(age, str) else None
    return int(read[1]) * _UNITS[read[2]] if read else _DAYS
