"""What every test gets: a home of its own, and no way to the real one."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background: what the tests start would ignore it, too
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.pop("COLUMNS", None)  # else the commands would keep it for the whole run: a test sets it where it matters

LOGS = Path(__file__).resolve().parents[2] / "shared" / "logs"
SAMPLES = Path(__file__).resolve().parents[1] / "sample_sessions"


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory and data folder for the test and the processes it starts."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AGTRACE_DATA_DIR", str(tmp_path / "data"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_DATA_HOME", "AGTRACE_MAX_RESPONSE_BYTES",
                 "AGTRACE_CURSOR_TTL_SECONDS", "AGTRACE_PRICES", "AGTRACE_SEARCH_EVENTS", "AGTRACE_HTTP_TOKEN",
                 "AGTRACE_HTTP_HOSTS", "AGTRACE_HTTP_ORIGINS", "AGTRACE_KEEP_DAYS"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    return home


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
