"""The programs that our server can be added to, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from agtrace.render.terminal import OUT, plain_line

if TYPE_CHECKING:
    from agtrace.upkeep.programs import Program

_WIDE = 100
_ONLY_LOGS = "logs"
_ADDED = {True: "yes", False: "no", None: "unknown"}


def listed(programs: Sequence[Program]) -> None:
    """Print every program: whether it is here, whether it has our server, and on a wide terminal, in which file."""
    wide = OUT.width >= _WIDE
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("client", *(("program",) if wide else ()), "found", "agtrace", *(("settings",) if wide else ())):
        table.add_column(column, overflow="fold" if column == "settings" else "ellipsis", no_wrap=column != "settings")
    for program in programs:
        table.add_row(*_cells(program, wide=wide))
    OUT.print(table)
    OUT.print()
    if any(_here(program) == _ONLY_LOGS for program in programs):
        OUT.print(f"{_ONLY_LOGS}: logs found, program not on PATH", style="dim")
    for program in programs:
        if program.trouble:
            OUT.print(Text(f"{program.name}: {plain_line(program.trouble)}", style="yellow"), soft_wrap=True)
    OUT.print("To see what would be added: agtrace setup CLIENT; to add it: agtrace setup CLIENT --apply", style="dim")


def _here(program: Program) -> str:
    return "yes" if program.found else _ONLY_LOGS if program.logs else "no"


def _cells(program: Program, *, wide: bool) -> list[str | Text]:
    state = _ADDED[program.added]
    style = "green" if program.added else "yellow" if program.added is None else "dim"
    here = Text(_here(program), style="" if program.found else "dim")
    cells: list[str | Text] = [program.name, here, Text(state, style=style)]
    return [program.name, program.title, *cells[1:], plain_line(str(program.file))] if wide else cells
