"""Nothing is used of this engine that another one wouldn't have to offer; mypy compares the signatures."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from agtrace_indexer.index import questions
from agtrace_indexer.index.questions import engine

SHARED = {"__init__", "engine", "conditions", "queries", "tokens"}
TOPICS = sorted(path.stem for path in Path(questions.__path__[0]).glob("*.py") if path.stem not in SHARED)


@pytest.mark.parametrize("topic", TOPICS)
def test_every_question_of_a_topic_stands_in_its_protocol(topic: str) -> None:
    asked = _public(import_module(f"{questions.__name__}.{topic}"))
    assert asked == _public(getattr(engine, topic.capitalize()))


def _public(owner: ModuleType | type) -> set[str]:
    module = owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
    found = inspect.getmembers(owner, inspect.isfunction)
    return {name for name, function in found if not name.startswith("_") and function.__module__ == module}
