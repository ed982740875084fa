"""Investigations: what a reader without foresight needs, and how a transcript is scored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import LOGS, copy_index
from tests.finding.ranking import indexed
from tests.finding.reader import investigate, words
from tests.finding.transcripts import QUESTIONS, investigations, is_right, score, table


@pytest.mark.skipif(not LOGS.is_dir(), reason="the folder of real logs (shared/logs) is not here")
def test_most_questions_are_answered_by_the_obvious_calls_in_a_few_kilobytes(
    indexed_logs: Path, database: Path
) -> None:
    asker = indexed(copy_index(indexed_logs, database).parent)
    found = score([investigate(asker, question) for question in QUESTIONS])
    assert found.of >= 40 and found.right >= 0.9 * found.of
    assert found.median_calls <= 2 and found.median_bytes <= 2_304


def test_what_one_would_search_for_are_the_words_that_say_something() -> None:
    assert words("In which session did we fix the 'retry' of store.py?") == "fix retry store.py"


def test_every_answer_that_was_verified_is_right_and_that_of_another_question_is_not() -> None:
    assert [question["id"] for question in QUESTIONS if not is_right(question, question["answer"])] == []
    wrong = [is_right(one, "I have no idea what happened there.") for one in QUESTIONS if one["kind"] != "absent"]
    assert sum(wrong) <= 2  # that nothing happened is the right answer to a wrong premise


def test_a_transcript_is_scored_by_its_answers_calls_and_bytes() -> None:
    first, second, third = QUESTIONS[:3]
    records = [
        {"question": first["id"], "call": "search", "bytes": 1_000},
        {"question": first["id"], "call": "open", "bytes": 500},
        {"question": second["id"], "call": "search", "bytes": 700},
        {"question": first["id"], "answer": first["answer"]},
        {"question": second["id"], "answer": "Somewhere else."},
        {"question": third["id"], "call": "search", "bytes": 300},
    ]
    found = investigations(map(json.dumps, records))
    assert [(one.question, one.right, one.calls, one.bytes) for one in found] == [
        (first["id"], True, 2, 1_500),
        (second["id"], False, 1, 700),
        (third["id"], None, 1, 300),
    ]
    assert score(found) == (1, 3, 4, 2_500, 1, 700)
    assert table(found).endswith(f"not right: {second['id']}, {third['id']}")
