"""A service of the user's that keeps the index fresh: the file that describes it, and what starts and stops it.

Nothing here writes a file or runs a command: the caller does, after asking.
"""

from __future__ import annotations

import plistlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from agtrace_indexer.providers.registry import AGENTS

from agtrace.problems import NotInstalled

ARGUMENTS = ("index", "--watch")
"""What the service runs, after our executable."""

NICENESS = 5

_UNIT, _LABEL = "agtrace.service", "agtrace.index"
_OURS = ("AGTRACE_DATA_DIR", "AGTRACE_CONFIG", "AGTRACE_KEEP_DAYS")
_SECONDS = 30
"""Time after which a service that failed is started again."""


class Service(NamedTuple):
    """A service on this platform."""

    kind: str
    """What runs it: systemd or launchd."""
    path: Path
    """The file that describes it."""
    content: bytes
    start: tuple[tuple[str, ...], ...]
    """The commands that start it, now and at every login, once the file is there."""
    stop: tuple[tuple[str, ...], ...]
    """The commands that stop it, before the file is removed."""
    after_removal: tuple[tuple[str, ...], ...]
    status: tuple[str, ...]
    """The command that ends with exit code 0 if it runs."""
    hint: str


def service(platform: str, executable: str, environment: Mapping[str, str], home: Path, user: int) -> Service:
    """Return the service for a platform, as `sys.platform` names it.

    `executable` is the absolute path of ours, `user` the number of the user. Raises `NotInstalled` for a platform
    without services that are known here, and for a path that can't be written down.
    """
    names = (*_OURS, *(agent.home.variable for agent in AGENTS.values()))
    variables = {name: environment[name] for name in names if environment.get(name)}
    if any(not text.isprintable() for text in (executable, *variables.values())):
        raise NotInstalled("a path has a character that the file of a service can't hold")
    if platform == "linux":
        folder = Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "systemd" / "user"
        control = ("systemctl", "--user")
        return Service(
            kind="systemd",
            path=folder / _UNIT,
            content=unit(executable, variables).encode(),
            start=((*control, "daemon-reload"), (*control, "enable", "--now", _UNIT)),
            stop=((*control, "disable", "--now", _UNIT),),
            after_removal=((*control, "daemon-reload"),),
            status=(*control, "is-active", "--quiet", _UNIT),
            hint="It ends when you log out, unless you run: loginctl enable-linger",
        )
    if platform == "darwin":
        path, domain = home / "Library" / "LaunchAgents" / f"{_LABEL}.plist", f"gui/{user}"
        return Service(
            kind="launchd",
            path=path,
            content=property_list(executable, variables),
            start=(("launchctl", "bootstrap", domain, str(path)),),
            stop=(("launchctl", "bootout", f"{domain}/{_LABEL}"),),
            after_removal=(),
            status=("launchctl", "print", f"{domain}/{_LABEL}"),
            hint="It starts at every login.",
        )
    raise NotInstalled("services are known for Linux (systemd) and macOS (launchd) only: run `agtrace index --watch`")


def is_installed(platform: str, environment: Mapping[str, str], home: Path) -> bool:
    """Whether the file of the service is there."""
    try:
        return service(platform, "/agtrace", environment, home, 0).path.is_file()
    except (NotInstalled, OSError):
        return False


# -- systemd (systemd.unit(5), systemd.service(5), systemd.exec(5)) ----------------------------------


def unit(executable: str, variables: Mapping[str, str]) -> str:
    """Return the unit that runs our executable with these variables."""
    settings = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in variables.items())
    return f"""\
[Unit]
Description=agtrace: keep the index of your coding agents' sessions fresh

[Service]
ExecStart={" ".join((_quoted(executable), *ARGUMENTS))}
{settings}Nice={NICENESS}
IOSchedulingClass=idle
Restart=on-failure
RestartSec={_SECONDS}

[Install]
WantedBy=default.target
"""


def _quoted(text: str) -> str:
    """Quote a word for a unit: backslashes and quotes are escaped, and `%`, which begins a specifier."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


# -- launchd (launchd.plist(5), launchctl(1)) --------------------------------------------------------


def property_list(executable: str, variables: Mapping[str, str]) -> bytes:
    """Return the property list that runs our executable with these variables."""
    described = {
        "Label": _LABEL,
        "ProgramArguments": [executable, *ARGUMENTS],
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": _SECONDS,
        "ProcessType": "Background",
        "Nice": NICENESS,
    }
    settings = {"EnvironmentVariables": dict(variables)} if variables else {}
    return plistlib.dumps({**described, **settings}, sort_keys=False)
