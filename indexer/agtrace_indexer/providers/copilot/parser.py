"""GitHub Copilot CLI: `session-state/<session id>/events.jsonl`, one event a line (indexer/README.md).

The rules: every line is read by itself, in file order; `parentId` names the line before it and says nothing else. A
response is a step (`messages`), and its output counts once (`tokens`); what went into the responses is known only when
the CLI ends. What sub-agents do has their call's id and is a thread of its own (`sub_agents`). The outcome of a tool
execution follows from its flag, the exit code and the permissions before it (`tool_results`), or is reported later
(`background`). Hooks and system messages repeat others and are left out. `records` names the reader of every type.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from agtrace_indexer.events.drafts import LogState, Record, Said
from agtrace_indexer.providers.copilot.recognition import is_event, producer
from agtrace_indexer.providers.copilot.records import read
from agtrace_indexer.providers.copilot.workspace import named_by
from agtrace_indexer.providers.provider import Rewrite

as_patch: Rewrite = None


def recognizes(record: Record) -> bool:
    """Whether only Copilot CLI writes such a record; Copilot Chat's first line names its producer."""
    return is_event(record) and producer(record) != "copilot-chat"


def unroll(document: Any) -> list[Record] | None:
    """Return None: no log is one document. (`history-session-state/<id>.json`, before 0.0.342, isn't known.)"""
    return None


def begin(path: PurePath) -> LogState:
    """Return the state before the first line: `workspace.yaml` next to the log has the session's name."""
    return named_by(path)


def drafts(record: Record, state: LogState) -> Sequence[Said]:
    """Return the events of the next line; see `Parser.drafts`."""
    return read(record, state)
