"""The commands: each reads its arguments, asks the same functions as the MCP server, and prints.

Exit codes: 0 ok, 1 trouble was found where that is the question, 2 usage, 3 data can't be read.
"""

from __future__ import annotations

import gc
import json
import re
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

from agtrace.problems import SettingError

if TYPE_CHECKING:
    import sqlite3

    from agtrace.answers import Answers
    from agtrace.settings import Settings

TROUBLE = 1
USAGE = 2
UNREADABLE = 3

_USAGE_CODES = frozenset(
    {
        "invalid_parameter",
        "invalid_cursor",
        "invalid_range",
        "invalid_event_index",
        "invalid_artifact_ref",
        "session_not_found",
        "ambiguous_session_prefix",
    }
)


_NEXT_STEPS = {
    "session_not_found": "\n`agtrace sessions` lists the newest ids.",
    "invalid_cursor": "\nLeave out --cursor to start again.",
}


def settings() -> Settings:
    """The settings from the environment; a value that can't be used ends the process with a message."""
    from agtrace.settings import load

    try:
        return load()
    except SettingError as error:
        fail(str(error), USAGE)


def usable() -> Settings:
    """The settings, with the user's rules for secrets in use; rules that can't be used end the process."""
    from agtrace_indexer.redact import UnusableRules, use

    found = settings()
    try:
        use(found.data_dir)
    except UnusableRules as error:
        fail(str(error), USAGE)
    return found


def serve() -> None:
    """Run the MCP server on stdin and stdout, which ends the process with its client."""
    from agtrace.serving.ending import end, end_with_client

    end_with_client()  # also while it is still starting
    found = settings()
    gc.disable()  # what the SDK loads stays for good: looking for garbage in it takes a twelfth of the start
    from agtrace.serving.stdio_transport import serve_stdio

    gc.freeze()
    gc.enable()
    try:
        serve_stdio(found)
    except OSError as error:
        fail(str(error), USAGE)
    except KeyboardInterrupt:
        end(130)


@cache
def answers() -> Answers:
    """What answers, made once: a text that goes on over chunks is asked for many times."""
    from agtrace.answers import Answers
    from agtrace.reading.prices import load as load_prices
    from agtrace.serving.logs import silent

    found = usable()
    try:
        load_prices(found.prices)
    except SettingError as unusable:
        fail(str(unusable), USAGE)
    return Answers(found, refresh_seconds=10, log=silent)


def ask(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The answer of a tool, as the MCP server would give it; an error ends the process with its message."""
    answer = answers().ask(tool, {name: value for name, value in arguments.items() if value is not None})
    if answer.is_error:
        error = answer.value["error"]
        hint = f"\n{answer.value.get('hint', '')}" if error["code"] == "index_unavailable" else ""
        message = with_next_step(error["code"], error["message"], error["details"])
        fail(f"{message}{hint}", USAGE if error["code"] in _USAGE_CODES else UNREADABLE)
    if "index" in answer.value:
        state = answer.value["index"]
        sys.stderr.write(f"agtrace: {behind(state['state'], state.get('files_behind'), state.get('problem'))}\n")
    return answer.value


def with_next_step(code: str, message: str, details: dict[str, Any]) -> str:
    """An error as a person reads it: with the ids that may be meant, and what to do."""
    matches = "".join(f"\n  {match}" for match in details.get("matches", ()))
    return f"{message}{matches}{_NEXT_STEPS.get(code, '')}"


def behind(state: str, files_behind: int | None, problem: str | None) -> str:
    """What an index that isn't ready lacks, as a sentence."""
    if problem is not None:
        return f"{problem}; the answer is from what was indexed before"
    files = f", {files_behind} files to go" if files_behind is not None else ""
    return f"the index is {state.replace('_', ' ')}{files}: the answer is from what it holds so far"


def fail(message: str, code: int) -> NoReturn:
    """Print an error and end the process."""
    from agtrace_indexer.redact import redact

    from agtrace.shaping.cutting import without_controls  # a message can hold what was typed

    sys.stderr.write(f"agtrace: {without_controls(redact(message))}\n")
    sys.exit(code)


def print_json(value: Any, indent: int | None = 2) -> None:
    """Print a value as JSON, with every control character escaped: some are commands to a terminal."""
    from agtrace.shaping.cutting import UNSEEN

    has_all_letters = (sys.stdout.encoding or "").lower() in ("utf-8", "utf8")
    text = json.dumps(value, ensure_ascii=not has_all_letters, indent=indent)
    unseen = re.compile(f"[{UNSEEN}\u2028\u2029]")
    sys.stdout.write(unseen.sub(lambda found: json.dumps(found[0])[1:-1], text) + "\n")
    sys.stdout.flush()


def unreadable_index(error: sqlite3.Error | OSError) -> NoReturn:
    """End the process because the index can't be opened or written."""
    from agtrace.unusable import unusable

    problem = unusable(error)
    fail(f"{problem.message}\n{problem.hint}", UNREADABLE)
