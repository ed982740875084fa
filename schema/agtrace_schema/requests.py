"""The words of a request: the values that arguments of the tools, and options of the commands, may have.

Nothing here loads a model: the command line reads it for its help.
"""

from __future__ import annotations

from typing import Literal

Level = Literal["summary", "turns", "steps", "full"]
"""How far a session is unfolded."""

Section = Literal["session", "stats", "children", "turns", "tools", "files", "failures", "models"]
"""A part of a session that can be asked for by itself."""

Mode = Literal["minimal", "standard", "verbose"]
"""How much of a long text a digest keeps."""

WordsIn = Literal["event", "turn"]
"""Where all words of a query must stand together."""
