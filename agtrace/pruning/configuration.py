"""The settings of server and runner, also by names that other servers of this kind use; a fault switches pruning off.

So whatever is wrong with the settings, an agent's run goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from agtrace_indexer.redact import redact
from msgspec.structs import replace

from agtrace.problems import SettingError
from agtrace.settings.environment import environment_of, variable
from agtrace.settings.live import Live
from agtrace.settings.model import Settings

OTHER_NAMES = {
    "JEEVES_MCP_PRUNER_ENABLED": "pruner.enabled",
    "JEEVES_PRUNER_ENDPOINT": "pruner.endpoint",
    "PRUNER_URL": "pruner.endpoint",
    "PRUNER_TIMEOUT_MS": "pruner.timeout_ms",
}
"""Variables that only `agtrace prune` and `agtrace run` read, earlier ones above later ones; our own are above all."""


class Configured(NamedTuple):
    """The settings of a process, and why they can't be used."""

    live: Live
    problems: tuple[str, ...]
    """One sentence for each fault; then pruning is off, whatever `live` says."""

    @property
    def settings(self) -> Settings:
        """The settings that are in force, with pruning off if there are problems."""
        current = self.live.current
        if not (self.problems or current.faults):
            return current.settings
        off = replace(current.settings.pruner, enabled=False)
        return replace(current.settings, pruner=off)


def configured(environment: Mapping[str, str] | None = None) -> Configured:
    """Return the settings of an environment, by default that of this process. Never raises."""
    values = environment_of(environment)
    try:
        live = Live.start({**_translated(values), **values})
        problems = [str(fault) for fault in live.current.faults]
    except SettingError as error:
        live, problems = Live.fixed(Settings()), str(error).split("\n")
    return Configured(
        live, tuple(redact(_in_own_words(problem, values).partition(", got ")[0]) for problem in problems)
    )


def _translated(values: Mapping[str, str]) -> dict[str, str]:
    """Return what other names set as our own variables; an endpoint that is set to nothing is none."""
    result: dict[str, str] = {}
    for name, key in reversed(OTHER_NAMES.items()):
        if name in values:
            text = values[name].strip()
            result[variable(key)] = "none" if key == "pruner.endpoint" and not text else text
    return result


def _in_own_words(problem: str, values: Mapping[str, str]) -> str:
    for name, key in OTHER_NAMES.items():
        ours = variable(key)
        if name in values and ours not in values and problem.startswith(f"{ours}:"):
            return problem.replace(ours, name, 1)
    return problem
