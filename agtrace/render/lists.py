"""Lists as tables, for people: sessions, projects, matches of a search, and the calls that an answer suggests."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.patterns import later
from rich.cells import cell_len
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agtrace.render.terminal import (
    OUT,
    STYLES,
    Row,
    age,
    aligned,
    body,
    fills,
    footer,
    line,
    nothing,
    plain,
    plain_line,
    summary,
)
from agtrace.sessions.quotes import line_of
from agtrace.text.next_call import NextCall, command
from agtrace.text.numbers import counted, dollars, duration, least, short, spent
from agtrace.times import when

if TYPE_CHECKING:
    from agtrace.sessions.listing import Described

_COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "list_sessions": ("sessions", ()),
    "get_session_details": ("show", ("{session_id}",)),
    "get_event_details": ("show", ("{session_id}:{event_index}",)),
    "analyze_session": ("analyze", ("{session_id}",)),
    "compare_sessions": ("compare", ("{id1}", "{id2}")),
    "search_event_previews": ("search", ("{query}",)),
    "read_artifact": ("show", ("{ref}",)),
}
"""The command of each tool, and its arguments that aren't options."""

_NAMES = {
    "session_id": "--session", "event_type": "--type", "min_tokens": "--min-tokens",
    "detail_level": "--level", "turn_index": "--turns", "context_focus_question": "--focus",
}  # fmt: skip
_FLAGS = {
    ("order", "oldest"): "--oldest", ("order", "newest"): "--newest",
    ("group_by", "session"): "--by-session", ("regex", True): "--regex",
    ("include_reasoning", True): "--thinking",
    ("failed", True): "--failed", ("failed", False): "--not-failed",
    ("has_failures", True): "--failures", ("has_failures", False): "--no-failures",
}  # fmt: skip
_WITHOUT_OPTION = frozenset(
    {"order", "group_by", "regex", "include_reasoning", "include_loops", "include_failures", "max_bytes"}
)


class Offer(NamedTuple):
    """A command, and what it does."""

    command: str
    says: str


def offer(next_calls: Iterable[NextCall]) -> bool:
    """Print the commands for these calls, one a line; return whether there were any."""
    found = list(offers(next_calls))
    for typed, says in found:
        OUT.print(Text(plain(typed), style="cyan").append(f"  {plain(says)}", style="dim"), soft_wrap=True)
    return bool(found)


def offers(next_calls: Iterable[NextCall]) -> Iterator[Offer]:
    """Yield the calls as commands, with what each does; calls without a command are left out."""
    for call in next_calls:
        if call.tool in _COMMANDS:
            name, forms = _COMMANDS[call.tool]
            named = [form.format(**call.arguments) for form in forms]
            left = {key: value for key, value in call.arguments.items() if f"{{{key}}}" not in "".join(forms)}
            yield Offer(command(name, *named, options=list(_options(left))), call.says_of(map(_option, call.names)))


def _options(arguments: dict[str, Any]) -> Iterator[str]:
    first, last = arguments.pop("start_line", None), arguments.pop("end_line", None)
    if first or last:
        yield from ("--lines", str(first) if first == last else f"{first or ''}:{last or ''}")
    for name, value in arguments.items():
        if flag := _FLAGS.get((name, value)) if isinstance(value, str | bool) else None:
            yield flag
        elif name not in _WITHOUT_OPTION:
            yield from (_option(name), ",".join(value) if isinstance(value, list) else str(value))


def _option(argument: str) -> str:
    return _NAMES.get(argument, f"--{argument.replace('_', '-')}")


_WITH_AGENT, _WITH_PROJECT, _WITH_COST = 60, 70, 110
"""The terminal's width from which a session's line has room for these, and for how long it lasted."""

_AT_LEAST = later(r"^Found at least [\d,]+ (\w+)")
_KINDS = {
    "User": "user", "Message": "message", "Reasoning": "thought", "ToolCall": "call", "ToolResult": "result",
    "Notification": "notification", "TokenUsage": "tokens",
}  # fmt: skip
"""What the types of events are called."""

_EVENT = 4
"""The columns of an event's index."""

_LINES_OF_GROUP = 3
"""The lines of a match that are shown under its session."""


def matches(
    answer: dict[str, Any],
    next_calls: Sequence[NextCall],
    words: Sequence[str],
    described: Mapping[str, Described],
    *,
    whole_ids: bool = False,
) -> None:
    """Print the matches of a search, or sessions with one match of each; `words` are highlighted in them.

    `described` has the sessions that the answer names; with `whole_ids`, their ids are shown in full.
    """
    data = answer["data"]
    OUT.print(Text(plain(_summary(answer)), style="bold"))
    about = _Sessions(described, whole_ids)
    if "sessions" in data:
        _print_best(data, words, about)
        offer(next_calls)
        footer(answer, has_all=True)
        return
    _print_matches([match for match in data["matches"] if "hits" not in match], words, about)
    for match in (match for match in data["matches"] if "hits" in match):
        found = f"{match['hits']} match{'es' * (match['hits'] != 1)}"
        line(about.line(match["session_id"], match["title"], found))
        _print_match(match, words, about, deep=2)
    if not data["matches"] and not offer(next_calls):
        nothing("Try a shorter piece of the text, exactly as it is in the log, or fewer filters.")
    footer(answer, has_all=True)


class _Sessions:
    """Lines about sessions: id, last activity, agent, project, how long, cost and title, as far as there is room."""

    def __init__(self, described: Mapping[str, Described], whole_ids: bool) -> None:
        self._described, self._whole_ids, self._now, self._named = described, whole_ids, time.time(), ""

    def id(self, id: str) -> str:
        """Return an id as it is shown."""
        known = self._described.get(id)
        return plain_line(known.session_id if known and self._whole_ids else id)

    def line(self, id: str, title: str | None, found: str = "", style: str = "bold") -> Text:
        """Return a session on one line, its title last so that it is what gets cut at the line's end."""
        text, known = Text(self.id(id), style=style), self._described.get(id)
        width = OUT.width if fills() else 1_000
        if known is not None:
            lasted = (known.ended_at or 0) - (known.started_at or 0)
            facts = (
                (_WITH_COST, when(known.started)[:10]),
                (0, age(known.ended_at or known.started_at, self._now)),
                (_WITH_AGENT, known.provider.removesuffix("_code")),
                (_WITH_PROJECT, plain_line(" · ".join(filter(None, (known.user, known.project))))),
                (_WITH_COST, duration(lasted) if lasted > 0 else ""),
                (_WITH_COST, spent(known.cost_usd, known.cost_made)),
            )
            for least, fact in facts:
                text.append(f"  {fact}" if fact and width >= least else "", style="not bold dim")
            title = known.title if known.title and not fills() else title
        text.append(f"  {found}" if found else "", style="not bold green")
        return text.append("  " + plain_line(title or "(no request)"), style="not bold")

    def project_and_title(self, id: str) -> str:
        """Return what tells the session of an event from others; no title twice in a row."""
        known, before = self._described.get(id), self._named
        self._named = id
        told = () if known is None else (known.user, known.project, known.title if id != before else None)
        return "  ".join(filter(None, told))


def _summary(answer: dict[str, Any]) -> str:
    """Return the summary; a number of matches that depends on how many are shown says nothing, and is left out."""
    if not _AT_LEAST.match(str(answer["summary"])):
        return str(answer["summary"])
    shown = len(answer["data"]["matches"])
    said = _AT_LEAST.sub(lambda found: counted(shown, found[1].removesuffix("s")), str(answer["summary"]))
    return f"First {said}; there are more"


def _print_best(best: dict[str, Any], words: Sequence[str], about: _Sessions) -> None:
    if worked := best.get("worked"):
        place = f"{plain(worked['session_id'])}:{worked['succeeded']}"
        told = Text("what worked after a failure: ", style="green").append(f"{place}  ", style="bold")
        OUT.print(told.append(plain(worked["text"]), style="not bold"))
        if "command" in worked:
            event_index, command = worked["command"]
            before = Text("  after this command: ", style="green")
            before.append(f"{plain(worked['session_id'])}:{event_index}  ", style="bold")
            OUT.print(before.append(plain(command), style="not bold"))
    for session in best["sessions"]:
        line(about.line(session["session_id"], session["title"]))
        hits = (line_of(match) for match in best["matches"] if match["session_id"] == session["session_id"])
        _print_events([*hits, *_course(session)], words, deep=2)
    for session_id, _, title in best.get("others", ()):
        line(about.line(session_id, title, style="dim"))


def _course(session: dict[str, Any]) -> Iterator[tuple[int, str, str]]:
    """Yield what a session did and what it came to, as lines like those of its events."""
    for event_index, kind, *told in session.get("landmarks", ()):
        yield event_index, kind.replace("_", " "), "  ".join(str(one) for one in told if one is not None)
    if session.get("last_message"):
        event_index, text = session["last_message"]
        yield event_index, "ended with", text
    if session.get("open_call"):
        event_index, tool, text = session["open_call"]
        yield event_index, "ended on", f"{tool} {text}"


def around(answer: dict[str, Any], event_index: int, next_calls: Sequence[NextCall]) -> None:
    """Print the events around one, a line each."""
    summary(answer)
    _print_events(answer["data"]["around"], (), marked=event_index)
    offer(next_calls)
    footer(answer)


def _print_events(
    lines: Sequence[tuple[int, str, str]], words: Sequence[str], *, deep: int = 0, marked: int | None = None
) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right", style="bold", min_width=_EVENT)
    table.add_column()
    for event_index, who, said in lines:
        text = Text(f"{plain(who)}  ", style="cyan") + _highlighted(plain(said), words)
        if not fills():
            OUT.print(Text(f"{'':{deep}}{event_index:>{_EVENT}}  {' '.join(text.plain.split())}"), soft_wrap=True)
        table.add_row(str(event_index), text, style="bold" if event_index == marked else "")
    if fills():
        OUT.print(Padding(table, (0, 0, 0, deep)))


def _highlighted(said: str, words: Sequence[str]) -> Text:
    text = Text(said)
    text.highlight_words(words, style="reverse", case_sensitive=False)
    return text


def _print_matches(found: Sequence[dict[str, Any]], words: Sequence[str], about: _Sessions) -> None:
    """Print events; one that several logs have, as a fork repeats what came before it, is printed once."""
    for _, alike in groupby(found, key=lambda match: (match.get("timestamp"), match["event_type"], match["preview"])):
        first, *copies = alike
        _print_match(first, words, about)
        if copies:
            places = ", ".join(f"{about.id(copy['session_id'])}:{copy['event_index']}" for copy in copies)
            body(Text(f"also at {places}", style="dim"), 2)


def _print_match(match: dict[str, Any], words: Sequence[str], about: _Sessions, deep: int = 0) -> None:
    preview = match["preview"]
    place = Text(f"{about.id(match['session_id'])}:{match['event_index']}", style="bold")
    kind = _KINDS.get(match["event_type"], match["event_type"])
    place.append(f"  {when(match.get('timestamp'))}  {kind}", style="not bold dim")
    if preview.get("tool") or preview.get("kind"):
        place.append(f"  {plain(preview.get('tool') or preview['kind'])}", style="not bold cyan")
    if match.get("rolled_back"):
        place.append("  rolled back", style="not bold yellow")
    if match.get("outcome"):
        place.append(f"  {match['outcome']}", style=f"not bold {STYLES.get(match['outcome'], '')}")
    if not deep:
        place.append(f"  {plain_line(about.project_and_title(match['session_id']))}", style="not bold dim")
    line(Text(" " * deep) + place)
    text = plain(preview_text(preview)).strip("\n")
    body(_highlighted(_around(text, words) if deep else text, words), deep + 2)
    if match.get("result"):
        body(Text(plain(match["result"]), style="dim"), deep + 2)
    if match.get("error"):
        body(Text(plain(match["error"]), style="red"), deep + 2)


def _around(text: str, words: Sequence[str]) -> str:
    """Return the lines around the first occurrence of any of the words."""
    lines = text.split("\n")
    found = (number for number, line in enumerate(lines) if any(word.casefold() in line.casefold() for word in words))
    first = max(next(found, 0) + 2 - _LINES_OF_GROUP, 0)
    return "\n".join(lines[first : first + _LINES_OF_GROUP])


def preview_text(preview: dict[str, Any]) -> str:
    """Return the text of an event's preview in an answer of search_event_previews."""
    if "arguments" in preview:
        arguments = preview["arguments"]
        if isinstance(arguments, dict):
            return "\n".join(f"{name}: {value}" for name, value in arguments.items())
        return str(arguments)
    if "text" in preview or "preview" in preview:
        return str(preview.get("text", preview.get("preview")))
    return ", ".join(f"{name} {value}" for name, value in preview.items() if value is not None)


_WIDEST_COLUMNS = (
    "session", "started", "last", "agent", "project", "lasted", "turns", "tools", "failed", "tokens", "cost", "request",
)  # fmt: skip
_COLUMNS = (
    (150, _WIDEST_COLUMNS),
    (120, ("session", "began", "last", "agent", "project", "lasted", "turns", "failed", "tokens", "cost", "request")),
    (90, ("session", "last", "agent", "project", "failed", "cost", "request")),
    (72, ("session", "last", "agent", "project", "request")),
    (50, ("session", "last", "project", "request")),
    (0, ("session", "last", "request")),
)
"""From a width on, the columns of sessions; the wider the terminal, the more there is of the request, too."""

_BY_START = frozenset({None, "newest", "oldest"})
"""The orders of a list that goes by the start of sessions: where there is room for one time, it is that."""

WHOLE_IDS = 180
"""The width from which ids are shown whole."""

_COST = later(r"[\d.]+ cost_usd$")
"""The total by which a list is sorted, in the words of an answer to an agent."""

_OF_PROJECTS = ("project", "last", "sessions", "failed", "tokens", "cost")
_OF_PROJECTS_NARROW = ("project", "sessions", "cost")
_UNKNOWN = "?"
_NARROW = 60
_LEFT = ("session", "agent", "started", "request", "project", "began", "last")


def _agent(provider: str) -> str:
    return provider.removesuffix("_code")


_MOST_PROJECT = 20
"""The width of a project's name in a list of sessions."""

_WIDEST = {
    "session": 14, "agent": max(map(len, map(_agent, AGENTS))), "started": 10, "turns": 5, "tools": 5, "failed": 6,
    "tokens": 6, "cost": 9, "began": 5, "last": 4,
    "project": _MOST_PROJECT, "lasted": 11, "run": 5, "output": 6, "seconds": 9, "compacted": 9, "edits": 5, "files": 5,
}  # fmt: skip
_WIDEST_OF_PROJECTS = {"last": 16, "sessions": 8, "failed": 6, "tokens": 6, "cost": 9}
_COLUMN_OF = {
    "failed_calls": "failed", "failure_run": "run", "output_tokens": "output", "total_tokens": "tokens", "cost": "cost",
    "tool_calls": "tools", "turns": "turns", "duration": "seconds", "compactions": "compacted", "edits": "edits",
    "files": "files",
}  # fmt: skip
"""The column of a measure by which the list is sorted; it is there on any terminal."""


def sessions(
    answer: dict[str, Any],
    next_calls: Sequence[NextCall],
    sort: str | None = None,
    described: Mapping[str, Described] | None = None,
    *,
    whole_ids: bool = False,
) -> None:
    """Print a table of sessions that fills the terminal's width, and that has the measure by which it is sorted.

    Without a width to fit, nothing is cut, and the titles are those of `described`. With `whole_ids`, the ids are.
    """
    said = answer["summary"].replace("; kind=all adds", "; --kind all adds")
    summary(answer | {"summary": _COST.sub(lambda found: dollars(float(found[0][:-9])) + " in all", said)})
    columns = _columns(sort)
    whole = described or {}
    rows = [
        _session_cells(item, whole.get(item["id"]), whole_ids=whole_ids) for item in answer["data"].get("sessions", [])
    ]
    if rows:
        widest = max(len(str(row["session"])) for row in rows) if whole_ids else _WIDEST["session"]
        _print(columns, rows, _WIDEST | {"session": widest})
    elif not offer(next_calls):
        nothing("`agtrace doctor` shows which logs were found; `agtrace index PATH` adds some.")
    footer(answer, has_all=True)


def projects(answer: dict[str, Any], next_calls: Sequence[NextCall]) -> None:
    """Print a table of projects that fills the terminal's width."""
    summary(answer)
    columns = _OF_PROJECTS if OUT.width >= _NARROW or not fills() else _OF_PROJECTS_NARROW
    rows: list[Row] = [
        {
            "project": Text(plain_line(item["name"]), style="bold"),
            "last": when(item.get("last_activity")),
            "sessions": f"{item['session_count']:,}",
            "failed": Text(_failed(item), style="red"),
            "tokens": least(short(item.get("total_tokens")), item.get("tokens_made")),
            "cost": _cost(item),
        }
        for item in answer["data"].get("projects", [])
    ]
    if rows:
        _print(columns, rows, _WIDEST_OF_PROJECTS)
    elif not offer(next_calls):
        nothing("`agtrace doctor` shows which logs were found; `agtrace index PATH` adds some.")
    footer(answer, has_all=True)


def _columns(sort: str | None) -> Sequence[str]:
    columns: Sequence[str] = _WIDEST_COLUMNS
    if fills():
        columns = next(names for width, names in _COLUMNS if OUT.width >= width)
    if sort in _BY_START and not {"started", "began"} & {*columns}:
        columns = ["began" if name == "last" else name for name in columns]
    measure = _COLUMN_OF.get(sort or "")
    if measure is None or measure in columns:
        return columns
    return (*columns[:-1], measure, columns[-1])


def _session_cells(item: dict[str, Any], whole: Described | None, *, whole_ids: bool) -> Row:
    seconds = item.get("duration_seconds")
    return {
        "session": Text(plain_line(whole.session_id if whole and whole_ids else item["id"]), style="bold"),
        "agent": _agent(item["provider"]),
        "started": when(item.get("start_time"))[:10],
        "began": age(_began(item), time.time()),
        "last": age(_ended(item), time.time()),
        "project": Text(plain_line(" · ".join(filter(None, (item.get("user"), item.get("project")))))),
        "lasted": duration(seconds * 1000) if seconds else "",
        "turns": str(item["turn_count"]),
        "tools": str(item["tool_calls"]),
        "failed": Text(_failed(item), style="red"),
        "tokens": least(short(item.get("total_tokens")), item.get("tokens_made")),
        "cost": _cost(item),
        "run": str(item.get("failure_run", "")),
        "output": short(item.get("output_tokens")),
        "seconds": str(item.get("duration_seconds", "")),
        "compacted": str(item.get("compactions", "")),
        "edits": str(item.get("edits", "")),
        "files": str(item.get("files", "")),
        "request": _about(item, whole),
    }


def _cost(item: dict[str, Any]) -> str:
    return spent(item.get("cost_usd"), item.get("cost_made"))


def _failed(item: dict[str, Any]) -> str:
    """Return how many calls failed: nothing if none did, and a sign if the logs don't say."""
    failed = item.get("failed_calls")
    return _UNKNOWN if failed is None else f"{failed:,}" if failed else ""


def _began(item: dict[str, Any]) -> int | None:
    """Return when a session began, in milliseconds since 1970 UTC."""
    start = item.get("start_time")
    return None if start is None else int(datetime.fromisoformat(start).timestamp() * 1000)


def _ended(item: dict[str, Any]) -> int | None:
    """Return when something happened last, in milliseconds since 1970 UTC."""
    began = _began(item)
    return None if began is None else began + int(item.get("duration_seconds", 0) * 1000)


def _about(item: dict[str, Any], whole: Described | None) -> Text:
    """Return what a session was about, after its kind if it isn't a main session, and what made it one of the list."""
    kind = Text(f"{item['kind']}  ", style="cyan") if "kind" in item else Text()
    for landmark in item.get("landmarks", [])[:1]:
        kind.append(plain_line(_deed(*landmark)), style="green").append("  ")
    title = whole.title if whole and not fills() else None
    return kind.append(plain_line(title or item.get("title") or item.get("snippet") or "(no request)"))


def _deed(_event: int, kind: str, name: str | None = None, did: str | None = None, detail: str | None = None) -> str:
    """Return a commit, or what was done with a pull request, on one line: its link is in the session."""
    about = " ".join(word for word in (detail or "").split(" ") if not word.startswith("https://"))
    return " ".join(filter(None, (name if kind == "commit" or name is None else f"#{name}", did, about)))


def _print(columns: Sequence[str], rows: Sequence[Row], widest: Mapping[str, int]) -> None:
    """Print a table in the terminal's width, or in full if there is none to fit."""
    if not fills():
        aligned(columns, rows, {name for name in columns if name not in _LEFT})
        return
    table = Table(box=None, pad_edge=False, header_style="dim", expand="request" in columns)
    for column in columns:
        longest = max(cell_len(str(cell)) for cell in (column, *(row[column] for row in rows)))
        width = min(longest, widest[column]) if column in widest else None
        table.add_column(
            column, justify="left" if column in _LEFT else "right", no_wrap=True, overflow="ellipsis",
            min_width=width, max_width=width, ratio=1 if column == "request" else None,
        )  # fmt: skip
    for row in rows:
        table.add_row(*(row[column] for column in columns))
    OUT.print(table)
