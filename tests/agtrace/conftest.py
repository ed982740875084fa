"""What the tests of the commands share: one index of the sample sessions."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.agtrace.asking import YEAR
from tests.agtrace.terminal import AGTRACE
from tests.conftest import SAMPLES


@pytest.fixture(scope="session")
def sample_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of an index of the sample sessions."""
    data = tmp_path_factory.mktemp("samples") / "data"
    home = str(data.parent)
    subprocess.run(
        [AGTRACE, "index", SAMPLES], env={**os.environ, "AGTRACE_DATA_DIR": str(data), "HOME": home}, check=True
    )
    return data


@pytest.fixture
def indexed(sample_index: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The index of the samples is the one that commands use."""
    monkeypatch.setenv("AGTRACE_DATA_DIR", str(sample_index))
    monkeypatch.setenv("AGTRACE_CURSOR_TTL_SECONDS", str(YEAR))
    return sample_index
