"""Tool calls of Codex and what came of them: outputs, events of the screen, executions that go on, token counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any, NamedTuple, TypeAlias

from agtrace_schema.events import Json, Notification, Outcome, OutcomeSource, TokenUsage, ToolCall, ToolResult
from agtrace_schema.patterns import later
from msgspec.structs import replace

from agtrace_indexer.events.commands import SCRIPTING
from agtrace_indexer.events.drafts import Draft, LogState, Record, Said, Settlement
from agtrace_indexer.events.json_values import (
    compact_json,
    count,
    digest,
    fields,
    first_text,
    image_placeholder,
    items,
    remember,
    text,
)
from agtrace_indexer.events.searchable_text import without_preface
from agtrace_indexer.events.strings import first_identifier, identifier, masked
from agtrace_indexer.logs.decoding import loads
from agtrace_indexer.providers.notes import check_usage, known, skip, unknown

# -- content ---------------------------------------------------------------------------------------


def content_text(content: Any) -> str:
    """Join the parts of a content to one text with line breaks; images become placeholders."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part for part in map(_part_text, content) if part is not None)
    if isinstance(content, dict):
        part = _part_text(content)
        return compact_json(content) if part is None else part
    return "" if content is None else compact_json(content)


def _part_text(part: Any) -> str | None:
    """Return a part's text or image placeholder; None for anything else, such as encrypted parts."""
    if isinstance(part, str):
        return part
    part = fields(part)
    inner = part.get("text")
    return inner if isinstance(inner, str) else image(part)


def image(part: dict[str, Any]) -> str | None:
    """Return the placeholder of an image part (`image_url`, or MCP's `data`); None if there is no image."""
    if isinstance(part.get("data"), str):
        return image_placeholder(part.get("mimeType"), part["data"])
    url = part.get("image_url")
    return None if text(url) is None else image_of(url)


def image_of(url: Any) -> str:
    """Return the placeholder of an image address: with the size for a `data:` address, with the address for others."""
    if not isinstance(url, str) or not url.startswith("data:"):
        return f"[image: {url}]" if text(url) else image_placeholder(None, None)
    head, _, data = url.partition(",")
    return image_placeholder(head[5:].partition(";")[0], data)


def texts(value: Any) -> list[str]:
    """Return the non-empty texts of a list of texts or text parts, or of one text."""
    parts = [value] if isinstance(value, str) else items(value)
    found = [part if isinstance(part, str) else fields(part).get("text") for part in parts]
    return [words for words in found if isinstance(words, str) and words]


# -- tool outputs ----------------------------------------------------------------------------------
# The outcome of a tool execution, read from the output that Codex passed to the model. Codex has no error flag: the
# outcome is shown by five styles of output and a few events (README.md). An exit code counts only if the harness wrote
# it, in the header before the program's own output. Neither silence nor a cheerful text is proof.


class Reading(NamedTuple):
    """An output, and what it says about its execution."""

    text: str
    """The output as the model saw it, with placeholders for images."""
    outcome: Outcome = Outcome.UNKNOWN
    source: OutcomeSource | None = None
    exit_code: int | None = None
    duration_ms: int | None = None
    running: tuple[str, ...] = ()
    """What continues after the output: `session <id>` or `cell <id>`."""
    codes: tuple[int | None, ...] = ()
    """How the commands of a script ended, in the order of its output; None: that one continues."""


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
_PRINTED_END = later(r"(?<![^\s{,])\"(?:exit_code\": ?(-?\d{1,9})|session_id\": ?(\d{1,9}))\b")
"""The exit code of a command in the result that a script printed, or the session in which it goes on; in a text within
that result, quotes are escaped."""

_SHOWS_CODE = later(
    r"(?:[`\"'}]|\\n)([^`\"'}\\\n]{0,40})(?:\$\{|[\"'`]\s*\+\s*)[\w.\[\]?]{0,80}\bexit_?[cC]ode\b"
    r"|\b(\w{1,40})\s*:\s*[\w\[\]?]{1,80}\.exit_?[cC]ode\b"
)
"""What a script prints before the exit code of a command: the end of a text, or the name of a field."""
_WAITS = later(r"\byield_time_ms\"?\s*:\s*(\d{1,9})\b")
_NOT_FOUND = later(
    r"\s*(?:[\w/.-]*sh|\(eval\)):(?: ?(?:line )?\d+:)? ?(?:command not found: \S+|\S+: (?:command )?not found)\s*"
)
_LIKE_ERROR = later(r"^(?:error|fatal|panic|Error|\w+Error|Traceback \(most recent call last\)): ?", re.MULTILINE)

_REJECTED = later(
    r"(?:exec command|exec_command|patch|apply_patch|command)? ?(?:was )?rejected by user"
    r"|user (?:rejected|cancelled|denied) "
    r"|exec_command failed for `.*`: CreateProcess \{ message: \"Rejected\("
    r"|(?:exec command|patch|command) rejected: "
    r"|(?:Command|Tool call) blocked by \w+ hook: ",
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
    r"|error: (?:Failed to|invalid (?:hunk|patch)) "
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
        match = pattern.match(output)
        if match:
            return read(output, match)
    for pattern, outcome in _TEXTS:
        if pattern.match(output):
            return Reading(output, outcome, OutcomeSource.TEXT)
    return Reading(output)


def _read_exec(output: str, match: re.Match[str]) -> Reading:
    """Read styles 2 and 3: how a command exited or that it still runs; other tools have only the wall time."""
    told, duration = match.groupdict(), _milliseconds(match["seconds"])
    if told["exit"]:
        return exited(output, int(told["exit"]), match["seconds"])
    if told["running"]:
        handle = f"{SESSION} {identifier(told['session'])}"
        return Reading(output, Outcome.RUNNING, OutcomeSource.STRUCTURE, None, duration, (handle,))
    if told["aborted"]:
        return Reading(output, Outcome.INTERRUPTED, OutcomeSource.TEXT, None, duration)
    return Reading(output, duration_ms=duration)


def _read_script(output: str, match: re.Match[str]) -> Reading:
    """Read style 4: the end of a code mode script (from 0.144), with what it printed of the ends of its commands."""
    outcome, duration = _SCRIPT_ENDS[match["end"]], _milliseconds(match["seconds"])
    handles = (f"{CELL} {identifier(match['cell'])}",) if outcome is Outcome.RUNNING else ()
    reading = Reading(output, outcome, OutcomeSource.STRUCTURE, None, duration, handles)
    ends = _PRINTED_END.findall(output) if outcome is Outcome.OK and '"output"' in output else []
    return _ended(reading, ends) if ends else reading


def _ended(reading: Reading, ends: Sequence[tuple[str, str]]) -> Reading:
    """Return the reading of a script that completed: `ends` are the exit code or the session of each command."""
    codes = tuple(int(code) if code else None for code, _ in ends)
    reading = reading._replace(source=OutcomeSource.TEXT, codes=codes, exit_code=codes[0] if len(codes) == 1 else None)
    if any(codes):
        return reading._replace(outcome=Outcome.FAILED)
    going = tuple(f"{SESSION} {session}" for code, session in ends if not code)
    return reading._replace(outcome=Outcome.RUNNING if going else Outcome.OK, running=going)


_HEADERS: list[tuple[re.Pattern[str], Callable[[str, re.Match[str]], Reading]]] = [
    (_EXEC, _read_exec),
    (_SHELL, _read_exec),
    (_SCRIPT, _read_script),
]


def _shown_ends(script: str) -> list[Any]:
    """Return how long a script waits for a command, and what comes before exit codes in its output, as expressions."""
    waits = min(map(int, _WAITS.findall(script)), default=10_000) if "tools.exec_command" in script else None
    found = _SHOWS_CODE.findall(script)
    looks = [rf"\"?\b{name}\"?: ?" if name else rf"(?<!\S){re.escape(shown.strip())} ?" for shown, name in found]
    return [waits, *dict.fromkeys(looks)][:_POLLING]


def _by_its_commands(reading: Reading, shown: list[Any] | None) -> Reading:
    """Return a reading of a script that completed: what it printed may show how its commands ended.

    `shown`: what `_shown_ends` says of the script; None: its commands' own results tell.
    """
    if not reading.text.startswith("Script completed"):
        return reading
    if shown is None:
        return reading._replace(outcome=Outcome.OK, source=OutcomeSource.STRUCTURE, exit_code=None)
    if reading.outcome is not Outcome.OK or reading.codes:
        return reading
    printed, (waits, *looks) = reading.text.partition("Output:\n")[2], shown
    ends = [end for look in looks for end in re.findall(rf"{look}(-?\d{{1,9}}|undefined)(?![\w.])", printed)]
    if ends and "undefined" not in ends:
        return _ended(reading, [(code, "") for code in ends])
    if _NOT_FOUND.fullmatch(printed):
        return reading._replace(outcome=Outcome.FAILED, source=OutcomeSource.TEXT)
    goes_on = ends or (waits is not None and reading.duration_ms is not None and reading.duration_ms >= waits)
    return reading._replace(outcome=Outcome.UNKNOWN, source=None) if goes_on or _LIKE_ERROR.search(printed) else reading


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


# -- background ------------------------------------------------------------------------------------
# Executions that outlive their result: `exec_command` answers `Process running with session ID 41`, code mode `Script
# running with cell ID 3`, or its script prints the session. The result of a later `write_stdin` or `wait` for that
# session or cell, or of a script with a `write_stdin`, may say how it ended: this settles the first call. So does an
# `*_end` event after the output. A poll that finds it still running changes nothing.

_POLLS = {"write_stdin": (SESSION, "session_id"), "wait": (CELL, "cell_id")}
"""Tool -> what it asks about, and the argument that names it."""

_ASKED = later(r"\btools\.write_stdin\(\s*\{\s*\"?session_id\"?\s*:\s*(\d{1,9})\b")
_CTRL_C = later(r"\x03|\\u0003|\\x03")
_RUNNING = 64
_POLLING = 64
_SCRIPT_ENDED = ("Script completed", "Script failed", "Script terminated")
_ENDS = (Outcome.OK, Outcome.FAILED, Outcome.REJECTED, Outcome.INTERRUPTED)


def note_poll(call_id: str, name: str, arguments: Json, state: LogState) -> None:
    """Note which running executions a call asks about."""
    what, key = _POLLS.get(name, (SESSION, ""))
    asked = _ASKED.findall(arguments)[:_POLLING] if isinstance(arguments, str) else [fields(arguments).get(key)]
    handles = [f"{what} {identifier(str(one))}" for one in asked if isinstance(one, (str, int)) and len(str(one)) <= 64]
    if handles:
        remember(state.memory.setdefault("polls", {}), call_id, handles, _POLLING)
        if _CTRL_C.search(arguments if isinstance(arguments, str) else str(fields(arguments).get("chars"))):
            remember(state.memory.setdefault("stopping", {}), call_id, True, _POLLING)


def settled_by_result(call_id: str | None, reading: Reading, state: LogState, at: int | None) -> list[Settlement]:
    """Return the ends of earlier executions that a result reports; remember the result's own if it continues."""
    if call_id is None:
        return []
    polls: dict[str, list[str]] = state.memory.get("polls", {})
    running: dict[str, list[str]] = state.memory.setdefault("running", {})
    asked = polls.get(call_id)
    if reading.outcome is Outcome.RUNNING and (asked is None or not {*reading.running} <= {*asked}):
        remember(running, call_id, [*reading.running], _RUNNING)
    result: list[Settlement] = []
    for handle, outcome in _ends_of(asked or [], reading):
        for started in [one for one, handles in running.items() if handle in handles]:
            going = [one for one in running[started] if one != handle]
            running[started] = going = [*going, *reading.running] if handle.startswith(CELL) else going
            if outcome is not Outcome.RUNNING and (outcome is not Outcome.OK or not going):
                reported = started in polls and reading.codes  # it only asked, too
                result.append(_settle(started, Outcome.OK if reported else outcome, state, at))
                result += settled_by_result(started, reading, state, at)
    return result


def _ends_of(asked: list[str], reading: Reading) -> list[tuple[str, Outcome]]:
    """Return what a call asked about that has ended, according to the harness; a poll itself can fail, too."""
    if asked and asked[0].startswith(CELL):
        return [(asked[0], reading.outcome)] if reading.text.startswith(_SCRIPT_ENDED) else []
    codes = reading.codes or (reading.exit_code,)
    if len(asked) == 1 == len(codes):
        return [(asked[0], reading.outcome)] if codes[0] is not None else []
    told = zip(asked, codes, strict=True) if len(asked) == len(codes) else ()
    return [(handle, of_exit_code(code)) for handle, code in told if code is not None]


def _settle(call_id: str, outcome: Outcome, state: LogState, at: int | None) -> Settlement:
    del state.memory["running"][call_id]
    return Settlement(call_id, outcome, at)


# -- handlers --------------------------------------------------------------------------------------

Handler: TypeAlias = Callable[[Record, LogState, "int | None"], Sequence[Said]]
"""Turns a payload into drafts; the number is the time of its line."""


def skipping(kind: str) -> Handler:
    """Make a handler that leaves the record out, noted under this name."""
    return lambda payload, state, at: skip(kind, state)


def notifying(kind: str, *keys: str, ends_turn: bool = False) -> Handler:
    """Make a handler that notifies of the first of these fields that is a text, or else of the whole payload."""

    def notify(payload: Record, state: LogState, at: int | None) -> list[Draft]:
        found = next((payload[key] for key in keys if text(payload.get(key))), None)
        rest = {key: value for key, value in payload.items() if key != "type"}
        return [Draft(Notification(kind, found or (_shown(rest) if rest else "")), at, ends_turn=ends_turn)]

    return notify


def unknown_record(kind: str, record: Record, state: LogState, at: int | None) -> list[Draft]:
    """Keep a record whose type is in no table, without its encrypted parts."""
    return [Draft(unknown(kind, record, state, _shown), at)]


def _shown(value: Any) -> str:
    return compact_json(_readable(value))


def _readable(value: Any) -> Any:
    """Return a value without encrypted contents, which nobody can read."""
    if isinstance(value, dict):
        return {key: _readable(inner) for key, inner in value.items() if key != "encrypted_content"}
    return [_readable(inner) for inner in value] if isinstance(value, list) else value


# -- doubles ---------------------------------------------------------------------------------------
# Doubled streams: what is said is in a log twice but is one event. Codex writes what is said twice, as a
# `response_item` (the model's side) and as an `event_msg` (the screen's side; in paginated threads as
# `item_completed`), one to three lines apart in either order. A log is read while it grows, so nothing may depend on
# what comes later. The rule: **the first of the two is the event; a text of the other stream that equals a recent, not
# yet paired one is its double and left out.** Each text pairs once, so a sentence said twice in one stream is two
# events. A reasoning item is compared by its summary parts, each of which has an event of its own. While a review runs,
# its texts are repeated within one stream: any repetition is then a double.

_REACH = 60  # lines that a text waits for its double; in real logs it comes within three
_WAITING = 32
_IDE_PREFACES = ("# Context from my IDE setup:", "# Files mentioned by the user")


def fingerprint(said: str) -> str:
    """Return a digest of what both streams have of a text: no white space, and of an IDE's text only the request."""
    if said.lstrip().startswith(_IDE_PREFACES):
        said = without_preface(said)
    return digest("".join(said.split()))


def note_review(state: LogState, *, entered: bool) -> None:
    """Note that a review begins or ends; what was said before isn't repeated after that."""
    state.memory["review"] = entered
    state.memory["waiting"] = [text for text in state.memory.get("waiting", []) if text[0] != "user"]


def is_double(said: str, role: str, stream: str, state: LogState) -> bool:
    """Whether the other stream said this recently (they are then paired); if not, the text now waits for its double."""
    waiting: list[list[Any]] = state.memory.setdefault("waiting", [])
    mark, line = fingerprint(said), state.memory["n"]
    repeats = bool(state.memory.get("review"))
    for place, (other_role, other_stream, other_mark, other_line) in enumerate(waiting):
        if (other_mark, other_role) != (mark, role) or line - other_line > _REACH:
            continue
        if repeats or other_stream != stream:
            if not repeats:
                del waiting[place]
            return True
    waiting.append([role, stream, mark, line])
    del waiting[:-_WAITING]
    return False


# -- steps -----------------------------------------------------------------------------------------


def open_step(state: LogState) -> str:
    """Return the step of the current response: a run of items up to a tool output, a token count or a user's text."""
    memory = state.memory
    if not memory.get("open"):
        memory["step"] = memory.get("step", 0) + 1
        memory["open"] = True
    return f"s{memory['step']}"


def last_step(state: LogState) -> str | None:
    """Return the step of the newest response of this session, open or closed; None before the first."""
    step = state.memory.get("step")
    return f"s{step}" if step and step != state.memory.get("foreign") else None


def close_step(state: LogState) -> None:
    """End the current response: the model's next item begins another."""
    state.memory["open"] = False


# -- tokens ----------------------------------------------------------------------------------------
# Token counts: the tokens of a request are the growth of a total. Codex repeats its counts, sends them without figures
# and, after a compaction, with a last request of zeros: with none of these does a total grow. Several totals may
# alternate: while a review runs, the log repeats those of the reviewer, then the thread's own goes on where it was. A
# total that continues none of them starts anew. The first total of a fork, a sub-agent or a rotated rollout may include
# what another log has: the last request counts instead. From 0.146, a `token_usage_record` has what a total repeats.

_TOTALS = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
)
_SPEEDS = {"priority": "fast", "default": None, "auto": None, "standard": None}
_TOTALS_KEPT, _RECORDS_KEPT = 8, 16
_SUMS = ("last_token_usage", "total_token_usage")
_KNOWN = known(
    "model", "model_context_window", *(f"{sums}.{name}" for sums in _SUMS for name in (*_TOTALS, "total_tokens"))
)


def token_count(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read the tokens of a request: the growth of the session's total (README.md)."""
    if payload.get("info") is None:
        return skip("token_count/rate_limits", state)
    info = fields(payload["info"])
    check_usage(info, _KNOWN, state)
    last, total = _counts(info.get("last_token_usage")), _counts(info.get("total_token_usage"))
    if not last and not total:
        return [Draft(Notification("token_count", compact_json(payload["info"])), at)]
    counted = [last, last_step(state)]
    if not total and state.memory.get("last") == counted:
        return skip("token_count/repeated", state)
    if not total:
        state.memory["last"] = counted
    used = _unrecorded(_growth(total, last, state) if total else last, state)
    if not any(used.values()):
        return skip("token_count/repeated", state)
    state.memory["unrecorded"], state.memory["alone"] = used, not state.memory.get("open")
    return _usage(used, count(info.get("model_context_window")), state, at, payload)


def token_usage_record(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read the tokens of one response, unless a token count has already told them."""
    check_usage(payload.get("usage"), _KNOWN[_SUMS[0]], state)
    used, counted = _counts(payload.get("usage")), state.memory.pop("unrecorded", None)
    recorded = state.memory.setdefault("recorded", {})
    response = identifier(payload.get("response_id")) or ""
    known = response in recorded or used == counted or not any(used.values())
    if response not in recorded:
        remember(recorded, response, {} if known else used, _RECORDS_KEPT)
    return skip("token_usage_record/repeated", state) if known else _usage(used, None, state, at, payload)


def compaction_usage(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read the tokens of a compaction, unless its record stands before it; no total will include them.

    Without a record, or a request that nothing was said in, they aren't known, and the log's totals not exact.
    """
    recorded = state.memory.setdefault("recorded", {})
    response = identifier(payload.get("compaction_response_id")) or ""
    latest, alone = fields(payload.get("latest_token_usage_record")), state.memory.pop("alone", False)
    own = latest if response and identifier(latest.get("response_id")) == response else {}
    result = token_usage_record(own, state, at) if own and response not in recorded else []
    if response in recorded:
        recorded[response] = {}
    elif not alone:
        state.unknown.append("usage/compaction")
    return result


def _unrecorded(used: dict[str, int], state: LogState) -> dict[str, int]:
    """Return what records haven't told of the growth of a total: first one just as large counts, then the newest."""
    recorded: dict[str, dict[str, int]] = state.memory.get("recorded", {})
    waiting = [response for response in reversed(recorded) if recorded[response]]
    for response in sorted(waiting, key=lambda one: not _less(used, recorded[one])):
        told = recorded[response]
        if any(used.values()) and _less(told, used):
            used = {key: number - told.get(key, 0) for key, number in used.items()}
            recorded[response] = {}
    return used


def _less(one: dict[str, int], other: dict[str, int]) -> bool:
    """Whether no figure of a usage is greater than that of another one."""
    return all(number <= other.get(key, 0) for key, number in one.items())


def _counts(value: Any) -> dict[str, int]:
    """Return the known figures of a usage, by name."""
    usage = fields(value)
    return {key: number for key in _TOTALS if (number := count(usage.get(key))) is not None}


def _growth(total: dict[str, int], last: dict[str, int], state: LogState) -> dict[str, int]:
    """Return the growth of the total that this one continues; the last request if it continues none."""
    totals: list[dict[str, int]] = state.memory.setdefault("totals", [])
    goes_on = state.memory.pop("goes_on", False)
    whole = not totals and state.sessions[""].kind == "main" and not goes_on
    anew = goes_on and total == last and state.memory.get("open")
    before = [
        other for other in totals if not anew and (other == total or (total != last and _grew(total, other, last)))
    ]
    before = before or [other for other in totals[-1:] if total != last and _grew(total, other, {})]
    totals.append(total)
    if not before:
        del totals[:-_TOTALS_KEPT]
        return total if whole or (totals[1:] and not any(last.values())) else last
    closest = max(before, key=lambda other: (other == total, sum(other.values())))
    totals.remove(closest)
    return {key: max(number - closest.get(key, 0), 0) for key, number in total.items()}


def _grew(total: dict[str, int], before: dict[str, int], by: dict[str, int]) -> bool:
    """Whether a total is what another one is after a request that used at least so much."""
    return all(total.get(key, 0) - before.get(key, 0) >= by.get(key, 0) for key in ("input_tokens", "output_tokens"))


def _usage(
    used: dict[str, int], window: int | None, state: LogState, at: int | None, record: Record | None = None
) -> list[Draft]:
    """Convert Codex's figures, whose input includes tokens read from and written to the cache."""
    told = record or {}
    if "service_tier" in told:
        set_speed(told["service_tier"], state)
    fresh, cached = used.get("input_tokens"), used.get("cached_input_tokens")
    written = used.get("cache_write_input_tokens")
    if fresh is not None:
        fresh = max(fresh - (cached or 0) - (written or 0), 0)
    searches = state.memory.pop("searches", 0)
    paid_for = [state.memory.get("speed"), f"{searches}_searches" if searches else None]
    usage = TokenUsage(
        response_id=None,
        model=first_text(told.get("model"), fields(told.get("info")).get("model"), state.sessions[""].model),
        input_tokens=fresh,
        cache_creation_5m_tokens=written,
        cache_creation_1h_tokens=None,
        cache_read_tokens=cached,
        output_tokens=used.get("output_tokens"),
        reasoning_tokens=used.get("reasoning_output_tokens"),
        context_window=window or None,
        speed=" ".join(filter(None, paid_for)) or None,
    )
    close_step(state)
    return [Draft(usage, at, last_step(state))]


def set_speed(tier: Any, state: LogState) -> None:
    """Note the speed of the requests from here on, which has a price."""
    state.memory["speed"] = _SPEEDS.get(tier, identifier(tier)) if isinstance(tier, str) else None


def bare_token_count(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a `token_count` among response items, with bare figures, as in some published fixtures."""
    used = _counts(payload)
    return _usage(used, None, state, at) if any(used.values()) else token_count(payload, state, at)


# -- tool calls ------------------------------------------------------------------------------------

OPEN_CALLS = 256
"""The most calls that are remembered until their results come."""


def draft_call(call_id: str | None, name: str, arguments: Json, state: LogState, at: int | None) -> list[Draft]:
    """Return a call in the current step, and remember it for its result; note what is billed apart from tokens."""
    step = open_step(state)
    if name == "web_search" and fields(arguments).get("type") in (None, "search"):  # not to open a page found
        state.memory["searches"] = state.memory.get("searches", 0) + 1
    elif name == "image_generation":
        state.unknown.append("usage/image_generation")
    if call_id:
        remember(state.memory.setdefault("calls", {}), call_id, step, OPEN_CALLS)
        note_poll(call_id, name, arguments, state)
        if name == SCRIPTING and isinstance(arguments, str):
            remember(state.memory.setdefault("scripts", {}), call_id, _shown_ends(arguments), _RUNNING)
    return [Draft(ToolCall(call_id, name, arguments), at, step)]


def call_item(call_id: str | None, name: str, arguments: Json, state: LogState, at: int | None) -> list[Draft]:
    """Return a call from a response item: from here on, Codex's events about tool runs become no events of ours."""
    state.memory["carried"] = True
    if call_id and call_id in state.memory.get("told", {}):
        return skip("call/double", state)
    return draft_call(call_id, name, arguments, state, at)


def calling(name: Callable[[Record], str], arguments: Callable[[Record], Json]) -> Handler:
    """Make a handler for a call of a tool."""

    def call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
        call_id = call_id_of(payload) or identifier(payload.get("id"))
        return call_item(call_id, name(payload), arguments(payload), state, at)

    return call


def arguments_of(payload: Record) -> Json:
    """Read arguments that are JSON in a string."""
    return decoded_arguments(payload.get("arguments"))


def web_search_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a web search: most logs lack its id, and the item never has its results."""
    state.memory["carried"] = True
    asked = payload.get("action") or payload.get("query")
    if state.memory.get("told", {}).pop(search_mark(asked), None):
        return skip("call/double", state)
    return draft_call(call_id_of(payload) or identifier(payload.get("id")), "web_search", asked, state, at)


def call_id_of(payload: Record) -> str | None:
    """Return the id that a call and its output share."""
    return identifier(payload.get("call_id"))


def tool_name(payload: Record) -> str:
    """Return the tool's name, with its namespace if it has one, as MCP tools do; in some fixtures in an object."""
    name = first_text(fields(payload.get("function")).get("name"), payload.get("name")) or "unknown"
    space = text(payload.get("namespace"))
    if space is None:
        return name
    joint = "" if space.endswith(("_", ".")) else "__" if space.startswith("mcp__") else "."
    return f"{space}{joint}{name}"


def decoded_arguments(value: Any) -> Json:
    """Decode arguments; a text that isn't a JSON object or list is returned unchanged."""
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]  # a value of a decoded record is JSON
    try:
        decoded = loads(value)
    except ValueError:
        return value
    return decoded if isinstance(decoded, (dict, list)) else value


def search_mark(asked: Any) -> str:
    """Return a substitute for the id of a web search, made of the query."""
    return f"search:{fingerprint(compact_json(asked))}"


# -- agents ----------------------------------------------------------------------------------------
# The sub-agent that a call started: the thread is named by the call's output, or by an event before it. Outputs of
# `spawn_agent` are `{agent_id, nickname}`, and from 0.145 `{task_name, nickname}` without an id; then
# `sub_agent_activity`, `collab_agent_spawn_end` or a TurnItem of these names the call and the thread.

_LONGEST_OUTPUT = 500
_STARTS = 64


def starting(handler: Handler) -> Handler:
    """Make a handler that also notes the thread which any form of event reports as started by a call."""

    def start(event: Record, state: LogState, at: int | None) -> Sequence[Said]:
        call_id = first_identifier(event.get("event_id"), event.get("call_id"), event.get("id"))
        receivers = items(event.get("receiver_thread_ids")) + items(event.get("receiverThreadIds"))
        threads = (event.get("new_thread_id"), event.get("agent_thread_id"), event.get("agentThreadId"), *receivers)
        thread = first_identifier(*threads)
        started = event.get("kind") in (None, "started") and event.get("tool") in (None, "spawnAgent", "spawn_agent")
        if call_id and thread and started and len(call_id) + len(thread) <= 400:
            remember(state.memory.setdefault("started", {}), call_id, thread, _STARTS)
        return handler(event, state, at)

    return start


def started_by(call_id: str | None, shown: str, state: LogState) -> str | None:
    """Return the thread that a call started; None if it started none."""
    noted: str | None = state.memory.get("started", {}).pop(call_id, None) if call_id else None
    if noted or len(shown) > _LONGEST_OUTPUT or not shown.startswith("{") or '"agent_id"' not in shown:
        return noted
    return identifier(fields(decoded_arguments(shown)).get("agent_id"))


# -- tool results ----------------------------------------------------------------------------------


def draft_result(call_id: str | None, reading: Reading, state: LogState, at: int | None) -> list[Said]:
    """Return a result in the step of its call; it ends the current response."""
    step = state.memory.get("calls", {}).pop(call_id, None) if call_id else None
    close_step(state)
    script = _script_of(call_id, state)
    files = state.memory.get("written", {}).pop(script or call_id, None)
    if script is not None:
        reading = _by_its_commands(reading, state.memory["scripts"][script])
        files = {} if files is None and reading.text.startswith("Script failed") else files
    if state.memory.get("stopping", {}).pop(call_id, None) and reading.exit_code and reading.outcome is Outcome.FAILED:
        reading = reading._replace(outcome=Outcome.INTERRUPTED)  # it ended after the model had sent it Ctrl-C
    shown, outcome, source, exit_code, duration_ms, *_ = reading
    agent = started_by(call_id, shown, state)
    result = ToolResult(call_id, shown, outcome, source, exit_code, duration_ms, agent)
    settled = settled_by_result(call_id, reading, state, at)
    return [Draft(result, at, step, reports=bool(settled), files=files), *settled]


def _script_of(call_id: str | None, state: LogState) -> str | None:
    """Return the script that a call is, or waits for."""
    memory = state.memory
    handles: list[str] = memory.get("polls", {}).get(call_id, [])
    asked = next((one for one, of in memory.get("running", {}).items() if handles and handles[0] in of), call_id)
    waited = handles and handles[0].startswith(CELL)
    script = asked if waited else call_id
    return script if script in memory.get("scripts", {}) else None


def output_item(payload: Record, state: LogState, at: int | None) -> list[Said]:
    """Read the output of a call, with what an earlier event reported about its end."""
    call_id = call_id_of(payload)
    if call_id and state.memory.get("told", {}).get(call_id) == "ended":
        return [*skip("output/double", state)]
    reading = by_status(read_output(payload.get("output")), payload.get("status"))
    end = state.memory.get("ends", {}).pop(call_id, None) if call_id else None
    found = draft_result(call_id, _with_end(reading, end) if end else reading, state, at)
    check_usage(payload.get("info"), _KNOWN, state)
    used = _counts(fields(payload.get("info")).get("last_token_usage"))  # as in some published fixtures
    return [*found, *(_usage(used, None, state, at) if any(used.values()) else [])]


def _with_end(reading: Reading, end: list[Any]) -> Reading:
    """Complete an output by its `*_end` event; an output that says its process is still running takes precedence."""
    outcome, exit_code, duration_ms = end
    if reading.outcome is Outcome.RUNNING:
        return reading
    if outcome:
        reading = reading._replace(outcome=Outcome(outcome), source=OutcomeSource.STRUCTURE)
    return reading._replace(
        exit_code=exit_code if reading.exit_code is None else reading.exit_code,
        duration_ms=reading.duration_ms if duration_ms is None else duration_ms,
    )


def tool_search_output(payload: Record, state: LogState, at: int | None) -> list[Said]:
    """Read the tools that a search found."""
    reading = by_status(Reading(compact_json(payload.get("tools"))), payload.get("status"))
    return draft_result(call_id_of(payload), reading, state, at)


def legacy_result(payload: Record, state: LogState, at: int | None) -> list[Said]:
    """Read `{type: tool_result, name, result: {stdout, stderr, exitCode}}`, as in some published fixtures."""
    given = payload.get("result")
    exit_code = whole(fields(given).get("exitCode"))
    if exit_code is None:
        return draft_result(call_id_of(payload), read_output(given), state, at)
    shown = "\n".join(texts([fields(given).get("stdout"), fields(given).get("stderr")]))
    return draft_result(call_id_of(payload), exited(shown, exit_code), state, at)


def image_call(payload: Record, state: LogState, at: int | None) -> list[Said]:
    """Read a generated picture: call and result in one item."""
    call_id = call_id_of(payload) or identifier(payload.get("id"))
    found = call_item(call_id, "image_generation", payload.get("revised_prompt"), state, at)
    return [*found, *draft_result(call_id, image_reading(payload), state, at)] if found else []


def image_reading(payload: Record) -> Reading:
    """Read a generated picture as a placeholder."""
    shown = image_placeholder("image/png", payload["result"]) if text(payload.get("result")) else ""
    return by_status(Reading(shown), payload.get("status"))


# -- tool events -----------------------------------------------------------------------------------
# Tool runs in events (`*_begin`, `*_end`, and the TurnItems that replace these). Once a response item has had a call,
# Codex's events about tool runs become no events of ours; `*_end` events before the output of their call supply its
# exit code, status and duration. After the output they only report the end of an execution that was running
# (`background`). Before any item has had a call (and so in logs that have only events) they are calls and results
# themselves, and a response item that then repeats such a call is left out.

_LONGEST_PATH, _MOST_PATHS = 1000, 200
_EVENT_ENDS = 64  # ends that wait for the output of their call


def _end_event(
    kind: str, name: Callable[[Record], str], arguments: Callable[[Record], Json], read: Callable[[Record], Reading]
) -> Handler:
    """Make a handler for an `*_end` event: details of an output to come, the end of a running execution, or a run."""

    def end_call(payload: Record, state: LogState, at: int | None) -> list[Said]:
        call_id, memory = _event_id(payload), state.memory
        told = memory.get("told", {}).get(call_id) if call_id else None
        if not call_id or told == "ended" or payload.get("source") == "user_shell":
            return [*skip(kind, state)]
        script = next(reversed(memory.get("scripts", {})), "")
        within = call_id not in calls_open(memory) and script in calls_open(memory)
        if "changes" in payload and read(payload).outcome is Outcome.OK:
            _note_written(script if within else call_id, payload["changes"], memory)
        if told is None and memory.get("carried") and not (within and "changes" not in payload):
            skip(kind, state)
            reading = read(payload)
            if call_id not in memory.get("calls", {}):  # its output may have said that it was running
                ends = call_id in memory.get("running", {}) and reading.outcome in _ENDS
                return [_settle(call_id, reading.outcome, state, at)] if ends else []
            outcome = None if reading.outcome is Outcome.UNKNOWN else str(reading.outcome)
            end = [outcome, reading.exit_code, reading.duration_ms]
            remember(memory.setdefault("ends", {}), call_id, end, _EVENT_ENDS)
            return []
        begun = [] if told else _told_call(call_id, name(payload), arguments(payload), "ended", state, at)
        if within:
            memory["scripts"][script] = None
            begun = [replace(draft, within=script) for draft in begun]
        memory["told"][call_id] = "ended"
        return [*begun, *draft_result(call_id, read(payload), state, at)]

    return end_call


def calls_open(memory: dict[str, Any]) -> set[str]:
    """Return the calls without a result, or with one that says that they are running."""
    return {*memory.get("calls", {}), *memory.get("running", {})}


def _note_written(call_id: str, changes: Any, memory: dict[str, Any]) -> None:
    """Note the files that a call, or a script, has patched."""
    named = changes if isinstance(changes, dict) else {fields(one).get("path"): one for one in items(changes)}
    moved = [fields(change).get("move_path") for change in named.values()]
    paths = [masked(path) for path in [*named, *moved] if isinstance(path, str) and 0 < len(path) <= _LONGEST_PATH]
    written = memory.get("written", {}).get(call_id, {}) | dict.fromkeys(paths[:_MOST_PATHS], "write")
    remember(memory.setdefault("written", {}), call_id, written, _RUNNING)


def _told_call(call_id: str, name: str, arguments: Json, how: str, state: LogState, at: int | None) -> list[Draft]:
    """Return a call that an event is the first to report; a later response item of it is a double."""
    remember(state.memory.setdefault("told", {}), call_id, how, OPEN_CALLS)
    return draft_call(call_id, name, arguments, state, at)


def _event_id(payload: Record) -> str | None:
    return first_identifier(payload.get("call_id"), payload.get("callId"), payload.get("id"))


def _end_reading(payload: Record) -> Reading:
    """Read how a run ended: by its flag, its status or its exit code."""
    exit_code = whole(payload.get("exit_code"))
    outcome = of_success(payload.get("success")) or of_status(payload.get("status"))
    if outcome is None and exit_code is not None:
        outcome = of_exit_code(exit_code)
    keys = ("aggregated_output", "stdout", "formatted_output", "stderr")
    shown = first_text(*map(payload.get, keys)) or content_text(payload.get("content_items") or payload.get("error"))
    source = OutcomeSource.STRUCTURE if outcome else None
    return Reading(shown, outcome or Outcome.UNKNOWN, source, exit_code, duration(payload.get("duration")))


def _mcp_reading(payload: Record) -> Reading:
    error = payload.get("error")
    told = {"Err": fields(error).get("message") or error} if error else None
    reading = mcp_result(payload.get("result") or told)
    return by_status(reading, payload.get("status"))._replace(duration_ms=duration(payload.get("duration")))


def _mcp_name(payload: Record) -> str:
    asked = fields(payload.get("invocation")) or payload
    return "__".join(texts([asked.get("server"), asked.get("tool")])) or "unknown"


def web_search_end(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a `web_search_end`: it comes before its item and may have another id, so they are matched by query."""
    asked, call_id = payload.get("action") or payload.get("query"), _event_id(payload)
    if state.memory.get("carried") or not call_id or not asked:
        return skip("web_search_end", state)
    remember(state.memory.setdefault("told", {}), search_mark(asked), "begun", OPEN_CALLS)
    return _told_call(call_id, "web_search", asked, "ended", state, at)


def image_view(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read an image that the model looked at, which is a call if no response item has the calls."""
    call_id = _event_id(payload)
    if not call_id or state.memory.get("carried"):
        return skip("view_image_tool_call", state)
    return _told_call(call_id, "view_image", payload.get("path"), "begun", state, at)


exec_end = _end_event(
    "exec_command_end", lambda _: "exec_command",
    lambda payload: {key: payload[key] for key in ("command", "cwd") if key in payload}, _end_reading,
)  # fmt: skip
patch_end = _end_event("patch_apply_end", lambda _: "apply_patch", methodcaller("get", "changes"), _end_reading)
mcp_end = _end_event(
    "mcp_tool_call_end", _mcp_name,
    lambda payload: (fields(payload.get("invocation")) or payload).get("arguments"), _mcp_reading,
)  # fmt: skip
dynamic_end = _end_event(
    "dynamic_tool_call_response",
    lambda payload: tool_name({"name": payload.get("tool"), "namespace": payload.get("namespace")}),
    methodcaller("get", "arguments"), _end_reading,
)  # fmt: skip
image_end = _end_event(
    "image_generation_end", lambda _: "image_generation", methodcaller("get", "revised_prompt"), image_reading
)
