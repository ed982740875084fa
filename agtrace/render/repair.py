"""The result of a rebuild, for people."""

from __future__ import annotations

from collections.abc import Iterable

from agtrace_indexer.rebuild import Lost, Rebuilt

from agtrace.render.terminal import OUT, heading, left_out, plain_line
from agtrace.text.numbers import counted

_LOST_SHOWN = 20


def repaired(done: Rebuilt) -> None:
    """Print what was damaged, what the index holds now, what is lost, and where the old file is."""
    if done.damage:
        heading("what was damaged")
        _print_all(done.damage)
    else:
        OUT.print("the index is sound: no damage was found")
    heading("the index now")
    OUT.print(f"  {counted(done.sessions, 'session')}, {counted(done.events, 'event')}; checked as a whole and sound")
    if done.archived:
        OUT.print(f"  archived, their files are gone: {counted(done.archived, 'log')}")
    if done.lost:
        heading(f"sessions that could not be saved completely: {len(done.lost)}")
        _print_all(map(_sentence, done.lost[:_LOST_SHOWN]))
        left_out("session", min(len(done.lost), _LOST_SHOWN), len(done.lost))
    if done.unread:
        _print_all(
            [f"only partly readable: {', '.join(done.unread)}; more of sessions whose logs are gone may be lost"]
        )
    if "root" in done.unread:
        OUT.print("  the list of indexed folders was unreadable: agents' homes are indexed; others: agtrace index PATH")
    _print_all([f"the old file is {done.old}: delete it once you are sure that nothing is missing"], indent="")


def _print_all(sentences: Iterable[str], indent: str = "  ") -> None:
    for sentence in sentences:
        OUT.print(f"{indent}{plain_line(sentence)}", soft_wrap=True, markup=False)


def _sentence(one: Lost) -> str:
    title = f" ({one.title})" if one.title else ""
    return f"{one.session}{title}: {counted(one.events, 'event')} lost, {one.kept:,} kept"
