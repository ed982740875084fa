"""Short histories for tests of detectors: each entry takes the next event, each second is one of the clock."""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import Outcome, Provider, UserKind

from agtrace.health.history import Call, Entry, History, Message, Notice, Said, Usage


class Telling:
    """Tells what happens in a session, one thing after the other."""

    def __init__(self, provider: Provider = "claude_code") -> None:
        self.entries: list[Entry] = []
        self.provider = provider
        self.event = self.turn = self.step = 0

    def human(self, text: str = "Go on.", kind: UserKind = UserKind.HUMAN) -> Telling:
        """A request."""
        self.turn += 1
        self.entries.append(Said(self._next(), self.turn, self.event * 1000, kind, text, True))
        return self

    def inject(self, text: str = "A reminder.", kind: UserKind = UserKind.INJECTED) -> Telling:
        """A text of the harness."""
        self.entries.append(Said(self._next(), self.turn, self.event * 1000, kind, text, False))
        return self

    def say(self, text: str = "Fine.", *, together: bool = False) -> Telling:
        """A message, of a response of its own unless it belongs to the one before."""
        self.step += not together
        self.entries.append(Message(self._next(), self.turn, self.step, self.event * 1000, text))
        return self

    def notice(self, kind: str, text: str) -> Telling:
        """Something else that the log tells."""
        self.entries.append(Notice(self._next(), self.turn, self.event * 1000, kind, text))
        return self

    def usage(self, tokens: int) -> Telling:
        """The figures of a response."""
        at = self.event * 1000
        self.entries.append(Usage(self._next(), self.turn, self.step, at, "m", tokens, 0, 0, 0, None))
        return self

    def run(self, command: str, result: str = "", *, code: int = 0, together: bool = False, **more: Any) -> Telling:
        """A command and what came back."""
        outcome = Outcome.FAILED if code else Outcome.OK
        more = {"outcome": outcome, "exit_code": code, **more}
        return self.call("Bash", {"command": command}, result, together=together, **more)

    def call(
        self, tool: str, arguments: Any, result: str = "", *, together: bool = False, answered: bool = True, **more: Any
    ) -> Telling:
        """An execution, of a response of its own unless it was asked for together with the one before."""
        self.step += not together
        event = self._next()
        more = {"outcome": Outcome.OK, **more}
        call = Call(event, self.turn, self.step, event * 1000, tool, arguments, f"{tool} {arguments}".encode(), **more)
        if answered:
            call.result_event, call.answered_at = self._next(), self.event * 1000
            call.result, call.result_chars = result, len(result)
        self.entries.append(call)
        return self

    def edit(self, path: str, old: str, new: str, **more: Any) -> Telling:
        """A replacement of lines."""
        arguments = {"file_path": path, "old_string": old, "new_string": new}
        return self.call("Edit", arguments, "The file was updated.", writes=(path,), **more)

    def write(self, path: str, content: str) -> Telling:
        """A file written as a whole."""
        return self.call("Write", {"file_path": path, "content": content}, "Written.", writes=(path,))

    @property
    def history(self) -> History:
        """All of it."""
        return History(self.provider, self.entries, self.turn)

    def _next(self) -> int:
        self.event += 1
        return self.event


def only_call(tool: str, arguments: Any, result: str = "", **more: Any) -> Call:
    """A single execution."""
    return Telling().call(tool, arguments, result, **more).history.calls[0]
