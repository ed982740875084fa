from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.nest import Knowing, Nest, checkout


@pytest.fixture(scope="session")
def knowing(tmp_path_factory: pytest.TempPathFactory, compiled_rules: Path) -> Iterator[Knowing]:
    """An agtrace that knows Tern."""
    knowing = Knowing(checkout(tmp_path_factory.mktemp("code")), compiled_rules.parent)
    yield knowing
    knowing.close()


@pytest.fixture
def nest(knowing: Knowing, tmp_path: Path) -> Nest:
    """A machine with Tern on it and no logs yet."""
    return Nest(tmp_path, knowing)
