"""Notifications that say more than their text: compactions, errors, and what the system tells the model."""

from __future__ import annotations

from agtrace_schema.events import User, UserKind

from agtrace_indexer.events.drafts import Draft, LogState, Said
from agtrace_indexer.events.json_values import fields, text
from agtrace_indexer.providers.copilot.background import settled_by_notice
from agtrace_indexer.providers.copilot.envelope import Entry, notice, readable
from agtrace_indexer.providers.copilot.tokens import compaction_usage
from agtrace_indexer.providers.notes import skip

_LEFT_OUT = frozenset({"summaryContent", "compactionTokensUsed", "requestId", "serviceRequestId"})


def compacted(entry: Entry, state: LogState) -> list[Said]:
    """Read a compaction: what it did, the summary that now stands for the older lines, what the summary cost."""
    told = {key: value for key, value in entry.data.items() if key not in _LEFT_OUT}
    said: list[Said] = [notice(entry, readable(told))]
    if summary := text(entry.data.get("summaryContent")):
        said.append(Draft(User(summary, UserKind.COMPACTION_SUMMARY), entry.at, thread=entry.thread))
    return [*said, *compaction_usage(entry)]


def failed(entry: Entry, state: LogState) -> list[Said]:
    """Read an error of the model's API, which ends the turn; the stack of the CLI is left out."""
    message = text(entry.data.get("message"))
    return [notice(entry, message or readable(entry.data))]


def told(entry: Entry, state: LogState) -> list[Said]:
    """Read what the system tells the model in the user's role: a command or an agent has ended, a file has changed."""
    ends = settled_by_notice(entry, state)
    said = text(entry.data.get("content")) or text(fields(entry.data.get("kind")).get("type"))
    if not said:
        return [*skip(entry.kind, state), *ends]
    return [Draft(User(said, UserKind.NOTIFICATION), entry.at, thread=entry.thread), *ends]
