"""Lists for people: sessions as a table, hits of a search with the text around them."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from agtrace.render.terminal import OUT, STYLES, dollars, footer, indented, nothing, plain, short_number, summary, when

_COLUMNS = ("session", "agent", "started", "turns", "tools", "failed", "tokens", "cost", "request")
_NARROW_COLUMNS = ("session", "started", "failed", "request")
_WIDE = 90
_WIDEST = {"session": 14, "agent": 6, "started": 16, "turns": 5, "tools": 5, "failed": 6, "tokens": 6, "cost": 7}


def sessions(answer: dict[str, Any]) -> None:
    """A table of sessions that fits the terminal's width."""
    summary(answer)
    columns = _COLUMNS if OUT.width >= _WIDE else _NARROW_COLUMNS
    table = _table(*columns)
    for item in answer["data"].get("sessions", []):
        cells = _session_cells(item)
        table.add_row(*(cells[column] for column in columns))
    if table.row_count:
        OUT.print(table)
    else:
        nothing("`agtrace doctor` tells which logs were found; `agtrace index PATH` adds some.")
    footer(answer)


def matches(answer: dict[str, Any], query: str) -> None:
    """Hits of a search, each with where it is and the text around the match."""
    summary(answer)
    if not answer["data"].get("matches"):
        nothing("Try a shorter piece of the text, as it stands in the log, or fewer filters.")
    for match in answer["data"].get("matches", []):
        preview = match["preview"]
        place = Text(f"{match['session_id']}:{match['event_index']}", style="bold")
        place.append(f"  {when(match.get('timestamp'))}  {match['event_type']}", style="dim")
        if preview.get("tool") or preview.get("kind"):
            place.append(f"  {plain(preview.get('tool') or preview['kind'])}", style="cyan")
        if match.get("outcome"):
            place.append(f"  {match['outcome']}", style=STYLES.get(match["outcome"], ""))
        OUT.print(place)
        body = Text(plain(_preview_text(preview)))
        if query:
            body.highlight_words([query], style="reverse", case_sensitive=False)
        OUT.print(indented(body))
    footer(answer)


def _session_cells(item: dict[str, Any]) -> dict[str, str | Text]:
    return {
        "session": Text(item["id"], style="bold"),
        "agent": item["provider"].removesuffix("_code"),
        "started": when(item.get("start_time")),
        "turns": str(item["turn_count"]),
        "tools": str(item["tool_calls"]),
        "failed": Text(str(item["failed_calls"] or ""), style="red"),
        "tokens": short_number(item.get("total_tokens")),
        "cost": dollars(item.get("cost_usd")),
        "request": _about(item),
    }


def _about(item: dict[str, Any]) -> Text:
    """What a session was about; what it is, where it is no main session."""
    kind = Text(f"{item['kind']}  ", style="cyan") if "kind" in item else Text()
    return kind.append(plain(item.get("title") or item.get("snippet") or "(no request)"))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    for column in columns:
        right = column in ("turns", "tools", "failed", "tokens", "cost")
        widest = _WIDEST.get(column)
        table.add_column(
            column, justify="right" if right else "left", no_wrap=True, overflow="ellipsis",
            min_width=widest, max_width=widest, ratio=None if widest else 1,
        )  # fmt: skip
    return table


def _preview_text(preview: dict[str, Any]) -> str:
    if "arguments" in preview:
        arguments = preview["arguments"]
        if isinstance(arguments, dict):
            return "\n".join(f"{name}: {value}" for name, value in arguments.items())
        return str(arguments)
    if "text" in preview or "preview" in preview:
        return str(preview.get("text", preview.get("preview")))
    return ", ".join(f"{name} {value}" for name, value in preview.items() if value is not None)
