"""Where a text is in another one, and the lines that change if it is replaced there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agtrace.health.facts.edits import Replacement


class Span(NamedTuple):
    """Lines of a text in which another one is."""

    start: int
    """Where the first of them begins."""
    stop: int
    """Where the last one ends."""
    first: int
    """The number of the first line, counted from 0."""
    end: int
    """That of the one behind the last."""
    places: list[int]

    def put(self, text: str, part: Replacement) -> str:
        """Return these lines after a replacement at these places."""
        lines = text[self.start : self.stop]
        for place in reversed(self.places):  # from the end, as later ones move
            at = place - self.start
            lines = f"{lines[:at]}{part.new}{lines[at + len(part.old) :]}"
        return lines


def places_of(text: str, part: Replacement) -> Iterator[int]:
    """Yield where a replacement can be made, without overlaps; whole lines only where lines begin and end."""
    at = text.find(part.old)
    while at >= 0:
        if not part.lines or is_whole(text, at, part.old):
            yield at
            at = text.find(part.old, at + len(part.old))
        else:
            at = text.find(part.old, at + 1)


def is_whole(text: str, place: int, sought: str) -> bool:
    """Whether a text at this place of another one begins and ends with lines."""
    end = place + len(sought)
    return (place == 0 or text[place - 1] == "\n") and (end == len(text) or text[end] == "\n")


def spans_of(text: str, places: Iterable[int], part: Replacement) -> list[Span]:
    """Return the lines that a replacement changes at these places, in order; those together that share one."""
    spans: list[Span] = []
    first = counted = 0
    for place in places:
        start, stop = text.rfind("\n", 0, place) + 1, text.find("\n", place + len(part.old))
        stop = len(text) if stop < 0 else stop
        first, counted = first + text.count("\n", counted, start), start
        end = first + text.count("\n", start, stop) + 1
        if spans and start <= spans[-1].stop:
            last = spans.pop()
            spans.append(Span(last.start, stop, last.first, end, [*last.places, place]))
        else:
            spans.append(Span(start, stop, first, end, [place]))
    return spans


def replaced_in(text: str, spans: Iterable[Span], part: Replacement) -> tuple[str, list[Span]]:
    """Return a text after a replacement in some lines, and where these are then."""
    pieces, moved, done, longer, more = list[str](), list[Span](), 0, 0, 0
    for span in spans:
        put = span.put(text, part)
        pieces += [text[done : span.start], put]
        start, first = span.start + longer, span.first + more
        moved.append(Span(start, start + len(put), first, first + put.count("\n") + 1, []))
        done, longer, more = span.stop, moved[-1].stop - span.stop, moved[-1].end - span.end
    return "".join([*pieces, text[done:]]), moved
