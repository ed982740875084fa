"""The output of providers: drafts of events, and facts about the session.

A provider is a package in `providers/`. It sees one decoded record at a time, in file order, and
keeps what it must remember in a `LogState`, which is stored with the file between two runs: the
same code therefore serves the first index, an appended tail and the tests. `LogState` must survive
`to_json` and `from_json` unchanged, and stay small however long the log is.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from agtrace_schema.events import Outcome, Payload
from agtrace_schema.landmarks import Landmark
from msgspec import Struct, field

from agtrace_indexer.events.clues import Clue
from agtrace_indexer.events.commands import Command
from agtrace_indexer.events.json_values import by_name
from agtrace_indexer.events.strings import masked
from agtrace_indexer.redact.engine import Noted

Record: TypeAlias = dict[str, Any]
"""One decoded JSON object of a log."""

_TEXTS = ("description", "agent_type", "cwd", "branch", "version", "model", "title")
"""The fields of `SessionFacts` that aren't ids. Ids are masked when they are read (`strings.identifier`)."""


class Draft(Struct):
    """An event before it has its coordinates."""

    payload: Payload
    timestamp: int | None
    """Milliseconds since 1970 UTC; None if the record has no readable time."""
    step: str | None = None
    """Identifies the model response within the log: drafts with the same step belong to one step.
    None if the draft is not part of a response. A tool result always joins the step of its call."""
    thread: str = ""
    """"" for the log's own session, else the key of a sub-agent whose records are inline in this log."""
    key: str | None = None
    """An identity within the thread: a later draft with the same key supersedes the earlier event."""
    identity: str | None = None
    """The event's identity wherever it is copied to (see `identity`); None if it has none."""
    of_session: bool = False
    """Whether this is about the session as a whole, so that it belongs to no turn."""
    replayed: bool = False
    """Whether the log itself says that this belongs to the replayed history of another one."""
    clustered: bool = False
    """Whether this was written at the instant its log began: a replay, if there is no better evidence."""
    ends_turn: bool = False
    """Whether a notification says that the turn ended before its calls did; a user's interruption always does."""
    reports: bool = False
    """Whether a result tells how another execution ended, which its call asked about: that call itself went well."""
    landmarks: tuple[Landmark, ...] = ()
    """What the log itself says was done here: of a result, by its call."""
    clues: tuple[Clue, ...] = ()
    """What the log itself says about the repository."""
    command: Command | None = None
    """Of a call: what a shell is to run, found when its text is read."""
    text: str = ""
    """Its searchable text, once that is masked."""
    rest: dict[str, Any] | None = None
    """The rest of its payload, once that is masked; None if the text says it all."""
    number: int | None = None
    """`identity` as the index has it (`events.identity`)."""
    secrets: list[Noted] = field(default_factory=list)
    """What was masked in it."""
    within: str | None = None
    """Of a call: the call of the script that made it. Its result says what it left, not that of the script."""
    files: dict[str, str] | None = None
    """Of a result: the paths that its call touched, each with `read` or `write`, if the log has them from the tool."""


class Retraction(NamedTuple):
    """The log takes something back: the events with these keys are superseded, and nothing replaces them."""

    keys: list[str]
    thread: str = ""
    rolled_back: bool = False
    """Whether somebody went back to before them, as with `Rollback`."""


class Rollback(NamedTuple):
    """Somebody went back to before the last turns: these are no longer the session's course, but can be found.

    The tokens they used were spent and count.
    """

    turns: int | None
    """None: the log drops everything, even what belongs to no turn, and begins again: all that is superseded."""
    thread: str = ""


class Settlement(NamedTuple):
    """The log says how an execution ended whose result only said that it was running."""

    call_id: str
    outcome: Outcome
    timestamp: int | None = None
    """When it ended, in milliseconds since 1970 UTC."""
    thread: str = ""


Said: TypeAlias = Draft | Retraction | Rollback | Settlement
"""Anything a record can yield."""


class SessionFacts(Struct):
    """What a log has said so far about one session. None is unknown; later values win unless noted."""

    id: str | None = None
    """The provider's session id; the first one wins. None: the file's name is used."""
    parent_id: str | None = None
    """The id of the session that started or was copied into this one."""
    started_call: str | None = None
    """The id of the tool call that started this session, if the log names it."""
    continues: str | None = None
    """The identity of the line, in another log, that this one goes on from."""
    description: str | None = None
    """The task a sub-agent was started for."""
    kind: str = "main"
    """main, subagent, fork, or warmup: a log without a request, a call or an answer, left by a mere start."""
    agent_type: str | None = None
    """The role or nickname of a sub-agent."""
    cwd: str | None = None
    """The first working directory; it names the project."""
    replays: bool = False
    """Whether the log begins with a replay that ends where the parent's log shows, else after the clustered drafts."""
    project_hash: str | None = None
    """Only if the log names the hash itself (Gemini)."""
    branch: str | None = None
    version: str | None = None
    """The agent's own version, the newest seen."""
    model: str | None = None
    """The newest model seen, never `<synthetic>`."""
    title: str | None = None
    """The name that the agent or the user gave the session."""
    title_rank: int = 0
    """How good the source of the title is: a title of a lower rank never replaces one of a higher rank."""
    namings: dict[str, str] = field(default_factory=dict)
    """Identity of a line, here or in another log -> the title of the session that contains it. A bounded number."""

    def mask(self) -> None:
        """Mask the secrets in these facts."""
        for name in _TEXTS:
            said = getattr(self, name)
            if said is not None:
                setattr(self, name, masked(said))


class LogState(Struct):
    """Everything that must be remembered between two records, and between two runs, while reading a log."""

    sessions: dict[str, SessionFacts] = field(default_factory=lambda: {"": SessionFacts()})
    """The facts by thread."""
    memory: dict[str, Any] = field(default_factory=dict)
    """The provider's own notes: JSON values only, bounded in size."""
    unknown: list[str] = field(default_factory=list)
    """Types of the current record that the provider doesn't know. Emptied by the caller after every record."""
    skipped: list[str] = field(default_factory=list)
    """Types of the current record that are left out on purpose. Emptied by the caller after every record."""
    recent: list[Any] = field(default_factory=list)
    """What the provider read last and needn't read again. It isn't stored: the next run reads it again."""
    printing: dict[str, int] = field(default_factory=dict)
    """The last calls that print a secret -> `redact.printing.Prints`."""

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        sessions = {k: by_name(v) for k, v in self.sessions.items()}
        return {"sessions": sessions, "memory": self.memory, "printing": self.printing}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> LogState:
        """Restore the state that `to_json` returned."""
        sessions = {k: SessionFacts(**v) for k, v in stored["sessions"].items()}
        return cls(sessions=sessions, memory=stored["memory"], printing=stored["printing"])
