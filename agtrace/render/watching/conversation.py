"""The screen that follows one session: who it is, then its turns as they arrive."""

from __future__ import annotations

import time
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

from agtrace.render.terminal import plain_line
from agtrace.render.watching.blocks import block, told
from agtrace.report.conversation.telling import Execution, Followed, Item
from agtrace.sessions.running import RunningSession


class Conversation(Screen[None]):
    """The conversation of a session, which goes on below its end while that is in view."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "app.pop_screen", "Back", key_display="esc"),
        Binding("up,k", "scroll('up')", "Up", show=False),
        Binding("down,j", "scroll('down')", "Down", show=False),
        Binding("pageup,b", "scroll('page_up')", "Page up", show=False),
        Binding("pagedown,space", "scroll('page_down')", "Page down", show=False),
        Binding("home,g", "scroll('home')", "Start"),
        Binding("end,G", "scroll('end')", "End"),
        Binding("q", "app.quit", "Quit"),
    ]

    def __init__(self, uid: str) -> None:
        super().__init__()
        self.uid = uid
        self.first_event: int | None = None
        """The first event that is shown; None before anything is."""
        self._items: list[Item] = []
        self._widgets: list[Static] = []
        """One for each item."""
        self._session: RunningSession | None = None
        self._at = 0.0
        self._notes: dict[str, str | None] = {}
        self._given: Followed | None = None
        self._is_laid_out = False
        """What is found before that is shown later."""

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield Static("reading ...", id="head", markup=False)
        yield VerticalScroll(id="items")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begin at the end, stay there until the user scrolls, and keep the time since the last activity current."""
        self._is_laid_out = True
        self.query_one("#items", VerticalScroll).anchor()
        self._show_items()
        self._show_head()
        self.set_interval(1, self._show_head)

    def on_resize(self) -> None:
        """Draw the head again, as wide as the terminal is now."""
        self._show_head()

    def take_head(self, session: RunningSession | None, problem: str | None, at: float) -> None:
        """Show what the session does now; None if it was not active lately."""
        self._session, self._at = session, at
        self._notes["index"] = problem
        self._show_head()

    def take(self, followed: Followed | None, problem: str | None) -> None:
        """Show the conversation as it is now: what is new is added, and calls that ended get their outcome."""
        self._notes["session"] = problem
        if followed is not None:
            self._notes["log"] = "its log was deleted; this is what was read of it" if followed.log_gone else None
            self._given = followed
            self._show_items()
        self._show_head()

    def _show_items(self) -> None:
        followed, there = self._given, self.query("#items")
        if followed is None or not (self._is_laid_out and there):  # what is taken down loses its parts first
            return
        place = there.first(VerticalScroll)
        if followed.first_event != self.first_event:
            self.first_event, self._items, self._widgets = followed.first_event, [], []
            place.remove_children()
        items = list(followed.items)
        for widget, before, item in zip(self._widgets, self._items, items, strict=False):
            if item != before:
                widget.update(told(item) or "")
                widget.set_class(isinstance(item, Execution), "call")
        for widget in self._widgets[len(items) :]:
            widget.remove()
        new = [_widget(item) for item in items[len(self._widgets) :]]
        self._items, self._widgets = items, [*self._widgets[: len(items)], *new]
        if new:
            place.mount_all(new)

    def _show_head(self) -> None:
        head = self.query("#head")
        if not (self._is_laid_out and head):
            return
        width = max(self.size.width - 2, 4)
        text = Text(f"session {plain_line(self.uid)}", style="bold")
        if self._session is not None:
            passed = int(time.monotonic() - self._at)
            text = block(self._session, width, idle=self._session.idle_seconds + passed)
        for note in filter(None, self._notes.values()):
            text = text + Text("\n") + Text(plain_line(note), style="red")
        head.first(Static).update(text)

    def action_scroll(self, way: str) -> None:
        """Scroll the conversation."""
        place = self.query_one("#items", VerticalScroll)
        getattr(place, f"scroll_{way}")(animate=False)


def _widget(item: Item) -> Static:
    return Static(told(item) or "", markup=False, classes="call" if isinstance(item, Execution) else "")
