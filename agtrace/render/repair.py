"""The result of a repair, for people."""

from __future__ import annotations

from agtrace_indexer.repair.consistency import Lost
from agtrace_indexer.repair.repair import Repaired

from agtrace.render.terminal import OUT, heading, left_out, plain_line
from agtrace.text.numbers import counted

_LOST_SHOWN = 20


def repaired(done: Repaired) -> None:
    """Print what was damaged, what the index holds now, what is lost, and where the damaged file is."""
    if done.found:
        heading("what was damaged")
        for sentence in (*done.found.tables, *done.found.derived):
            OUT.print(f"  {plain_line(sentence)}", soft_wrap=True, markup=False)
    else:
        OUT.print("the index is sound: nothing to repair")
    heading("the index now")
    count = f"{counted(done.sessions, 'session')}, {counted(done.events, 'event')}"
    OUT.print(f"  {count}; checked as a whole and sound")
    if done.archived:
        OUT.print(f"  archived, their files are gone: {counted(done.archived, 'log')}")
    if done.lost:
        heading(f"sessions that could not be saved completely: {len(done.lost)}")
        for one in done.lost[:_LOST_SHOWN]:
            OUT.print(f"  {plain_line(_sentence(one))}", soft_wrap=True, markup=False)
        left_out("session", min(len(done.lost), _LOST_SHOWN), len(done.lost))
    if done.others_lost:
        OUT.print("  the list of sessions was only partly readable: more sessions whose logs are gone may be lost")
    if "root" in done.unread:
        OUT.print("  the list of indexed folders was unreadable: agents' homes are indexed; others: agtrace index PATH")
    if done.damaged is not None:
        OUT.print(
            f"the damaged file is {plain_line(str(done.damaged))}: delete it once you are sure that nothing is missing",
            soft_wrap=True,
            markup=False,
        )


def _sentence(one: Lost) -> str:
    title = f" ({one.title})" if one.title else ""
    if not one.events:
        return f"{one.session}{title}: all events saved, but not everything recorded about them"
    return f"{one.session}{title}: {counted(one.events, 'event')} lost, {one.kept:,} kept"
