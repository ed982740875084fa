"""How long Claude Code keeps its logs: `cleanupPeriodDays`, 30 unless it is set (code.claude.com/docs, settings).

It deletes logs that haven't changed for that long when it starts. Settings of a project, or those that an organization
manages, may differ; they aren't read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agtrace_indexer.providers.claude_code import CLAUDE_CODE
from agtrace_indexer.providers.provider import Retention
from agtrace_indexer.providers.retention import runs_agtrace, settings_in

_SETTING, _DAYS = "cleanupPeriodDays", 30
_TO_KEEP = f"set {_SETTING} to 3650"


def retention(environment: Mapping[str, str], home: Path) -> list[Retention]:
    """Return how long it keeps the logs of each of its folders."""
    return [_of(root.parent / "settings.json") for root in CLAUDE_CODE.home.roots(environment, home)]


def _of(file: Path) -> Retention:
    settings = settings_in(file)
    days = settings.get(_SETTING)
    if not isinstance(days, (int, float)) or isinstance(days, bool) or days < 0:
        return Retention(_DAYS, True, _SETTING, str(file), False, _TO_KEEP, _is_refreshed(settings))
    return Retention(float(days), True, _SETTING, str(file), True, _TO_KEEP, _is_refreshed(settings))


def _is_refreshed(settings: dict[str, Any]) -> bool:
    """Whether a hook runs agtrace: one of the settings' own, or the one of our plugin, which indexes ended sessions."""
    plugins = settings.get("enabledPlugins")
    ours = isinstance(plugins, dict) and any(
        is_on is True and name.partition("@")[0] == "agtrace" for name, is_on in plugins.items()
    )
    return ours or runs_agtrace(settings)
