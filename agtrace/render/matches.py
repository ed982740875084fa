"""The matches of a search, for people: events with the text around the match, or the sessions that have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agtrace.render.next_calls import offer
from agtrace.render.terminal import OUT, STYLES, fills, footer, nothing, plain, summary, when
from agtrace.text.next_call import NextCall
from agtrace.text.numbers import counted

_WITH_AGENT, _WITH_TIME = 80, 60
"""The terminal's width from which a session's line has room for these."""

_EVENT = 4
"""The columns of an event's index."""

_LINES_OF_GROUP = 3
"""The lines of a match that are shown under its session."""


def matches(answer: dict[str, Any], next_calls: Sequence[NextCall], words: Sequence[str]) -> None:
    """Print the matches of a search, or sessions with one match of each; `words` are highlighted in them."""
    data = answer["data"]
    summary(answer)
    if best := data.get("best"):
        _print_best(best, words)
        offer(next_calls)
        return
    for match in data.get("matches", []):
        _print_match(match, words)
    for session in data.get("sessions", []):
        OUT.print(_session_line(session), no_wrap=True, overflow="ellipsis")
        _print_match(session["match"], words, deep=2)
    if not data.get("matches") and not data.get("sessions"):
        _print_words(data.get("words", []))
        if not offer(next_calls):
            nothing("Try a shorter piece of the text, exactly as it is in the log, or fewer filters.")
    if data.get("own_left_out"):
        nothing(f"left out: {counted(data['own_left_out'], 'event')} in which an agent asks agtrace (--own shows them)")
    footer(answer)


def _print_best(best: dict[str, Any], words: Sequence[str]) -> None:
    """Print sessions with their best events, then those that come after them, a line each."""
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
        line = Text(plain(session["session_id"]), style="bold")
        line.append(f"  {session.get('date') or ''}  {plain(session.get('project') or '')}", style="not bold dim")
        line.append(f"  {plain(session['title'])}", style="not bold")
        OUT.print(line, no_wrap=True, overflow="ellipsis")
        OUT.print(Padding(_event_lines(session["hits"], words), (0, 0, 0, 2), expand=fills()))
    for session_id, date, title in best["others"]:
        OUT.print(Text(f"{plain(session_id)}  {date}  {plain(title)}", style="dim"), no_wrap=True, overflow="ellipsis")


def around(answer: dict[str, Any], event_index: int, next_calls: Sequence[NextCall]) -> None:
    """Print the events around one, a line each."""
    summary(answer)
    OUT.print(_event_lines(answer["data"]["around"], (), marked=event_index))
    offer(next_calls)
    footer(answer)


def _event_lines(lines: Sequence[tuple[int, str, str]], words: Sequence[str], marked: int | None = None) -> Table:
    """Return events as a table: index, who speaks, text; the row of the marked one is bold."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right", style="bold", min_width=_EVENT)
    table.add_column()
    for event_index, who, said in lines:
        text = Text(f"{plain(who)}  ", style="cyan") + _highlighted(plain(said), words)
        table.add_row(str(event_index), text, style="bold" if event_index == marked else "")
    return table


def _highlighted(said: str, words: Sequence[str]) -> Text:
    text = Text(said)
    text.highlight_words(words, style="reverse", case_sensitive=False)
    return text


def _print_match(match: dict[str, Any], words: Sequence[str], deep: int = 0) -> None:
    preview = match["preview"]
    place = Text(f"{plain(match['session_id'])}:{match['event_index']}", style="bold")
    place.append(f"  {when(match.get('timestamp'))}  {match['event_type']}", style="not bold dim")
    if preview.get("tool") or preview.get("kind"):
        place.append(f"  {plain(preview.get('tool') or preview['kind'])}", style="not bold cyan")
    if match.get("outcome"):
        place.append(f"  {match['outcome']}", style=f"not bold {STYLES.get(match['outcome'], '')}")
    OUT.print(Padding(place, (0, 0, 0, deep), expand=fills()))
    text = plain(_preview_text(preview)).strip("\n")
    body = Text(_around(text, words) if deep else text)
    if words:
        body.highlight_words(words, style="reverse", case_sensitive=False)
    OUT.print(Padding(body, (0, 0, 0, deep + 2), expand=fills()))
    if match.get("error"):
        OUT.print(Padding(Text(plain(match["error"]), style="red"), (0, 0, 0, deep + 2), expand=fills()))


def _around(text: str, words: Sequence[str]) -> str:
    """Return the lines around the first occurrence of any of the words."""
    lines = text.split("\n")
    found = (number for number, line in enumerate(lines) if any(word.casefold() in line.casefold() for word in words))
    first = max(next(found, 0) + 2 - _LINES_OF_GROUP, 0)
    return "\n".join(lines[first : first + _LINES_OF_GROUP])


def _session_line(session: dict[str, Any]) -> Text:
    """Return a session on one line, its title last so that it is what gets cut at the line's end."""
    line = Text(plain(session["session_id"]), style="bold")
    if OUT.width >= _WITH_AGENT:
        line.append(f"  {session['provider'].removesuffix('_code')}", style="not bold")
    if OUT.width >= _WITH_TIME:
        line.append(f"  {when(session.get('start_time'))}", style="not bold")
    least = "at least " if session.get("matches_exact") is False else ""
    line.append(f"  {least}{session['matches']} match{'es' * (session['matches'] != 1)}", style="not bold green")
    title = session.get("title") or session.get("snippet") or "(no request)"
    return line.append("  " + " ".join(plain(title).split()), style="not bold")


def _print_words(words: Sequence[dict[str, Any]]) -> None:
    """Print how many events have each word of a query that was not found as a whole."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("word", overflow="fold")
    table.add_column("events with it", justify="right", no_wrap=True)
    for word in words:
        least = "" if word["exact"] else "at least "
        table.add_row(Text(plain(word["word"])), f"{least}{word['events']:,}")
    if table.row_count:
        OUT.print(table)


def _preview_text(preview: dict[str, Any]) -> str:
    if "arguments" in preview:
        arguments = preview["arguments"]
        if isinstance(arguments, dict):
            return "\n".join(f"{name}: {value}" for name, value in arguments.items())
        return str(arguments)
    if "text" in preview or "preview" in preview:
        return str(preview.get("text", preview.get("preview")))
    return ", ".join(f"{name} {value}" for name, value in preview.items() if value is not None)
