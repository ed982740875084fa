"""Numbers, sizes and times as people read them."""

from __future__ import annotations

_ROUNDED_UP = 0.9995
"""The part of a unit from which on a number is told in it: 999,600 is `1.0M`, not `1000k`."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 step`, `2,000 steps`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def counted_sessions(sessions: int, sub_agents: int) -> str:
    """Return `196 sessions and 44 sub-agents`, without what there is none of."""
    below = [counted(sub_agents, "sub-agent")] if sub_agents else []
    return " and ".join([counted(sessions, "session")] * bool(sessions or not below) + below)


def short(number: float | None) -> str:
    """Return a count to two or three digits: `4.8B`, `15.1M`, `225k`, `950`; nothing if it is unknown."""
    if number is None:
        return ""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= size * _ROUNDED_UP:
            return f"{number / size:.{0 if number >= 99.95 * size else 1}f}{unit}"
    return f"{number:.0f}"


def size(number: int) -> str:
    """Return a number of bytes, in MB if there are many."""
    return f"{number / 1e6:,.1f} MB" if number >= 100_000 else f"{number:,} bytes"


_HALF_A_CENT = 0.005


def dollars(cost: float | None) -> str:
    """Return US dollars to the cent, less than half a cent as such; nothing if they are unknown."""
    if cost is None:
        return ""
    return "<$0.01" if 0 < cost < _HALF_A_CENT else f"${cost:,.2f}"


def least(figure: str, made: str | None) -> str:
    """Return a total, with a sign if it is at least so much: `40.6M+`."""
    return f"{figure}+" if figure and made == "partial" else figure


def spent(cost: float | None, made: str | None) -> str:
    """Return US dollars, with a sign if it is at least so much; nothing if they are unknown."""
    return least(dollars(cost), made)


def how_made(figure: str, made: str | None) -> str:
    """Add to a total how it was made, unless it is exact."""
    return f"{figure} ({made})" if figure and made != "exact" else figure


def percent(share: float) -> str:
    """Return a share of 1: `0%`, `4.3%`, `41%`."""
    return f"{100 * share:.0f}%" if share >= 0.1 or not share else f"{100 * share:.1f}%"


def seconds(number: int | None) -> str:
    """Return a duration in its two largest units: `3 h 5 min`, `12 min 30 s`; nothing if it is unknown."""
    if number is None:
        return ""
    if number >= 3_600:
        return duration(1000 * number)
    return f"{number // 60} min {number % 60} s" if number >= 60 else f"{number} s"


def duration(milliseconds: int) -> str:
    """Return a rounded duration: `40 s`, `12 min`, `3 h 5 min`, `2 d 1 h`."""
    number = milliseconds // 1000
    if number < 60:
        return f"{number} s"
    if number < 3570:
        return f"{round(number / 60)} min"
    minutes = round(number / 60)
    large, small, names = (1440, 60, ("d", "h")) if minutes >= 1440 else (60, 1, ("h", "min"))
    rest = minutes % large // small
    return f"{minutes // large} {names[0]}" + (f" {rest} {names[1]}" if rest else "")
