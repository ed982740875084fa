"""What the connection of another engine offers beyond the SQL that all engines share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from agtrace_indexer.texts.candidates import Narrowed


@runtime_checkable
class Narrowing(Protocol):
    """A connection to an engine that narrows blocks down in its own way."""

    def narrowed(self, queries: Sequence[bytes]) -> Narrowed:
        """Return the blocks that may contain all of some folded queries."""


@runtime_checkable
class OfPeople(Protocol):
    """A connection to an index of several people."""

    def people_of(self, sessions: Sequence[int]) -> dict[int, str]:
        """Return session -> who pushed it."""


class Several:
    """What stands for the connections to several databases that are asked together."""

    def asked(self, question: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Ask each of them a question with these arguments, and return what all of them answer, put together."""
        raise NotImplementedError
