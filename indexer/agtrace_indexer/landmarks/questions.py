"""Questions to the human, and their answers, by the arguments and results of the tools that ask."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
from agtrace_schema.events import Json, Outcome
from agtrace_schema.landmarks import Evidence, Landmark, LandmarkKind, Verdict
from agtrace_schema.patterns import later

_PAIR = later(r'(?:"="|\AUser (?:selected|answered|chose): *)((?:[^"\\]|\\.)*+)')
_LONGEST_JSON = 100_000


def question_landmark(arguments: Json) -> Landmark:
    """Return the landmark of a call that asks, before it is answered; it is named by its first question."""
    questions = arguments.get("questions") if isinstance(arguments, dict) else None
    first = questions[0] if isinstance(questions, list) and questions else arguments
    said = first.get("question") if isinstance(first, dict) else None
    name = " ".join(said.split()) if isinstance(said, str) else None
    return Landmark(LandmarkKind.QUESTION, name or None, None, Verdict.UNANSWERED, Evidence.RECORD)


def answered(question: str | None, result: str, outcome: Outcome) -> Landmark:
    """Return the landmark of a question by its result: pairs, JSON with `answers`, or what was selected."""
    answers = list(_answers(result)) if outcome in (Outcome.OK, Outcome.UNKNOWN) else []
    detail = " ".join("; ".join(answers).split()) or None
    verdict = Verdict.ANSWERED if answers else Verdict.UNANSWERED
    return Landmark(LandmarkKind.QUESTION, question, detail, verdict, Evidence.RECORD)


def _answers(result: str) -> Iterator[str]:
    if '"answers"' in result[:_LONGEST_JSON]:
        start, end = result.find("{"), result.rfind("}")
        try:
            found = orjson.loads(result[start : end + 1]) if len(result) <= _LONGEST_JSON else None
        except orjson.JSONDecodeError:
            found = None
        if isinstance(found, dict):
            yield from _texts(found.get("answers"), levels=3)
    yield from _PAIR.findall(result[:_LONGEST_JSON])


def _texts(value: Json, levels: int) -> Iterator[str]:
    if isinstance(value, str) and value.strip():
        yield value
    elif levels and isinstance(value, (list, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner, levels - 1)
