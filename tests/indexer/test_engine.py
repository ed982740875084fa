"""Nothing is used of this engine that another one wouldn't have to offer; mypy compares the signatures."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from agtrace_indexer.index import questions
from agtrace_indexer.index.questions import engine
from msgspec import Struct

SHARED = {"__init__", "engine", "conditions", "filters", "queries", "tokens"}
TOPICS = sorted(path.stem for path in Path(questions.__path__[0]).glob("*.py") if path.stem not in SHARED)


@pytest.mark.parametrize("topic", TOPICS)
def test_every_question_of_a_topic_stands_in_its_protocol(topic: str) -> None:
    asked = _public(import_module(f"{questions.__name__}.{topic}"))
    assert asked == _public(getattr(engine, topic.capitalize()))


@pytest.mark.parametrize("topic", TOPICS)
def test_what_a_topic_has_besides_questions_are_frozen_rows(topic: str) -> None:
    module = import_module(f"{questions.__name__}.{topic}")
    classes = [kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == module.__name__]
    assert [kind for kind in classes if not kind.__name__.startswith("_") and not _is_row(kind)] == []


def _is_row(kind: type) -> bool:
    return hasattr(kind, "_fields") or (issubclass(kind, Struct) and kind.__struct_config__.frozen)


def _public(owner: ModuleType | type) -> set[str]:
    module = owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
    found = inspect.getmembers(owner, inspect.isfunction)
    return {name for name, function in found if not name.startswith("_") and function.__module__ == module}
