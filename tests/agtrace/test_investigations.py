"""Questions are answered by following hints, in a few calls and a few kilobytes."""

from __future__ import annotations

import statistics

import pytest

from tests.agtrace.asking import Asker
from tests.investigations import QUESTIONS, Question, investigate

MEDIAN_OF_A_QUESTION = 15 * 1024
MEDIAN_OF_AN_ANSWER = 3 * 1024


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text)
def test_a_question_is_answered_by_following_hints_alone(samples: Asker, question: Question) -> None:
    found = investigate(samples, question)
    assert found.solved, "\n".join(found.calls)


def test_the_median_question_takes_less_than_15_kilobytes_and_the_median_answer_less_than_3(samples: Asker) -> None:
    found = [investigate(samples, question) for question in QUESTIONS]
    assert statistics.median(sum(investigation.sizes) for investigation in found) < MEDIAN_OF_A_QUESTION
    assert statistics.median(size for item in found for size in item.sizes) < MEDIAN_OF_AN_ANSWER
