"""Servers of `agtrace open` that tests share: over the sample sessions, and over hostile ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import copy_index
from tests.web.hostile_sessions import write
from tests.web.opening import Site, opened


@pytest.fixture(scope="session")
def site(compiled_rules: Path, indexed_samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server over the sample sessions."""
    home = tmp_path_factory.mktemp("machine") / "home"
    home.mkdir()
    copy_index(indexed_samples, home.parent / "data" / "index.sqlite3")
    with opened(home, compiled_rules) as found:
        yield found


@pytest.fixture(scope="session")
def hostile(compiled_rules: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server over hostile sessions."""
    home = tmp_path_factory.mktemp("machine") / "home"
    write(home)
    with opened(home, compiled_rules, logs=home / ".claude") as found:
        yield found
