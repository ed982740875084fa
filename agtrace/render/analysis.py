"""The health of a session for people."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from agtrace.render.terminal import OUT, STYLES, footer, indented, plain, summary


def analysis(answer: dict[str, Any]) -> None:
    """A session's score and findings, each with the events that show it."""
    data = answer["data"]
    summary(answer)
    for insight in data.get("insights", []):
        line = Text(f"{insight['severity']:<9}", style=STYLES[insight["severity"]])
        turn = f" (turn {insight['turn_index']})" if "turn_index" in insight else ""
        line.append(f"{plain(insight['message'])}{turn}", style="")
        OUT.print(line)
        for evidence in insight["evidence"]:
            place = Text(f"{data['session_id']}:{evidence['event_index']}  ", style="bold")
            OUT.print(indented(place.append(plain(evidence["quote"]), style="dim not bold")))
    if not data.get("insights"):
        OUT.print("Nothing stands out.")
    footer(answer)
