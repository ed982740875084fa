"""One event for people: where it stands, and its text, unbroken over its chunks."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from agtrace.render.terminal import OUT, plain, summary


def event_head(answer: dict[str, Any]) -> None:
    """Where an event stands and what it is linked to."""
    data = answer["data"]
    summary(answer)
    links = [
        f"{what} {data[key]}"
        for key, what in (("turn_index", "turn"), ("step_index", "step"), ("call_event", "its call: event"),
                          ("result_event", "its result: event"))
        if data.get(key) is not None
    ]  # fmt: skip
    origin = data["origin"]
    OUT.print(Text(", ".join(links), style="dim"))
    OUT.print(Text(f"{plain(origin['file'])}:{origin['line']}", style="dim"), soft_wrap=True)
    OUT.print()


def event_body(answer: dict[str, Any]) -> None:
    """The text of an event, or the chunk of it that the answer holds; chunks follow each other unbroken."""
    payload = answer["data"]["payload"]
    last = answer.get("chunk", {}).get("next_cursor") is None
    for key in ("text", "content", "arguments_json"):
        if key in payload:
            _write(payload[key], last=last)
            return
    arguments = payload.get("arguments", payload)
    if not isinstance(arguments, dict):
        _write(str(arguments), last=True)
        return
    for name, value in arguments.items():
        OUT.print(Text(f"{plain(name)}:", style="cyan"), Text(plain(str(value))), soft_wrap=True)


def _write(text: str, *, last: bool) -> None:
    OUT.file.write(plain(text) + ("\n" if last and not text.endswith("\n") else ""))
