"""A PostgreSQL server of one's own in a folder, without root, for trials and tests."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from psycopg import sql

from agtrace_team.connection import connect
from agtrace_team.migrations import migrate
from agtrace_team.problems import NoServer

_PLACES = ("/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt", "/usr/pgsql")
_LOCALE = ("--encoding=UTF8", "--lc-collate=C", "--lc-ctype=C.UTF-8")
_NOBODY = "nobody"


def programs() -> Path:
    """Return the folder with `initdb` and `pg_ctl`, of the newest PostgreSQL that is found. Raises `NoServer`."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    there = (folder for place in _PLACES for folder in Path(place).glob("*/bin") if (folder / "initdb").exists())
    for folder in sorted(there, key=lambda one: list(map(int, re.findall(r"\d+", one.parent.name))), reverse=True):
        return folder
    raise NoServer("no PostgreSQL is installed (Debian: apt install postgresql; macOS: brew install postgresql@17)")


def _runuser() -> str:
    """Return the program that runs another one as somebody else; root's PATH may lack its folder."""
    return shutil.which("runuser") or shutil.which("runuser", path=f"/usr/sbin{os.pathsep}/sbin") or "runuser"


class Server:
    """A server in a folder, which listens on a socket in it, and nowhere else.

    Logins need no password, and nobody but the folder's owner and root can open the socket.
    """

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        """Make it if the folder is empty; `durable` as False may lose data when the machine dies. Raises `NoServer`."""
        self.folder, self._bin, self._durable = folder, programs(), durable
        if not (folder / "data" / "PG_VERSION").exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise NoServer(f"{folder} isn't empty: a server for trials takes a folder of its own")
            folder.chmod(0o700)
            if os.getuid() == 0:  # PostgreSQL refuses to run as root
                os.chown(folder, pwd.getpwnam(_NOBODY).pw_uid, -1)
            self._run("initdb", "-D", f"{folder}/data", "-A", "trust", "-U", "postgres", *_LOCALE, "--no-sync")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": self.folder,
            "unix_socket_permissions": "0700",
            "max_connections": 200,
        }
        if not self._durable:
            settings |= {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-l", f"{self.folder}/log", "-w", "-o", options, "start")

    def make(self, database: str) -> None:
        """Make a team's database, if there is none of that name."""
        with connect(self.url("postgres")) as connection:
            there = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (database,)).fetchone()
            if there is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
        with connect(self.url(database)) as connection:
            migrate(connection)

    def stop(self, how: str = "fast") -> None:
        """Stop it: `fast` ends connections, `immediate` dies as by a crash."""
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-m", how, "-w", "stop")

    def url(self, database: str, login: str = "postgres") -> str:
        """Return how a login connects to a database."""
        return f"postgresql:///{database}?host={self.folder}&user={login}"

    def _run(self, program: str, *arguments: str) -> None:
        before: Sequence[str] = [_runuser(), "-u", _NOBODY, "--"] if os.getuid() == 0 else []
        found = subprocess.run(
            [*before, str(self._bin / program), *arguments], cwd="/", stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        if found.returncode:
            raise NoServer(f"{program} failed: {found.stderr.strip()[-300:]}")
