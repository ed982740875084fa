"""The interface that any other engine would have to offer: a module per topic, with these functions over a connection.

The rows and values passed in and out are those of the SQLite modules, whose docstrings give the full meanings. Nothing
imports this module: the type checker compares it with the modules next to it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from agtrace_schema.events import EventType
from agtrace_schema.requests import GroupBy

from agtrace_indexer.index.questions.calls import Failure, IllEnded, RankedTool, ToolTotals, Worst
from agtrace_indexer.index.questions.counts import CallGroup, FileUses, TokenGroup
from agtrace_indexer.index.questions.events import Address, Event, Placed, Snapshot, Thinking, Times
from agtrace_indexer.index.questions.files import Touched, Use
from agtrace_indexer.index.questions.filters import EventFilters
from agtrace_indexer.index.questions.histories import PastEvent, TokenFigures, TouchedFile
from agtrace_indexer.index.questions.landmarks import Committer, Deeds, KindOfSession, Landmark
from agtrace_indexer.index.questions.live import Active, Filled
from agtrace_indexer.index.questions.matches import Block, FoundEvent
from agtrace_indexer.index.questions.matches import Span as TimeSpan
from agtrace_indexer.index.questions.projects import Folder, Project, Repository
from agtrace_indexer.index.questions.ranking import RankedEvent
from agtrace_indexer.index.questions.ranking import Size as RankedSize
from agtrace_indexer.index.questions.reports import Project as NamedProject
from agtrace_indexer.index.questions.reports import Relative, ToolCalls
from agtrace_indexer.index.questions.requests import Request
from agtrace_indexer.index.questions.sessions import Child, Family, Neighbours, Session, SessionFilters
from agtrace_indexer.index.questions.sessions import Counts as SessionCounts
from agtrace_indexer.index.questions.state import Totals
from agtrace_indexer.index.questions.texts import ReadText, StoredEvent
from agtrace_indexer.index.questions.turns import Ending, Size, Span, Step, ToolUse, Turn
from agtrace_indexer.index.questions.upkeep import (
    HeldSession,
    LogFile,
    PartlyReadFile,
    ProviderTotals,
    RecordType,
    SharedEvents,
    UnreadableLine,
    UnreadFile,
)
from agtrace_indexer.index.questions.upkeep import Totals as WholeTotals
from agtrace_indexer.index.questions.usage import Among, DaySums, Figures, LargestRequest, ModelSums
from agtrace_indexer.texts.blocks import BlockText
from agtrace_indexer.texts.candidates import Narrowed, Places

Connection = TypeVar("Connection", contravariant=True)
"""The connection to an engine; for SQLite, a `sqlite3.Connection`."""


class Sessions(Protocol[Connection]):
    """Sessions: by id, as filtered lists, and by their relations."""

    def with_id(self, connection: Connection, uid: str) -> Session | None:
        """Return the session with this id."""

    def latest(self, connection: Connection) -> Session | None:
        """Return the session, no sub-agent, in which something happened last."""

    def with_prefix(self, connection: Connection, prefix: str, most: int) -> list[Session]:
        """Return the first sessions, ordered by id, whose id begins with a prefix."""

    def ids_with_prefix(self, connection: Connection, prefix: str, most: int) -> list[str]:
        """Return the first ids that begin with a prefix."""

    def count_with_prefix(self, connection: Connection, prefix: str) -> int:
        """Return the number of sessions whose id begins with a prefix."""

    def neighbours(self, connection: Connection, uid: str) -> Neighbours:
        """Return the ids before and after this one, which determine its shortest unique prefix."""

    def in_rows(self, connection: Connection, ids: Iterable[int]) -> list[Session]:
        """Return the sessions with these row ids, oldest first."""

    def id_of(self, connection: Connection, row: int) -> str:
        """Return the id of the session with this row id."""

    def of_repositories(self, connection: Connection, repositories: Iterable[int]) -> set[int]:
        """Return the rows of the sessions of some repositories."""

    def newest_row(self, connection: Connection) -> int:
        """Return the row id of the session indexed last, which marks the present state of lists; 0 if there is none."""

    def of_provider(self, connection: Connection, provider: str | None) -> list[Session]:
        """Return all sessions except warm-ups, of one provider or of all, oldest first."""

    def page(
        self,
        connection: Connection,
        filters: SessionFilters,
        *,
        newest: int,
        behind: tuple[int, int] | None,
        most: int,
        oldest_first: bool = False,
    ) -> list[Session]:
        """Return the sessions of a list after a (start, row), newest first unless told otherwise, without warm-ups."""

    def starts(self, connection: Connection, filters: SessionFilters, *, newest: int) -> dict[int, int]:
        """Return row id -> start of all sessions of a list, in no particular order."""

    def ends(self, connection: Connection, ids: Iterable[int]) -> dict[int, int]:
        """Return row id -> when something happened last in these sessions."""

    def count(self, connection: Connection, filters: SessionFilters, *, newest: int) -> SessionCounts:
        """Return the number of sessions in a list."""

    def children(self, connection: Connection, session: Session) -> list[Child]:
        """Return the sessions that come from this one, oldest first; if its log is gone, also those that name it."""

    def parent_id(self, connection: Connection, session: Session) -> str | None:
        """Return the id of the session that this one comes from."""

    def with_agents(self, connection: Connection, row: int) -> Family:
        """Return the totals of a session, given its row id, and of all sub-agents below it."""

    def started_by(self, connection: Connection, row: int, calls: Iterable[int]) -> dict[int, str]:
        """Return call event -> id of the session it started, for calls of the session with this row id."""

    def shared_events(self, connection: Connection, one: int, other: int) -> int:
        """Return how many events two sessions share: copied from one to the other, or by both from a third."""


class People(Protocol[Connection]):
    """The people whose sessions an index has."""

    def is_of_people(self, connection: Connection) -> bool:
        """Whether the index is that of a team, and not one's own."""

    def people_of(self, connection: Connection, sessions: Sequence[int]) -> dict[int, str]:
        """Return session -> who pushed it, for the sessions with these row ids; nothing for one's own index."""


class Measures(Protocol[Connection]):
    """The figures by which lists of sessions are sorted."""

    def of_sessions(
        self, connection: Connection, sessions: Iterable[int], measure: str, *, newest_event: int
    ) -> dict[int, int | None]:
        """Return a measure of these sessions, by row id, as of a snapshot with this newest event."""


class Turns(Protocol[Connection]):
    """Turns and steps: their figures, the calls made in them, their endings."""

    def page(
        self, connection: Connection, session_row: int, *, from_turn: int, last_event: int, most: int
    ) -> list[Turn]:
        """Return the turns of a session from one on, at most `most`, that began no later than an event."""

    def several(self, connection: Connection, session_row: int, indices: Iterable[int]) -> list[Turn]:
        """Return those of these turns that the session has, in order."""

    def exists(self, connection: Connection, session_row: int, turn_index: int | None) -> bool:
        """Whether a session has a turn, or still has it."""

    def last(self, connection: Connection, session_row: int) -> int | None:
        """Return the last turn of a session."""

    def behind(self, connection: Connection, session_row: int, turn_index: int | None, last_event: int) -> int | None:
        """Return the turn after a given one, or the first one, if it began no later than an event."""

    def count(self, connection: Connection, session_row: int, last_event: int) -> int:
        """Return the number of turns of a session that began no later than an event."""

    def failing(self, connection: Connection, session_row: int, last_event: int) -> list[int]:
        """Return the turns with failed tool calls that began no later than an event, without copied ones."""

    def endings(
        self, connection: Connection, session_row: int, turns: Sequence[Turn], *, api_errors: Collection[str]
    ) -> dict[int | None, Ending]:
        """Return, by turn, what happened in these turns of a session; `api_errors` are kinds of notifications."""

    def tools(self, connection: Connection, session_row: int, turns: Sequence[Turn]) -> Iterator[ToolUse]:
        """Return the tools called in these turns of a session, by turn and in the order of their first calls."""

    def size(self, connection: Connection, session_row: int, turn_index: int) -> Size:
        """Return the size of a turn that the session has."""

    def tokens(self, connection: Connection, session_row: int) -> int:
        """Return all tokens of all turns of a session."""

    def spans(
        self, connection: Connection, session_row: int, *, from_turn: int, turn_index: int | None, last_event: int
    ) -> Iterator[Span]:
        """Return the spans of the turns from one on, or of a single one, that began no later than an event."""

    def steps(self, connection: Connection, session_row: int, span: Span, behind: int) -> list[Step]:
        """Return the steps after a given one that have events in a span of a turn."""

    def count_steps(self, connection: Connection, session_row: int) -> int:
        """Return the number of steps of a session, without copied ones."""


class Counts(Protocol[Connection]):
    """Calls, uses of files and tokens of many sessions, by group."""

    def calls(self, connection: Connection, by: GroupBy, filters: EventFilters, kind: str | None) -> list[CallGroup]:
        """Return the calls that pass the filters, by group; `kind` as in `SessionFilters`."""

    def files(self, connection: Connection, filters: EventFilters, kind: str | None) -> Iterator[FileUses]:
        """Yield the files that such calls name, by session."""

    def tokens(self, connection: Connection, by: GroupBy, filters: EventFilters, kind: str | None) -> list[TokenGroup]:
        """Return the tokens of the responses that pass the filters, by group."""


class Events(Protocol[Connection]):
    """Events: single ones, those of a step, and all events of a session in file order."""

    def at(self, connection: Connection, session_row: int, event_index: int) -> Event | None:
        """Return an event of a session; None if it has no such event."""

    def one(self, connection: Connection, session_row: int, event_index: int) -> Event:
        """Return an event of a session. Raise `KeyError` if it has no such event."""

    def several(self, connection: Connection, session_row: int, indices: Iterable[int]) -> list[Event]:
        """Return those of these events that the session has, in file order."""

    def address(self, connection: Connection, row: int) -> Address | None:
        """Return the session and index of an event, given its row id; None if there is no such event."""

    def line_length(self, connection: Connection, session_row: int, event_index: int) -> int:
        """Return the length in bytes of an event's line; 0 if the session has no such event."""

    def last(self, connection: Connection, session_row: int) -> int | None:
        """Return the last event of a session."""

    def latest(self, connection: Connection, session_row: int, most: int) -> list[Event]:
        """Return the last events of a session, copies included, the latest first, at most `most`."""

    def last_of_type(self, connection: Connection, session_row: int, type: EventType, last_event: int) -> int | None:
        """Return the last event of a type in a session, up to an event."""

    def snapshot(self, connection: Connection, session_row: int, last_event: int) -> Snapshot:
        """Return a snapshot of a session at the moment when this was its last event."""

    def times(self, connection: Connection, session_row: int) -> Times:
        """Return the first and the last time of a session's events, without copies."""

    def of_session(
        self, connection: Connection, session_row: int, then: Snapshot, *, from_event: int, turn_index: int | None
    ) -> Iterator[Placed]:
        """Yield the events of a snapshot from one on, or those of a turn, in file order."""

    def without_answers(
        self, connection: Connection, session_row: int, then: Snapshot, *, from_event: int, turn_index: int | None
    ) -> Iterator[Placed]:
        """Yield the same without the results that their calls link to."""

    def later_calls(
        self, connection: Connection, session_row: int, tool: str, *, behind: int, most: int
    ) -> Iterator[Event]:
        """Yield the next calls of a tool after an event, at most `most`, each read on demand."""

    def of_step(self, connection: Connection, session_row: int, step: Step, types: Iterable[EventType]) -> list[Event]:
        """Return the events of these types in a step, in file order."""

    def of_steps(
        self,
        connection: Connection,
        session_row: int,
        steps: Collection[tuple[int, int]],
        types: Iterable[EventType],
        last_event: int,
    ) -> list[Event]:
        """Return the events of these types in some steps, given as (turn, step), up to an event, in file order."""

    def reasoning(
        self, connection: Connection, session_row: int, *, last_event: int, turn_index: int | None
    ) -> list[Thinking]:
        """Return the reasoning events up to an event, in a whole session or in one turn, copies included."""

    def reasoning_left_out(self, connection: Connection, file_row: int) -> int:
        """Return how often a log has reasoning without readable text, which is therefore no event (Codex)."""


class Texts(Protocol[Connection]):
    """The texts of events, and the rest of their payloads."""

    def with_texts(self, connection: Connection, events: Iterable[Event]) -> list[StoredEvent]:
        """Return events with their texts, opening each block once."""

    def text_reader(self, connection: Connection) -> ReadText:
        """Return a reader of texts, for one event after another; it keeps the block opened last for the next event."""

    def having_text(self, connection: Connection, session_row: int, indices: Collection[int]) -> set[int]:
        """Return those of these events that have a text, judged by where texts end, without decompressing any."""


class Usage(Protocol[Connection]):
    """The token usage of single responses, and totals of sessions."""

    def figures(self, connection: Connection, session_row: int, indices: Iterable[int]) -> list[Figures]:
        """Return the token figures in these events of a session, in file order."""

    def of_step(self, connection: Connection, session_row: int, step: Step) -> list[Figures]:
        """Return the token figures of a step, in file order."""

    def largest_request(self, connection: Connection, session_row: int) -> LargestRequest:
        """Return the largest request of a session, without copies."""

    def models_then(self, connection: Connection, session_row: int, then: Snapshot) -> dict[str, int]:
        """Return model -> event of its first figures, for the models that a session had used, in that order."""

    def by_model(self, connection: Connection, among: Among) -> Iterator[ModelSums]:
        """Yield the usage of sessions by key and by everything that affects the price, the most used first."""

    def by_day(
        self, connection: Connection, sessions: Iterable[int], *, since: int | None, until: int | None
    ) -> Iterator[DaySums]:
        """Yield the usage of these sessions by the day of each response, session and what affects the price."""

    def without_figures(self, connection: Connection, among: Among) -> dict[int, int]:
        """Return, by key, the number of sessions in which a model answered but whose log has no figures at all."""

    def counted_twice(self, connection: Connection, among: Among) -> dict[int, int]:
        """Return, by key, the number of vanished logs' sessions that share events with existing logs, counted twice."""


class Calls(Protocol[Connection]):
    """Tool calls: how often a session called which tools, and the calls that did not end well."""

    def tools(self, connection: Connection, session_row: int) -> list[ToolTotals]:
        """Return the tools that a session called, in no particular order."""

    def ill_ended(self, connection: Connection, session_row: int) -> IllEnded:
        """Return how many calls of a session did not end well."""

    def worst(self, connection: Connection, session_row: int, most: int) -> list[Worst]:
        """Return the calls of a session that did not end well, failed ones first, at most `most`."""

    def failed_next(self, connection: Connection, session_row: int, event_index: int, *, backwards: bool) -> int | None:
        """Return the first failed call from an event on, or the last one before it, copies included."""

    def tools_then(
        self, connection: Connection, session_row: int, then: Snapshot, *, behind: tuple[int, int] | None, most: int
    ) -> list[RankedTool]:
        """Return the tools that a session had called, after a (rank, first), most used first, at most `most`."""

    def failures_then(
        self, connection: Connection, session_row: int, then: Snapshot, *, behind: int, most: int
    ) -> list[Failure]:
        """Return the calls after an event that had not ended well, in file order, at most `most`."""

    def count_failures_then(self, connection: Connection, session_row: int, then: Snapshot) -> int:
        """Return the number of calls that had not ended well."""


class Live(Protocol[Connection]):
    """What goes on now."""

    def active(self, connection: Connection, since: int, most: int) -> list[Active]:
        """Return the sessions, no sub-agents, that were active at or after a time, the latest first."""

    def newest(self, connection: Connection, most: int) -> list[Session]:
        """Return the sessions, no sub-agents, in which something happened last, the latest first."""

    def filled(self, connection: Connection, session_row: int) -> Filled | None:
        """Return the figures of the last response of a session that has some."""


class Files(Protocol[Connection]):
    """The files that tool calls name in their arguments."""

    def touched(self, connection: Connection, session_row: int, then: Snapshot) -> Iterator[Touched]:
        """Yield the files that a session's calls had touched, copies excluded."""

    def in_sessions(
        self, connection: Connection, session_rows: Iterable[int], path: str, *, newest: int
    ) -> dict[int, tuple[int, int]]:
        """Return how many calls of each session read and wrote files with this in their path, copies excluded."""

    def changes(self, connection: Connection, session_row: int, *, after: int, before: int) -> list[int]:
        """Return the calls between two events of a session that wrote files and are not known to have failed."""

    def writes(self, connection: Connection, session_row: int, event_index: int) -> bool:
        """Whether a call names a file that it writes."""

    def uses(self, connection: Connection, name: str) -> Iterator[Use]:
        """Yield the calls on files whose paths end with this name and that aren't known to have failed."""


class Landmarks(Protocol[Connection]):
    """What sessions did."""

    def landmarks_then(
        self, connection: Connection, session_row: int, then: Snapshot, *, behind: tuple[int, int] | None, most: int
    ) -> list[Landmark]:
        """Return the landmarks of a session after an (event_index, number), in file order, at most `most`."""

    def count_landmarks_then(self, connection: Connection, session_row: int, then: Snapshot) -> int:
        """Return the number of landmarks of a session."""

    def matching(
        self, connection: Connection, session_rows: Iterable[int], commit: str | None, pr: str | None, *, newest: int
    ) -> dict[int, list[Landmark]]:
        """Return the landmarks of each of these sessions that are a commit or a pull request of a list's filters."""

    def committers(self, connection: Connection, commit: str) -> list[Committer]:
        """Return the calls that made a commit, given its full hash, oldest first."""

    def deeds(self, connection: Connection, session_rows: Iterable[int]) -> dict[int, Deeds]:
        """Return what each of these sessions did, in figures, without those that left no landmark."""

    def totals(self, connection: Connection, session_rows: Iterable[int]) -> list[KindOfSession]:
        """Return how many landmarks of each kind each of these sessions has."""


class Projects(Protocol[Connection]):
    """The projects that sessions belong to."""

    def page(
        self, connection: Connection, *, snapshot: int, newest_event: int, behind: tuple[int, int] | None, most: int
    ) -> list[Project]:
        """Return the projects after a (last, row), those in which something happened last first, at most `most`."""

    def folders(self, connection: Connection) -> list[Folder]:
        """Return all folders, by path; those without one last."""

    def folders_of(self, connection: Connection, repository: int) -> list[Folder]:
        """Return the folders of a repository, those with the most sessions first."""

    def repositories(self, connection: Connection) -> dict[int, Repository]:
        """Return what is known of repositories, by their row ids."""

    def called(self, connection: Connection, name: str) -> list[Repository]:
        """Return the repositories with a name: theirs, with or without the owner, a folder's or a former one."""

    def names(self, connection: Connection) -> list[tuple[int, str]]:
        """Return all names that repositories have, each with the row id of the repository."""


class State(Protocol[Connection]):
    """The index itself: its size, and facts recorded about it."""

    def totals(self, connection: Connection) -> Totals:
        """Return the totals of the index."""

    def is_built(self, connection: Connection) -> bool:
        """Whether a run over all roots has finished since the index was made."""

    def masked_by(self, connection: Connection) -> str | None:
        """Return the digest of the rules for secrets that the index is masked with; None if none is recorded."""


class Matches(Protocol[Connection]):
    """The queries of a search: blocks that may contain hits, the events in them that pass the filters, their texts."""

    def blocks(
        self,
        connection: Connection,
        filters: EventFilters,
        span: TimeSpan,
        *,
        newest_first: bool,
        among: Collection[int] | None = None,
    ) -> Iterator[Block]:
        """Yield the blocks, among all or some, that may contain events which pass the filters, by time."""

    def blocks_of_session(self, connection: Connection, session_row: int) -> list[Block]:
        """Return all blocks of a session, in file order."""

    def sessions_of(self, connection: Connection, blocks: Iterable[int]) -> set[int]:
        """Return the sessions that these blocks belong to; a block may be gone."""

    def events(
        self,
        connection: Connection,
        filters: EventFilters,
        block: Block,
        snapshot: int,
        span: TimeSpan,
        numbers: Set[int] | None = None,
    ) -> list[FoundEvent]:
        """Return those of a block's events, or of some of them, that pass the filters, as in a snapshot."""

    def text(self, connection: Connection, block: int) -> BlockText:
        """Return the texts of a block. Raise `sqlite3.DatabaseError` if it has none: that is damage."""

    def newest_event(self, connection: Connection) -> int:
        """Return the row id of the newest event, which marks the present state of the index; 0 if it is empty."""


class Ranking(Protocol[Connection]):
    """The queries of a ranked search: which events hold a word, in any of its forms, and what else is known of them."""

    def size(self, connection: Connection) -> RankedSize:
        """Return how much is ranked."""

    def holding(self, connection: Connection, word: str, *, beginning: bool = False) -> list[int]:
        """Return the ids of the events that hold a word, or one that begins so; some may be gone."""

    def events(
        self,
        connection: Connection,
        ids: Collection[int],
        filters: EventFilters,
        snapshot: int,
        span: TimeSpan,
    ) -> Iterator[RankedEvent]:
        """Return those of some events that are there in a snapshot, pass the filters, and are no copies."""

    def count(self, connection: Connection, word: str) -> int:
        """Return how many events hold a word in any of its forms; some may be gone."""

    def asking(self, connection: Connection, turns: Collection[tuple[int, int]]) -> dict[tuple[int, int], int]:
        """Return those of some turns, as (session, turn), that called agtrace, with the last event about asking."""

    def titled(self, connection: Connection, sessions: Collection[int], words: Sequence[str]) -> dict[int, int]:
        """Return which of some words stand, in any form, in the titles of sessions."""


class Candidates(Protocol[Connection]):
    """The blocks that may contain a text, and where in them, from the word index, before any block is opened."""

    def candidates(self, connection: Connection, query: bytes, *, thorough: bool) -> Places | None:
        """Return the blocks that may contain the folded query; None if words don't narrow them down."""

    def candidates_of_all(self, connection: Connection, queries: Sequence[bytes], *, thorough: bool) -> Narrowed:
        """Return the blocks that may contain all of some folded queries, with the first one's places."""


class Histories(Protocol[Connection]):
    """The data for judging the health of a session: its events, texts, files, tokens, sub-agents."""

    def events(self, connection: Connection, session_row: int) -> list[PastEvent]:
        """Return the events of a session in file order, without copies and superseded ones."""

    def payloads(self, connection: Connection, session_row: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield each event with the stored rest of its payload, in file order, one block in memory at a time."""

    def texts(self, connection: Connection, session_row: int) -> Iterator[tuple[int, BlockText]]:
        """Yield the texts of a session, block by block, each with the index of its first event."""

    def touched(self, connection: Connection, session_row: int) -> Iterator[TouchedFile]:
        """Yield the files that the calls of a session name, in file order."""

    def token_figures(self, connection: Connection, session_row: int) -> Iterator[TokenFigures]:
        """Yield the token figures of a session's responses."""

    def requests(self, connection: Connection, session_row: int) -> set[int]:
        """Return the events that open the turns of a session."""

    def agents(self, connection: Connection, session_row: int) -> dict[int, str]:
        """Return call event -> id of the sub-agent that it started."""

    def sub_agents(self, connection: Connection, session_row: int) -> list[int]:
        """Return the row ids of all sub-agents below a session; a cycle in damaged logs ends where it began."""

    def is_carried_out(self, connection: Connection, session_row: int) -> bool:
        """Return whether another session began to carry out a plan, in the same folder, as this one ended."""

    def counts_by_type(self, connection: Connection, session_row: int) -> dict[int, int]:
        """Return how many events of each type (`codes.EVENT_TYPE_CODES`) count in a session."""

    def calls_by_outcome(self, connection: Connection, session_row: int) -> dict[int | None, int]:
        """Return how many tool calls of each outcome (`codes.OUTCOME_CODES`) count in a session; None: no result."""


class Reports(Protocol[Connection]):
    """The queries of a report on many sessions at once: the sessions, their projects, the tools they called."""

    def relatives(self, connection: Connection) -> Iterator[Relative]:
        """Yield all sessions except warm-ups, by row id."""

    def projects(self, connection: Connection) -> list[NamedProject]:
        """Return all projects, by root."""

    def calls_by_tool(self, connection: Connection, sessions: Iterable[int]) -> Iterator[ToolCalls]:
        """Yield the tools that each of these sessions called, without copied and superseded calls."""


class Requests(Protocol[Connection]):
    """Human requests, and the tasks that sub-agents were given in place of them."""

    def requests_then(
        self, connection: Connection, session_row: int, then: Snapshot, *, behind: int, most: int
    ) -> list[Request]:
        """Return the requests of a session after an event, in file order, at most `most`."""

    def count_requests_then(self, connection: Connection, session_row: int, then: Snapshot) -> int:
        """Return the number of requests of a session."""


class Upkeep(Protocol[Connection]):
    """The queries for looking after an index: its files' state, what forgetting would delete, what to measure by."""

    def totals(self, connection: Connection) -> WholeTotals:
        """Return the totals of the index."""

    def roots(self, connection: Connection) -> list[str]:
        """Return the paths that are kept fresh."""

    def providers(self, connection: Connection) -> list[ProviderTotals]:
        """Return the totals of each agent."""

    def sessions_gone(self, connection: Connection) -> dict[str, int]:
        """Return, by agent, how many sessions, no sub-agents, the index holds whose logs were deleted."""

    def logs(self, connection: Connection) -> list[LogFile]:
        """Return all logs, by path."""

    def files_not_read(self, connection: Connection) -> list[UnreadFile]:
        """Return the files that are not logs, or can't be read."""

    def logs_partly_read(self, connection: Connection) -> list[PartlyReadFile]:
        """Return the logs that weren't read to the end."""

    def unreadable_lines(self, connection: Connection) -> list[UnreadableLine]:
        """Return the lines that couldn't be parsed, by file and position."""

    def record_types(self, connection: Connection, status: str) -> list[RecordType]:
        """Return the types of records with status `unknown` or `skipped`, the most frequent first."""

    def held_by(self, connection: Connection, files: Collection[int]) -> list[HeldSession]:
        """Return the sessions of these files, oldest first."""

    def also_in(self, connection: Connection, files: Collection[int]) -> list[SharedEvents]:
        """Return the sessions of other files that contain some of the same events, those with most first."""

    def told_in(self, connection: Connection, files: Collection[int]) -> list[str]:
        """Return the ids of the sessions in other files that started sub-agents in these and report on them."""

    def has_session(self, connection: Connection, uid: str) -> bool:
        """Whether there is a session with exactly this id."""

    def head_of(self, connection: Connection, file: int) -> str | None:
        """Return the id of a log's main session; others in the same file are its sub-agents."""

    def files_of_project(self, connection: Connection, project: int) -> set[int]:
        """Return the log files of a project."""


if TYPE_CHECKING:
    from agtrace_indexer.index.questions import (
        calls,
        candidates,
        counts,
        events,
        files,
        histories,
        landmarks,
        live,
        matches,
        measures,
        people,
        projects,
        ranking,
        reports,
        requests,
        sessions,
        state,
        texts,
        turns,
        upkeep,
        usage,
    )

    _sessions: Sessions[sqlite3.Connection] = sessions
    _counts: Counts[sqlite3.Connection] = counts
    _measures: Measures[sqlite3.Connection] = measures
    _people: People[sqlite3.Connection] = people
    _turns: Turns[sqlite3.Connection] = turns
    _events: Events[sqlite3.Connection] = events
    _texts: Texts[sqlite3.Connection] = texts
    _usage: Usage[sqlite3.Connection] = usage
    _calls: Calls[sqlite3.Connection] = calls
    _files: Files[sqlite3.Connection] = files
    _landmarks: Landmarks[sqlite3.Connection] = landmarks
    _live: Live[sqlite3.Connection] = live
    _projects: Projects[sqlite3.Connection] = projects
    _state: State[sqlite3.Connection] = state
    _matches: Matches[sqlite3.Connection] = matches
    _ranking: Ranking[sqlite3.Connection] = ranking
    _candidates: Candidates[sqlite3.Connection] = candidates
    _histories: Histories[sqlite3.Connection] = histories
    _reports: Reports[sqlite3.Connection] = reports
    _requests: Requests[sqlite3.Connection] = requests
    _upkeep: Upkeep[sqlite3.Connection] = upkeep
