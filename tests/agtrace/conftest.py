"""Fixtures that tests share: an index of the sample sessions and one of the real logs, for tools and commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agtrace.asking import YEAR, Asker
from tests.conftest import LOGS, SAMPLES, copy_index, keep_rules
from tests.depth import THOROUGH


@pytest.fixture(scope="session")
def samples(indexed_samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Asker:
    """An index of the sample sessions."""
    return Asker(copy_index(indexed_samples, tmp_path_factory.mktemp("samples") / "index.sqlite3").parent, SAMPLES)


@pytest.fixture(scope="session")
def everything(indexed_samples: Path, tmp_path_factory: pytest.TempPathFactory, logs: Path) -> Asker:
    """An index of the sample sessions and the real logs."""
    database = copy_index(indexed_samples, tmp_path_factory.mktemp("everything") / "index.sqlite3")
    return Asker(database.parent, logs, SAMPLES)


@pytest.fixture(scope="session")
def each(request: pytest.FixtureRequest) -> Asker:
    """An index of the samples, and in a thorough run of the real logs, too, where there are some."""
    found: Asker = request.getfixturevalue("everything" if THOROUGH and LOGS.is_dir() else "samples")
    return found


@pytest.fixture(scope="session")
def sample_index(compiled_rules: Path, indexed_samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of an index of the sample sessions."""
    data = tmp_path_factory.mktemp("samples") / "data"
    keep_rules(compiled_rules, data)
    return copy_index(indexed_samples, data / "index.sqlite3").parent


@pytest.fixture
def indexed(sample_index: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the index of the samples the one that commands use."""
    monkeypatch.setenv("AGTRACE_DATA_DIR", str(sample_index))
    monkeypatch.setenv("AGTRACE_CURSOR_TTL_SECONDS", str(YEAR))
    return sample_index
