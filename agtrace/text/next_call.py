"""The next call that an answer suggests, as data: agents read it as text, people as a command to paste."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace


class NextCall(Struct, frozen=True):
    """A call of a tool with the words around it.

    `get_event_details(session_id='fb3cff44', event_index=3) opens the newest match (2-4 KB).`
    """

    tool: str
    arguments: Mapping[str, Any]
    """JSON values by name; none is None."""
    says: str = ""
    """What the call does; `{}` is replaced by `names`."""
    names: Sequence[str] = ()
    """The arguments of the previous call that `says` refers to."""
    size: str = ""
    """The expected size of the answer, in brackets."""
    before: str = ""
    """Words between the previous call and this one."""
    after: str = "."
    """The end of the sentence, and further words that belong to no call."""

    def saying(
        self, says: str, size: str = "", *, names: Sequence[str] = (), before: str = "", after: str = "."
    ) -> NextCall:
        """Return the same call with words around it."""
        return replace(self, says=says, size=size, names=names, before=before, after=after)

    @property
    def written(self) -> str:
        """The call itself, on one line."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.tool}({given})".replace("  ", r" \x20")

    def says_of(self, names: Iterable[str]) -> str:
        """Return `says` with these names for the arguments that it refers to."""
        return self.says.replace("{}", ", ".join(names)) if self.names else self.says

    def __str__(self) -> str:
        words = filter(None, (self.written, self.says_of(self.names), self.size))
        return f"{self.before}{' '.join(words)}{self.after}"


Hint: TypeAlias = str | NextCall | tuple[NextCall, ...]
"""What to do next: one or more calls, or only words if no call helps."""


def call(tool: str, /, **arguments: Any) -> NextCall:
    """Return a call without words; arguments that are None are left out."""
    return NextCall(tool, {name: value for name, value in arguments.items() if value is not None})


_along: ContextVar[Mapping[str, Any]] = ContextVar("arguments to take along")


@contextmanager
def with_arguments(**arguments: Any) -> Iterator[None]:
    """Let every call that is suggested in this thread within the block have these arguments as well, unless None."""
    token = _along.set({name: value for name, value in arguments.items() if value is not None})
    try:
        yield
    finally:
        _along.reset(token)


def complete(hint: Hint) -> Hint:
    """Return a hint whose calls have the arguments that all take along."""
    along = _along.get({})
    if not along or isinstance(hint, str):
        return hint
    calls = tuple(replace(one, arguments={**one.arguments, **along}) for one in calls_in(hint))
    return calls if isinstance(hint, tuple) else calls[0]


def calls_in(hint: Hint | None) -> tuple[NextCall, ...]:
    """Return the calls in a hint."""
    if isinstance(hint, NextCall):
        return (hint,)
    return hint if isinstance(hint, tuple) else ()


def text_of(hint: Hint) -> str:
    """Return a hint as agents read it."""
    return "".join(map(str, hint)) if isinstance(hint, tuple) else str(hint)


def showing(event: str) -> str:
    """Return the command that shows an event, given its reference, `ax://event/fb3cff44/42`."""
    return command("show", ":".join(event.removeprefix("ax://event/").rsplit("/", 1)))


def command(name: str, *places: str, options: Sequence[str] = ()) -> str:
    """Return a command of agtrace to paste. Ids come from logs, so they are quoted for a shell and never options."""
    given = [*options, "--", *places] if any(place.startswith("-") for place in places) else [*places, *options]
    return shlex.join(["agtrace", name, *given])
