"""The long text of an event or a reference, for people: where it comes from, then the text, unbroken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text

from agtrace.render.lists import offer
from agtrace.render.terminal import OUT, entry, left_out, plain, summary
from agtrace.text.next_call import NextCall
from agtrace.text.numbers import counted

_LINKS = (
    ("turn_index", "turn"), ("step_index", "step"), ("call_event", "its call: event"),
    ("result_event", "its result: event"), ("started_session", "started session"),
)  # fmt: skip
_TEXTS = ("text", "content", "arguments_json")


def text_head(answer: dict[str, Any]) -> None:
    """Print what the text is; for an event also its place, its linked events and what followed its failure."""
    data = answer["data"]
    summary(answer)
    links = ", ".join(f"{what} {plain(str(data[key]))}" for key, what in _LINKS if data.get(key) is not None)
    if links:
        OUT.print(Text(links, style="dim"))
    if "later" in data:
        OUT.print(Text(_later(data["later"], plain(data["session_id"])), style="green"))
    if "origin" in data:
        OUT.print(Text(f"line {data['origin']['line']} of its log", style="dim"))
    if "failures" in data:
        failures = data["failures"]
        OUT.print(Text(", ".join(_counts(failures)), style="red"))
        more = failures.get("more", {})
        for name in failures.get("names", []):
            entry("", Text(plain(name), style="red"))
        left_out("failed test", 0, more.get("names", 0))
        for line in failures.get("lines", []):
            entry(str(line["line"]), Text(plain(line["text"]), style="red"))
        left_out("failing line", 0, more.get("lines", 0))
    told_focus(answer)
    OUT.print()


_WHY = {
    "no telling words": "its words don't tell the lines apart",
    "saves too little": "that would leave out hardly anything",
    "diff": "a diff is shown whole",
}


def told_focus(answer: dict[str, Any]) -> None:
    """Print what became of a question, if there was one."""
    pruning = answer.get("pruning")
    if pruning is None:
        return
    if pruning["applied"]:
        said = (
            f"{pruning['kept_lines']:,} of {counted(pruning['total_lines'], 'line')}: those that the question is about"
        )
    else:
        why = pruning.get("summary") or (pruning.get("error") or pruning["reason"]).replace("_", " ")
        said = f"not reduced to what the question is about: {_WHY.get(why, why)}"
    OUT.print(Text(said, style="yellow"))


def text_body(answer: dict[str, Any]) -> None:
    """Print the text, or the chunk of it in this answer; chunks are joined without a break."""
    payload = answer["data"].get("payload", answer["data"])
    last = answer.get("chunk", {}).get("next_cursor") is None
    for key in _TEXTS:
        if key in payload:
            _write(payload[key], last=last)
            return
    arguments = payload.get("arguments", payload)
    if not isinstance(arguments, dict):
        _write(str(arguments), last=True)
        return
    for name, value in arguments.items():
        OUT.print(Text(f"{plain(name)}:", style="cyan"), Text(plain(str(value))), soft_wrap=True)


def text_rest(answer: dict[str, Any], next_calls: Sequence[NextCall]) -> None:
    """Print, below a digest or the lines of a question, the commands that show what it leaves out."""
    if answer.get("truncation", {}).get("reason") in ("digest", "focus"):
        OUT.print()
        offer(next_calls)


def _write(text: str, *, last: bool) -> None:
    OUT.file.write(plain(text) + ("\n" if last and not text.endswith("\n") else ""))


def _later(later: dict[str, Any], session_id: str) -> str:
    again = later.get("failed_again", 0)
    failed = f" failed {counted(again, 'more time')}, then" if again else ""
    changes, total = later.get("changes", []), later.get("total_changes")
    count = f"{total} changes, the last ones" if total else "changes"
    after = f" after {count} at {', '.join(map(str, changes))}" if changes else ""
    if "command" in later:
        after += f"{' and' if after else ' after'} the command at {later['command']}"
    what = "the same" if later["same_call"] else "a similar"
    return f"{what} call{failed} succeeded at {session_id}:{later['succeeded']}{after}"


def _counts(failures: dict[str, Any]) -> Iterator[str]:
    if failures.get("verdict"):
        yield plain(failures["verdict"])
    if failures.get("failed_tests"):
        yield counted(failures["failed_tests"], "failed test")
    yield counted(failures["failing_lines"], "failing line")
