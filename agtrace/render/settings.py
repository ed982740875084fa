"""The settings, a line for each, for people and for `grep`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.text import Text

from agtrace.render.terminal import OUT, plain_line

_ALIGNED = 20


def settings(rows: Sequence[Mapping[str, str]], file: Path | None) -> None:
    """Print each setting with its value and source, uncut; what isn't a default stands out."""
    longest = max(len(row["key"]) for row in rows)
    for row in rows:
        value, source = plain_line(row["value"]), plain_line(row["source"])
        line = Text(f"{row['key']:{longest}}  {value:{_ALIGNED}}  ")
        OUT.print(line.append(source, "dim" if source == "default" else "bold"), soft_wrap=True)
    where = f"The file is {file}." if file else "There is no configuration file: `agtrace config path` says where."
    OUT.print(Text(where, style="dim"), soft_wrap=True)
