"""Claude Code: `projects/<folder>/<sessionId>.jsonl` and the logs of its sub-agents (indexer/README.md).

The rules: every line is read by itself, in file order; parent chains never decide what is kept, only whose line
it is (`sessions`, `sidechains`) and which log this one continues (`origins`). A response is a step (`messages`) and
is counted once, by its message and request ids (`tokens`). A line is identified everywhere by its uuid
(`identities`). Texts in the user's role are distinguished by flags and by their beginnings (`user_texts`). The outcome
of a tool execution follows from its result's flag and structure (`tool_results`), or is reported much later
(`background`). Titles may be those of other logs' sessions (`titles`). Progress and lines that repeat others are left
out by name; anything else becomes a notification (`notices`). `records` names the reader of every type.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from agtrace_indexer.events.drafts import LogState, Record, Said
from agtrace_indexer.events.json_values import fields, listed, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.claude_code.identities import identify
from agtrace_indexer.providers.claude_code.notices import unknown_line
from agtrace_indexer.providers.claude_code.recognition import is_own
from agtrace_indexer.providers.claude_code.records import READERS
from agtrace_indexer.providers.claude_code.sessions import named_by, note_work
from agtrace_indexer.providers.provider import Rewrite

as_patch: Rewrite = None


def recognizes(record: Record) -> bool:
    """Whether only Claude Code writes such a record: a chain line, or a side line with its keys."""
    kind = record.get("type")
    return isinstance(kind, str) and is_own(kind, record)


def unroll(document: Any) -> list[Record] | None:
    """Return the lines of a session that was downloaded as one document, `{"loglines": [...]}`."""
    lines = [line for line in listed(fields(document).get("loglines")) if isinstance(line, dict)]
    return lines if any(map(recognizes, lines)) else None


def begin(path: PurePath) -> LogState:
    """Return the state before the first line: a name that is a uuid or an agent's shows whose log it is."""
    return named_by(path)


def drafts(record: Record, state: LogState) -> Sequence[Said]:
    """Return the events of the next line; see `Parser.drafts`. Lines keep their uuid wherever they are copied."""
    kind = record.get("type")
    read = READERS.get(kind) if isinstance(kind, str) else None
    said = unknown_line(record, state, text(kind) or "untyped") if read is None else read(record, state)
    identify(said, identifier(record.get("uuid")))
    note_work(said, state)
    return said
