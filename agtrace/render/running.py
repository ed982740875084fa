"""The running sessions, printed once."""

from __future__ import annotations

from rich.text import Text

from agtrace.render.terminal import OUT
from agtrace.render.watching.blocks import block, heading, recent
from agtrace.sessions.running import Running


def running(found: Running) -> None:
    """Print each running session on three lines; if none is running, the latest ones."""
    OUT.print(heading(found))
    for session in found.sessions:
        OUT.print()
        OUT.print(block(session, OUT.width))
    if all(session.is_closed for session in found.sessions):
        OUT.print(Text("\n").join(recent(found.recent, OUT.width)))
