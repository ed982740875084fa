"""Answers for people: tables and texts for a terminal, made of the same answers that agents get.

Every string passes `_plain`: no escape sequence of a log reaches the terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from agtrace.cutting import without_controls

_OUT = Console(highlight=False, soft_wrap=False, markup=False, emoji=False)  # logs hold [brackets] and :names:
_STYLES = {
    "failed": "red", "rejected": "yellow", "interrupted": "yellow", "unknown": "dim", "running": "cyan", "ok": "green",
    "partial": "yellow", "success": "green", "Critical": "bold red", "Warning": "yellow", "Info": "dim",
}  # fmt: skip
_FILES_SHOWN = 12
_COLUMNS = ("session", "agent", "started", "turns", "tools", "failed", "tokens", "request")
_NARROW_COLUMNS = ("session", "started", "failed", "request")
_WIDE = 90
_WIDEST = {"session": 14, "agent": 6, "started": 16, "turns": 5, "tools": 5, "failed": 6, "tokens": 6}


def sessions(answer: dict[str, Any]) -> None:
    """A table of sessions that fits the terminal's width."""
    _summary(answer)
    columns = _COLUMNS if _OUT.width >= _WIDE else _NARROW_COLUMNS
    table = _table(*columns)
    for item in answer["data"].get("sessions", []):
        cells = _session_cells(item)
        table.add_row(*(cells[column] for column in columns))
    if table.row_count:
        _OUT.print(table)
    else:
        _nothing("`agtrace doctor` tells which logs were found; `agtrace index PATH` adds some.")
    _footer(answer)


def matches(answer: dict[str, Any], query: str) -> None:
    """Hits of a search, each with where it is and the text around the match."""
    _summary(answer)
    if not answer["data"].get("matches"):
        _nothing("Try a shorter piece of the text, as it stands in the log, or fewer filters.")
    for match in answer["data"].get("matches", []):
        preview = match["preview"]
        place = Text(f"{match['session_id']}:{match['event_index']}", style="bold")
        place.append(f"  {_when(match.get('timestamp'))}  {match['event_type']}", style="dim")
        if preview.get("tool") or preview.get("kind"):
            place.append(f"  {_plain(preview.get('tool') or preview['kind'])}", style="cyan")
        if match.get("outcome"):
            place.append(f"  {match['outcome']}", style=_STYLES.get(match["outcome"], ""))
        _OUT.print(place)
        body = Text(_plain(_preview_text(preview)))
        if query:
            body.highlight_words([query], style="reverse", case_sensitive=False)
        _OUT.print(_indented(body))
    _footer(answer)


def session(answer: dict[str, Any]) -> None:
    """A session's facts and its turns, with their steps where the level has them."""
    data = answer["data"]
    _summary(answer)
    facts = [data.get(name) for name in ("provider", "version", "model", "root_path", "branch", "start_time")]
    _OUT.print(Text("  ".join(_plain(str(fact)) for fact in facts if fact), style="dim"))
    if data.get("title"):
        _OUT.print(Text(_plain(data["title"]), style="italic"))
    for turn in data.get("turns", []):
        _turn(turn)
    _footer(answer)


def event_head(answer: dict[str, Any]) -> None:
    """Where an event stands and what it is linked to."""
    data = answer["data"]
    _summary(answer)
    links = [
        f"{what} {data[key]}"
        for key, what in (("turn_index", "turn"), ("step_index", "step"), ("call_event", "its call: event"),
                          ("result_event", "its result: event"))
        if data.get(key) is not None
    ]  # fmt: skip
    origin = data["origin"]
    _OUT.print(Text(", ".join(links), style="dim"))
    _OUT.print(Text(f"{_plain(origin['file'])}:{origin['line']}", style="dim"), soft_wrap=True)
    _OUT.print()


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
        _OUT.print(Text(f"{_plain(name)}:", style="cyan"), Text(_plain(str(value))), soft_wrap=True)


def analysis(answer: dict[str, Any]) -> None:
    """A session's score and findings, each with the events that show it."""
    data = answer["data"]
    _summary(answer)
    for insight in data.get("insights", []):
        line = Text(f"{insight['severity']:<9}", style=_STYLES[insight["severity"]])
        turn = f" (turn {insight['turn_index']})" if "turn_index" in insight else ""
        line.append(f"{_plain(insight['message'])}{turn}", style="")
        _OUT.print(line)
        for evidence in insight["evidence"]:
            place = Text(f"{data['session_id']}:{evidence['event_index']}  ", style="bold")
            _OUT.print(_indented(place.append(_plain(evidence["quote"]), style="dim not bold")))
    if not data.get("insights"):
        _OUT.print("Nothing stands out.")
    _footer(answer)


def doctor(found: dict[str, Any]) -> None:
    """What was found where, what was not understood, what to do."""
    index = found["index"]
    _OUT.print(
        Text("index", style="bold"), f"{index['path']}  ({_bytes(index['bytes'])}, {index['state']})", soft_wrap=True
    )
    _OUT.print(f"      {index['sessions']:,} sessions, {index['events']:,} events, integrity {index['integrity']}")
    if index["archived_files"]:
        _OUT.print(f"      {index['archived_files']:,} logs were deleted by their agents and are kept here")
    _heading("where it looked")
    for place in found["homes"]:
        _OUT.print(f"  {'found  ' if place['exists'] else 'absent '} {_plain(place['path'])}", soft_wrap=True)
    for root in found["roots"]:
        if root not in {place["path"] for place in found["homes"]}:
            _OUT.print(f"  given   {_plain(root)}", soft_wrap=True)
    _heading("what was found")
    for agent in found["agents"]:
        versions = agent["versions"]
        span = f", versions {versions[0]} to {versions[-1]}" if len(versions) > 1 else ", ".join(["", *versions])
        _OUT.print(f"  {agent['provider']}: {agent['sessions']:,} sessions in {agent['files']:,} files{_plain(span)}")
    _doctor_trouble(found)


def _doctor_trouble(found: dict[str, Any]) -> None:
    _doctor_list(
        "files that are not read",
        [f"{file['path']}: {file['reason']}" for file in found["not_read"] if file["status"] != "unrecognized"],
    )
    unrecognized = [file["path"] for file in found["not_read"] if file["status"] == "unrecognized"]
    _doctor_list("files that are no log agtrace knows", unrecognized)
    _doctor_list("logs read in part", [f"{file['path']}: {file['reason']}" for file in found["partly_read"]])
    _doctor_list(
        "lines that are no record",
        [f"{line['path']}:{line['line']}: {line['reason']} ({line['event']})" for line in found["unreadable_lines"]],
    )
    _doctor_list(
        "record types agtrace doesn't know (kept and searchable)",
        [
            f"{kind['type']} x{kind['count']}, first at {kind['path']}:{kind['line']}"
            for kind in found["unknown_record_types"]
        ],
    )
    advice = Counter(file["advice"] for file in found["not_read"])
    _heading("what to do")
    for sentence in found["trouble"] or ["nothing: all logs are read"]:
        _OUT.print(f"  {_plain(sentence)}")
    for sentence, count in advice.items():
        _OUT.print(Text(f"  {count} files: {sentence}", style="dim"))


def _doctor_list(heading: str, lines: list[str]) -> None:
    if not lines:
        return
    _heading(f"{heading}: {len(lines)}")
    for line in lines[:_FILES_SHOWN]:
        _OUT.print(f"  {_plain(line)}", soft_wrap=True, markup=False)
    if len(lines) > _FILES_SHOWN:
        _OUT.print(Text(f"  ... and {len(lines) - _FILES_SHOWN} more (agtrace doctor --json)", style="dim"))


def _heading(text: str) -> None:
    _OUT.print()
    _OUT.print(Text(text, style="bold"))


def _turn(turn: dict[str, Any]) -> None:
    failed = f", {turn['failed_tools']} failed" if turn.get("failed_tools") else ""
    head = Text(f"turn {turn['turn_index']}  ", style="bold")
    if "steps" in turn:
        head.append(turn["outcome"], style=_STYLES[turn["outcome"]])
    else:
        head.append(f"{turn['step_count']} steps, {turn['tool_calls']} tools{failed}", style="red" if failed else "dim")
    _OUT.print(head)
    _OUT.print(_indented(Text(_plain(turn["user_message"]) or "(no request)")))
    for step in turn.get("steps", []):
        style = "red" if step["failed_tools"] else ""
        _OUT.print(_indented(Text(f"{step['step_index']:>3}  {_plain(step['summary'])}", style=style)))
        if step.get("reasoning"):
            _OUT.print(_indented(Text(f"     {_plain(step['reasoning'])}", style="dim italic")))


def _summary(answer: dict[str, Any]) -> None:
    _OUT.print(Text(_plain(answer["summary"]), style="bold"))


def _nothing(advice: str) -> None:
    _OUT.print(Text(advice, style="dim"))


def _footer(answer: dict[str, Any]) -> None:
    following = answer.get("pagination", {}).get("next_cursor")
    if following:
        _OUT.print(Text(f"more: --cursor {following}", style="dim"), soft_wrap=True)


def _session_cells(item: dict[str, Any]) -> dict[str, str | Text]:
    return {
        "session": Text(item["id"], style="bold"),
        "agent": item["provider"].removesuffix("_code"),
        "started": _when(item.get("start_time")),
        "turns": str(item["turn_count"]),
        "tools": str(item["tool_calls"]),
        "failed": Text(str(item["failed_calls"] or ""), style="red"),
        "tokens": _short_number(item.get("total_tokens")),
        "request": _plain(item.get("title") or item.get("snippet") or f"({item.get('kind', 'no request')})"),
    }


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    for column in columns:
        right = column in ("turns", "tools", "failed", "tokens")
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


def _indented(text: Text) -> Any:
    from rich.padding import Padding

    return Padding(text, (0, 0, 0, 2))


def _write(text: str, *, last: bool) -> None:
    _OUT.file.write(_plain(text) + ("\n" if last and not text.endswith("\n") else ""))


def _plain(text: str) -> str:
    return without_controls(text)


def _when(iso: str | None) -> str:
    """A time in the terminal's own zone, to the minute."""
    return "" if iso is None else datetime.fromisoformat(iso).astimezone().strftime("%Y-%m-%d %H:%M")


def _short_number(number: int | None) -> str:
    if number is None:
        return ""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return str(number)


def _bytes(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB" if size >= 100_000 else f"{size:,} bytes"


def reasoning(answer: dict[str, Any]) -> None:
    """Thoughts under the headings of their turns, each with where it is and what the model did next."""
    _summary(answer)
    turn = object()
    for thought in answer["data"].get("chain", []):
        if thought.get("turn_index") != turn:
            turn = thought.get("turn_index")
            _OUT.print(Text("before the first turn" if turn is None else f"turn {turn}", style="bold"))
        _OUT.print(_indented(Text(_place_of(thought), style="dim")))
        _OUT.print(_indented(Text(_plain(thought["text"]))))
        if "chars" in thought:
            _OUT.print(_indented(Text(f"({thought['chars']:,} characters in all)", style="dim")))
        if "next" in thought:
            _OUT.print(_indented(Text(f"then {_plain(thought['next'])}", style="cyan")))
        _OUT.print()
    _footer(answer)


def _place_of(thought: dict[str, Any]) -> str:
    step = f", step {thought['step_index']}" if "step_index" in thought else ""
    copied = "  copied" if thought.get("copied") else ""
    return f"event {thought['event_index']}{step}  {_when(thought.get('timestamp'))}{copied}".rstrip()


_SIDE_FACTS = (
    ("agent", "provider"), ("kind", "kind"), ("title", "title"), ("request", "snippet"), ("project", "root_path"),
    ("started", "start_time"), ("last turn", "outcome"), ("turns", "turns"), ("steps", "steps"),
    ("tool calls", "tool_calls"),
)  # fmt: skip
_SIDE_TOKENS = (
    ("input", "input_tokens"), ("cache written", "cache_creation_5m_tokens"),
    ("cache written, 1 h", "cache_creation_1h_tokens"), ("cache read", "cache_read_tokens"),
    ("output", "output_tokens"), ("of it reasoning", "reasoning_tokens"),
)  # fmt: skip
_OUTCOMES_COUNTED = ("failed", "rejected", "interrupted")


def comparison(answer: dict[str, Any]) -> None:
    """Two sessions side by side: the differences, the facts, the tools, the files, the first failures."""
    data = answer["data"]
    _summary(answer)
    if "session_1" not in data:  # too small an answer was asked for
        _OUT.print(Text(", ".join(f"{name} {count}" for name, count in data.items()), style="dim"))
        return
    sides = (data["session_1"], data["session_2"])
    if "relation" in data:
        _OUT.print(Text(_plain(data["relation"]["summary"]), style="italic"))
    for difference in data["differences"]:
        _OUT.print(_indented(Text(_plain(difference))))
    _OUT.print(_side_table(*sides))
    if data["tools"]:
        _OUT.print()
        _OUT.print(_tool_table(data["tools"]))
        _left_out("tools", len(data["tools"]), data["total_tools"])
    _compared_files(data["files"])
    for number, side in enumerate(sides, 1):
        _failed_calls(number, side)


def _side_table(*sides: dict[str, Any]) -> Table:
    """A row a fact, a column a session; what neither log tells has no row."""
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    table.add_column("", style="dim", no_wrap=True)
    for number, side in enumerate(sides, 1):
        table.add_column(f"{number}  {_plain(side['session_id'])}", no_wrap=True, overflow="ellipsis", ratio=1)
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
            [Text(_number(side["failures"][outcome] or None), style=_STYLES[outcome]) for side in sides],
        )
    yield "lasted", [_seconds(side.get("duration_seconds")) for side in sides]
    yield "active", [_seconds(side.get("active_seconds")) for side in sides]
    yield "models", [", ".join(_plain(model["model"]) for model in side["models"]) for side in sides]
    yield "tokens", [_made(_number(side.get("total_tokens")), side.get("tokens_made")) for side in sides]
    for label, kind in _SIDE_TOKENS:
        yield f"  {label}", [_number(side.get("tokens", {}).get(kind)) for side in sides]
    yield "cost", [_made(_dollars(side.get("cost_usd")), side.get("cost_made")) for side in sides]
    yield "copied events", [_number(side.get("copied", {}).get("events")) for side in sides]


def _made(figure: str, made: str | None) -> str:
    """A total with how it was made, unless it is exact."""
    return f"{figure} ({made})" if figure and made != "exact" else figure


def _dollars(cost: float | None) -> str:
    return "" if cost is None else f"${cost:,.2f}"


def _fact(name: str, value: Any) -> str | Text:
    if name == "start_time":
        return _when(value)
    if name == "outcome":
        return Text(value, style=_STYLES.get(value, ""))
    return _number(value) if isinstance(value, int) else _plain(value or "")


def _tool_table(tools: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    table.add_column("tool", no_wrap=True, overflow="ellipsis", ratio=1)
    for column in ("calls 1", "failed 1", "calls 2", "failed 2"):
        table.add_column(column, justify="right", no_wrap=True, style="red" if "failed" in column else "")
    for tool in tools:
        counts = [tool[name] for name in ("calls_1", "failed_1", "calls_2", "failed_2")]
        table.add_row(Text(_plain(tool["name"])), *(_number(count or None) for count in counts))
    return table


def _compared_files(files: dict[str, Any]) -> None:
    for name, heading in (("only_in_1", "only in 1"), ("only_in_2", "only in 2"), ("in_both", "in both")):
        if not files[f"total_{name}"]:
            continue
        _heading(f"files {heading}: {files[f'total_{name}']}")
        for file in files[name]:
            _OUT.print(_indented(Text(_plain(file["path"])).append(f"  {_accesses(file)}", style="dim")))
        _left_out("files", len(files[name]), files[f"total_{name}"])


def _accesses(file: dict[str, Any]) -> str:
    """`read 3, written 1`, for each session where the file is of both."""
    if "reads" in file:
        return _accessed(file["reads"], file["writes"])
    return "; ".join(f"{n}: {_accessed(file[f'reads_{n}'], file[f'writes_{n}'])}" for n in (1, 2))


def _accessed(reads: int, writes: int) -> str:
    return ", ".join(f"{what} {count}" for what, count in (("read", reads), ("written", writes)) if count)


def _failed_calls(number: int, side: dict[str, Any]) -> None:
    total = sum(side["failures"][outcome] for outcome in _OUTCOMES_COUNTED)
    if not total:
        return
    _heading(f"calls of {number} that did not end well: {total}")
    for call in side["failures"]["examples"]:
        place = Text(f"{_plain(side['session_id'])}:{call['event_index']}  ", style="bold")
        place.append(f"{call['outcome']}  ", style=_STYLES[call["outcome"]])
        place.append(f"{_plain(call['tool'])}  ", style="cyan").append(_plain(call["quote"]), style="dim not bold")
        _OUT.print(_indented(place))
    _left_out("calls", len(side["failures"]["examples"]), total)


def _left_out(what: str, shown: int, total: int) -> None:
    if shown < total:
        _OUT.print(_indented(Text(f"... and {total - shown} more {what}", style="dim")))


def _number(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _seconds(seconds: int | None) -> str:
    """A duration in the two largest units that it has."""
    if seconds is None:
        return ""
    for size, unit, smaller, part in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            return f"{seconds // size} {unit} {seconds % size // smaller} {part}"
    return f"{seconds} s"
