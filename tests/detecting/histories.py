"""Short histories for tests of detectors: each entry is the next event, one second later."""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import Outcome, Provider, UserKind

from agtrace.health.history import Call, Entry, History, Message, Notice, Usage, UserText


class Telling:
    """Builds the history of a session, one event after another."""

    def __init__(self, provider: Provider = "claude_code") -> None:
        self.entries: list[Entry] = []
        self.provider = provider
        self.event = self.turn = self.step = 0

    def human(self, text: str = "Go on.", kind: UserKind = UserKind.HUMAN) -> Telling:
        """Add a request."""
        self.turn += 1
        self.entries.append(UserText(self._next(), self.turn, self.event * 1000, kind, text, True))
        return self

    def inject(self, text: str = "A reminder.", kind: UserKind = UserKind.INJECTED) -> Telling:
        """Add a text of the harness."""
        self.entries.append(UserText(self._next(), self.turn, self.event * 1000, kind, text, False))
        return self

    def say(self, text: str = "Fine.", *, together: bool = False) -> Telling:
        """Add a message, in a response of its own unless it belongs to the previous one."""
        self.step += not together
        self.entries.append(Message(self._next(), self.turn, self.step, self.event * 1000, text))
        return self

    def notice(self, kind: str, text: str) -> Telling:
        """Add a notification."""
        self.entries.append(Notice(self._next(), self.turn, self.event * 1000, kind, text))
        return self

    def usage(self, tokens: int) -> Telling:
        """Add the token usage of a response."""
        at = self.event * 1000
        self.entries.append(Usage(self._next(), self.turn, self.step, at, "m", tokens, 0, 0, 0, None))
        return self

    def run(self, command: str, result: str = "", *, code: int = 0, together: bool = False, **more: Any) -> Telling:
        """Add a command with its result."""
        outcome = Outcome.FAILED if code else Outcome.OK
        more = {"outcome": outcome, "exit_code": code, **more}
        return self.call("Bash", {"command": command}, result, together=together, **more)

    def call(
        self, tool: str, arguments: Any, result: str = "", *, together: bool = False, answered: bool = True, **more: Any
    ) -> Telling:
        """Add a tool call, in a response of its own unless it belongs to the previous one."""
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
        """Add an edit that replaces lines."""
        arguments = {"file_path": path, "old_string": old, "new_string": new}
        return self.call("Edit", arguments, "The file was updated.", writes=(path,), **more)

    def write(self, path: str, content: str) -> Telling:
        """Add a call that writes a whole file."""
        return self.call("Write", {"file_path": path, "content": content}, "Written.", writes=(path,))

    @property
    def history(self) -> History:
        """The history so far."""
        return History(self.provider, self.entries, self.turn)

    def _next(self) -> int:
        self.event += 1
        return self.event


def only_call(tool: str, arguments: Any, result: str = "", **more: Any) -> Call:
    """Return the call of a history that has no other."""
    return Telling().call(tool, arguments, result, **more).history.calls[0]
