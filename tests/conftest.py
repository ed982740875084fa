"""Fixtures for every test: a home of its own, and no way to the real one."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer import redact
from agtrace_indexer.parallel.pool import cores
from agtrace_indexer.run import index
from hypothesis import HealthCheck, settings

from agtrace.settings import variables
from tests.depth import THOROUGH, examples

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # else what the tests start would ignore it, too
    signal.signal(signal.SIGINT, signal.default_int_handler)
for ignored in (signal.SIGHUP, signal.SIGQUIT):  # `nohup make test` and a shell's `&`
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # code that is started hundreds of times is compiled once
os.environ["TZ"] = "UTC"
time.tzset()
os.environ.pop("COLUMNS", None)  # else the commands would keep it for the whole run: a test sets it if it matters
for name in (*variables(), "XDG_DATA_HOME"):
    os.environ.pop(name, None)  # what a developer has set mustn't change what the tests see
settings.register_profile(  # laws, not speed; the same examples every day, others in a thorough run
    "patient",
    deadline=None,
    derandomize=not THOROUGH,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=examples(100),
)
settings.load_profile("patient")


def _has_room(memory: Path) -> bool:
    """Whether a file system in memory may hold what tests write, and run the programs among it."""
    there = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 4_000_000_000
    return there and not os.statvfs(memory).f_flag & os.ST_NOEXEC


if _has_room(Path("/dev/shm")):  # where nothing waits for a disk: an index does so several times
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")

LOGS = Path(__file__).resolve().parents[2] / "shared" / "logs"
MORE_LOGS = LOGS.with_name("logs_more")
REAL_LOGS = (
    *(LOGS / agent for agent in ("claude", "codex", "gemini", "copilot", "cursor")),
    *(LOGS / agent for agent in ("pi", "openclaw", "qwen", "antigravity")),
    *(MORE_LOGS / agent for agent in ("copilot", "kiro", "goose", "pi", "qwen", "antigravity")),
)
"""The folders with real logs of the agents that are read, whether they are there or not."""
SAMPLES = Path(__file__).resolve().parents[1] / "sample_sessions"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
_numbers = count()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium."""
    if CHROMIUM is None:
        pytest.skip("no Chromium or Chrome on the PATH")
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright isn't installed")
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


def copy_of_samples(folder: Path) -> Path:
    """Copy the samples, but for the one log of two megabytes, into a folder that is made, and return it."""
    return Path(shutil.copytree(SAMPLES, folder, ignore=shutil.ignore_patterns("d41f7a52*")))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Use one worker more than there are cores, as workers wait a third of the time for processes and clocks."""
    return cores() + 1


def pytest_configure(config: pytest.Config) -> None:
    """Let the first process compile the rules for secrets, and all others read them.

    The workers inherit AGTRACE_THOROUGH; what tests start doesn't.
    """
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        os.environ.pop("AGTRACE_THOROUGH", None)
    redact.use(_rules(config))
    redact.redact("a text")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each worker begin with other modules: pytest compiles their assertions, once for all in a fresh checkout."""
    config = session.config
    if hasattr(config, "workerinput") and config.args == config.getini("testpaths"):
        modules = sorted(Path(__file__).parent.rglob("test_*.py"))
        first, step = int(config.workerinput["workerid"][2:]), config.workerinput["workercount"]
        for path in modules[first::step]:
            with suppress(Exception):  # pytest imports it again and tells
                import_module(".".join(("tests", *path.relative_to(Path(__file__).parent).with_suffix("").parts)))


def pytest_collection_finish() -> None:
    """Make the garbage collector skip the objects of thousands of collected tests, and look less often at others."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session")
def compiled_rules(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled rules for secrets, to which a test's data folder can have a link."""
    return Path(shutil.copy2(_rules(pytestconfig) / redact.COMPILED_FILE, tmp_path_factory.mktemp("rules")))


def _rules(config: pytest.Config) -> Path:
    folder = config.rootpath / ".pytest_cache" / "d" / "rules"  # also without pytest's own cache
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(autouse=True)
def no_real_home(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home of its own for a test that has a folder; for any other one that isn't there, which takes no time."""
    if "tmp_path" in request.fixturenames:
        request.getfixturevalue("own_home")
    else:
        nowhere = tmp_path_factory.getbasetemp() / "nowhere" / str(next(_numbers))
        monkeypatch.setenv("HOME", str(nowhere / "home"))
        monkeypatch.setenv("AGTRACE_DATA_DIR", str(nowhere / "data"))


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine in Berlin, whose clock changed on 2026-10-25."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def own_home(tmp_path: Path, compiled_rules: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory and a data folder without an index, for the test and the processes it starts.

    The folder has the compiled rules, as if agtrace had run before: otherwise every process that reads a log would
    compile them.
    """
    home = tmp_path / "home"
    home.mkdir()
    keep_rules(compiled_rules, tmp_path / "data")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AGTRACE_DATA_DIR", str(tmp_path / "data"))
    return home


def keep_rules(compiled: Path, folder: Path) -> None:
    """Put the compiled rules into a data folder, which is made if it doesn't exist, unless it has them."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.link(compiled, folder / compiled.name)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The path of the test's index, in AGTRACE_DATA_DIR."""
    return tmp_path / "data" / "index.sqlite3"


@pytest.fixture(scope="session")
def indexed_once(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A function that returns an index of folders of logs, made once for all workers: to be copied, not changed."""
    base = tmp_path_factory.getbasetemp()

    def made(name: str, *roots: Path) -> Path:
        database = (base.parent if hasattr(pytestconfig, "workerinput") else base) / "indexed" / name / "index.sqlite3"
        index(database, [str(root) for root in roots], otherwise=[], patience=300)
        return database

    return made


@pytest.fixture(scope="session")
def indexed_samples(indexed_once: Callable[..., Path]) -> Path:
    """An index of the samples."""
    return indexed_once("samples", SAMPLES)


@pytest.fixture(scope="session")
def indexed_logs(indexed_once: Callable[..., Path], logs: Path) -> Path:
    """An index of the real logs of Claude Code, Codex and Gemini CLI."""
    return indexed_once("logs", *(logs / agent for agent in ("claude", "codex", "gemini")))


def copy_index(source: Path, target: Path) -> Path:
    """Copy an index that other processes may have open, and return the copy."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)
    return target


@pytest.fixture(scope="session")
def logs() -> Path:
    """The folder of real logs; tests that need it are skipped if it is absent."""
    if not LOGS.is_dir():
        pytest.skip("the folder of real logs (shared/logs) is not here")
    return LOGS
