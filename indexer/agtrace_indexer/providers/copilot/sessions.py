"""The session: its id, directory, branch, version and model."""

from __future__ import annotations

from agtrace_schema.events import Notification

from agtrace_indexer.events.clues import remote
from agtrace_indexer.events.drafts import Draft, LogState, Record, Said, SessionFacts
from agtrace_indexer.events.json_values import fields, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.copilot.envelope import Entry, notice, readable
from agtrace_indexer.providers.copilot.tokens import begin_counting

_AUTO = "auto"
"""The model's name while the CLI chooses the model itself."""

_TITLE_RANK = 3


def place(kind: str, state: LogState) -> None:
    """Take the session's id from its folder if its log doesn't begin with a first line."""
    folder = state.memory.pop("folder", None)
    if folder is not None and kind != "session.start":
        state.sessions[""].id = folder


def started(entry: Entry, state: LogState) -> list[Said]:
    """Read the first line of a session; recordings that join several sessions have more than one."""
    facts, data = state.sessions[""], entry.data
    own = identifier(data.get("sessionId"))
    begin_counting(own, state)
    if facts.id is None:
        facts.id = own
        facts.parent_id = identifier(data.get("detachedFromSpawningParentSessionId"))
    _note_context(fields(data.get("context")), facts)
    facts.version = text(data.get("copilotVersion")) or facts.version
    _note_model(data.get("selectedModel"), facts)
    return [_described(entry)]


def resumed(entry: Entry, state: LogState) -> list[Said]:
    """Read that the session goes on, in another process: whatever the last one was doing was interrupted."""
    facts = state.sessions[""]
    _note_context(fields(entry.data.get("context")), facts)
    _note_model(entry.data.get("selectedModel"), facts)
    draft = _described(entry)
    draft.ends_turn = True
    return [draft]


def context_changed(entry: Entry, state: LogState) -> list[Said]:
    """Read a new directory or branch."""
    _note_context(entry.data, state.sessions[""])
    return [notice(entry, readable(entry.data))]


def model_changed(entry: Entry, state: LogState) -> list[Said]:
    """Read the choice of a model."""
    _note_model(entry.data.get("newModel"), state.sessions[""])
    said = " ".join(filter(None, (text(entry.data.get(key)) for key in ("newModel", "reasoningEffort"))))
    return [notice(entry, said)]


def model_chosen(entry: Entry, state: LogState) -> list[Said]:
    """Read which model the CLI chose; the scores it went by are left out."""
    _note_model(entry.data.get("chosenModel"), state.sessions[""])
    return [notice(entry, text(entry.data.get("chosenModel")) or "")]


def title_changed(entry: Entry, state: LogState) -> list[Said]:
    """Read a name that was given to the session."""
    facts, title = state.sessions[""], text(entry.data.get("title"))
    if title:
        facts.title, facts.title_rank = title, _TITLE_RANK
    return [notice(entry, title or "")]


def _described(entry: Entry) -> Draft:
    """Return a notification of the place where the session works, with the repository that it names."""
    context = fields(entry.data.get("context"))
    return Draft(Notification(entry.kind, readable(context)), entry.at, clues=remote(_address(context)))


def _address(context: Record) -> str | None:
    """Return the address of the repository; GitHub's is known without its host."""
    name, host = text(context.get("repository")), text(context.get("repositoryHost"))
    host = host or ("github.com" if context.get("hostType") == "github" else None)
    return f"https://{host}/{name}" if name and host else None


def _note_context(context: Record, facts: SessionFacts) -> None:
    facts.cwd = facts.cwd or text(context.get("cwd"))
    facts.branch = text(context.get("branch")) or facts.branch


def _note_model(named: object, facts: SessionFacts) -> None:
    if isinstance(named, str) and named and named != _AUTO:
        facts.model = named
