"""What went wrong in a session, and two sessions side by side, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.table import Table
from rich.text import Text

from agtrace.render.terminal import (
    OUT,
    STYLES,
    compact,
    figure,
    fills,
    footer,
    heading,
    indented,
    left_out,
    plain,
    summary,
)
from agtrace.sessions.landmarks import deeds_phrase
from agtrace.text.lines import end_of_path
from agtrace.text.next_call import command
from agtrace.text.numbers import dollars, how_made, seconds, short
from agtrace.times import when

_BAR = 20
_SPENT = (
    ("tools", "tools_seconds"),
    ("model", "model_seconds"),
    ("human", "human_seconds"),
    ("unknown", "unknown_seconds"),
)
_SHARES = (("turn", "turns"), ("tool", "tools"), ("file", "files"), ("sub-agent", "agents"))
_FIGURES = (
    ("api_errors", "errors of the model's API, retried ones included"),
    ("unanswered_calls", "calls without a result"),
    ("compactions", "compactions"),
)
_LONGEST_NAME = 60


def analysis(answer: dict[str, Any]) -> None:
    """Print a session's score with its parts, how it ended, its findings with their events, time and tokens."""
    data = answer["data"]
    summary(answer)
    if "insights" not in data:  # the answer had to be too small for it
        OUT.print(Text(", ".join(f"{name} {count}" for name, count in data.items()), style="dim"))
        return
    OUT.print(Text(plain(data["ending"]["reason"]), style="italic"))
    if "done" in data:
        OUT.print(Text(f"Done: {plain(deeds_phrase(data['done']))}", style="dim"))
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
    heading("Findings")
    for number, insight in enumerate(data["insights"], 1):
        _finding(data["session_id"], number, insight)
    if not data["insights"]:
        OUT.print(indented(Text("Nothing stood out.")))
    left_out("finding", len(data["insights"]), data.get("total_insights", 0))
    time = data.get("time", {})
    spent = [f"{label} {seconds(time[name])}" for label, name in _SPENT if time.get(name)]
    if spent:
        heading("Time")
        OUT.print(indented(Text(" · ".join(spent))))
    _token_shares(data.get("token_shares", {}))
    _figures(data.get("figures", {}))
    _agents(data)
    if data.get("total_insights"):
        OUT.print()
        every = plain(command("show", f"ax://analysis/{data['session_id']}"))
        OUT.print(Text(f"every finding: {every}", style="dim"), soft_wrap=True)
    footer(answer)


def _finding(session_id: str, number: int, insight: dict[str, Any]) -> None:
    turn = f" (turn {insight['turn_index']})" if "turn_index" in insight else ""
    where = insight.get("session_id", session_id)
    grid = Table.grid(padding=(0, 1, 0, 0), expand=fills())
    grid.add_column(no_wrap=True, width=11)
    grid.add_column(ratio=1, overflow="fold")
    severity = Text(f"{number}. {insight['severity']}", style=STYLES[insight["severity"]])
    grid.add_row(severity, Text(f"{plain(insight['message'])}{turn}"))
    for evidence in insight["evidence"]:
        place = Text(f"{where}:{evidence['event_index']}  ", style="bold")
        grid.add_row("", place.append(plain(evidence["quote"]), style="dim not bold"))
    OUT.print(indented(grid))


def _token_shares(shares: dict[str, list[dict[str, Any]]]) -> None:
    found = [(label, shares[name]) for label, name in _SHARES if shares.get(name)]
    if not found:
        return
    heading("Tokens")
    for label, largest in found:
        named = (f"{end_of_path(plain(share['name']), _LONGEST_NAME)} {short(share['tokens'])}" for share in largest)
        OUT.print(indented(Text(f"{label:<10}", style="dim").append(" · ".join(named), style="not dim")))


def _figures(figures: dict[str, Any]) -> None:
    """Print the counts that are no findings, each with what it counts."""
    told = [f"{what}: {figures[name]:,}" for name, what in _FIGURES if name in figures]
    if missed := figures.get("cache_missed_tokens"):
        paid = f", for ${figures['cache_missed_usd']:,.4f} more" if "cache_missed_usd" in figures else ""
        reasons = ", ".join(f"{plain(reason)} {short(tokens)}" for reason, tokens in missed.items())
        told.append(f"{short(sum(missed.values()))} tokens not read from the cache{paid} ({reasons})")
    if told:
        heading("Figures")
        OUT.print(indented(Text(" · ".join(told))))


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


_SIDE_FACTS = (
    ("agent", "provider"), ("kind", "kind"), ("title", "title"), ("request", "snippet"), ("project", "root_path"),
    ("started", "start_time"), ("last turn", "outcome"), ("turns", "turns"), ("steps", "steps"),
    ("tool calls", "tool_calls"),
)  # fmt: skip
_SIDE_TOKENS = (
    ("input", "input_tokens"), ("cache written", "cache_creation_5m_tokens"),
    ("cache written, 1 h", "cache_creation_1h_tokens"), ("cache read", "cache_read_tokens"),
    ("output", "output_tokens"), ("reasoning in it", "reasoning_tokens"),
)  # fmt: skip
_OUTCOMES_COUNTED = ("failed", "rejected", "interrupted")


def comparison(answer: dict[str, Any]) -> None:
    """Print two sessions side by side: the differences, the facts, the tools, the files, the first failures."""
    data = answer["data"]
    summary(answer)
    if "session_1" not in data:  # the answer had to be too small for it
        OUT.print(Text(", ".join(f"{name} {count}" for name, count in data.items()), style="dim"))
        return
    sides = (data["session_1"], data["session_2"])
    if "relation" in data:
        OUT.print(Text(plain(data["relation"]["summary"]), style="italic"))
    for difference in data["differences"]:
        OUT.print(indented(Text(plain(difference))))
    OUT.print(_side_table(*sides))
    if data["tools"]:
        OUT.print()
        tools = data["tools"]
        table = Table(box=None, pad_edge=False, header_style="dim", expand=fills())
        table.add_column("tool", no_wrap=True, overflow="ellipsis", ratio=1)
        for column in ("calls 1", "failed 1", "calls 2", "failed 2"):
            table.add_column(column, justify="right", no_wrap=True, style="red" if "failed" in column else "")
        for tool in tools:
            counts = [tool[name] for name in ("calls_1", "failed_1", "calls_2", "failed_2")]
            table.add_row(Text(plain(tool["name"])), *(figure(count or None) for count in counts))
        OUT.print(compact(table))
        left_out("tool", len(data["tools"]), data["total_tools"])
    files = data["files"]
    for name, where in (("only_in_1", "only in 1"), ("only_in_2", "only in 2"), ("in_both", "in both")):
        if not files[f"total_{name}"]:
            continue
        heading(f"files {where}: {files[f'total_{name}']}")
        for file in files[name]:
            OUT.print(indented(Text(plain(file["path"])).append(f"  {_accesses(file)}", style="dim")))
        left_out("file", len(files[name]), files[f"total_{name}"])
    for number, side in enumerate(sides, 1):
        _failed_calls(number, side)


def _side_table(*sides: dict[str, Any]) -> Table:
    """Return a table with a row for each fact and a column for each session; facts unknown for both are left out."""
    table = Table(box=None, pad_edge=False, header_style="bold", expand=fills())
    table.add_column("", style="dim", no_wrap=True)
    for number, side in enumerate(sides, 1):
        table.add_column(f"{number}  {plain(side['session_id'])}", no_wrap=True, overflow="ellipsis", ratio=1)
    for label, cells in _side_rows(sides):
        if any(map(str, cells)):
            table.add_row(label, *cells)
    return table


def _side_rows(sides: tuple[dict[str, Any], ...]) -> Iterator[tuple[str, list[str | Text]]]:
    for label, name in _SIDE_FACTS:
        yield label, [_fact(name, side.get(name)) for side in sides]
    for outcome in _OUTCOMES_COUNTED:
        yield (
            f"  {outcome}",
            [Text(figure(side["failures"][outcome] or None), style=STYLES[outcome]) for side in sides],
        )
    yield "lasted", [seconds(side.get("duration_seconds")) for side in sides]
    yield "active", [seconds(side.get("active_seconds")) for side in sides]
    yield "models", [", ".join(plain(model["model"]) for model in side["models"]) for side in sides]
    yield "tokens", [how_made(figure(side.get("total_tokens")), side.get("tokens_made")) for side in sides]
    for label, kind in _SIDE_TOKENS:
        yield f"  {label}", [figure(side.get("tokens", {}).get(kind)) for side in sides]
    yield "cost", [how_made(dollars(side.get("cost_usd")), side.get("cost_made")) for side in sides]
    yield "copied events", [figure(side.get("copied", {}).get("events")) for side in sides]


def _fact(name: str, value: Any) -> str | Text:
    if name == "start_time":
        return when(value)
    if name == "outcome":
        return Text(value, style=STYLES.get(value, ""))
    return figure(value) if isinstance(value, int) else plain(value or "")


def _accesses(file: dict[str, Any]) -> str:
    """Return `read 3, written 1`; for a file of both sessions, that of each."""
    if "reads" in file:
        return _accessed(file["reads"], file["writes"])
    return "; ".join(f"{n}: {_accessed(file[f'reads_{n}'], file[f'writes_{n}'])}" for n in (1, 2))


def _accessed(reads: int, writes: int) -> str:
    return ", ".join(f"{what} {count}" for what, count in (("read", reads), ("written", writes)) if count)


def _failed_calls(number: int, side: dict[str, Any]) -> None:
    total = sum(side["failures"][outcome] for outcome in _OUTCOMES_COUNTED)
    if not total:
        return
    heading(f"unsuccessful calls in {number}: {total}")
    for call in side["failures"]["examples"]:
        place = Text(f"{plain(side['session_id'])}:{call['event_index']}  ", style="bold")
        place.append(f"{call['outcome']}  ", style=STYLES[call["outcome"]])
        place.append(f"{plain(call['tool'])}  ", style="cyan").append(plain(call["quote"]), style="dim not bold")
        OUT.print(indented(place))
    left_out("call", len(side["failures"]["examples"]), total)
