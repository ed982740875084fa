"""The outcome of a tool execution, read from the output that Codex passed to the model.

Codex has no error flag: the outcome is shown by five styles of output and a few events (indexer/README.md). An exit
code counts only if the harness wrote it, in the header before the program's own output. If nothing shows the outcome,
it is `UNKNOWN`: neither silence nor a cheerful text is proof.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from agtrace_schema.events import Outcome, OutcomeSource
from agtrace_schema.patterns import later

from agtrace_indexer.events.json_values import count, fields, items
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.logs.decoding import loads
from agtrace_indexer.providers.codex.content import content_text


class Reading(NamedTuple):
    """An output, and what it says about its execution."""

    text: str
    """The output as the model saw it, with placeholders for images."""
    outcome: Outcome = Outcome.UNKNOWN
    source: OutcomeSource | None = None
    exit_code: int | None = None
    duration_ms: int | None = None
    running: str | None = None
    """What continues after the output: `session <id>` or `cell <id>`."""


SESSION, CELL = "session", "cell"
"""What can continue after an output: a process of the shell, a script of code mode."""

_SHELL = later(r"Exit code: (?P<exit>-?\d{1,10})\nWall time: (?P<seconds>\d+(?:\.\d+)?) seconds")
_EXEC = later(
    # exec_command and write_stdin since 0.105; 0.118 writes the command, of several lines, before the chunk.
    r"(?:Command: .*?\n(?=Chunk ID: ))?(?:Chunk ID: [^\n]*\n)?Wall time: (?P<seconds>\d+(?:\.\d+)?) seconds\n"
    r"(?:Process exited with code (?P<exit>-?\d{1,10})(?=\n|\Z)"
    r"|(?P<running>Process running with session ID ?(?P<session>\S*))"
    r"|(?P<aborted>aborted by user))?",
    re.DOTALL,
)
_SCRIPT = later(
    r"Script (?P<end>completed|failed|terminated|running with cell ID)(?: (?P<cell>\S+))?[^\n]*"
    r"(?:\nWall time:? (?P<seconds>[\d.]+) seconds)?"
)
_PRINTED_CODE = later(r"(?<![^\s{,])\"exit_code\": ?(-?\d{1,9})\b")
"""The exit code of a command in the result that a script printed; in a text within that result, quotes are escaped."""

_REJECTED = later(
    r"(?:exec command|exec_command|patch|apply_patch|command)? ?(?:was )?rejected by user"
    r"|user (?:rejected|cancelled|denied) "
    r"|exec_command failed for `.*`: CreateProcess \{ message: \"Rejected\("
    r"|(?:exec command|patch|command) rejected: ",
    re.DOTALL,
)
_INTERRUPTED = later(r"aborted by user after |aborted by user$|aborted$")
_FAILED = later(
    r"apply_patch verification failed"
    r"|execution error"
    r"|(?:command )?failed in sandbox"
    r"|sandbox error"
    r"|unsupported (?:custom tool )?call"
    r"|failed to parse (?:function )?arguments"
    r"|tool call error"
    r"|(?:exec_command|write_stdin|apply_patch|view_image|collab \w+|resources/\w+) failed\b"
    r"|unable to locate image at "
)
_TEXTS: list[tuple[re.Pattern[str], Outcome]] = [
    (_REJECTED, Outcome.REJECTED),
    (_INTERRUPTED, Outcome.INTERRUPTED),
    (_FAILED, Outcome.FAILED),
]
_SCRIPT_ENDS = {
    "completed": Outcome.OK,
    "failed": Outcome.FAILED,
    "terminated": Outcome.INTERRUPTED,
    "running with cell ID": Outcome.RUNNING,
}
_STATUSES = {
    "completed": Outcome.OK,
    "success": Outcome.OK,
    "failed": Outcome.FAILED,
    "errored": Outcome.FAILED,
    "declined": Outcome.REJECTED,
    "interrupted": Outcome.INTERRUPTED,
    "in_progress": Outcome.RUNNING,
}


def read_output(output: Any) -> Reading:
    """Read the `output` of a function_call_output or custom_tool_call_output in any of its shapes."""
    if isinstance(output, dict):
        return _read_object(output)
    if isinstance(output, str):
        return _read_metadata(output) or _read_text(output)
    return _read_text(content_text(output))


def _read_object(output: dict[str, Any]) -> Reading:
    """Read `{content, success}`, as in the oldest logs; any other object is content."""
    if "success" not in output:
        return _read_text(content_text(output))
    reading = _read_text(content_text(output.get("content_items") or output.get("content")))
    success = of_success(output.get("success"))
    if success is None:
        return reading
    return reading._replace(outcome=success, source=OutcomeSource.STRUCTURE)


def _read_metadata(output: str) -> Reading | None:
    """Read style 1: a JSON text with the inner output and its metadata (0.34 to 0.130)."""
    if not output.startswith("{") or '"metadata"' not in output:
        return None
    try:
        decoded = loads(output)
    except ValueError:
        return None
    metadata, inner = decoded.get("metadata"), decoded.get("output")
    if not isinstance(metadata, dict) or not isinstance(inner, str):
        return None
    exit_code = whole(metadata.get("exit_code"))
    if exit_code is None:
        return _read_text(inner)._replace(duration_ms=_milliseconds(metadata.get("duration_seconds")))
    return exited(inner, exit_code, metadata.get("duration_seconds"))


def _read_text(output: str) -> Reading:
    """Read styles 2 to 5: a header of the harness, or else a plain text that only failures have."""
    for pattern, read in _HEADERS:
        found = pattern.match(output)
        if found:
            return read(output, found)
    for pattern, outcome in _TEXTS:
        if pattern.match(output):
            return Reading(output, outcome, OutcomeSource.TEXT)
    return Reading(output)


def _read_shell(output: str, found: re.Match[str]) -> Reading:
    """Read style 2: `Exit code: N`, shell_command and apply_patch since 0.70."""
    return exited(output, int(found["exit"]), found["seconds"])


def _read_exec(output: str, found: re.Match[str]) -> Reading:
    """Read style 3: `Process exited with code N` or still running; other tools have only the wall time."""
    if found["exit"]:
        return exited(output, int(found["exit"]), found["seconds"])
    duration = _milliseconds(found["seconds"])
    if found["running"]:
        handle = f"{SESSION} {identifier(found['session'])}"
        return Reading(output, Outcome.RUNNING, OutcomeSource.STRUCTURE, None, duration, handle)
    if found["aborted"]:
        return Reading(output, Outcome.INTERRUPTED, OutcomeSource.TEXT, None, duration)
    return Reading(output, duration_ms=duration)


def _read_script(output: str, found: re.Match[str]) -> Reading:
    """Read style 4: the end of a code mode script (from 0.144); it failed, too, if it printed that a command did."""
    outcome, source, exit_code = _SCRIPT_ENDS[found["end"]], OutcomeSource.STRUCTURE, None
    handle = f"{CELL} {identifier(found['cell'])}" if outcome is Outcome.RUNNING else None
    codes = list(map(int, _PRINTED_CODE.findall(output))) if "exit_code" in output else []
    if outcome is Outcome.OK and any(codes):
        outcome, source = Outcome.FAILED, OutcomeSource.TEXT
        exit_code = codes[0] if len(codes) == 1 else None
    return Reading(output, outcome, source, exit_code, _milliseconds(found["seconds"]), handle)


_HEADERS: list[tuple[re.Pattern[str], Callable[[str, re.Match[str]], Reading]]] = [
    (_EXEC, _read_exec),
    (_SHELL, _read_shell),
    (_SCRIPT, _read_script),
]


def exited(output: str, exit_code: int, seconds: Any = None) -> Reading:
    """Return the reading of a program that ended with this exit code."""
    return Reading(output, of_exit_code(exit_code), OutcomeSource.STRUCTURE, exit_code, _milliseconds(seconds))


def of_exit_code(exit_code: int) -> Outcome:
    """Return the outcome for an exit code."""
    return Outcome.FAILED if exit_code else Outcome.OK


def of_status(status: Any) -> Outcome | None:
    """Return the outcome for a status (`completed`, `failed`, `declined` ...) in upper or lower case."""
    return _STATUSES.get(status.lower()) if isinstance(status, str) else None


def by_status(reading: Reading, status: Any) -> Reading:
    """Return a reading with the outcome of the record's status if its text shows none."""
    outcome = of_status(status)
    if reading.outcome is not Outcome.UNKNOWN or outcome is None:
        return reading
    return reading._replace(outcome=outcome, source=OutcomeSource.STRUCTURE)


def of_success(success: Any) -> Outcome | None:
    """Return the outcome for a success flag; None if it isn't a flag."""
    if not isinstance(success, bool):
        return None
    return Outcome.OK if success else Outcome.FAILED


def duration(value: Any) -> int | None:
    """Read an event's `duration` {secs, nanos} in milliseconds."""
    seconds, nanos = count(fields(value).get("secs")), count(fields(value).get("nanos"))
    return None if seconds is None else seconds * 1000 + (nanos or 0) // 1_000_000


def whole(value: Any) -> int | None:
    """Read an exit code: a whole number of either sign; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53 else None


def _milliseconds(seconds: Any) -> int | None:
    try:
        number = float(seconds)
    except (TypeError, ValueError, OverflowError):
        return None
    return round(number * 1000) if 0 <= number < 1e12 else None


def mcp_result(result: Any) -> Reading:
    """Read an MCP result: `{Ok: {content, isError?}}`, `{Err: text}` or the bare result of a TurnItem."""
    result = fields(result)
    if "Err" in result:
        return Reading(content_text(result["Err"]), Outcome.FAILED, OutcomeSource.STRUCTURE)
    answer = fields(result.get("Ok", result))
    said = content_text(items(answer.get("content")))
    if not answer:
        return Reading(said)
    # MCP leaves the flag out if a call succeeded.
    outcome = Outcome.FAILED if answer.get("isError") is True else Outcome.OK
    return Reading(said, outcome, OutcomeSource.STRUCTURE)
