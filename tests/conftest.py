"""What every test gets: a home of its own, and no way to the real one."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from agtrace_indexer import redact
from agtrace_indexer.parallel.pool import cores

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background: what the tests start would ignore it, too
    signal.signal(signal.SIGINT, signal.default_int_handler)
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is started hundreds of times is compiled once
os.environ.pop("COLUMNS", None)  # else the commands would keep it for the whole run: a test sets it where it matters

LOGS = Path(__file__).resolve().parents[2] / "shared" / "logs"
SAMPLES = Path(__file__).resolve().parents[1] / "sample_sessions"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: for a third of its time a worker waits for processes and clocks."""
    return cores() + 1


def pytest_configure(config: pytest.Config) -> None:
    """Let the first run compile the rules for secrets, and all others read them."""
    redact.use(_rules(config))
    redact.redact("a text")


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what thousands of collected tests consist of: it lives as long as the run."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def compiled_rules(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What agtrace keeps of its rules for secrets, where a test's data folder may have a link to it."""
    return Path(shutil.copy2(_rules(pytestconfig) / redact.COMPILED_FILE, tmp_path_factory.mktemp("rules")))


def _rules(config: pytest.Config) -> Path:
    assert config.cache is not None
    return config.cache.mkdir("rules")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, compiled_rules: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory, and a data folder without an index, for the test and the processes it starts.

    The folder holds the compiled rules, as it does wherever agtrace has run before: else every process that reads a
    log would compile them.
    """
    home = tmp_path / "home"
    home.mkdir()
    keep_rules(compiled_rules, tmp_path / "data")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AGTRACE_DATA_DIR", str(tmp_path / "data"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_DATA_HOME", "AGTRACE_MAX_RESPONSE_BYTES",
                 "AGTRACE_CURSOR_TTL_SECONDS", "AGTRACE_PRICES", "AGTRACE_SEARCH_EVENTS", "AGTRACE_HTTP_TOKEN",
                 "AGTRACE_HTTP_HOSTS", "AGTRACE_HTTP_ORIGINS", "AGTRACE_KEEP_DAYS"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    return home


def keep_rules(compiled: Path, folder: Path) -> None:
    """Make a data folder with the compiled rules, or put them into one that has none."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.link(compiled, folder / compiled.name)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Where the index of the test lies: in AGTRACE_DATA_DIR."""
    return tmp_path / "data" / "index.sqlite3"


@pytest.fixture(scope="session")
def logs() -> Path:
    """The folder of real logs; a test that needs it is skipped where it is absent."""
    if not LOGS.is_dir():
        pytest.skip("the folder of real logs (shared/logs) is not here")
    return LOGS
