"""A connection to a team's database that answers the questions of `agtrace_indexer.index.queries`.

It offers what these use of a `sqlite3.Connection`, and raises the errors of `sqlite3`: whoever asks needn't know which
engine answers. It only reads, and it sees what PostgreSQL lets the person see who logged in.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from re import Match
from typing import Any

import psycopg
from agtrace_indexer.index.queries.matches import Ahead
from agtrace_schema.patterns import later
from psycopg import ClientCursor, errors
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict

from agtrace_team.problems import LoginRefused, NobodyOfTheTeam, TeamUnavailable

TABLES = 1
"""What the tables mean: raised, here and in `meta`, by a step that changes that. A step that only adds a column leaves
it as it is: an older agtrace goes on, and a newer one says that the tables are older."""

_SETTINGS = """
SET search_path = team, pg_catalog;
SET default_transaction_isolation = 'repeatable read';
SET default_transaction_read_only = on;
SET jit = off
"""
_LOGINS = """
SELECT login::text, login = :name FROM person WHERE login = :name OR lower(shown) = lower(:name) ORDER BY 2 DESC
"""
_PLACEHOLDER = later(r"'(?:[^']|'')*'|(?<!:):(\w+)|\?|%")
"""A placeholder of SQLite's, or what psycopg would take for one of its own; texts are passed over."""

_LOOPBACK = frozenset({"", "localhost", "::1"})
_OF_LOOPBACK = later(r"127(?:\.[0-9]{1,3}){3}")
_PLAIN = "a team's database on another machine is reached by TLS only: sslmode=verify-full, verify-ca or require"
_OLDER = "an older agtrace made the team's tables: its owner has to run `agtrace team migrate`"
_LOOK_EVERY = 0.05
"""Seconds between two looks at the clock while a question is answered."""


class _Whole(Loader):
    """Sums of whole numbers are of type numeric in PostgreSQL."""

    def load(self, data: Any) -> int | float:
        text = bytes(data)
        return float(text) if b"." in text or text in (b"NaN", b"Infinity") else int(text)


class _Condition(Loader):
    """A condition is 1 or 0, as in SQLite."""

    def load(self, data: Any) -> int:
        return int(bytes(data) == b"t")


class _Int(Dumper):
    def dump(self, obj: int) -> bytes:
        return str(obj).encode()

    def quote(self, obj: int) -> bytes:
        return b"(%d::bigint)" % obj


def connect(url: str, **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
    """Return a connection of psycopg's to a team's database: encrypted, unless the server is on this machine.

    Raises `TeamUnavailable`, without the URL's password.
    """
    try:
        given = secured(conninfo_to_dict(url))
        connection = psycopg.connect(
            **given, autocommit=True, connect_timeout=10, application_name="agtrace", **options
        )
    except psycopg.Error as error:
        raise _refusal(error) from None
    if not (is_local(connection.info.host) or connection.pgconn.ssl_in_use):  # PGHOST, a service file
        connection.close()
        raise TeamUnavailable(_PLAIN)
    return connection


def is_here(given: Mapping[str, Any]) -> bool:
    """Whether these parameters, with what libpq adds from variables and service files, lead to this machine only."""
    of_libpq = {one.keyword.decode(): (one.val or b"").decode() for one in psycopg.pq.Conninfo.get_defaults()}

    def told(name: str) -> str:
        return str(given.get(name) or of_libpq.get(name) or "")

    if told("service") or told("hostaddr"):
        return not told("service") and is_local(told("hostaddr"))
    return is_local(told("host"))


def secured(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of a connection with TLS: the server's certificate is checked unless they say how else.

    Raises `TeamUnavailable` if they allow a connection to another machine without TLS: a password goes with the first
    words, so this is known before.
    """
    if is_here(given):
        return dict(given)
    mode = given.get("sslmode", "verify-full")
    if mode in ("disable", "allow", "prefer"):
        raise TeamUnavailable(_PLAIN)
    own_roots = {} if "sslrootcert" in given or mode == "require" else {"sslrootcert": "system"}
    return {**given, "sslmode": mode, **own_roots}


def is_local(host: str) -> bool:
    """Whether these hosts, separated by commas, are this machine: a socket, or a loopback address."""
    return all(one in _LOOPBACK or one.startswith(("/", "@")) or _OF_LOOPBACK.fullmatch(one) for one in host.split(","))


class TeamConnection:
    """A connection of one thread, and its own cursor. Its errors are those of `sqlite3`."""

    row_factory: Any = None

    def __init__(self, url: str) -> None:
        """Connect. Raises `TeamUnavailable`."""
        connection = self._connection = connect(url, cursor_factory=ClientCursor)
        connection.adapters.register_loader("numeric", _Whole)
        connection.adapters.register_loader("bool", _Condition)
        connection.adapters.register_dumper(int, _Int)
        self.ahead = Ahead()
        self._is_to_stop: Callable[[], bool] | None = None
        try:
            found = self._connection.execute("SELECT value FROM team.meta WHERE key = 'tables'").fetchone()
        except (errors.UndefinedTable, errors.InsufficientPrivilege, errors.InvalidSchemaName):
            self.close()
            raise TeamUnavailable("that database has no tables of a team that this login may read") from None
        version = int(found[0]) if found else 0
        if version != TABLES:
            self.close()
            newer = "a newer agtrace made the team's tables: update agtrace"
            raise TeamUnavailable(newer if version > TABLES else _OLDER)
        self.execute(_SETTINGS)

    def cursor(self) -> TeamConnection:
        """Return what executes statements: no more is needed for that."""
        return self

    def execute(self, sql: str, arguments: Sequence[Any] | Mapping[str, Any] = ()) -> psycopg.Cursor[tuple[Any, ...]]:
        """Execute a statement with SQLite's placeholders, until it is to stop; return its rows."""
        cursor = self._connection.cursor()
        with _as_of_sqlite(), self._watched():
            return cursor.execute(_with_placeholders(sql), arguments)

    def rollback(self) -> None:
        """End the transaction."""
        with _as_of_sqlite():
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def set_progress_handler(self, is_to_stop: Callable[[], bool] | None, _steps: int) -> None:
        """Have statements end with an error once this is true; None: let them run."""
        self._is_to_stop = is_to_stop

    def only(self, name: str | None) -> None:
        """Answer from what somebody with this login, or who is shown so, pushed; None: from all there is.

        Raises `NobodyOfTheTeam`, also if several are shown so.
        """
        found = self.execute(_LOGINS, {"name": name}).fetchall() if name else []
        if name and (not found or (len(found) > 1 and not found[0][1])):
            raise NobodyOfTheTeam(name)
        self.execute("SELECT set_config('agtrace.only', ?, false)", (found[0][0] if found else "",))

    def note(self, kind: str) -> None:
        """Note that this person asked this kind of question."""
        self.execute("BEGIN READ WRITE; INSERT INTO asked (kind) VALUES (?); COMMIT", (kind,))

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Cancel what is executed within this context when it is to stop."""
        if self._is_to_stop is None:
            yield
            return
        if self._is_to_stop():
            raise sqlite3.OperationalError("interrupted")
        ended = threading.Event()
        watch = threading.Thread(target=self._watch, args=(self._is_to_stop, ended), daemon=True)
        watch.start()
        try:
            yield
        finally:
            ended.set()
            watch.join()

    def _watch(self, is_to_stop: Callable[[], bool], ended: threading.Event) -> None:
        while not ended.wait(_LOOK_EVERY):
            if is_to_stop():
                self._connection.cancel_safe(timeout=2)  # documented as safe from another thread
                return


@lru_cache(maxsize=1000)
def _with_placeholders(sql: str) -> str:
    """Return a statement with psycopg's placeholders: `%(name)s` for `:name`, `%s` for `?`."""
    return _PLACEHOLDER.sub(_placeholder, sql)


def _placeholder(found: Match[str]) -> str:
    if found[1]:
        return f"%({found[1]})s"
    return "%s" if found[0] == "?" else found[0].replace("%", "%%")


@contextmanager
def _as_of_sqlite() -> Iterator[None]:
    try:
        yield
    except errors.QueryCanceled:
        raise sqlite3.OperationalError("interrupted") from None
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise TeamUnavailable(f"the team's database can't be reached: {_why(error)}") from None
    except (errors.UndefinedColumn, errors.UndefinedTable, errors.UndefinedFunction):
        raise TeamUnavailable(_OLDER) from None
    except psycopg.Error as error:
        raise sqlite3.OperationalError(f"the team's database refused a question ({error.sqlstate})") from error


def _refusal(error: psycopg.Error) -> TeamUnavailable:
    """Return what it means that there is no connection: a server that answers says that in one of its own lines."""
    said, fatal, why = _why(error).partition("FATAL:  ")
    if fatal and not said:
        return LoginRefused(f"the team's database refuses this login: {why}")
    return TeamUnavailable(f"the team's database can't be reached: {_why(error)}")


def _why(error: psycopg.Error) -> str:
    """Return what PostgreSQL says of a lost or refused connection, without what it was given."""
    said = str(error).strip().splitlines()
    return said[-1].rpartition("failed: ")[2] if said else type(error).__name__
