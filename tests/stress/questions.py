"""The questions of a stress test, with the answers given when nobody else asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from agtrace.answers.desk import Answers
from agtrace.settings.model import Settings

_SESSIONS = 12
_HEALTH = "ax://health"


class Question(NamedTuple):
    """A tool and its arguments, with the expected answer; None if it is never the same twice."""

    tool: str
    arguments: dict[str, Any]
    answer: Any

    def is_answered_by(self, value: Any) -> bool:
        """Whether an answer, as received by its client, is the right one."""
        return bool(value["success"]) if self.answer is None else steady(value) == self.answer


def questions(settings: Settings) -> list[Question]:
    """Return questions to every tool about an index, including its health."""
    answers = Answers(settings, log=lambda record: None)
    found = []
    for tool, arguments in _asked(answers):
        value = answers.ask(tool, arguments).value
        assert value["success"], value
        found.append(Question(tool, arguments, None if arguments.get("ref") == _HEALTH else steady(value)))
    assert {question.tool for question in found} == set(answers.tools)
    return found


def steady(value: Any) -> Any:
    """Return an answer without its cursors, which contain the time they were made."""
    if isinstance(value, dict):
        return {key: steady(inner) for key, inner in value.items() if key != "next_cursor"}
    return [steady(inner) for inner in value] if isinstance(value, list) else value


def _asked(answers: Answers) -> Iterator[tuple[str, dict[str, Any]]]:
    listed = answers.ask("list_sessions", {"limit": _SESSIONS}).value["data"]["sessions"]
    ids = [session["id"] for session in listed]
    yield "read_artifact", {"ref": _HEALTH}
    yield "list_sessions", {"limit": 20}
    yield "get_project_info", {}
    yield "list_sessions", {"sort": "failure_run"}
    yield "count_events", {"group_by": "model"}
    yield "search_event_previews", {"order": "newest", "query": "error", "limit": 20}
    yield "search_event_previews", {"query": "test import", "words": "event"}
    yield "search_event_previews", {"query": "return [a-z]+ error", "regex": True}
    yield "search_event_previews", {"query": "assert", "order": "oldest"}
    for one, other in zip(ids, [*ids[1:], ids[0]], strict=True):
        for level in ("summary", "turns", "steps", "full"):
            yield "get_session_details", {"session_id": one, "detail_level": level}
        yield "get_event_details", {"session_id": one, "event_index": 1}
        yield "get_reasoning_chain", {"session_id": one}
        yield "analyze_session", {"session_id": one}
        yield "read_artifact", {"ref": f"ax://session/{one}"}
        yield "read_artifact", {"ref": _HEALTH}
        yield "compare_sessions", {"id1": one, "id2": other}
