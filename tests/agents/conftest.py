from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.nest import Nest, checkout


@pytest.fixture(scope="session")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An indexer that knows Tern."""
    return checkout(tmp_path_factory.mktemp("code"))


@pytest.fixture
def nest(code: Path, tmp_path: Path) -> Nest:
    """A machine with Tern on it and no logs yet."""
    return Nest(tmp_path, code)
