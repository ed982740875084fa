"""The thinking of a session, for people."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from agtrace.render.terminal import OUT, footer, indented, plain, summary, when


def reasoning(answer: dict[str, Any]) -> None:
    """Print thoughts under the headings of their turns, each with its event and what the model did next."""
    summary(answer)
    turn = object()
    for thought in answer["data"].get("chain", []):
        if thought.get("turn_index") != turn:
            turn = thought.get("turn_index")
            OUT.print(Text("before the first turn" if turn is None else f"turn {turn}", style="bold"))
        OUT.print(indented(Text(_place_of(thought), style="dim")))
        OUT.print(indented(Text(plain(thought["text"]))))
        if "chars" in thought:
            OUT.print(indented(Text(f"({thought['chars']:,} characters in total)", style="dim")))
        if "next" in thought:
            OUT.print(indented(Text(f"then {plain(thought['next'])}", style="cyan")))
        OUT.print()
    footer(answer)


def _place_of(thought: dict[str, Any]) -> str:
    step = f", step {thought['step_index']}" if "step_index" in thought else ""
    copied = "  copied" if thought.get("copied") else ""
    return f"event {thought['event_index']}{step}  {when(thought.get('timestamp'))}{copied}".rstrip()
