"""A connection to a team's database that answers the questions of `agtrace_indexer.index.questions`.

It offers what these use of a `sqlite3.Connection`, and raises the errors of `sqlite3`: whoever asks needn't know which
engine answers. It only reads, and it sees what PostgreSQL lets the person see who logged in.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from agtrace_indexer.index.questions import matches, ranking
from agtrace_indexer.texts.candidates import Narrowed
from agtrace_schema.database import VERSION
from agtrace_schema.patterns import later
from psycopg import ClientCursor, errors
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict

from agtrace_team.dialect import respelled
from agtrace_team.problems import LoginRefused, NobodyOfTheTeam, TeamUnavailable
from agtrace_team.words import grams_of_query, tsquery

TABLES = 1
"""What the tables mean: raised, here and in `meta`, by a step that changes that. A step that only adds a column leaves
it as it is: an older agtrace goes on, and a newer one says that the tables are older."""

_PATH = "team, pg_catalog"
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_FEWEST_AHEAD, _MOST_AHEAD = 4, 32
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


class _Bytes(Loader):
    def load(self, data: Any) -> bytes:
        return bytes.fromhex(bytes(data)[2:].decode())


class _Int(Dumper):
    """All whole numbers have the type of the columns."""

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


def shown(url: str) -> str:
    """Return what a database is called for people: its name, and where it is; nothing that is secret."""
    given = conninfo_to_dict(url)
    return f"{given.get('dbname') or 'the database'} at {given.get('host') or 'this machine'}"


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
    """A connection of one thread. Its errors are those of `sqlite3`."""

    row_factory: Any = None

    def __init__(self, url: str) -> None:
        """Connect. Raises `TeamUnavailable`; for a database that another version of agtrace made, `sqlite3` errors."""
        connection = self._connection = connect(url, cursor_factory=ClientCursor)
        connection.adapters.register_loader("numeric", _Whole)
        connection.adapters.register_loader("bool", _Condition)
        connection.adapters.register_loader("bytea", _Bytes)
        connection.adapters.register_dumper(int, _Int)
        self.ahead = _Ahead(self)
        self._is_to_stop: Callable[[], bool] | None = None
        self._check_tables()
        self.execute("SET search_path = " + _PATH)
        self.execute("SET default_transaction_read_only = on")
        self.execute("SET jit = off")

    def _check_tables(self) -> None:
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

    def cursor(self) -> TeamCursor:
        """Return a cursor."""
        return TeamCursor(self)

    def execute(self, sql: str, arguments: Sequence[Any] | Mapping[str, Any] = ()) -> TeamCursor:
        """Execute a statement in SQLite's spelling."""
        return self.cursor().execute(sql, arguments)

    def rollback(self) -> None:
        """End the transaction."""
        self.ahead.forget()
        with _as_of_sqlite():
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def set_progress_handler(self, is_to_stop: Callable[[], bool] | None, _steps: int) -> None:
        """Have statements end with an error once this is true; None: let them run."""
        self._is_to_stop = is_to_stop

    def narrowed(self, queries: Sequence[bytes]) -> Narrowed:
        """Return the blocks that may contain all of some folded queries."""
        wanted = sorted({gram for query in queries for gram in grams_of_query(query)})
        if not wanted:
            return Narrowed(None, final=True)
        listed = ", ".join(map(str, wanted))
        found = self.execute(f"SELECT one FROM blocks_with('{{{listed}}}'::smallint[]) one").fetchall()
        return Narrowed({block: None for (block,) in found}, final=True)

    def only(self, login: str | None) -> None:
        """Answer from what this person pushed, or from all there is. Raises `sqlite3.Error` for nobody of the team.

        A person is named by the login, or as others see them.
        """
        if login is not None and not self.knows(login):
            raise NobodyOfTheTeam(login)
        self.narrow(login)

    def knows(self, name: str) -> bool:
        """Whether somebody of the team has this login, or is the only one who is shown so."""
        return self._login_of(name) is not None

    def _login_of(self, name: str) -> str | None:
        called = "login = %s OR lower(shown) = lower(%s)"
        sql = f"SELECT login::text, login = %s FROM team.person WHERE {called} ORDER BY 2 DESC"
        found = self.run(sql, (name, name, name)).fetchall()
        return found[0][0] if found and (found[0][1] or len(found) == 1) else None

    def narrow(self, login: str | None) -> None:
        """Answer from what somebody with this login, or who is shown so, pushed, or from all there is."""
        meant = login and (self._login_of(login) or login)
        self.run("SELECT set_config('agtrace.only', %s, false)", (meant or "",))

    def people_of(self, sessions: Sequence[int]) -> dict[int, str]:
        """Return session -> who pushed it."""
        sql = "SELECT s.id, p.shown FROM session s JOIN person p ON p.id = s.person_id WHERE s.id = ANY (%s)"
        return dict(self.run(sql, (list(sessions),)).fetchall())

    def note(self, kind: str) -> None:
        """Note that this person asked this kind of question."""
        with _as_of_sqlite():
            self._connection.execute("BEGIN READ WRITE")
            self._connection.execute("INSERT INTO asked (kind) VALUES (%s)", (kind,))
            self._connection.execute("COMMIT")

    def run(self, sql: str, arguments: Any) -> psycopg.Cursor[tuple[Any, ...]]:
        """Execute a statement in PostgreSQL's spelling, until it is to stop."""
        cursor = self._connection.cursor()
        with _as_of_sqlite(), self._watched():
            return cursor.execute(sql, arguments)

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


class _Ahead:
    """The texts of blocks, fetched before they are asked for: a search reads one after the other until it has enough.

    Each time twice as many, as asking for one costs more than it has.
    """

    def __init__(self, connection: TeamConnection) -> None:
        self._connection = connection
        self.forget()

    def forget(self) -> None:
        """Forget all: another moment, other texts."""
        self._fetched: dict[int, tuple[Any, ...]] = {}
        self.expect([])

    def expect(self, blocks: list[int]) -> None:
        """Expect that these blocks will be asked for, some or all of them, in this order."""
        self._blocks, self._place = blocks, {block: at for at, block in enumerate(blocks)}
        self._number = _FEWEST_AHEAD

    def text(self, block: int) -> list[tuple[Any, ...]]:
        """Return the row of a block's text; no row if there is none."""
        if block not in self._fetched:
            at = self._place.get(block)
            wanted = [block] if at is None else self._blocks[at : at + self._number]
            self._number = min(2 * self._number, _MOST_AHEAD)
            sql = "SELECT block_id, ends, text FROM block_data WHERE block_id = ANY (%s)"
            self._fetched = {id: tuple(rest) for id, *rest in self._connection.run(sql, (wanted,))}
        return [self._fetched[block]] if block in self._fetched else []


class TeamCursor:
    """A cursor of a `TeamConnection`."""

    row_factory: Any = None

    def __init__(self, connection: TeamConnection) -> None:
        self._connection = connection
        self._found: psycopg.Cursor[tuple[Any, ...]] | list[tuple[Any, ...]] = []

    def execute(self, sql: str, arguments: Sequence[Any] | Mapping[str, Any] = ()) -> TeamCursor:
        """Execute a statement in SQLite's spelling; return this cursor."""
        if sql == matches.TEXT:
            self._found = self._connection.ahead.text(arguments[0])  # type: ignore[index]
            return self
        if sql in _STATEMENTS:
            statement, given = _STATEMENTS[sql](arguments)
        else:
            statement, given = respelled(sql), arguments
        self._found = self._connection.run(statement, given or None)
        if sql.lstrip().startswith(matches.BLOCK):
            self._found = self._found.fetchall()
            self._connection.ahead.expect([row[0] for row in self._found])
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row; None if there is none."""
        return next(iter(self), None)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows that are left."""
        return list(self)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Return the rows that are left, one after the other."""
        return iter(self._found)


def _no_file(_: Any) -> tuple[str, Any]:
    """A team's index is no file that other processes of this machine could open."""
    raise OSError("a team's index is no file")


def _ranked(statement: str) -> Callable[[Any], tuple[str, Any]]:
    """Return a question to the ranking index, which SQLite keeps in FTS5 and PostgreSQL in stems."""

    def of(arguments: Any) -> tuple[str, Any]:
        word = arguments[0]
        return statement, (tsquery(word.strip('"*'), beginning=word.endswith("*")),)

    return of


_STATEMENTS: dict[str, Callable[[Any], tuple[str, Any]]] = {
    "BEGIN": lambda _: (_BEGIN, None),
    "PRAGMA user_version": lambda _: (f"SELECT {VERSION}", None),
    "PRAGMA data_version": lambda _: (
        "SELECT (extract(epoch FROM max(pushed_at)) * 1000000)::bigint FROM session",
        None,
    ),
    "PRAGMA database_list": _no_file,
    ranking.COUNT: _ranked("SELECT count(*) FROM events_with(%s::tsquery)"),
    ranking.HOLDING: _ranked("SELECT coalesce(json_agg(one), '[]')::text FROM events_with(%s::tsquery) one"),
    ranking.IS_RANKED: lambda _: ("SELECT 1", None),
}
"""The statements that PostgreSQL has others for."""


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
