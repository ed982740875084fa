"""The application of bare `agtrace`: sessions as one types, with the end of the conversation beside them.

Threads read for it and give it what they found as messages, so only its own thread touches the screen. Reading a
session leads back to the list; anything else that is chosen is returned when it ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol

from rich.text import Text
from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.events import Key, Resize
from textual.message import Message
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from agtrace.conversation.items import Call, Followed
from agtrace.render.conversation import on_screen
from agtrace.render.terminal import plain_line
from agtrace.times import when

_WAIT_SECONDS = 0.15
"""After the last key before sessions are searched."""

_BESIDE = 100
"""The columns from which the conversation has room beside the list."""

_ITEMS = 40
"""The most items of a conversation that are drawn."""


class Row(NamedTuple):
    """A session in the list."""

    id: str
    at: str | None
    """ISO 8601: its start, or the time of the event that was found."""
    agent: str
    project: str
    about: str
    """Its title or first request."""
    hit: str
    """What was found in it; empty if nothing was searched for."""


class Choice(NamedTuple):
    """What is to be done when the picker has ended."""

    command: str
    """`show`, `resume` or `open`."""
    session_id: str


class Source(Protocol):
    """Where the picker gets what it shows; each method is called in a thread of its own."""

    def sessions(self, query: str) -> Sequence[Row] | str:
        """Return the sessions for a query, the newest for an empty one, or a sentence that says why not."""

    def conversation(self, session_id: str) -> Followed | None:
        """Return the end of a session's conversation; None if it can't be read now."""

    def show(self, session_id: str) -> None:
        """Let a person read a session in the terminal; called in the thread of the picker, which waits."""


class Rows(Message):
    """The sessions that a query is about, or why there are none."""

    def __init__(self, query: str, rows: Sequence[Row] | str) -> None:
        super().__init__()
        self.query, self.rows = query, rows


class Preview(Message):
    """The end of a session's conversation; None if it can't be read now."""

    def __init__(self, session_id: str, conversation: Followed | None) -> None:
        super().__init__()
        self.session_id, self.conversation = session_id, conversation


class Picker(App[Choice]):
    """Picks a session, and what to do with it."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose('show')", "Read", priority=True),
        Binding("r", "choose('resume')", "Resume"),
        Binding("o", "choose('open')", "Browser"),
        Binding("y", "copy", "Copy id"),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("escape", "leave", "Quit", priority=True, key_display="esc"),
        Binding("ctrl+c", "leave", "Quit", show=False, priority=True),
    ]
    CSS = """
    Screen { background: ansi_default; }
    Input { border: none; height: 1; padding: 0 1; background: ansi_default; }
    #sides { height: 1fr; }
    OptionList, #conversation { border: none; padding: 0; width: 1fr; background: ansi_default;
        scrollbar-size-vertical: 1; scrollbar-background: ansi_default; scrollbar-color: ansi_bright_black; }
    OptionList > .option-list--option { padding: 0 1; }
    OptionList > .option-list--option-highlighted, OptionList:focus > .option-list--option-highlighted {
        background: ansi_default; color: ansi_default; text-style: none;
    }
    #conversation { border-left: solid ansi_bright_black; padding: 0 1; }
    #conversation > Static { height: auto; margin: 0 0 1 0; }
    #conversation > Static.call { margin: 0; }
    #note { height: auto; max-height: 3; padding: 0 1; color: ansi_bright_black; }
    """

    def __init__(self, source: Source) -> None:
        """Prepare to pick a session of a source."""
        super().__init__(ansi_color=True)
        self._source = source
        self._rows: Sequence[Row] = ()
        self._width = 0
        """The columns of the terminal."""
        self._shown = ""
        """The session whose conversation is read, or was."""
        self._query: str | None = None
        """What the listed sessions are about."""
        self._command: str | None = None
        """What is to be done with the first session for what was typed, once it is found."""

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield Input(placeholder="type to search all sessions", select_on_focus=False)
        with Horizontal(id="sides"):
            yield OptionList(markup=False)
            yield VerticalScroll(id="conversation", can_focus=False)
        yield Static("", id="note", markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begin with the newest sessions."""
        self.theme = "ansi-dark"
        self.query_one(Input).cursor_blink = False
        self._find("")

    def on_resize(self, event: Resize) -> None:
        """Show the conversation only where it has room."""
        self._width = event.size.width
        self.query_one("#conversation").display = self._width >= _BESIDE
        self._list()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search, once no more is typed."""
        self._find(event.value)

    def on_key(self, event: Key) -> None:
        """Go from the query into the list with the arrows, and back by typing."""
        typed, listed = self.query_one(Input), self.query_one(OptionList)
        if event.key in ("down", "up") and typed.has_focus:
            listed.focus()
            event.stop()
        elif event.key == "up" and listed.has_focus and not listed.highlighted:
            typed.focus()
            event.stop()

    def on_option_list_option_highlighted(self, _event: OptionList.OptionHighlighted) -> None:
        """Mark the session under the cursor, and read its conversation."""
        for number in range(len(self._rows)):
            self.query_one(OptionList).replace_option_prompt_at_index(number, self._prompt(number))
        chosen = self._chosen()
        if chosen is not None and chosen.id != self._shown:
            self._shown = chosen.id
            self._work("read", lambda: Preview(chosen.id, self._source.conversation(chosen.id)))

    def on_option_list_option_selected(self, _event: OptionList.OptionSelected) -> None:
        """Read the session that was clicked on."""
        self.action_choose("show")

    def action_choose(self, command: str) -> None:
        """Do with the session under the cursor what was chosen, once what was typed has been searched for."""
        chosen = self._chosen()
        self._command = None if self._query == self.query_one(Input).value else command
        if chosen is None or self._command is not None:
            return
        with suppress(SuspendNotSupported):
            if command == "show":
                with self.suspend():
                    self._source.show(chosen.id)
                return
        self.exit(Choice(command, chosen.id))

    def action_copy(self) -> None:
        """Copy the id of the session under the cursor."""
        chosen = self._chosen()
        if chosen is not None:
            self.copy_to_clipboard(chosen.id)
            self._note(f"copied {plain_line(chosen.id)}")

    def action_search(self) -> None:
        """Go to the query."""
        self.query_one(Input).focus()

    def action_leave(self) -> None:
        """End without a choice."""
        self.exit(None)

    def on_rows(self, message: Rows) -> None:
        """List what was found, unless something else has been typed meanwhile."""
        if message.query != self.query_one(Input).value:
            return
        if isinstance(message.rows, str):
            self._note(message.rows)
            return
        self._rows, self._shown, self._query = message.rows, "", message.query
        self.query_one(OptionList).highlighted = None
        self._note("" if message.rows else "nothing was found")
        self._list()
        if self._command is not None:
            self.action_choose(self._command)
        if not message.rows:
            self.query_one("#conversation").remove_children()

    def on_preview(self, message: Preview) -> None:
        """Show a conversation, if its session is still the one under the cursor."""
        place = self.query_one("#conversation", VerticalScroll)
        if message.session_id != self._shown or not place.display:
            return
        place.remove_children()
        if message.conversation is None:
            self._note("the session can't be read now")
            return
        width = max(place.size.width - 3, 20)
        place.mount_all(
            Static(on_screen(item, width), markup=False, classes="call" if isinstance(item, Call) else "")
            for item in message.conversation.items[-_ITEMS:]
        )
        place.anchor()

    def _find(self, query: str) -> None:
        self._work("find", lambda: Rows(query, self._source.sessions(query.strip())), _WAIT_SECONDS if query else 0)

    def _list(self) -> None:
        listed = self.query_one(OptionList)
        number = listed.highlighted or 0
        listed.set_options([Option(self._prompt(number)) for number in range(len(self._rows))])
        listed.highlighted = min(number, len(self._rows) - 1) if self._rows else None

    def _prompt(self, number: int) -> Text:
        """Return a session as it is listed; lines of the one under the cursor have a mark at their beginnings."""
        row, marked = self._rows[number], number == self.query_one(OptionList).highlighted
        width = (self._width // 2 if self._width >= _BESIDE else self._width) - 5  # margins, mark and scroll bar
        head = Text.assemble((f"{when(row.at)}  ", "dim"), (f"{plain_line(row.project)}  ", "cyan"), (row.agent, "dim"))
        lines = [head, Text(plain_line(row.about), style="bold" if row.hit else "")]
        if row.hit:
            lines.append(Text(f"  {plain_line(row.hit)}"))
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        return Text("\n").join(Text().append("▌ " if marked else "  ").append_text(line) for line in lines)

    def _work(self, group: str, read: Callable[[], Message], wait: float = 0) -> None:
        self.run_worker(partial(self._post, read, wait), thread=True, group=group, exclusive=True)

    def _post(self, read: Callable[[], Message], wait: float) -> None:
        time.sleep(wait)
        if not get_current_worker().is_cancelled:
            self.post_message(read())

    def _note(self, text: str) -> None:
        self.query_one("#note", Static).update(Text(plain_line(text)))

    def _chosen(self) -> Row | None:
        number = self.query_one(OptionList).highlighted
        return None if number is None or number >= len(self._rows) else self._rows[number]


def row_of(session: dict[str, Any], hit: str = "", at: str | None = None) -> Row:
    """Return the row for a session of an answer of list_sessions or search_event_previews."""
    about = session.get("title") or session.get("snippet") or ""
    return Row(
        session.get("id") or session["session_id"], at or session.get("start_time"), session.get("provider", ""),
        session.get("project") or "", about, hit,
    )  # fmt: skip
