"""One request through its states: check, run the tool, mask secrets, ask the pruner, answer."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import anyio
import anyio.to_thread
import mcp_types as types
from agtrace_indexer.redact import redact
from agtrace_schema.answers import Pruning
from agtrace_schema.model import dump
from agtrace_schema.requests import Mode
from mcp.shared.exceptions import MCPError
from msgspec import Struct, field

from agtrace.answers.telemetry.recorder import Origin
from agtrace.answers.telemetry.store import Request
from agtrace.pruning.arguments import Arguments, FieldError, InvalidArguments, parse
from agtrace.pruning.configuration import Configured
from agtrace.pruning.output import Output, ToolContext, ToolFailed
from agtrace.pruning.pruners import NONE, PrunerFailed, Pruners, endpoint_label
from agtrace.pruning.states import TERMINAL, Log, Req, StateMachine
from agtrace.pruning.tools import TOOLS
from agtrace.settings.limits import limits, limits_for, use_limits
from agtrace.settings.model import Pruner
from agtrace.shaping.digest import Limits, cut_line, gather, of_mode
from agtrace.shaping.focusing import focused
from agtrace.shaping.shape import estimated_tokens
from agtrace.text.chunking import escaped_size
from agtrace.text.failing_lines import read
from agtrace.text.focus import Focused, Unfocused, is_diff
from agtrace.text.kept_texts import REFERENCE
from agtrace.text.lines import without_controls

_NOTHING = {"bash": "(no output)", "grep": "(no matches)"}
"""What stands for an empty output: a model may take an empty answer for a fault."""

MOST_AT_WORK = 16
"""The most requests at work at a time, from the tool to the answer: each may hold an output of some megabytes."""

_ANSWERED = (Req.RESPOND_RAW, Req.RESPOND_PRUNED)


class AppState(Struct, frozen=True):
    """What all requests of a server share."""

    configured: Configured
    log: Log
    context: ToolContext
    pruners: Pruners = field(default_factory=Pruners)
    places: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(MOST_AT_WORK))


class RequestTrace:
    """A request on its way: its id, its state, and what it has come to."""

    def __init__(self, log: Log, tool: str = "") -> None:
        self.id = uuid4().hex[:12]
        self.tool = tool if tool in TOOLS else ""  # any other name may be a text of the user's
        self.machine = StateMachine[Req](Req.RECEIVED, log)
        self._begun = time.monotonic()

    def go(self, condition: str, **fields: Any) -> None:
        """Make the transition of a condition; its log events get these fields, the request's id and its tool."""
        self.machine.go(condition, **{"request_id": self.id, "tool": self.tool or None, **fields})

    @property
    def is_over(self) -> bool:
        """Whether the request has come to its answer."""
        return self.machine.state in TERMINAL or self.machine.state in _ANSWERED

    @property
    def ms(self) -> float:
        """The milliseconds since the request began."""
        return round(1000 * (time.monotonic() - self._begun), 1)

    def written(self) -> None:
        """Note that the answer was written to the client."""
        if self.machine.state in _ANSWERED:
            self.go("written", mode="pruned" if self.machine.state is Req.RESPOND_PRUNED else "raw")

    def unwritten(self, error: str) -> None:
        """Note that the answer couldn't be written."""
        if self.machine.state in _ANSWERED:
            self.go("unwritten", error=error)

    def left(self) -> None:
        """Note that the client left before there was an answer."""
        self.unwritten("the client left")
        if self.machine.state not in TERMINAL:
            self.go("client left", error="the client left")


async def answered(app: AppState, trace: RequestTrace, arguments: Mapping[str, Any]) -> types.CallToolResult:
    """Return the answer to a request, which is written and noted by the caller.

    The settings that are in force now hold until it is done.

    Raises `MCPError` for invalid arguments and for defects; nothing of an exception's text reaches the client.
    """
    try:
        with use_limits(limits_for(app.configured.settings, trace.tool)):
            return await _passed(app, trace, arguments)
    except MCPError:
        raise
    except anyio.get_cancelled_exc_class():
        trace.left()
        raise
    except Exception:  # noqa: BLE001  # the boundary: a defect ends this request and no other
        trace.go("defect", stack=redact(traceback.format_exc()))
        error = f"internal error in {trace.tool}; request {trace.id} in the server's log says more"
        raise MCPError(types.INTERNAL_ERROR, error, {"request_id": trace.id}) from None


async def _passed(app: AppState, trace: RequestTrace, given: Mapping[str, Any]) -> types.CallToolResult:
    trace.go("accepted")
    try:
        if not trace.tool:
            raise InvalidArguments([FieldError("name", f"there are only {', '.join(TOOLS)}")])
        wanted = parse(TOOLS[trace.tool].arguments, given)
    except InvalidArguments as error:
        errors = [{"field": redact(one.field), "message": redact(one.message)} for one in error.errors]
        known = {"name", "arguments", *(TOOLS[trace.tool].arguments.model_fields if trace.tool else [])}
        named = [one["field"] if one["field"] in known else "(unknown)" for one in errors]
        trace.go("invalid", validation_errors=named)
        message = "; ".join(one["message"] for one in errors)
        raise MCPError(types.INVALID_PARAMS, message, {"request_id": trace.id, "errors": errors}) from None
    trace.go("valid")
    async with app.places:
        try:
            output = await TOOLS[trace.tool].run(wanted, app.context)
        except ToolFailed as failure:
            told = await anyio.to_thread.run_sync(_failure_answer, app, trace, wanted, failure)
            trace.go(
                "failed" if failure.timeout_ms is None else "timed out",
                error=failure.error_code if failure.exit_code is None else f"exit code {failure.exit_code}",
                error_code=failure.error_code,
                exit_code=failure.exit_code,
                duration_ms=round(failure.output.duration_ms, 1) if failure.output else trace.ms,
                timeout_ms=failure.timeout_ms,
            )
            return told
        text = await anyio.to_thread.run_sync(_masked, output)
        trace.go("done", duration_ms=round(output.duration_ms, 1), bytes=len(text.encode()))
        trace.go("captured")
        pruning, pruned = await _pruned(app, trace, wanted, text, output.first_line)
        return await anyio.to_thread.run_sync(_answer, app, trace, wanted, output, text, pruning, pruned)


def _masked(output: Output) -> str:
    """Return what a tool gave without secrets; a private key that begins before it is masked, too."""
    return redact(f"{output.inside}\n{output.text}" if output.inside else output.text)


def _failure_answer(
    app: AppState, trace: RequestTrace, request: Arguments, failure: ToolFailed
) -> types.CallToolResult:
    """Return the answer of a tool that failed, with what it gave until then.

    A question to that is answered by the built-in pruner: an agent often asks why something failed.
    """
    text, message = redact(failure.output.text if failure.output else ""), redact(failure.message)
    room, question = limits_of(request.mode), request.context_focus_question
    pruning = Pruning(reason="no_question" if question is None else "not_prunable")
    given = fitted(text, room)
    if question is not None and text:
        found = focused(text, redact(question), min(room.chars, room.budget))
        if isinstance(found, Focused):
            given = FittedText(found.text, found.kept_lines, False)
            kept, total = found.kept_lines, found.total_lines
            pruning = Pruning(attempted=True, applied=True, kept_lines=kept, total_lines=total)
    kept_id = app.context.kept.keep(text) if pruning.applied or given.is_cut else None
    given = FittedText(f"{message}\n{given.text}" if text else message, given.shown_lines, given.is_cut)
    error = {"code": failure.error_code, "message": message}
    return result(trace, given, failure.output, text, pruning, kept_id, error)


def _ineligible(settings: Pruner, question: str | None, text: str) -> tuple[str, str] | None:
    """Return why a text isn't pruned, in the order of the specification; None if it may be.

    That is the condition of the transition, and the reason that the answer gives.
    """
    if question is None:
        return "no question", "no_question"
    if not settings.enabled or settings.endpoint == NONE:
        return "disabled or unconfigured", "disabled_or_unconfigured"
    if len(text.encode()) > settings.max_prune_input_bytes:
        return "input too large", "input_too_large"
    return ("not prunable", "not_prunable") if not text.strip() or is_diff(text) else None


async def _pruned(
    app: AppState, trace: RequestTrace, request: Arguments, text: str, first_line: int
) -> tuple[Pruning, str | None]:
    settings, question = limits().settings.pruner, request.context_focus_question
    skipped = _ineligible(settings, question, text)
    if skipped is not None:
        condition, reason = skipped
        trace.go(condition)
        return Pruning(reason=reason), None
    assert question is not None
    begun = time.monotonic()

    def ms() -> float:
        return round(1000 * (time.monotonic() - begun), 1)

    trace.go("eligible", endpoint=endpoint_label(settings.endpoint))
    try:
        found = await app.pruners.ask(settings, text, await anyio.to_thread.run_sync(redact, question), first_line)
    except PrunerFailed as failure:
        told = {"reason": failure.failure, "error": failure.summary, "status": failure.status}
        trace.go(failure.failure, **told, duration_ms=ms(), timeout_ms=settings.timeout_ms)
        trace.go("fallback")
        return Pruning(attempted=True, fallback=True, error=failure.failure, summary=failure.summary), None
    if isinstance(found, Unfocused):
        trace.go("nothing left out", duration_ms=ms(), pruned_bytes=len(text.encode()))
        summary = found.reason.replace("_", " ")
        return Pruning(attempted=True, reason="not_prunable", summary=summary), None
    trace.go("pruned", duration_ms=ms(), pruned_bytes=len(found.text.encode()))
    total = _lines(text)
    return Pruning(attempted=True, applied=True, kept_lines=min(found.kept_lines, total), total_lines=total), found.text


def _answer(
    app: AppState,
    trace: RequestTrace,
    request: Arguments,
    output: Output,
    text: str,
    pruning: Pruning,
    pruned: str | None,
) -> types.CallToolResult:
    room = limits_of(request.mode)
    if pruned is None:
        given = fitted(text, room, first_line=output.first_line, failing=trace.tool != "grep")
        given = given if given.text else FittedText(_NOTHING.get(trace.tool, ""), 0, False)
    else:
        given = fitted_pruned(redact(pruned), room)
    kept = app.context.kept.keep(text, output.first_line) if pruned is not None or given.is_cut else None
    return result(trace, given, output, text, pruning, kept)


def _lines(text: str) -> int:
    return len(text.removesuffix("\n").split("\n")) if text else 0


# -- answers: the text itself, then one line of JSON about it --------------------------------------

_OPENED = "`read` with the ref below as file_path, from start_line={gap} to end_line={end}, shows them, in parts"

_OPENED_OF_PRUNED = "`read` with the ref below as file_path shows the whole output"

USUAL_WIDTH = 2_000
"""Characters of a line unless the request names a mode: an agent may need all of a line to edit it."""


class FittedText(Struct, frozen=True):
    """A text as it fits into an answer."""

    text: str
    shown_lines: int
    is_cut: bool


def limits_of(mode: Mode | None) -> Limits:
    """Return the limits of a mode; without one, those of `standard` with longer lines."""
    return of_mode("standard")._replace(width=USUAL_WIDTH) if mode is None else of_mode(mode)


def fitted(text: str, limits: Limits, *, first_line: int = 1, failing: bool = True) -> FittedText:
    """Return a text within limits: its head and tail, and its failing lines; what is left out is named."""
    lines = text.removesuffix("\n").split("\n")
    told = read(lines) if failing else (None for _ in lines)
    found = gather(zip(lines, told, strict=False), limits, first=first_line).digest(limits.budget, _OPENED)
    return FittedText(found.text if found.shortened else text, found.lines, found.shortened)


def fitted_pruned(text: str, limits: Limits) -> FittedText:
    """Return a pruned text within limits: long lines cut, and of too many those that report failures, head and tail."""
    lines = [cut_line(line, limits.width) for line in text.split("\n")]
    whole = "\n".join(lines)
    if len(lines) <= limits.lines and len(whole) <= limits.chars and escaped_size(whole) <= limits.budget:
        return FittedText(whole, len(lines), False)
    found = gather(zip(lines, read(lines), strict=False), limits).digest(limits.budget, _OPENED_OF_PRUNED)
    return FittedText(found.text, found.lines, True)


def result(
    trace: RequestTrace,
    given: FittedText,
    output: Output | None,
    text: str,
    pruning: Pruning,
    kept_id: str | None,
    error: Mapping[str, str] | None = None,
) -> types.CallToolResult:
    """Return the answer to a request, as the protocol has it: `given` is what is shown of `text`."""
    captured = output.truncated if output else None
    about = {
        "request_id": trace.id,
        "tool": trace.tool,
        "error": error,
        "exit_code": output.exit_code if output else None,
        "duration_ms": round(output.duration_ms, 1) if output else None,
        "stdout_bytes": output.stdout_bytes if output else 0,
        "stderr_bytes": output.stderr_bytes if output else 0,
        "raw_bytes": len(text.encode()),
        "truncation": {"shown_lines": given.shown_lines, "total_lines": _lines(text)} if given.is_cut else None,
        "captured": captured._asdict() if captured else None,
        "pruning": dump(pruning),
        "ref": f"{REFERENCE}{kept_id}" if kept_id else None,
    }
    line = json.dumps({name: value for name, value in about.items() if value is not None}, ensure_ascii=False)
    texts = [types.TextContent(type="text", text=text) for text in (without_controls(given.text), line)]
    return types.CallToolResult(content=list(texts), is_error=error is not None)


# -- telemetry -------------------------------------------------------------------------------------


def request_of(answer: types.CallToolResult, origin: Origin, *, tool: str, at: float, ms: float) -> Request:
    """Return the record of an answer; `at` is when it was given, in seconds since 1970 UTC."""
    texts = [block.text for block in answer.content if isinstance(block, types.TextContent)]
    about: Mapping[str, Any] = json.loads(texts[-1])
    size = sum(len(text.encode()) for text in texts)
    return Request(
        at=round(1000 * at),
        tool=tool,
        request_id=about["request_id"],
        client=origin.client,
        client_version=origin.client_version,
        protocol=origin.protocol,
        transport=origin.transport,
        outcome=about["error"]["code"] if "error" in about else "ok",
        ms=round(ms, 2),
        tokens=estimated_tokens(sum(map(len, texts))),
        asked_bytes=max(size, about["raw_bytes"]),
        bytes=size,
        items=None,
        attempt=1,
        paginated=False,
        chunked=False,
        summarized=False,
        pruned=about["pruning"]["applied"],
        cut="truncation" in about,
        index_state="ready",
        connection=origin.connection_digest,
    )
