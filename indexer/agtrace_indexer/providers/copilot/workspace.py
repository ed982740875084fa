"""What is known of a session before its first line: its folder's name, and `workspace.yaml` next to the log.

The file is flat, a key and a value a line, and is read when the log is read from its beginning. Whatever is wrong with
it, the log is read without it.
"""

from __future__ import annotations

import json
import re
from pathlib import PurePath

from agtrace_indexer.events.drafts import LogState, SessionFacts
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.beside import small_file

_FILE = "workspace.yaml"
_TITLES = ("name", "summary")
_TITLE_RANK = 3
_LONGEST_TITLE = 500
_LARGEST = 64 * 1024
_PLAIN = re.compile(rb"^(name|summary):[ \t]+([^\r\n]+)", re.MULTILINE)


def named_by(path: PurePath) -> LogState:
    """Return the state before the first line; the folder's name is the session's id if no line tells it."""
    facts = SessionFacts()
    state = LogState({"": facts})
    if path.name == "events.jsonl":
        state.memory["folder"] = identifier(path.parent.name)
        facts.title = _title(path)
        facts.title_rank = _TITLE_RANK if facts.title else 0
    return state


def _title(path: PurePath) -> str | None:
    """Return the name of a session, else its summary; None if the file has neither."""
    try:
        content = small_file(path.with_name(_FILE), _LARGEST)
    except (OSError, ValueError):
        return None
    found = {key.decode(): _scalar(value.decode("utf-8", "replace")) for key, value in _PLAIN.findall(content)}
    return next((found[key] for key in _TITLES if found.get(key)), None)


def _scalar(written: str) -> str:
    """Return the text of a value on one line: plain, or in quotes. A text of several lines gives an empty one."""
    value = written.strip()
    if value[:1] == '"':
        try:
            said = json.loads(value)
        except ValueError:
            said = value.strip('"')
        value = said if isinstance(said, str) else ""
    elif value[:1] == "'":
        value = value[1:].removesuffix("'").replace("''", "'")
    elif value[:1] in ("|", ">", "&", "*", "!", "~", "#") or value == "null":
        value = ""
    return value[:_LONGEST_TITLE]
