"""A PostgreSQL server for the tests of teams, started without root; without one they are skipped, and say so."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from agtrace_team.connection import connect
from agtrace_team.problems import NoServer
from agtrace_team.server import Server

from agtrace.conversation import code, html
from tests.conftest import LOGS, MORE_LOGS, REAL_LOGS, SAMPLES, copy_index
from tests.depth import THOROUGH
from tests.team.teams import Team, index_of

NEEDED = "AGTRACE_NEEDS_POSTGRES"
"""The variable that makes a missing server a failure."""

_SMALL = 300_000
_numbers = count()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A running server with a database `made`, which has the tables of a team."""
    root = os.environ.get("PYTEST_DEBUG_TEMPROOT")
    folder = Path(tempfile.mkdtemp(prefix="agtrace-pg-", dir=root))  # short, as the path of a socket has to be
    try:
        try:
            found = Server(folder, durable=False)
            found.start()
        except NoServer as error:
            if os.environ.get(NEEDED):
                raise
            pytest.skip(f"no team can be tried: {error}")
        found.make("made")
        yield found
        found.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let searches and the colours of code take their time, however busy the machine is: answers depend on the data."""
    monkeypatch.setattr(code, "_SECONDS", 30)
    monkeypatch.setattr(html, "_COLOURING_SECONDS", 300)


def new_team(server: Server) -> Team:
    """A team of nobody, in a database of its own."""
    name = f"team{next(_numbers)}"
    with connect(server.url("postgres")) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE made")
    return Team(server, name)


@pytest.fixture
def team(server: Server) -> Team:
    """A team of nobody."""
    return new_team(server)


@pytest.fixture(scope="session")
def samples(indexed_samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of the sample sessions."""
    return copy_index(indexed_samples, tmp_path_factory.mktemp("samples") / "index.sqlite3")


@pytest.fixture(scope="session")
def everything(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of the samples and of all real logs at hand; usually of small projects of the latter alone."""
    there = [folder for folder in (*REAL_LOGS, LOGS / "opencode", MORE_LOGS / "opencode") if folder.is_dir()]
    logs = there if THOROUGH else [few for folder in there for few in _small(folder)]
    database = copy_index(samples, tmp_path_factory.mktemp("everything") / "index.sqlite3")
    return index_of(database.parent, *logs, SAMPLES)


def _small(folder: Path) -> Iterator[Path]:
    """A folder of at most so many bytes, or of a larger one what it holds of such folders."""
    if _size(folder) <= _SMALL:
        yield folder
    else:
        yield from (project for project in sorted(folder.iterdir()) if _size(project) <= _SMALL)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
