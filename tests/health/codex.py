"""Stories as rollouts of Codex 0.139: every text twice, calls and outputs as items, figures as running totals."""

from __future__ import annotations

import json
from typing import Any

from tests.health.stories import Execution, Remark, Response, Spoken, Tokens
from tests.health.writing import CWD, Log, counted, results, stopped_by_human

_WINDOW = 258_400
_PROCESS_TOOLS = ("exec_command", "write_stdin")


def write(log: Log) -> str:
    """Write a session; return its path below the home."""
    writer = _Writer(log)
    writer.begin()
    for scene, following, tokens in counted(log.story):
        if isinstance(scene, Remark):
            writer.remark(scene)
            continue
        writer.response(scene, tokens, goes_on=isinstance(following, Response))
        if stopped_by_human(scene, following):
            writer.aborted(scene.ended_at)
    writer.complete(log.story.seconds)
    day, time = log.time(0)[:10], log.time(0)[:19].replace(":", "-")
    return f"codex/sessions/{day.replace('-', '/')}/rollout-{time}-{log.session}.jsonl"


class _Writer:
    """The lines of one rollout."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.total: dict[str, int] = {}
        self.turn: str | None = None
        self.answer: str | None = None

    def begin(self) -> None:
        """Write the line with which every rollout begins."""
        meta = {
            "id": self.log.session, "timestamp": self.log.time(0), "cwd": CWD, "originator": "codex-tui",
            "cli_version": "0.139.0", "source": "cli", "thread_source": "user", "model_provider": "openai",
        }  # fmt: skip
        self._line("session_meta", 0, **meta)

    def remark(self, remark: Remark) -> None:
        """Write a line that isn't the model's."""
        at, text = remark.at, remark.text
        if remark.kind == "user":
            self._open_turn(at)
            self._message("user", at, text)
            self._event("user_message", at, message=text, images=[], local_images=[], text_elements=[])
        elif remark.kind == "inject":
            self._message("developer", at, text)
        elif remark.kind == "interrupt":
            self.aborted(at)
        elif remark.kind == "compaction":
            self._compaction(at, by_human=text == "manual")
        elif remark.kind == "review":
            self._review(at, text.splitlines())
        else:
            self._event("error", at, message=text, codex_error_info="other")

    def response(self, response: Response, tokens: Tokens | None, *, goes_on: bool) -> None:
        """Write the items of a response, the results, and its figures."""
        calls = {id(execution): f"call_{self.log.name()}" for execution in response.executions}
        phase = "commentary" if goes_on or response.executions else "final_answer"
        for part in response.parts:
            if isinstance(part, Execution):
                self._call(part, calls[id(part)])
            else:
                self._spoken(part, phase)
        for execution in results(response):
            self._output(execution, calls[id(execution)])
        if tokens:
            self._figures(response.ended_at, tokens)

    def aborted(self, at: float) -> None:
        """Write that the human stopped the turn."""
        self._event("turn_aborted", at, turn_id=self.turn, reason="interrupted")
        said = "The user interrupted the previous turn on purpose."
        self._message("user", at, f"<turn_aborted>\n{said}\n</turn_aborted>")
        self.turn = None

    def complete(self, at: float) -> None:
        """Write the end of a turn, if one was open and the model had the last word."""
        if self.turn and self.answer is not None:
            self._event("task_complete", at, turn_id=self.turn, last_agent_message=self.answer)
        self.turn = self.answer = None

    def _line(self, kind: str, at: float, **payload: Any) -> None:
        self.log.records.append({"timestamp": self.log.time(at), "type": kind, "payload": payload})

    def _event(self, kind: str, at: float, **more: Any) -> None:
        self._line("event_msg", at, type=kind, **more)

    def _item(self, kind: str, at: float, **more: Any) -> None:
        self._line("response_item", at, type=kind, **more)

    def _message(self, role: str, at: float, text: str, **more: Any) -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        self._item("message", at, role=role, content=[{"type": kind, "text": text}], **more)

    def _open_turn(self, at: float) -> None:
        self.complete(at)
        self.turn, window = self.log.uuid(), self.log.story.window or _WINDOW
        self._event("task_started", at, turn_id=self.turn, model_context_window=window)
        policy = {"approval_policy": "on-request", "sandbox_policy": {"type": "workspace-write"}}
        self._line(
            "turn_context", at, turn_id=self.turn, cwd=CWD, model=self.log.story.model, effort="medium", **policy
        )

    def _compaction(self, at: float, *, by_human: bool) -> None:
        if by_human:
            self._open_turn(at)
        kept = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Summary of the work."}]}
        self._line("compacted", at, message="", replacement_history=[kept])
        self._event("context_compacted", at)
        if by_human:
            self._event("task_complete", at, turn_id=self.turn, last_agent_message=None)
            self.turn = None

    def _review(self, at: float, problems: list[str]) -> None:
        self._open_turn(at)
        self._event(
            "entered_review_mode", at, target={"type": "uncommittedChanges"}, user_facing_hint="current changes"
        )
        self._event("user_message", at, message="Review the current code changes.", images=[])
        said = "\n".join(problems) or "No problems."
        action = f"<user_action>\n  <action>review</action>\n  <results>\n  {said}\n  </results>\n</user_action>\n"
        self._message("user", at, action)
        found = [{"title": f"[P2] {problem}", "body": f"{problem}.", "priority": 2} for problem in problems]
        verdict = "patch is incorrect" if found else "patch is correct"
        self._event("exited_review_mode", at, review_output={"findings": found, "overall_correctness": verdict})
        self._event("agent_message", at, message=said)
        self._message("assistant", at, said)
        self._event("task_complete", at, turn_id=self.turn, last_agent_message=None)
        self.turn = self.answer = None

    def _spoken(self, part: Spoken, phase: str) -> None:
        if part.kind == "think":
            self._event("agent_reasoning", part.at, text=part.text)
            summary = [{"type": "summary_text", "text": part.text}]
            self._item("reasoning", part.at, summary=summary, content=None, encrypted_content="gAAAAtqEJb9w")
        else:
            self._event("agent_message", part.at, message=part.text, phase=phase)
            self._message("assistant", part.at, part.text, phase=phase)
            self.answer = part.text

    def _call(self, execution: Execution, call_id: str) -> None:
        self.answer, at = None, execution.at
        if execution.kind in ("edit", "write"):
            patch = _patch(execution)
            self._item("custom_tool_call", at, status="completed", call_id=call_id, name="apply_patch", input=patch)
        elif execution.kind == "tool":
            given = json.dumps(execution.arguments, ensure_ascii=False)
            self._item("function_call", at, name=execution.subject, arguments=given, call_id=call_id)
        else:
            asked = {"cmd": _command(execution), "workdir": CWD, "yield_time_ms": 10_000, "max_output_tokens": 4000}
            given = json.dumps(asked, ensure_ascii=False)
            self._item("function_call", at, name="exec_command", arguments=given, call_id=call_id)

    def _output(self, execution: Execution, call_id: str) -> None:
        ended = execution.ended
        assert ended
        kind, seconds = "function_call_output", ended.at - execution.at
        if execution.kind in ("edit", "write"):
            kind = "custom_tool_call_output"
        if ended.how == "refused":
            output = (
                "patch rejected by user" if execution.kind in ("edit", "write") else "exec command rejected by user"
            )
        elif ended.how == "interrupted":
            output = f"aborted by user after {seconds:.1f}s"
        else:
            code = (ended.exit_code or 1) if ended.how == "failed" else 0
            output = self._output_text(execution, ended.text, code, seconds, call_id)
        self._item(kind, ended.at, call_id=call_id, output=output)

    def _output_text(self, execution: Execution, text: str, code: int, seconds: float, call_id: str) -> str:
        if execution.kind in ("edit", "write"):
            return f"Exit code: {code}\nWall time: {seconds:.1f} seconds\nOutput:\n{text}"
        if execution.kind != "tool" or execution.subject in _PROCESS_TOOLS:
            chunk, running = self.log.name(6), text.startswith("Process running with session ID")
            state, text = text.partition("\n")[::2] if running else (f"Process exited with code {code}", text)
            count = len(text) // 4
            head = f"Chunk ID: {chunk}\nWall time: {seconds:.4f} seconds\n{state}\nOriginal token count: {count}"
            return f"{head}\nOutput:\n{text}"
        if "__" in execution.subject:
            self._mcp_end(execution, text, code, call_id)
            return text
        return f"tool call error: {text}" if code else text

    def _mcp_end(self, execution: Execution, text: str, code: int, call_id: str) -> None:
        """Write the event that reports the end of an MCP tool."""
        server, _, tool = execution.subject.removeprefix("mcp__").partition("__")
        asked = {"server": server, "tool": tool, "arguments": execution.arguments}
        given = {"Ok": {"content": [{"type": "text", "text": text}], "isError": bool(code)}}
        at = execution.ended.at if execution.ended else execution.at
        self._event("mcp_tool_call_end", at, call_id=call_id, invocation=asked, result=given)

    def _figures(self, at: float, tokens: Tokens) -> None:
        last = {
            "input_tokens": tokens.whole,
            "cached_input_tokens": tokens.cached,
            "cache_write_input_tokens": tokens.written,
            "output_tokens": tokens.out,
            "total_tokens": tokens.whole + tokens.out,
        }
        self.total = {name: self.total.get(name, 0) + number for name, number in last.items()}
        window = self.log.story.window or _WINDOW
        info = {"total_token_usage": self.total, "last_token_usage": last, "model_context_window": window}
        self._event("token_count", at, info=info, rate_limits=None)


def _command(execution: Execution) -> str:
    if execution.kind == "run":
        return execution.subject
    if execution.kind == "grep":
        return f"rg -n {json.dumps(execution.subject, ensure_ascii=False)}"
    if execution.part:
        return f"sed -n '{execution.part[0]},{execution.part[1]}p' {execution.subject}"
    return f"cat {execution.subject}"


def _patch(execution: Execution) -> str:
    what = (
        f"*** Update File: {execution.subject}\n@@"
        if execution.kind == "edit"
        else f"*** Add File: {execution.subject}"
    )
    return "\n".join(("*** Begin Patch", what, *execution.changes, "*** End Patch"))
