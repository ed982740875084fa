"""The matches of a search, for people: events with the text around the match, or the sessions that have them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from agtrace_schema.patterns import later
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agtrace.render.next_calls import offer
from agtrace.render.terminal import (
    OUT,
    STYLES,
    age,
    body,
    fills,
    footer,
    line,
    nothing,
    plain,
    plain_line,
    summary,
    when,
)
from agtrace.sessions.describing import Described
from agtrace.text.next_call import NextCall
from agtrace.text.numbers import counted, duration, spent

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
    if best := data.get("best"):
        _print_best(best, words, about)
        offer(next_calls)
        return
    _print_matches(data.get("matches", []), words, about)
    for session in data.get("sessions", []):
        found = f"{session['matches']} match{'es' * (session['matches'] != 1)}"
        line(about.line(session["session_id"], session.get("title") or session.get("snippet"), found))
        _print_match(session["match"], words, about, deep=2)
    if not data.get("matches") and not data.get("sessions") and not offer(next_calls):
        nothing("Try a shorter piece of the text, exactly as it is in the log, or fewer filters.")
    footer(answer, has_all=True)


class _Sessions:
    """Lines about sessions: id, last activity, agent, project, how long, cost and title, as far as there is room."""

    def __init__(self, described: Mapping[str, Described], whole_ids: bool) -> None:
        self._described, self._whole_ids, self._now = described, whole_ids, time.time()

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
        """Return what tells the session of an event from others."""
        known = self._described.get(id)
        return "" if known is None else "  ".join(filter(None, (known.user, known.project, known.title)))


def _summary(answer: dict[str, Any]) -> str:
    """Return the summary; a number of matches that depends on how many are shown says nothing, and is left out."""
    if not _AT_LEAST.match(str(answer["summary"])):
        return str(answer["summary"])
    shown = len(answer["data"].get("matches") or answer["data"].get("sessions") or ())
    said = _AT_LEAST.sub(lambda found: counted(shown, found[1].removesuffix("s")), str(answer["summary"]))
    return f"First {said}; there are more"


def _print_best(best: dict[str, Any], words: Sequence[str], about: _Sessions) -> None:
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
        line(about.line(session["session_id"], session["title"]))
        _print_events([*session["hits"], *_course(session)], words, deep=2)
    for session_id, _, title in best["others"]:
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
    """Print events, a line each: index, who speaks, text; that of the marked one is bold."""
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
    if match.get("outcome"):
        place.append(f"  {match['outcome']}", style=f"not bold {STYLES.get(match['outcome'], '')}")
    if not deep:
        place.append(f"  {plain_line(about.project_and_title(match['session_id']))}", style="not bold dim")
    line(Text(" " * deep) + place)
    text = plain(_preview_text(preview)).strip("\n")
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


def _preview_text(preview: dict[str, Any]) -> str:
    if "arguments" in preview:
        arguments = preview["arguments"]
        if isinstance(arguments, dict):
            return "\n".join(f"{name}: {value}" for name, value in arguments.items())
        return str(arguments)
    if "text" in preview or "preview" in preview:
        return str(preview.get("text", preview.get("preview")))
    return ", ".join(f"{name} {value}" for name, value in preview.items() if value is not None)
