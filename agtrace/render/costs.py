"""`agtrace cost` at the terminal: a table of what was spent, its total, and what the figures lack."""

from __future__ import annotations

from collections.abc import Iterator

from agtrace_schema.answers import Made
from agtrace_schema.costs import Costs, Spent
from rich.table import Table
from rich.text import Text

from agtrace.render.terminal import OUT, figure, plain, plain_line
from agtrace.report.costs import lacking
from agtrace.text.numbers import counted, dollars, short

_NARROW = ("tokens", "cost")
_USUAL = ("sessions", "output", *_NARROW)
_WIDE = ("sessions", "input", "cache write", "cache read", "output", *_NARROW)
_WIDTH_OF_USUAL, _WIDTH_OF_WIDE = 60, 90

_AT_LEAST = "+"
_NO_FIGURE = "?"


def costs(found: Costs) -> None:
    """Print the total as a sentence, the groups and their total as a table, and notes on the figures."""
    OUT.print(Text(plain(_headline(found)), style="bold"))
    OUT.print(Text(plain(found.selection), style="dim"))
    if not found.groups:
        OUT.print("`agtrace sessions` lists all sessions; `agtrace doctor` shows which logs were found.")
        return
    OUT.print(_table(found))
    for note in _notes(found):
        OUT.print(Text(plain(note), style="dim"))


def _headline(found: Costs) -> str:
    total = found.total
    if not found.groups:
        return "nothing was spent"
    tokens = "no tokens known" if total.total_tokens is None else f"{short(total.total_tokens)} tokens"
    least = "at least " if total.tokens_made == "partial" and total.total_tokens is not None else ""
    said = [least + tokens]
    if total.cost_usd is not None:
        said.append(f"{'at least ' if total.cost_made == 'partial' else ''}{dollars(total.cost_usd)}")
    sessions = counted(total.sessions, "session")
    return ", ".join([*said, sessions])


def _table(found: Costs) -> Table:
    fitting = _WIDE if OUT.width >= _WIDTH_OF_WIDE else _USUAL if OUT.width >= _WIDTH_OF_USUAL else _NARROW
    columns = [name for name in fitting if name != "cost" or found.prices is not None]
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(found.by, overflow="fold")
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    marked = found.total.tokens_made == "partial", found.total.cost_made == "partial"
    for group in found.groups:
        cells = _cells(group, *marked)
        table.add_row(Text(plain_line(group.group)), *(cells[name] for name in columns))
    cells = _cells(found.total, *marked)
    table.add_row("total", *(cells[name] for name in columns), style="bold")
    return table


def _cells(spent: Spent, tokens_marked: bool, cost_marked: bool) -> dict[str, str]:
    return {
        "sessions": figure(spent.sessions),
        "input": short(spent.input_tokens),
        "cache write": short(spent.cache_write_tokens),
        "cache read": short(spent.cache_read_tokens),
        "output": _marked(short(spent.output_tokens), spent.tokens_made, tokens_marked),
        "tokens": _marked(short(spent.total_tokens), spent.tokens_made, tokens_marked),
        "cost": _marked(dollars(spent.cost_usd), spent.cost_made, cost_marked),
    }


def _marked(figure: str, made: Made | None, room: bool) -> str:
    """Mark a figure that is a lower bound; with room for the mark if any in its column has one."""
    shown = figure or (_NO_FIGURE if made == "unknown" else "")
    return shown + (_AT_LEAST if made == "partial" else " " if room else "")


def _notes(found: Costs) -> Iterator[str]:
    """Yield what the figures lack, what they are made from, and which days are meant."""
    total = found.total
    if "partial" in (total.tokens_made, total.cost_made):
        yield f"{_AT_LEAST} at least so much"
    for model in found.unpriced or ():
        yield f"no price for {short(model.tokens)} tokens of {plain_line(model.model)}"
    for faster in found.faster or ():
        yield (
            f"no price for the faster (fast, priority) processing of {short(faster.tokens)} tokens of "
            f"{plain_line(faster.model)}: counted at the standard price, so at least so much"
        )
    yield from lacking(found)
    if total.cost_usd is not None and total.cost_made != "exact":
        yield f"dollars are estimates ({found.prices}), not what a subscription costs"
    if found.by in ("day", "week", "month"):
        yield "UTC days" + (", weeks from Monday" if found.by == "week" else "")
