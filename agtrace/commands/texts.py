"""Long texts for a terminal: their options as arguments, and printing them to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agtrace.commands.asking import pages
from agtrace.commands.printing import leave

if TYPE_CHECKING:
    from agtrace.shaping.shape import Answer


def text_asked(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a long text as arguments of a tool."""
    first, last = asked["lines"] or (None, None)
    return {
        "start_line": first, "end_line": last, "mode": asked["mode"], "cursor": asked["cursor"],
        "context_focus_question": asked["focus"],
    }  # fmt: skip


def print_text(tool: str, wanted: dict[str, Any], *, as_json: bool) -> Answer:
    """Print a text from this chunk to its end; return the first chunk's answer."""
    following = pages(tool, wanted)
    answer = next(following)

    def for_person() -> None:
        from agtrace.render.text import text_body, text_head, text_rest

        text_head(answer.value)
        text_body(answer.value)
        for chunk in following:
            text_body(chunk.value)
        text_rest(answer.value, answer.next_calls)

    leave(answer.value, as_json, for_person)
    return answer
