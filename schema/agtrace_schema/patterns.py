"""Regular expressions that are compiled when they are first used: most commands use few of those that they load."""

from __future__ import annotations

import re
from typing import Any, cast


class _Later:
    """Stands for a compiled pattern. Safe to use from several threads: compiling one twice changes nothing."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._given = pattern, flags

    def __repr__(self) -> str:
        """Return what it was made of: digests of rules are made of this, too."""
        return f"later{self._given!r}"

    def __getattr__(self, name: str) -> Any:
        """Return a method or attribute of the pattern, which from then on is one of this object."""
        result = getattr(re.compile(*self._given), name)
        setattr(self, name, result)
        return result


def later(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled at its first use. A pattern that isn't valid is refused then."""
    return cast("re.Pattern[str]", _Later(pattern, flags))
