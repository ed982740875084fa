"""What another engine would have to offer: a module a topic with these functions, each given its own connection.

The rows and values that go in and out are those of the topics of SQLite, and so are the meanings that these say at
length. Nothing imports this module: the type checker holds it against the modules beside it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from agtrace_schema.events import EventType

from agtrace_indexer.index.questions.calls import Failure, IllEnded, RankedTool, ToolTotals, Worst
from agtrace_indexer.index.questions.events import Address, Event, Placed, Snapshot, Thinking, Times
from agtrace_indexer.index.questions.files import Touched
from agtrace_indexer.index.questions.histories import PastEvent, TokenFigures, TouchedFile
from agtrace_indexer.index.questions.matches import Block, EventFilters, FoundEvent
from agtrace_indexer.index.questions.matches import Span as TimeSpan
from agtrace_indexer.index.questions.projects import Project
from agtrace_indexer.index.questions.reports import Project as NamedProject
from agtrace_indexer.index.questions.reports import Relative, ToolCalls
from agtrace_indexer.index.questions.sessions import Child, Counts, Family, Neighbours, Session, SessionFilters
from agtrace_indexer.index.questions.state import Totals
from agtrace_indexer.index.questions.texts import StoredEvent
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
from agtrace_indexer.index.questions.usage import Among, Figures, LargestRequest, ModelSums
from agtrace_indexer.texts.blocks import BlockText
from agtrace_indexer.texts.candidates import Places

Connection = TypeVar("Connection", contravariant=True)
"""What an engine is asked by; of SQLite a `sqlite3.Connection`."""


class Sessions(Protocol[Connection]):
    """Sessions: by id, by what restricts a list, and those that belong to one."""

    def with_id(self, connection: Connection, uid: str) -> Session | None:
        """The session that has this id."""

    def with_prefix(self, connection: Connection, prefix: str, most: int) -> list[Session]:
        """The first sessions, in the order of ids, whose id begins so."""

    def ids_with_prefix(self, connection: Connection, prefix: str, most: int) -> list[str]:
        """The first ids that begin so."""

    def count_with_prefix(self, connection: Connection, prefix: str) -> int:
        """How many sessions have an id that begins so."""

    def neighbours(self, connection: Connection, uid: str) -> Neighbours:
        """The ids next to this one, which tell how much of it is needed to name it."""

    def in_rows(self, connection: Connection, ids: Iterable[int]) -> list[Session]:
        """The sessions of these rows, oldest first."""

    def id_of(self, connection: Connection, row: int) -> str:
        """The id of the session of a row."""

    def newest_row(self, connection: Connection) -> int:
        """The row of the session that was indexed last: the mark of which there are now; 0 where there is none."""

    def of_provider(self, connection: Connection, provider: str | None) -> list[Session]:
        """All sessions but warm-ups, of one provider or of all, oldest first."""

    def page(
        self, connection: Connection, filters: SessionFilters, *, newest: int, behind: tuple[int, int] | None, most: int
    ) -> list[Session]:
        """The sessions of a list behind a (start, row), newest first; warm-ups are no sessions."""

    def count(self, connection: Connection, filters: SessionFilters, *, newest: int) -> Counts:
        """How many sessions a list has."""

    def children(self, connection: Connection, session: Session) -> list[Child]:
        """The sessions that come from this one, oldest first; also those that name it, where its log is gone."""

    def parent_id(self, connection: Connection, session: Session) -> str | None:
        """The id of the session that this one comes from."""

    def with_agents(self, connection: Connection, row: int) -> Family:
        """The sums of the session of a row and of all sub-agents below it."""

    def started_by(self, connection: Connection, row: int, calls: Iterable[int]) -> dict[int, str]:
        """By the event of the call, the ids of the sessions that calls of the session of a row started."""

    def shared_events(self, connection: Connection, one: int, other: int) -> int:
        """How many events the sessions of two rows share: one repeats the other's, or both repeat those of a third."""


class Turns(Protocol[Connection]):
    """Turns and steps: what they are made of, what was done in them, how they ended."""

    def page(
        self, connection: Connection, session_row: int, *, from_turn: int, last_event: int, most: int
    ) -> list[Turn]:
        """The turns of a session from one on, at most this many, that began with this event at the latest."""

    def several(self, connection: Connection, session_row: int, indices: Iterable[int]) -> list[Turn]:
        """These turns of a session, in order, as far as there are such."""

    def exists(self, connection: Connection, session_row: int, turn_index: int | None) -> bool:
        """Whether a session has a turn, or still has it."""

    def last(self, connection: Connection, session_row: int) -> int | None:
        """The last turn of a session."""

    def behind(self, connection: Connection, session_row: int, turn_index: int | None, last_event: int) -> int | None:
        """The turn that follows one, or the first one, if it began with this event at the latest."""

    def count(self, connection: Connection, session_row: int, last_event: int) -> int:
        """How many turns of a session began with this event at the latest."""

    def failing(self, connection: Connection, session_row: int, last_event: int) -> list[int]:
        """The turns with failed tool calls that began with this event at the latest; copied ones are left out."""

    def endings(
        self, connection: Connection, session_row: int, turns: Sequence[Turn], *, api_errors: Collection[str]
    ) -> dict[int | None, Ending]:
        """What happened in these turns of a session, by turn; `api_errors` are kinds of notifications."""

    def tools(self, connection: Connection, session_row: int, turns: Sequence[Turn]) -> Iterator[ToolUse]:
        """The tools that were called in these turns of a session, of each turn in the order of their first calls."""

    def size(self, connection: Connection, session_row: int, turn_index: int) -> Size:
        """How much there is in a turn that the session has."""

    def tokens(self, connection: Connection, session_row: int) -> int:
        """All tokens of all turns of a session."""

    def spans(
        self, connection: Connection, session_row: int, *, from_turn: int, turn_index: int | None, last_event: int
    ) -> Iterator[Span]:
        """Where the turns of a session stand, from one on or one alone, if they began with this event at the latest."""

    def steps(self, connection: Connection, session_row: int, span: Span, behind: int) -> list[Step]:
        """The steps behind one that have events in a span of a turn."""

    def count_steps(self, connection: Connection, session_row: int) -> int:
        """How many steps of its own a session has."""


class Events(Protocol[Connection]):
    """Events: single ones, those of a step, and all of a session in file order."""

    def at(self, connection: Connection, session_row: int, event_index: int) -> Event | None:
        """An event of a session; None where it has no such event."""

    def one(self, connection: Connection, session_row: int, event_index: int) -> Event:
        """An event that a session has. Raises `KeyError` where it hasn't."""

    def several(self, connection: Connection, session_row: int, indices: Iterable[int]) -> list[Event]:
        """These events of a session, in file order, as far as there are such."""

    def address(self, connection: Connection, row: int) -> Address | None:
        """Where the event of a row stands; None where there is none."""

    def line_length(self, connection: Connection, session_row: int, event_index: int) -> int:
        """The bytes of the line on which an event stands; 0 where the session has no such event."""

    def last(self, connection: Connection, session_row: int) -> int | None:
        """The last event of a session."""

    def snapshot(self, connection: Connection, session_row: int, last_event: int) -> Snapshot:
        """A session at the moment when this was its last event."""

    def times(self, connection: Connection, session_row: int) -> Times:
        """Between which times the events of a session's own happened."""

    def of_session(
        self, connection: Connection, session_row: int, then: Snapshot, *, from_event: int, turn_index: int | None
    ) -> Iterator[Placed]:
        """The events of a snapshot from one on, or those of a turn, in file order."""

    def without_answers(
        self, connection: Connection, session_row: int, then: Snapshot, *, from_event: int, turn_index: int | None
    ) -> Iterator[Placed]:
        """The same without results that stand for themselves with their call."""

    def later_calls(
        self, connection: Connection, session_row: int, tool: str, *, behind: int, most: int
    ) -> Iterator[Event]:
        """The next calls of a tool behind an event, at most this many; each is read when it is asked for."""

    def of_step(self, connection: Connection, session_row: int, step: Step, types: Iterable[EventType]) -> list[Event]:
        """The events of these types in a step, in file order."""

    def of_steps(
        self,
        connection: Connection,
        session_row: int,
        steps: Collection[tuple[int, int]],
        types: Iterable[EventType],
        last_event: int,
    ) -> list[Event]:
        """The events of these types in some steps, each given as (turn, step), up to an event, in file order."""

    def reasoning(
        self, connection: Connection, session_row: int, *, last_event: int, turn_index: int | None
    ) -> list[Thinking]:
        """Where a model thought, up to an event, in all of a session or in a turn, copies included."""

    def reasoning_left_out(self, connection: Connection, file_row: int) -> int:
        """How often a log holds reasoning without a readable text, which therefore is no event (Codex)."""


class Texts(Protocol[Connection]):
    """The texts of events, and what else the log says of them."""

    def with_texts(self, connection: Connection, events: Iterable[Event]) -> list[StoredEvent]:
        """Add their texts to events, opening each block once."""

    def having_text(self, connection: Connection, session_row: int, indices: Collection[int]) -> set[int]:
        """Which of these events of a session have a text: told by where texts end, so that none is decompressed."""


class Usage(Protocol[Connection]):
    """What responses used: the token figures of single ones, and sums of sessions."""

    def figures(self, connection: Connection, session_row: int, indices: Iterable[int]) -> list[Figures]:
        """The figures that these events of a session tell, in file order."""

    def of_step(self, connection: Connection, session_row: int, step: Step) -> list[Figures]:
        """The figures of a step, in file order."""

    def largest_request(self, connection: Connection, session_row: int) -> LargestRequest:
        """The largest request of a session's own."""

    def models_then(self, connection: Connection, session_row: int, then: Snapshot) -> dict[str, int]:
        """The models that a session had used, in that order, each with the event of its first figures."""

    def by_model(self, connection: Connection, among: Among) -> Iterator[ModelSums]:
        """What sessions used, by key and by what is priced alike; the most used first."""

    def without_figures(self, connection: Connection, among: Among) -> dict[int, int]:
        """By key, how many sessions there are in which a model answered and whose log has no figures at all."""

    def counted_twice(self, connection: Connection, among: Among) -> dict[int, int]:
        """By key, how many sessions of vanished logs share events with logs that are there: these count in both."""


class Calls(Protocol[Connection]):
    """Tool calls: how often which tools were called in a session, and which calls did not end well."""

    def tools(self, connection: Connection, session_row: int) -> list[ToolTotals]:
        """The tools that a session called, in no order."""

    def ill_ended(self, connection: Connection, session_row: int) -> IllEnded:
        """How many calls of a session did not end well."""

    def worst(self, connection: Connection, session_row: int, most: int) -> list[Worst]:
        """The calls of a session that did not end well, at most so many, those that failed first."""

    def tools_then(
        self, connection: Connection, session_row: int, then: Snapshot, *, behind: tuple[int, int] | None, most: int
    ) -> list[RankedTool]:
        """The tools that a session had called, behind a (rank, first), most used first, at most so many."""

    def failures_then(
        self, connection: Connection, session_row: int, then: Snapshot, *, behind: int, most: int
    ) -> list[Failure]:
        """The calls behind an event that had not ended well, in file order, at most so many."""

    def count_failures_then(self, connection: Connection, session_row: int, then: Snapshot) -> int:
        """How many calls had not ended well."""


class Files(Protocol[Connection]):
    """The files that tool calls name in their arguments."""

    def touched(self, connection: Connection, session_row: int, then: Snapshot) -> Iterator[Touched]:
        """The files that calls of a session's own had touched."""

    def changes(self, connection: Connection, session_row: int, *, after: int, before: int) -> list[int]:
        """The calls between two events of a session that wrote files and are not known to have failed."""

    def writes(self, connection: Connection, session_row: int, event_index: int) -> bool:
        """Whether a call names a file that it writes."""


class Projects(Protocol[Connection]):
    """The projects that sessions belong to."""

    def page(
        self, connection: Connection, *, snapshot: int, behind: tuple[int, int] | None, most: int
    ) -> list[Project]:
        """The projects behind a (newest, row), those with the newest sessions first, at most so many."""

    def has_hash(self, connection: Connection, beginning: str) -> bool:
        """Whether the hash of a project begins so."""


class State(Protocol[Connection]):
    """The index itself: how much it holds, and what is noted about it."""

    def totals(self, connection: Connection) -> Totals:
        """How much the index holds."""

    def is_built(self, connection: Connection) -> bool:
        """Whether a run over all roots has ended since the index was made."""

    def masked_by(self, connection: Connection) -> str | None:
        """The digest of the rules for secrets by which the index is masked; None where it isn't noted."""


class Matches(Protocol[Connection]):
    """What a search asks: the blocks that can hold hits, the events in them that pass its filters, their texts."""

    def blocks(
        self,
        connection: Connection,
        filters: EventFilters,
        span: TimeSpan,
        *,
        newest_first: bool,
        among: Collection[int] | None = None,
    ) -> Iterator[Block]:
        """The blocks that can hold events which pass the filters, of all or of some blocks, by their times."""

    def blocks_of_session(self, connection: Connection, session_row: int) -> list[Block]:
        """All blocks of a session, in file order."""

    def sessions_of(self, connection: Connection, blocks: Iterable[int]) -> set[int]:
        """The sessions that these blocks are of; a block may be gone."""

    def events(
        self,
        connection: Connection,
        filters: EventFilters,
        block: Block,
        snapshot: int,
        span: TimeSpan,
        numbers: Set[int] | None = None,
    ) -> list[FoundEvent]:
        """The events of a block that pass the filters, as a snapshot has them; of all or of some of its events."""

    def text(self, connection: Connection, block: int) -> BlockText:
        """The texts of a block. Raises `sqlite3.DatabaseError` where it has none: that is damage."""

    def newest_event(self, connection: Connection) -> int:
        """The id of the newest event, the mark of what the index holds now; 0 where it is empty."""


class Candidates(Protocol[Connection]):
    """Which blocks may hold a text, and where in them, asked of the word index before any block is opened."""

    def candidates(self, connection: Connection, query: bytes, *, thorough: bool) -> Places | None:
        """The blocks that may hold the folded query; None where words don't narrow them down."""

    def candidates_of_all(self, connection: Connection, queries: Sequence[bytes], *, thorough: bool) -> Places | None:
        """The blocks that may hold all of some folded queries, with the places of the first; None as `candidates`."""


class Histories(Protocol[Connection]):
    """What the health of a session is judged by: its events, texts, files, tokens, sub-agents."""

    def events(self, connection: Connection, session_row: int) -> list[PastEvent]:
        """The events of a session in file order, copies and superseded ones left out."""

    def payloads(self, connection: Connection, session_row: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Each event with what its text doesn't say, in file order, one block in memory at a time."""

    def texts(self, connection: Connection, session_row: int) -> Iterator[tuple[int, BlockText]]:
        """The texts of a session, block by block, each with the index of its first event."""

    def touched(self, connection: Connection, session_row: int) -> Iterator[TouchedFile]:
        """The files that the calls of a session name, in file order."""

    def token_figures(self, connection: Connection, session_row: int) -> Iterator[TokenFigures]:
        """The figures of the responses of a session."""

    def requests(self, connection: Connection, session_row: int) -> set[int]:
        """The events that open the turns of a session."""

    def agents(self, connection: Connection, session_row: int) -> dict[int, str]:
        """The event of a call -> the id of the sub-agent that it started."""

    def sub_agents(self, connection: Connection, session_row: int) -> list[int]:
        """The rows of all sub-agents below a session; a circle in damaged logs ends where it began."""

    def counts_by_type(self, connection: Connection, session_row: int) -> dict[int, int]:
        """How many events of each type (`codes.EVENT_TYPE_CODES`) count in a session."""

    def calls_by_outcome(self, connection: Connection, session_row: int) -> dict[int | None, int]:
        """How many tool calls of each outcome (`codes.OUTCOME_CODES`) count in a session; None has no result."""


class Reports(Protocol[Connection]):
    """What a report asks of many sessions at once: which there are, their projects, the tools that they called."""

    def relatives(self, connection: Connection) -> Iterator[Relative]:
        """All sessions but warm-ups, by their rows."""

    def projects(self, connection: Connection) -> list[NamedProject]:
        """All projects, by their roots."""

    def calls_by_tool(self, connection: Connection, sessions: Iterable[int]) -> Iterator[ToolCalls]:
        """The tools that each of these sessions called, what was copied or superseded left out."""


class Upkeep(Protocol[Connection]):
    """What looking after an index asks: the state of its files, what forgetting would delete, what to measure by."""

    def totals(self, connection: Connection) -> WholeTotals:
        """How much the index holds."""

    def roots(self, connection: Connection) -> list[str]:
        """The paths that are kept fresh."""

    def providers(self, connection: Connection) -> list[ProviderTotals]:
        """How much the index holds of each agent."""

    def logs(self, connection: Connection) -> list[LogFile]:
        """Every log, by its path."""

    def files_not_read(self, connection: Connection) -> list[UnreadFile]:
        """The files that hold no log, or none that can be read."""

    def logs_partly_read(self, connection: Connection) -> list[PartlyReadFile]:
        """The logs that weren't read to their end."""

    def unreadable_lines(self, connection: Connection) -> list[UnreadableLine]:
        """The lines that couldn't be parsed, by file and place."""

    def record_types(self, connection: Connection, status: str) -> list[RecordType]:
        """The types of records that are `unknown` or were `skipped`, the most frequent first."""

    def held_by(self, connection: Connection, files: Collection[int]) -> list[HeldSession]:
        """The sessions of these files, oldest first."""

    def also_in(self, connection: Connection, files: Collection[int]) -> list[SharedEvents]:
        """The sessions of other files that hold some of the same events, those with most of them first."""

    def told_in(self, connection: Connection, files: Collection[int]) -> list[str]:
        """The ids of the sessions in other files that started sub-agents in these, and tell of them."""

    def has_session(self, connection: Connection, uid: str) -> bool:
        """Whether there is a session with exactly this id."""

    def head_of(self, connection: Connection, file: int) -> str | None:
        """The id of the session whose log a file is; others in the same file are its sub-agents."""

    def names_of_projects(self, connection: Connection, projects: Iterable[int]) -> list[str]:
        """The roots of projects, or their hashes where no root is known."""

    def files_of_project(self, connection: Connection, project: int) -> set[int]:
        """The files of the logs of a project."""


if TYPE_CHECKING:
    from agtrace_indexer.index.questions import (
        calls,
        candidates,
        events,
        files,
        histories,
        matches,
        projects,
        reports,
        sessions,
        state,
        texts,
        turns,
        upkeep,
        usage,
    )

    _sessions: Sessions[sqlite3.Connection] = sessions
    _turns: Turns[sqlite3.Connection] = turns
    _events: Events[sqlite3.Connection] = events
    _texts: Texts[sqlite3.Connection] = texts
    _usage: Usage[sqlite3.Connection] = usage
    _calls: Calls[sqlite3.Connection] = calls
    _files: Files[sqlite3.Connection] = files
    _projects: Projects[sqlite3.Connection] = projects
    _state: State[sqlite3.Connection] = state
    _matches: Matches[sqlite3.Connection] = matches
    _candidates: Candidates[sqlite3.Connection] = candidates
    _histories: Histories[sqlite3.Connection] = histories
    _reports: Reports[sqlite3.Connection] = reports
    _upkeep: Upkeep[sqlite3.Connection] = upkeep
