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

    from agtrace.answers.desk import Answers
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
    "session_not_found": "`agtrace sessions` lists the newest ids.",
    "invalid_cursor": "Leave out --cursor to start again.",
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
    from agtrace.serving.ending import end_with_client

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


@cache
def answers() -> Answers:
    """What answers, made once: a text that goes on over chunks is asked for many times."""
    from agtrace.answers.desk import Answers
    from agtrace.answers.log import silent
    from agtrace.usage.prices import load as load_prices

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
        hint = [answer.value.get("hint", "")] if error["code"] == "index_unavailable" else []
        code = USAGE if error["code"] in _USAGE_CODES else UNREADABLE
        fail(error["message"], code, *next_steps(error["code"], error["details"]), *hint)
    if "index" in answer.value:
        state = answer.value["index"]
        tell(behind(state["state"], state.get("files_behind"), state.get("problem")))
    return answer.value


def next_steps(code: str, details: dict[str, Any]) -> list[str]:
    """What a person reads behind the message of an error: the ids that may be meant, and what to do."""
    matches = [f"  {match}" for match in details.get("matches", ())]
    return [*matches, *([_NEXT_STEPS[code]] if code in _NEXT_STEPS else [])]


def behind(state: str, files_behind: int | None, problem: str | None) -> str:
    """What an index that isn't ready lacks, as a sentence."""
    if problem is not None:
        return f"{problem}; the answer is from what was indexed before"
    files = f", {files_behind} files to go" if files_behind is not None else ""
    return f"the index is {state.replace('_', ' ')}{files}: the answer is from what it holds so far"


def fail(message: str, code: int, *more: str) -> NoReturn:
    """Print an error, each of `more` on a line of its own behind it, and end the process."""
    tell(message, *more)
    sys.exit(code)


def tell(sentence: str, *more: str) -> None:
    """Print a sentence on stderr, and lines behind it: they can hold what was typed, and names of files and of logs."""
    from agtrace_indexer.redact import redact

    from agtrace.text.lines import unbroken

    lines = (unbroken(redact(line)) for line in (f"agtrace: {sentence}", *more))
    sys.stderr.write("".join(f"{line}\n" for line in lines))


def print_json(value: Any, indent: int | None = 2) -> None:
    """Print a value as JSON, with every control character escaped: some are commands to a terminal."""
    from agtrace.text.lines import UNSEEN

    has_all_letters = (sys.stdout.encoding or "").lower() in ("utf-8", "utf8")
    text = json.dumps(value, ensure_ascii=not has_all_letters, indent=indent)
    unseen = re.compile(f"[{UNSEEN}\u2028\u2029]")
    sys.stdout.write(unseen.sub(lambda found: json.dumps(found[0])[1:-1], text) + "\n")
    sys.stdout.flush()


def unreadable_index(error: sqlite3.Error | OSError) -> NoReturn:
    """End the process because the index can't be opened or written."""
    from agtrace.index.soundness import Soundness

    problem = Soundness(settings().database).unusable(error)
    fail(problem.message, UNREADABLE, problem.hint or "")
