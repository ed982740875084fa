"""The providers whose logs are read, and which of them a record is of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agtrace_schema.events import Provider

from agtrace_indexer.events.drafts import LogFormat, Record
from agtrace_indexer.providers import claude_code, codex, gemini

FORMATS: dict[Provider, LogFormat] = {
    Provider.CLAUDE_CODE: claude_code,
    Provider.CODEX: codex,
    Provider.GEMINI: gemini,
}
"""A provider is a package: to add one, write it and name it here."""

KEYS_REMEMBERED: dict[Provider, int | None] = {
    Provider.CLAUDE_CODE: 64,  # only lines of one response repeat a key, and they stand close together
    Provider.CODEX: 0,
    Provider.GEMINI: None,  # any message can be replaced or rewound
}

REPEATS_LINES = frozenset({Provider.CLAUDE_CODE})
"""Whose logs may hold the same line twice: the second one is left out. Elsewhere equal texts are said twice."""

REPLAYS_ITEMS = frozenset({Provider.CODEX})
"""Whose identities only mean something between a log and the one that it says to replay: they are no ids of lines."""

PATCHES: dict[Provider, Callable[[list[Record]], list[Record]]] = {Provider.GEMINI: gemini.as_patch}
"""How a document that was written again becomes a change of what is known of it; without it, it is read anew."""


def recognize(record: Record) -> Provider | None:
    """The provider whose record this is; None if no provider claims it."""
    for provider, module in FORMATS.items():
        if module.recognizes(record):
            return provider
    return None


def unroll(document: Any) -> tuple[Provider, list[Record]] | None:
    """The records of a whole-file JSON document, with its provider."""
    for provider, module in FORMATS.items():
        records = module.unroll(document)
        if records is not None:
            return provider, list(records)
    return None
