"""The health of a session, for people."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from agtrace.render.terminal import OUT, STYLES, fills, footer, heading, indented, left_out, plain, summary
from agtrace.sessions.landmarks import said
from agtrace.text.lines import end_of_path
from agtrace.text.next_call import command
from agtrace.text.numbers import seconds, short

_BAR = 20
_SPENT = (
    ("tools", "tools_seconds"),
    ("model", "model_seconds"),
    ("human", "human_seconds"),
    ("unknown", "unknown_seconds"),
)
_SHARES = (("turn", "turns"), ("tool", "tools"), ("file", "files"), ("sub-agent", "agents"))
_LONGEST_NAME = 60


def analysis(answer: dict[str, Any]) -> None:
    """Print a session's score with its parts, how it ended, its findings with their events, time and tokens."""
    data = answer["data"]
    summary(answer)
    if "insights" not in data:  # the answer had to be too small for it
        OUT.print(Text(", ".join(f"{name} {count}" for name, count in data.items()), style="dim"))
        return
    _score(data)
    heading("Findings")
    for insight in data["insights"]:
        _finding(data["session_id"], insight)
    if not data["insights"]:
        OUT.print(indented(Text("Nothing stood out.")))
    left_out("finding", len(data["insights"]), data.get("total_insights", 0))
    _spent(data.get("time", {}))
    _token_shares(data.get("token_shares", {}))
    _agents(data)
    if data.get("total_insights"):
        OUT.print()
        every = plain(command("read", answer["artifact_ref"]))
        OUT.print(Text(f"every finding: {every}", style="dim"), soft_wrap=True)
    footer(answer)


def _score(data: dict[str, Any]) -> None:
    """Print how the session ended, and what each part of the score lost."""
    OUT.print(Text(plain(data["ending"]["reason"]), style="italic"))
    if "done" in data:
        OUT.print(Text(f"Done: {plain(said(data['done']))}", style="dim"))
    if "unscored" in data:
        OUT.print(Text(f"No score: {plain(data['unscored'])}", style="dim"))
    if "own_score" in data:
        OUT.print(Text(f"Without its sub-agents: {data['own_score']} of 100", style="dim"))
    for part in data["parts"]:
        kept = round(_BAR * (part["of"] - part["lost"]) / part["of"])
        line = Text(f"{part['part']:<12}")
        line.append("█" * kept, style="green").append("░" * (_BAR - kept), style="red")
        line.append(f" {-part['lost'] or 0:>4}  ", style="bold" if part["lost"] else "dim")
        OUT.print(indented(line.append(plain(part["why"]), style="dim")))


def _finding(session_id: str, insight: dict[str, Any]) -> None:
    """Print a finding, and below it the events that show it."""
    turn = f" (turn {insight['turn_index']})" if "turn_index" in insight else ""
    where = insight.get("session_id", session_id)
    grid = Table.grid(padding=(0, 1, 0, 0), expand=fills())
    grid.add_column(no_wrap=True, width=8)
    grid.add_column(ratio=1, overflow="fold")
    severity = Text(insight["severity"], style=STYLES[insight["severity"]])
    grid.add_row(severity, Text(f"{plain(insight['message'])}{turn}"))
    for evidence in insight["evidence"]:
        place = Text(f"{where}:{evidence['event_index']}  ", style="bold")
        grid.add_row("", place.append(plain(evidence["quote"]), style="dim not bold"))
    OUT.print(indented(grid))


def _spent(time: dict[str, int]) -> None:
    """Print the time spent in tools, in the model and waiting for the human."""
    spent = [f"{label} {seconds(time[name])}" for label, name in _SPENT if time.get(name)]
    if spent:
        heading("Time")
        OUT.print(indented(Text(" · ".join(spent))))


def _token_shares(shares: dict[str, list[dict[str, Any]]]) -> None:
    """Print where the tokens went."""
    found = [(label, shares[name]) for label, name in _SHARES if shares.get(name)]
    if not found:
        return
    heading("Tokens")
    for label, largest in found:
        named = (f"{end_of_path(plain(share['name']), _LONGEST_NAME)} {short(share['tokens'])}" for share in largest)
        OUT.print(indented(Text(f"{label:<10}", style="dim").append(" · ".join(named), style="not dim")))


def _agents(data: dict[str, Any]) -> None:
    agents = data.get("agents", [])
    if not agents:
        return
    heading("Sub-agents")
    for agent in agents:
        score = "no score" if "score" not in agent else f"{agent['score']} of 100"
        failed = f"{agent['failed_calls']:,}" if "failed_calls" in agent else "unknown how many"
        told = f"{score}, {failed} of {agent['tool_calls']:,} calls failed"
        OUT.print(indented(Text(f"{plain(agent['session_id'])}  ", style="bold").append(told, style="not bold")))
    left_out("sub-agent", len(agents), data.get("total_agents", 0))
