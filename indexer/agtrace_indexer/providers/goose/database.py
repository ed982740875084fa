"""Sessions in `sessions.db`: a row for each message, in the order of their ids, and one for each request's tokens.

Rows are usually added. Goose may also replace a conversation (when the context is compacted), delete its end
(when the human edits a request) or change a message's visibility in place. Then the rows that were read are no longer
as many, or as long, as they were: the log says that it was rewritten, and all of its rows come again.

Whatever of a session's tokens is in its messages is also in the ledger, if there is one (schema 12 and later), which
has more: a message takes along its row of the ledger, the first with the same figures. The other rows are records of
their own. If one comes before its message, or after it, it still counts once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from agtrace_schema.patterns import later
from msgspec import Struct, field

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.events.json_values import by_name, compact_json, digest, fields
from agtrace_indexer.logs.containers import Container
from agtrace_indexer.logs.decoding import decode
from agtrace_indexer.logs.discovery import Found
from agtrace_indexer.logs.foreign_database import ask
from agtrace_indexer.providers.provider import LogInside, Row

_COLUMNS = "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name) p WHERE m.type = 'table'"
_NEEDED = {"sessions": {"id"}, "messages": {"id", "session_id", "role", "content_json"}}

_MESSAGES = (
    "SELECT id, {message_id}, role, {created_timestamp}, substr({metadata_json}, 1, :most), "
    "substr(content_json, 1, :most), length(CAST(content_json AS BLOB)), length(CAST({metadata_json} AS BLOB)) "
    "FROM messages WHERE session_id = :session AND id > :last ORDER BY id"
)
_BEFORE = (
    "SELECT count(*), coalesce(sum(length(CAST(content_json AS BLOB))), 0), "
    "coalesce(sum(length(CAST({metadata_json} AS BLOB))), 0) FROM messages WHERE session_id = :session AND id <= :last"
)
_LEDGER_FIGURES = (
    "created_timestamp", "model", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost",
)  # fmt: skip
_FACTS = (
    "name", "description", "session_type", "working_dir", "parent_session_id", "model_config_json",
    "accumulated_input_tokens", "accumulated_output_tokens", "accumulated_cache_read_tokens",
    "accumulated_cache_write_tokens",
)  # fmt: skip
_FIGURES = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")

_MOST = 64 * 1024 * 1024
_PENDING = 64
_ID = later(r"[A-Za-z0-9_-]{1,64}")

Columns: TypeAlias = dict[str, set[str]]
"""The columns of each table."""


class _Place(Struct):
    """Where reading continues."""

    last: int = 0
    """The id of the last message that was read."""
    messages: int = 0
    size: int = 0
    """Bytes of the contents that were read."""
    more: int = 0
    """Bytes of the metadata that was read."""
    ledger: int = 0
    """The id of the last row of the ledger that was read."""
    facts: str = ""
    owed: list[list[Any]] = field(default_factory=list)
    """Input and output of messages whose row of the ledger is still to come."""
    early: list[list[Any]] = field(default_factory=list)
    """Input and output of rows of the ledger whose message may still come."""
    rest: list[int] = field(default_factory=list)
    """What was read of tokens that are only in the session's totals."""

    def pass_by(self, message: tuple[Any, ...]) -> None:
        """Note that a message was read."""
        self.last, self.messages = message[0], self.messages + 1
        self.size, self.more = self.size + message[6], self.more + (message[7] or 0)

    def at(self) -> dict[str, Any]:
        """Return the place as JSON. Its lists are never changed, only replaced."""
        return by_name(self)


def logs(container: Container) -> Iterable[LogInside]:
    """Yield a log for each session with messages. Raises `OSError` if the database isn't Goose's.

    A log counts as changed if its session's row is, or if it has more or fewer messages, or others.
    """
    columns = _columns(container.path)
    ledger = ", (SELECT max(id) FROM usage_ledger WHERE session_id = m.session_id)" if "usage_ledger" in columns else ""
    of_sessions = ", ".join(_existing(("updated_at", *_FACTS), columns["sessions"]))
    sessions, told = ask(
        container.path,
        (f"SELECT session_id, count(*), min(id), max(id){ledger} FROM messages m GROUP BY session_id", ()),
        (f"SELECT id, {of_sessions} FROM sessions", ()),
    )
    stamps = {row[0]: digest(repr(row)) for row in told}
    return [LogInside(_name(session), f"{stamps.get(session)}/{rest}") for session, *rest in sessions]


def rows(found: Found, position: Any) -> Iterator[Row]:
    """Yield what is new of a session: facts, messages with their rows of the ledger, other rows of it, and totals."""
    path, name = found.container, found.path[len(found.container) + 1 :]
    columns = _columns(path)
    session = _session(path, name)
    if session is None:
        return
    place = _Place(**position) if position else _Place()
    before, messages, ledger, told, sums = _asked(path, columns, session, place)
    if list(before[0]) != [place.messages, place.size, place.more]:
        facts, rest = place.facts, place.rest
        place = _Place(facts=facts, rest=rest)
        yield _row(0, {"$goose": "rewritten"}, place)
        before, messages, ledger, told, sums = _asked(path, columns, session, place)
    yield from _facts(session, told, place)
    yield from _new_messages(messages, _Ledger(_entry(row) for row in ledger), place)
    yield from _totals(told, sums, place)


def _session(path: str, name: str) -> Any:
    """Return the id of the session whose log has this name, which is usually its id; None if it has no messages."""
    (ids,) = ask(path, ("SELECT session_id FROM messages WHERE session_id = ? LIMIT 1", (name,)))
    if not ids:
        (ids,) = ask(path, ("SELECT DISTINCT session_id FROM messages", ()))
    return next((id for (id,) in ids if _name(id) == name), None)


def _asked(path: str, columns: Columns, session: Any, place: _Place) -> list[list[tuple[Any, ...]]]:
    """Return the answers about one session: what was read of it before, what is new, its row, the ledger's sums."""
    of_messages = {name: name if name in columns["messages"] else "NULL" for name in _OPTIONAL}
    given = {"session": session, "last": place.last, "most": _MOST, "ledger": place.ledger}
    figures = ", ".join(_existing(_LEDGER_FIGURES, columns.get("usage_ledger", set())))
    no_rows = "SELECT 1 WHERE 0"
    ledger = f"SELECT id, {figures} FROM usage_ledger WHERE session_id = :session AND id > :ledger ORDER BY id"
    sums = ", ".join(f"sum({name})" for name in _existing(_FIGURES, columns.get("usage_ledger", set())))
    of_session = ", ".join(_existing(_FACTS, columns["sessions"]))
    has_ledger = "usage_ledger" in columns
    questions = [
        _BEFORE.format_map(of_messages),
        _MESSAGES.format_map(of_messages),
        ledger if has_ledger else no_rows,
        f"SELECT {of_session} FROM sessions WHERE id = :session",
        f"SELECT count(*), {sums} FROM usage_ledger WHERE session_id = :session" if has_ledger else no_rows,
    ]
    return ask(path, *((question, given) for question in questions))


_OPTIONAL = ("message_id", "created_timestamp", "metadata_json")


def _existing(names: Iterable[str], there: set[str]) -> list[str]:
    return [name if name in there else "NULL" for name in names]


def _facts(session: Any, told: list[tuple[Any, ...]], place: _Place) -> Iterator[Row]:
    """Yield what the session's row says about it, if that is new; not its totals."""
    about = dict(zip(_FACTS, map(_plain, told[0]), strict=True)) if told else {}
    known = {name: value for name, value in about.items() if not name.startswith("accumulated_")}
    known["model_config"] = _json(known.pop("model_config_json", None))
    if digest(repr(known)) != place.facts:
        place.facts = digest(repr(known))
        yield _row(0, {"$goose": "session", "id": _plain(session), **known}, place)


class _Ledger:
    """The rows of the ledger that no message has taken."""

    def __init__(self, entries: Iterable[Record]) -> None:
        self._left = {entry["row"]: entry for entry in entries}
        self._with: dict[tuple[Any, ...], deque[int]] = {}
        for row, entry in self._left.items():
            self._with.setdefault(tuple(_of_entry(entry)), deque()).append(row)
        self.newest = max(self._left, default=None)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._left.values())

    @property
    def first(self) -> int | None:
        """The number of the first row."""
        return next(iter(self._left), None)

    def take(self, figures: list[Any]) -> Record | None:
        """Take away the first row with these figures, if there is one."""
        try:
            rows = self._with.get(tuple(figures))
        except TypeError:  # a list or an object, which no row has
            return None
        return self._left.pop(rows.popleft()) if rows else None


def _new_messages(messages: list[tuple[Any, ...]], ledger: _Ledger, place: _Place) -> Iterator[Row]:
    """Yield messages, each with its row of the ledger, then the rows of the ledger that no message has."""
    newest = place.ledger if ledger.newest is None else ledger.newest
    for message in messages:
        made = _message(message)
        figures = _of_message(made["metadata"])
        if figures is not None:
            _settle(figures, made, ledger, place)
        place.ledger = newest if ledger.first is None else ledger.first - 1
        place.pass_by(message)
        yield Row(message[0], _with_content(made, message[5]), place.at())
    for entry in ledger:
        place.ledger, figures = entry["row"], _of_entry(entry)
        if figures in place.owed:
            place.owed = _without(place.owed, figures)
        else:
            place.early = [*place.early, figures][-_PENDING:]
            yield _row(entry["row"], {"$goose": "usage", **entry}, place)


def _message(row: tuple[Any, ...]) -> Record:
    """Return a message, apart from its content."""
    id, named, role, created, metadata = map(_plain, row[:5])
    about = fields(_json(metadata))
    return {"$goose": "message", "row": id, "id": named, "role": role, "created": created, "metadata": about}


def _settle(figures: list[Any], made: Record, ledger: _Ledger, place: _Place) -> None:
    """Give a message its row of the ledger: the first one with its figures."""
    entry = ledger.take(figures)
    if entry is not None:
        made["ledger"] = entry
    elif figures in place.early:
        place.early = _without(place.early, figures)
        made["counted"] = True
    else:
        place.owed = [*place.owed, figures][-_PENDING:]


def _without(pending: list[list[Any]], figures: list[Any]) -> list[list[Any]]:
    """Return what is pending without the first of these figures."""
    at = pending.index(figures)
    return [*pending[:at], *pending[at + 1 :]]


def _totals(told: list[tuple[Any, ...]], sums: list[tuple[Any, ...]], place: _Place) -> Iterator[Row]:
    """Yield the tokens of a session that none of its requests has, if any: those before there was a ledger."""
    about = dict(zip(_FACTS, told[0], strict=True)) if told else {}
    counted = sums[0][1:] if sums and sums[0][0] else None
    if counted is None and place.owed:  # all is in the messages
        return
    totals = [_number(about.get(f"accumulated_{name}")) for name in _FIGURES]
    rest = [max(total - _number(known), 0) for total, known in zip(totals, counted or [0] * len(totals), strict=True)]
    if rest != (place.rest or [0] * len(rest)):
        place.rest = rest
        yield _row(0, {"$goose": "totals", **dict(zip(_FIGURES, rest, strict=True))}, place)


def _of_message(metadata: Record) -> list[Any] | None:
    """Return input and output of the response in a message; None if the message has no figures."""
    usage = metadata.get("usage")
    return [usage.get("inputTokens"), usage.get("outputTokens")] if isinstance(usage, dict) else None


def _of_entry(entry: Record) -> list[Any]:
    return [entry["input_tokens"], entry["output_tokens"]]


def _entry(row: tuple[Any, ...]) -> Record:
    """Return a row of the ledger by the names of its columns."""
    names = ("row", "created", *_LEDGER_FIGURES[1:])
    return dict(zip(names, map(_plain, row), strict=True))


def _with_content(made: Record, content: Any) -> bytes:
    """Return a message as JSON; if its content is none, only that, to be kept as an unreadable line."""
    data = content if isinstance(content, bytes) else str(content).encode("utf-8", "surrogatepass")
    if len(decode(data) or ()) != 1:
        return data
    return compact_json(made)[:-1].encode("utf-8", "surrogatepass") + b',"content":' + data + b"}"


def _row(number: int, record: Record, place: _Place) -> Row:
    return Row(number, compact_json(record).encode("utf-8", "surrogatepass"), place.at())


def _columns(path: str) -> Columns:
    (found,) = ask(path, (_COLUMNS, ()))
    columns: Columns = {}
    for table, column in found:
        columns.setdefault(table, set()).add(column)
    if any(not needed <= columns.get(table, set()) for table, needed in _NEEDED.items()):
        raise OSError(0, "its tables are not those of Goose's sessions")
    return columns


def _json(value: Any) -> Any:
    values = decode(value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else None
    return values[0] if values and len(values) == 1 else None


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _number(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _name(session: Any) -> str:
    """Return the name of a log: the session's id, or a digest if that can't be one."""
    return session if isinstance(session, str) and _ID.fullmatch(session) else digest(repr(session))
