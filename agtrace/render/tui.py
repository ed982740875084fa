"""The application of `agtrace watch`: a list of the running sessions, and the conversation of one of them.

Two threads work for it: one looks at the sessions whenever a log changes, others read a conversation. They give it what
they found as messages, so only the application's own thread touches what is on the screen.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import ClassVar, Protocol

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import Resize
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from agtrace.conversation.items import Call, Followed, Item
from agtrace.render.conversation import on_screen
from agtrace.render.running import block, heading, recent
from agtrace.render.terminal import plain_line
from agtrace.sessions.activity import Running, RunningSession

_BESIDE = 3
"""The columns beside an item: a margin on both sides, and the scroll bar."""


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
        self._width = 0
        """Of each of them."""
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
        """Draw everything again, as wide as the terminal is now."""
        self._show_items()
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
        items, width = list(followed.items), self.size.width - _BESIDE
        for widget, before, item in zip(self._widgets, self._items, items, strict=False):
            if item != before or width != self._width:
                widget.update(on_screen(item, width))
                widget.set_class(isinstance(item, Call), "call")
        for widget in self._widgets[len(items) :]:
            widget.remove()
        new = [
            Static(on_screen(item, width), markup=False, classes="call" if isinstance(item, Call) else "")
            for item in items[len(self._widgets) :]
        ]
        self._items, self._widgets, self._width = items, [*self._widgets[: len(items)], *new], width
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
            if self._session.waits in ("question", "plan"):
                text = text + Text("\n") + Text(plain_line(self._session.now), style="yellow bold")
        for note in filter(None, self._notes.values()):
            text = text + Text("\n") + Text(plain_line(note), style="red")
        head.first(Static).update(text)

    def action_scroll(self, way: str) -> None:
        """Scroll the conversation."""
        place = self.query_one("#items", VerticalScroll)
        getattr(place, f"scroll_{way}")(animate=False)


INTERRUPTED = 130

_LEAST_WIDTH, _LEAST_HEIGHT = 24, 8


class Source(Protocol):
    """Where the application gets what it shows."""

    def look(self) -> Running:
        """Return what is running now."""

    def followed(self, uid: str, first_event: int | None) -> Followed | str:
        """Return the end of a session's conversation, or a sentence that says why it can't be read."""

    def wait(self) -> None:
        """Return when it is time to look again."""

    def end(self) -> None:
        """End the wait that goes on, and any later one at once; from any thread."""


class Looked(Message):
    """What is running now."""

    def __init__(self, running: Running) -> None:
        super().__init__()
        self.running = running
        self.at = time.monotonic()


class ConversationLoaded(Message):
    """What a session's conversation is now, or why it can't be told."""

    def __init__(self, uid: str, followed: Followed | None, problem: str | None) -> None:
        super().__init__()
        self.uid, self.followed, self.problem = uid, followed, problem


class TooSmall(Screen[None]):
    """Says that the terminal is too small."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "app.quit", "Quit", show=False)]

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield Static(f"The terminal is too small ({_LEAST_WIDTH} x {_LEAST_HEIGHT} is enough); q quits", markup=False)


class Overview(Screen[None]):
    """The list of running sessions."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "follow", "Follow", priority=True),
        Binding("up,k", "up", "Up", show=False),
        Binding("down,j", "down", "Down", show=False),
        Binding("q", "app.quit", "Quit"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._found: Running | None = None
        self._at = 0.0
        self._is_laid_out = False
        """What is found before that is shown later."""

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield Static("looking ...", id="heading", markup=False)
        yield OptionList(id="sessions", markup=False)
        yield Static("", id="recent", markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Keep the times since the last activity current."""
        self._is_laid_out = True
        self.show()
        self.set_interval(1, self.show)

    def on_resize(self, _event: Resize) -> None:
        """Draw again, as wide as the terminal is now."""
        self.show()

    def take(self, running: Running, at: float) -> None:
        """Show what is running, as found at a moment."""
        self._found, self._at = running, at
        self.show()

    def show(self) -> None:
        """Draw what was found last."""
        if self._found is None or not self._is_laid_out:
            return
        width = max(self.size.width - 2, 4)  # a scroll bar, and a column before it
        sessions, listed = self._found.sessions, self.query_one(OptionList)
        passed = int(time.monotonic() - self._at)
        ids = [session.session_id for session in sessions]
        chosen = self._chosen(ids)
        prompts = [
            block(session, width, idle=session.idle_seconds + passed, chosen=session.session_id == chosen) + "\n"
            for session in sessions
        ]
        if ids == [option.id for option in listed.options]:
            for number, prompt in enumerate(prompts):
                listed.replace_option_prompt_at_index(number, prompt)
        else:
            listed.set_options([Option(prompt, id=id) for prompt, id in zip(prompts, ids, strict=True)])
            listed.highlighted = None if chosen is None else ids.index(chosen)
        self.query_one("#heading", Static).update(heading(self._found))
        found, below = self._found, self.query_one("#recent", Static)
        alive = found is not None and any(not session.is_closed for session in found.sessions)
        below.display = not alive
        if found is not None and not alive:
            lines = list(recent(found.recent, width))
            text = lines[0]
            for line in lines[1:]:
                text = text + "\n" + line
            below.update(text)
        self.query_one(OptionList).display = bool(found and found.sessions)

    def _chosen(self, ids: list[str]) -> str | None:
        """Return the session under the cursor, by its id; the first one if that is gone."""
        option = self.query_one(OptionList).highlighted_option
        chosen = None if option is None else option.id
        return chosen if chosen in ids else next(iter(ids), None)

    def on_option_list_option_highlighted(self, _event: OptionList.OptionHighlighted) -> None:
        """Move the mark of the cursor."""
        self.show()

    def action_follow(self) -> None:
        """Follow the session under the cursor."""
        chosen = self.query_one(OptionList).highlighted_option
        if chosen is not None and chosen.id is not None:
            self._app.follow(chosen.id)

    def action_up(self) -> None:
        """Move the cursor up."""
        self.query_one(OptionList).action_cursor_up()

    def action_down(self) -> None:
        """Move the cursor down."""
        self.query_one(OptionList).action_cursor_down()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Follow a session that was chosen."""
        if event.option.id is not None:
            self._app.follow(event.option.id)

    @property
    def _app(self) -> WatchApp:
        assert isinstance(self.app, WatchApp)
        return self.app


class WatchApp(App[None]):
    """Watches running sessions until it is left."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "interrupt", "Quit", show=False, priority=True)]
    CSS = """
    Screen { background: ansi_default; }
    #heading { padding: 0 1; height: auto; max-height: 3; text-style: bold; }
    #sessions { height: 1fr; border: none; padding: 0; background: ansi_default; 
        scrollbar-size-vertical: 1; scrollbar-background: ansi_default; scrollbar-color: ansi_bright_black; }
    #sessions > .option-list--option { padding: 0 1 0 0; }
    #sessions > .option-list--option-highlighted, #sessions > .option-list--option-hover,
    #sessions:focus > .option-list--option-highlighted {
        background: ansi_default; color: ansi_default; text-style: none;
    }
    #recent { padding: 1 1; height: 1fr; }
    #items { height: 1fr; padding: 0 1; background: ansi_default; 
        scrollbar-size-vertical: 1; scrollbar-background: ansi_default; scrollbar-color: ansi_bright_black; }
    #items > Static { height: auto; margin: 0 0 1 0; }
    #items > Static.call { margin: 0; }
    #head { padding: 0 1; height: auto; max-height: 12; border-bottom: solid ansi_bright_black; }
    """

    def __init__(self, source: Source, *, session: str | None = None) -> None:
        """Prepare to watch; `session` is the id of one to follow from the start."""
        super().__init__(ansi_color=True)
        self._source, self._first = source, session
        self._overview = Overview()
        self._ending = False
        self._latest: Looked | None = None
        self._following: Conversation | None = None

    def on_mount(self) -> None:
        """Begin to look."""
        self.theme = "ansi-dark"
        self.push_screen(self._overview)
        if self._first is not None:
            self.follow(self._first)
        self._end_at_signals()
        self.run_worker(self._watch, thread=True, exit_on_error=True, group="look")

    def on_resize(self, event: Resize) -> None:
        """Say so while the terminal is too small, and go on when it has grown."""
        is_small = event.size.width < _LEAST_WIDTH or event.size.height < _LEAST_HEIGHT
        if is_small and not isinstance(self.screen, TooSmall):
            self.push_screen(TooSmall())
        elif not is_small and isinstance(self.screen, TooSmall):
            self.pop_screen()

    def follow(self, uid: str) -> None:
        """Show the conversation of a session as it goes."""
        self._following = Conversation(uid)
        self.push_screen(self._following)
        if self._latest is not None:
            self._show_head(self._following, self._latest)
        self.read(uid, None)

    def read(self, uid: str, first_event: int | None) -> None:
        """Read the conversation of a session in a thread; `Told` has what was found."""
        self.run_worker(partial(self._read, uid, first_event), thread=True, group="read", exclusive=True)

    def on_looked(self, message: Looked) -> None:
        """Show what is running, and read on in the session that is followed."""
        self._latest = message
        self._overview.take(message.running, message.at)
        shown = self._followed
        if shown is not None:
            self._show_head(shown, message)
            self.read(shown.uid, shown.first_event)

    def on_conversation_loaded(self, message: ConversationLoaded) -> None:
        """Show the conversation, if it is still followed."""
        shown = self._followed
        if shown is not None and shown.uid == message.uid:
            shown.take(message.followed, message.problem)

    @property
    def _followed(self) -> Conversation | None:
        """The conversation that is on the screen, or below a screen that says that the terminal is too small."""
        return self._following if self._following in self.screen_stack else None

    @staticmethod
    def _show_head(shown: Conversation, looked: Looked) -> None:
        found = (one for one in looked.running.sessions if one.session_id == shown.uid)
        shown.take_head(next(found, None), looked.running.problem, looked.at)

    async def action_quit(self) -> None:
        """Leave."""
        self._leave(0)

    def action_interrupt(self) -> None:
        """Leave as a command that Ctrl-C ends."""
        self._leave(INTERRUPTED)

    def _leave(self, code: int) -> None:
        self.exit(return_code=code)

    def on_unmount(self) -> None:
        """End the thread that looks, however the application ends."""
        self._ending = True
        self._source.end()

    def _watch(self) -> None:
        while not self._ending:
            self.post_message(Looked(self._source.look()))
            if not self._ending:
                self._source.wait()

    def _read(self, uid: str, first_event: int | None) -> None:
        found = self._source.followed(uid, first_event)
        self.post_message(
            ConversationLoaded(uid, None, found) if isinstance(found, str) else ConversationLoaded(uid, found, None)
        )

    def _end_at_signals(self) -> None:
        """Restore the terminal when the process is asked to end; in a thread of a test, signals stay as they are."""
        loop = asyncio.get_running_loop()
        ends: dict[signal.Signals, Callable[[], None]] = {
            signal.SIGTERM: partial(self._leave, 0),
            signal.SIGINT: partial(self._leave, INTERRUPTED),
        }
        for number, end in ends.items():
            try:
                loop.add_signal_handler(number, end)
            except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
                return
