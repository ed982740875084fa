"""The settings as a table, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.text import Text

from agtrace.render.terminal import OUT, plain_line, print_table


def settings(rows: Sequence[Mapping[str, str]], file: Path | None) -> None:
    """Print each setting with its value and source; what isn't a default stands out."""
    print_table(
        [
            {
                "setting": row["key"],
                "value": plain_line(row["value"]),
                "source": Text(plain_line(row["source"]), style="dim" if row["source"] == "default" else "bold"),
            }
            for row in rows
        ],
        frozenset(),
        frozenset(),
    )
    where = f"The file is {file}." if file else "There is no configuration file: `agtrace config path` says where."
    OUT.print(Text(f"{where} `--all` shows the settings of each tool.", style="dim"), soft_wrap=True)
