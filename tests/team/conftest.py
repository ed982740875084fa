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

from agtrace.report.conversation import as_page
from agtrace.report.web import calls
from tests.conftest import LOGS, MORE_LOGS, REAL_LOGS, SAMPLES
from tests.depth import THOROUGH
from tests.team.teams import Team, index_of

NEEDED = "AGTRACE_NEEDS_POSTGRES"
"""The variable that makes a missing server a failure."""

_MEGABYTE = 1_000_000
_numbers = count()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A running server with a database `made`, which has the tables of a team."""
    folder = Path(tempfile.mkdtemp(prefix="agtrace-pg-"))  # short, as the path of a socket has to be
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
    monkeypatch.setattr(calls, "_SECONDS", 30)
    monkeypatch.setattr(as_page, "_COLOURING_SECONDS", 300)


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
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of the sample sessions."""
    return index_of(tmp_path_factory.mktemp("samples"), SAMPLES)


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of the samples and of all real logs at hand; usually without the largest projects of the latter."""
    there = [folder for folder in (*REAL_LOGS, LOGS / "opencode", MORE_LOGS / "opencode") if folder.is_dir()]
    logs = there if THOROUGH else [few for folder in there for few in _small(folder)]
    return index_of(tmp_path_factory.mktemp("everything"), *logs, SAMPLES)


def _small(folder: Path) -> Iterator[Path]:
    """A folder of at most a megabyte, or of a larger one what it holds of such folders."""
    if _size(folder) <= _MEGABYTE:
        yield folder
    else:
        yield from (project for project in sorted(folder.iterdir()) if _size(project) <= _MEGABYTE)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
