"""The environment and the command line of this process: the only module that reads them.

It loads nothing, because a server greets its client, and `agtrace index` finds nothing new, before any model is needed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

CONFIG = "AGTRACE_CONFIG"
"""The variable that names the configuration file."""

DATA_DIR = "AGTRACE_DATA_DIR"
PREFIX = "AGTRACE_"
ALIASES = {
    "AGTRACE_TELEMETRY": "AGTRACE_TELEMETRY__ENABLED",
    "AGTRACE_HTTP_TOKEN": "AGTRACE_HTTP__TOKEN",
    "AGTRACE_HTTP_HOSTS": "AGTRACE_HTTP__HOSTS",
    "AGTRACE_HTTP_ORIGINS": "AGTRACE_HTTP__ORIGINS",
}
"""Shorter names of variables."""


class _CommandLine:
    """What the command line of this process sets, above every other source."""

    config: Path | None = None
    values: Mapping[str, str] = {}


def use_command_line(config: Path | None, values: Mapping[str, str]) -> None:
    """Put the options of the command line above every other source, for the life of this process."""
    _CommandLine.config = config or _CommandLine.config
    _CommandLine.values = {**_CommandLine.values, **values}


def forget_command_line() -> None:
    """Take away what the command line has set: for another command in the same process."""
    _CommandLine.config, _CommandLine.values = None, {}


def command_line() -> Mapping[str, str]:
    """Return the settings of the command line, by key."""
    return _CommandLine.values


def environment_of(environment: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Return an environment, by default that of this process."""
    return os.environ if environment is None else environment


def variable(key: str) -> str:
    """Return the environment variable that sets a key."""
    return PREFIX + key.replace(".", "__").upper()


def load_no_plugins() -> None:
    """Let pydantic look for no plugins in this process and those it starts, unless the user wants some: 12 ms."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def anything_set(environment: Mapping[str, str] | None = None) -> bool:
    """Whether a file, a variable or the command line may set more than the data folder."""
    file, named = config_file(environment)
    others = (name for name in environment_of(environment) if name.startswith(PREFIX) and name != DATA_DIR)
    return named or bool(_CommandLine.values) or any(others) or file.is_file()


def config_file(environment: Mapping[str, str] | None = None) -> tuple[Path, bool]:
    """Return the path of the configuration file, and whether it was named; an unnamed one need not be there."""
    named = _CommandLine.config or environment_of(environment).get(CONFIG)
    if named:
        return at_home(named).absolute(), True
    return platform_config_dir() / "config.toml", False


def pager(environment: Mapping[str, str] | None = None, *, stays: bool = False) -> tuple[str, Mapping[str, str]]:
    """Return the shell command of the user's pager, empty if there is to be none, and the environment to run it in.

    As for git and man, `PAGER` names it; `less` shows colours, and ends at once if everything fits on one screen,
    unless it `stays`.
    """
    values = environment_of(environment)
    return values.get("PAGER", "less -R").strip(), {"LESS": "R" if stays else "FRX", **values}


def for_git(environment: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Return the environment for git in a folder that nobody vouches for: it asks nothing, and reaches nowhere."""
    kept = {name: value for name, value in environment_of(environment).items() if not name.startswith("GIT_")}
    safe = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    return {**kept, **safe, "LC_ALL": "C"}


def at_home(given: str | Path) -> Path:
    """Return a path with the home folder in the place of `~`, unless that is somebody's who is not known here."""
    try:
        return Path(given).expanduser()
    except RuntimeError:
        return Path(given)


def platform_data_dir() -> Path:
    """Return the platform's folder for user data."""
    return _usual("XDG_DATA_HOME", ".local/share") or _by_platform("user_data_path")


def platform_config_dir() -> Path:
    """Return the platform's folder for configuration files."""
    return _usual("XDG_CONFIG_HOME", ".config") or _by_platform("user_config_path")


def _usual(variable: str, folder: str) -> Path | None:
    """Return what platformdirs, which takes 5 ms to load, says on Linux unless a variable says otherwise."""
    if sys.platform != "linux" or variable in os.environ or "ANDROID_DATA" in os.environ:
        return None
    return at_home(f"~/{folder}/agtrace")


def _by_platform(kind: str) -> Path:
    import platformdirs

    path: Path = getattr(platformdirs, kind)("agtrace", appauthor=False)
    return path


def data_dir(environment: Mapping[str, str] | None = None) -> Path:
    """Return the data folder, whatever is wrong with other settings; they are read only if it may be in a file."""
    values = environment_of(environment)
    named = command_line().get("data_dir") or values.get(DATA_DIR)
    if named or not config_file(values)[0].is_file():
        return at_home(named) if named else platform_data_dir()
    from agtrace.settings.sources import read

    return read(values).settings.data_dir
