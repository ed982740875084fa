"""A service of the user's that keeps the index fresh: its file, what starts and stops it, and installing it."""

from __future__ import annotations

import plistlib
import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping
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


# -- installing --------------------------------------------------------------------------------------

_COMMAND_SECONDS = 60
"""How long a command of the platform may take."""

Tell = Callable[[str], None]
"""Is told each step, as a line."""


def install(found: Service, tell: Tell) -> None:
    """Write the file and start the service. Raises `NotInstalled`; a file that was written then stays."""
    if found.path.is_file() and found.kind == "launchd":
        _run(found.stop)  # one that is loaded would refuse the new file
    try:
        found.path.parent.mkdir(parents=True, exist_ok=True)
        partial = found.path.with_name(f".{found.path.name}.partial")
        partial.write_bytes(found.content)
        partial.replace(found.path)
    except OSError as error:
        raise NotInstalled(f"can't write {found.path}: {error.strerror or error}") from error
    tell(f"written: {found.path}")
    failed = _run(found.start, tell)
    if failed is not None:
        raise NotInstalled(f"the service is not running: {failed}")


def remove(found: Service, tell: Tell) -> str | None:
    """Stop the service and delete its file; return what failed while it was stopped, or None.

    Raises `NotInstalled` if the file can't be deleted.
    """
    failed = _run(found.stop, tell)
    try:
        found.path.unlink(missing_ok=True)
    except OSError as error:
        raise NotInstalled(f"can't delete {found.path}: {error.strerror or error}") from error
    _run(found.after_removal)
    tell(f"removed: {found.path}")
    return failed


def is_running(found: Service) -> bool:
    """Whether the platform says that the service runs."""
    return _run([found.status]) is None


def _run(commands: Iterable[tuple[str, ...]], tell: Tell | None = None) -> str | None:
    for command in commands:
        if tell is not None:
            tell(shlex.join(command))
        try:
            done = subprocess.run(
                command, check=False, capture_output=True, text=True, errors="replace", timeout=_COMMAND_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{command[0]} can't be run ({getattr(error, 'strerror', None) or error})"
        if done.returncode:
            told = " ".join(done.stderr.split())
            return f"{shlex.join(command)} failed{f' ({told})' if told else ''}"
    return None
