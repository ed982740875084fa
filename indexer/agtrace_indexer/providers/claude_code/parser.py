"""Claude Code: `projects/<folder>/<sessionId>.jsonl` and the logs of its sub-agents (indexer/README.md).

The rules: every line is read by itself and in file order; parent chains are never needed to decide
what to keep, only whose line it is (`sessions`, `sidechains`) and what the log goes on from (`origins`). A response
is a step (`messages`) and is counted once, by its message and request ids (`tokens`). A line is known everywhere by
its uuid (`identities`). Texts in the user's role are told apart by flags and by how they start (`user_texts`). How a
tool execution ended is told by its result's flag and the structure beside it (`tool_results`), or much later
(`background`). Titles may be those of other logs' sessions (`titles`). Progress and lines that repeat others are left
out by name; whatever else a line records is a notification (`notices`). `records` names the reader of every type.
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
    """Whether this record can only come from Claude Code: a chain line, or a side line with its keys."""
    kind = record.get("type")
    return isinstance(kind, str) and is_own(kind, record)


def unroll(document: Any) -> list[Record] | None:
    """The lines of a session that was downloaded as one document, `{"loglines": [...]}`."""
    lines = [line for line in listed(fields(document).get("loglines")) if isinstance(line, dict)]
    return lines if any(map(recognizes, lines)) else None


def begin(path: PurePath) -> LogState:
    """The state before the first line: a name that is a uuid or an agent's tells whose log it is."""
    return named_by(path)


def drafts(record: Record, state: LogState) -> Sequence[Said]:
    """The events of the next line; see `Parser.drafts`. Lines keep their uuid wherever they are copied to."""
    kind = record.get("type")
    read = READERS.get(kind) if isinstance(kind, str) else None
    said = unknown_line(record, state, text(kind) or "untyped") if read is None else read(record, state)
    identify(said, identifier(record.get("uuid")))
    note_work(said, state)
    return said
