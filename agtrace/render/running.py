"""A running session on three lines of a given width, as styled text.

Styles are the sixteen colours of the terminal, which are readable on its own background, dark or light. All texts from
logs are put in as plain text, so that no markup in them acts.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from agtrace.render.terminal import OUT, plain, plain_line
from agtrace.sessions.activity import Recent, Running, RunningSession
from agtrace.text.numbers import counted, duration, short, spent
from agtrace.times import when

_STATES = {
    "thinking": ("thinking", "cyan"),
    "calling": ("working", "cyan"),
    "answering": ("answering", "cyan"),
    "idle": ("idle", "dim"),
    "closed": ("closed", "dim"),
    "unknown": ("unclear", "dim"),
}
_WAITS = {
    "answer": "has answered",
    "question": "asks you",
    "plan": "shows a plan",
    "permission": "asks permission",
    "error": "failed",
    "interruption": "was stopped",
}
_FULL = 80
"""Percent of its window from which on a context is nearly full."""

_NEVER_MIND = 10
"""Seconds before a call is said to wait for permission, perhaps."""

_WIDEST = 118
"""Cells from the name of a session to the end of its figures: over more than that, eyes don't find the line."""


def heading(running: Running) -> Text:
    """Return the line that sums up: how many sessions run, wait or are idle, and what is wrong with the index."""
    alive = [session for session in running.sessions if not session.is_closed]
    waiting = sum(session.waits_for_you is True for session in alive)
    idle = sum(session.is_idle for session in alive)
    running_now = len(alive) - running.asked_before - idle
    text = Text("no session is running" if not running_now else f"{counted(running_now, 'session')} running")
    if waiting:
        text.append(f", {waiting} waiting for you", style="bold yellow")
    if idle:
        text.append(f", {idle} idle", style="dim")
    if running.problem:
        text.append(f"  {plain_line(running.problem)}", style="red")
    return text


def state(session: RunningSession) -> Text:
    """Return what a session does, in a word or two."""
    if session.waits:
        return Text(
            _WAITS.get(session.waits, session.waits), style="red bold" if session.waits == "error" else "yellow bold"
        )
    word, style = _STATES.get(session.state, (session.state, ""))
    if session.state == "calling" and session.waits_for_you is None and session.idle_seconds >= _NEVER_MIND:
        word = "working, or asks permission"
    return Text(word, style=style)


def block(session: RunningSession, width: int, *, idle: int | None = None, chosen: bool = False) -> Text:
    """Return a session on three lines of at most `width` cells; `idle` are the seconds since its last activity.

    The lines of a chosen one have a mark at their beginnings.
    """
    seconds = session.idle_seconds if idle is None else idle
    about = " › ".join(filter(None, (session.title, session.request if session.request != session.title else None)))
    room = width - 2
    dot = "yellow" if session.waits_for_you else "dim" if session.is_closed or session.is_idle else "cyan"
    text = Text().append("● ", style=dot).append_text(state(session))
    text.append(f"  {plain_line(session.id)}")
    text.append(f"  {plain_line(session.project or 'no project')}", style="bold")
    lines = [
        _row(text.append(f"  {session.agent}", style="dim"), _figures(session, seconds), min(room, _WIDEST)),
        _cut(Text("  ").append(plain_line(about or "(no request)")), room),
        _cut(Text("  ").append_text(_now(session)), room),
    ]
    return Text("\n").join(Text().append("▌ " if chosen else "  ", style="bold").append_text(line) for line in lines)


def recent(sessions: tuple[Recent, ...], width: int) -> Iterator[Text]:
    """Yield the latest sessions, a line each, below a line that says what they are."""
    if not sessions:
        yield Text("`agtrace doctor` shows which logs were found; `agtrace index PATH` adds some.", style="dim")
        return
    yield Text("the latest:", style="dim")
    for session in sessions:
        line = Text(f"  {plain(session.id)}  ", style="bold")
        line.append(f"{when(session.last_activity)}  {session.agent}  ", style="not bold dim")
        line.append(plain_line(session.project or ""), style="not bold")
        line.append(f"  {plain_line(session.title or '')}", style="not bold")
        yield _cut(line, width)


def _figures(session: RunningSession, idle: int) -> Text:
    text = Text()
    if session.context_tokens is not None:
        window = f" of {_round(session.context_window)}" if session.context_window else ""
        share = f" {session.context_percent}%" if session.context_percent is not None else ""
        full = (session.context_percent or 0) >= _FULL
        text.append(f"{_round(session.context_tokens)}{window}{share}  ", style="red" if full else "")
    if session.cost_usd is not None:
        text.append(f"{spent(session.cost_usd, session.cost_made)}  ")
    if session.failed_calls:
        text.append(f"{session.failed_calls} failed  ", style="red")
    return text.append(duration(1000 * idle), style="dim")


def _round(tokens: int) -> str:
    """Return a count of tokens: `200k`, `48.7k`."""
    return short(tokens).replace(".0", "")


def _now(session: RunningSession) -> Text:
    """Return what a session is at, after the reason why more isn't known."""
    text = Text()
    if session.log_gone:
        text.append("its log was deleted  ", style="red")
    if session.state in ("idle", "unknown") and session.why:
        text.append(f"({session.why})  ", style="dim")
    return text.append(plain_line(session.now))


def _row(left: Text, right: Text, width: int) -> Text:
    """Return two texts on one line, the second at its end; the first is cut, but if little is left of it the second."""
    room = width - right.cell_len - 2
    if room < min(left.cell_len, width // 3):
        return _cut(left, width)
    left = _cut(left, room)
    return left + Text(" " * (width - left.cell_len - right.cell_len)) + right


def _cut(text: Text, width: int) -> Text:
    """Return a text of at most so many cells; a longer one ends with an ellipsis."""
    text = text.copy()
    text.truncate(max(width, 1), overflow="ellipsis")
    return text


def running(found: Running) -> None:
    """Print each running session on three lines; if none is running, the latest ones."""
    OUT.print(heading(found))
    for session in found.sessions:
        OUT.print()
        OUT.print(block(session, OUT.width))
    if all(session.is_closed for session in found.sessions):
        OUT.print(Text("\n").join(recent(found.recent, OUT.width)))
