"""Notices in logs that matter: errors of the model's API, interruptions and compactions."""

from __future__ import annotations

from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.events import Provider, UserKind
from agtrace_schema.patterns import later

from agtrace.health.facts.labels import quoted
from agtrace.health.history import Entry, Notice, Said

_SHOWN = 120
_RETRIED = frozenset[str]().union(*(agent.notices.retried_errors for agent in AGENTS.values()))
_IN_JSON = later(r'"message": ?"((?:[^"\\]|\\.)+)"')
_STATUS = later(r'"status": ?(\d{3})\b')


def is_api_error(entry: Entry, provider: Provider) -> bool:
    """Whether it says that the model's API failed, retried or not."""
    if not isinstance(entry, Notice):
        return False
    notices = AGENTS[provider].notices
    return entry.kind in notices.api_errors or entry.kind in notices.retried_errors


def was_retried(notice: Notice) -> bool:
    """Whether the agent retried by itself after this error of the API."""
    return notice.kind in _RETRIED


def error_text(notice: Notice) -> str:
    """Return the text of an error of the API, on one line, shortened; empty if it has none."""
    if not notice.text.lstrip().startswith("{"):
        return quoted(notice.text, _SHOWN) if notice.text.strip() else ""
    said = max(_IN_JSON.findall(notice.text), key=len, default="")
    status = _STATUS.search(notice.text)
    return quoted(said, _SHOWN) if said else f"status {status[1]}" if status else ""


def is_interruption(entry: Entry, provider: Provider) -> bool:
    """Whether the human stopped the model there."""
    if isinstance(entry, Said):
        return entry.kind is UserKind.INTERRUPTION
    if not isinstance(entry, Notice):
        return False
    return any(sign.fits(entry.kind, entry.text) for sign in AGENTS[provider].notices.interruptions)


def is_compaction(entry: Entry, provider: Provider) -> bool:
    """Whether a notice says that the context was compacted."""
    if not isinstance(entry, Notice):
        return False
    return any(sign.fits(entry.kind, entry.text) for sign in AGENTS[provider].notices.compactions)
