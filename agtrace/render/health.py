"""The status of the index, for people."""

from __future__ import annotations

from agtrace_schema.status import Configuration, Health
from rich.table import Table
from rich.text import Text

from agtrace.render.terminal import OUT, figure, plain, when
from agtrace.text.numbers import size


def health(found: Health) -> None:
    """Print the state of the index and its figures, then what is wrong."""
    index = found.index
    state = index.state.replace("_", " ")
    if index.files_behind is not None:
        state += f", {index.files_behind:,} files ({size(index.bytes_behind or 0)}) behind"
    grid = Table.grid(padding=(0, 2, 0, 0))
    for label, value in (
        ("index", state),
        ("logs", figure(index.logs)),
        ("sessions", figure(index.sessions)),
        ("events", figure(index.events)),
        ("newest event", when(index.newest_event)),
        ("size", "" if index.bytes is None else size(index.bytes)),
        ("tables", str(index.tables_version)),
        ("configuration", _configuration(found.configuration)),
    ):
        if value:
            grid.add_row(Text(label, style="dim"), value)
    OUT.print(grid)
    for problem in filter(None, (index.problem, found.configuration.problem)):
        OUT.print(Text(plain(problem), style="red"), soft_wrap=True)


def _configuration(found: Configuration) -> str:
    """Return where the settings come from; without a file they have a version only."""
    if found.file is None:
        return f"no file, version {found.version}"
    read = f", read {when(found.loaded_at)}" if found.loaded_at else ""
    return f"{plain(found.file)}{read}"
