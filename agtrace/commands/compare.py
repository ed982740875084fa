"""`agtrace compare` and `reasoning`: ask as an agent would, print for a person."""

from __future__ import annotations

from agtrace.commands import ask, print_json


def compare(id1: str, id2: str, *, as_json: bool) -> None:
    """Show two sessions side by side."""
    answer = ask("compare_sessions", {"id1": id1, "id2": id2})
    if as_json:
        print_json(answer)
        return
    from agtrace import render

    render.comparison(answer)


def reasoning(session: str, *, turn_index: int | None, limit: int, cursor: str | None, as_json: bool) -> None:
    """Show the thinking of a session."""
    wanted = {"session_id": session, "turn_index": turn_index, "limit": limit, "cursor": cursor}
    answer = ask("get_reasoning_chain", wanted)
    if as_json:
        print_json(answer)
        return
    from agtrace import render

    render.reasoning(answer)
