"""Two simple ways to choose as many lines as the pruner keeps: what it is worth is how much better it chooses."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from tests.pruning.labelled import Case

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_SATURATION, _LENGTH = 1.2, 0.75


def first(case: Case, most: int) -> set[int]:
    """Choose the first lines."""
    return {*range(1, min(most, len(case.lines)) + 1)}


def by_line(case: Case, most: int) -> set[int]:
    """Choose the lines that BM25 ranks highest for the words of the question; of equal ones, those that come first."""
    scores = _scores([words(line) for line in case.lines], set(words(case.question)))
    ranked = sorted(range(len(scores)), key=lambda index: -scores[index])
    return {index + 1 for index in ranked[:most]}


YARDSTICKS: Mapping[str, Callable[[Case, int], set[int]]] = {
    "first lines": first,
    "BM25 by line": by_line,
}


def words(text: str) -> list[str]:
    """Return the words of a text in lower case; identifiers are split at case and underscore."""
    return [word.lower() for word in _WORD.findall(text)]


def _scores(documents: Sequence[Sequence[str]], question: set[str]) -> list[float]:
    mean = sum(map(len, documents)) / len(documents) or 1
    containing = Counter(word for document in documents for word in question.intersection(document))
    weights = {word: math.log1p((len(documents) - n + 0.5) / (n + 0.5)) for word, n in containing.items()}
    scores = []
    for document in documents:
        counts, room = Counter(document), _SATURATION * (1 - _LENGTH + _LENGTH * len(document) / mean)
        hits = (weight * counts[word] / (counts[word] + room) for word, weight in weights.items() if counts[word])
        scores.append(sum(hits) * (_SATURATION + 1))
    return scores
