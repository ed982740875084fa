"""The vocabulary of a request: the values allowed for tool arguments and command options.

Nothing here loads a model, because the command line reads it for `--help`.
"""

from __future__ import annotations

from typing import Literal

Level = Literal["summary", "turns", "steps", "full"]
"""How much detail of a session is shown."""

Section = Literal["session", "stats", "children", "turns", "tools", "files", "failures", "models", "landmarks"]
"""A part of a session that can be requested on its own."""

Mode = Literal["minimal", "standard", "verbose"]
"""How much of a long text a digest keeps."""

WordsIn = Literal["event", "turn"]
"""Where all words of a query must occur together."""
