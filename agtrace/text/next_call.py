"""The call that an answer suggests next, as data: agents read it as text, people as a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class NextCall:
    """A call of a tool, with the words around it.

    `get_event_details(session_id='fb3cff44', event_index=3) opens the newest match whole (2-4 KB).`
    """

    tool: str
    arguments: Mapping[str, Any]
    """JSON values by name; none of them is None."""
    says: str = ""
    """What the call does; `{}` stands for `argument`."""
    argument: str = ""
    """The argument of the call before that `says` is about."""
    size: str = ""
    """How large the answer will be, in brackets."""
    before: str = ""
    """Words between the call before and this one."""
    after: str = "."
    """What ends the sentence, and further words that belong to no call."""

    def saying(self, says: str, size: str = "", *, argument: str = "", before: str = "", after: str = ".") -> NextCall:
        """The same call with words around it."""
        return replace(self, says=says, size=size, argument=argument, before=before, after=after)

    @property
    def written(self) -> str:
        """The call itself, on one line."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.tool}({given})".replace("  ", r" \x20")

    def says_of(self, name: str) -> str:
        """What the call does, where the argument that it is about goes by this name."""
        return self.says.replace("{}", name) if self.argument else self.says

    def __str__(self) -> str:
        words = filter(None, (self.written, self.says_of(self.argument), self.size))
        return f"{self.before}{' '.join(words)}{self.after}"


Hint: TypeAlias = str | NextCall | tuple[NextCall, ...]
"""What to do next: one call or several; words alone where no call helps."""


def call(tool: str, /, **arguments: Any) -> NextCall:
    """A call without words; arguments that are None are left out."""
    return NextCall(tool, {name: value for name, value in arguments.items() if value is not None})


def calls_in(hint: Hint | None) -> tuple[NextCall, ...]:
    """The calls of a hint."""
    if isinstance(hint, NextCall):
        return (hint,)
    return hint if isinstance(hint, tuple) else ()


def text_of(hint: Hint) -> str:
    """A hint as agents read it."""
    return "".join(map(str, hint)) if isinstance(hint, tuple) else str(hint)
