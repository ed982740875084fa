"""Lists the versions of the real clients at the end of a run, with what was measured with each."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from tests.e2e.clients import Client, version


@pytest.fixture(scope="session")
def versions() -> Callable[[Client], str]:
    """A function that returns a client's title and version, asking each client only once."""
    return functools.cache(version)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what the tests recorded under `client`."""
    reports = [report for kind in terminalreporter.stats.values() for report in kind if hasattr(report, "when")]
    said = {
        str(value) for report in reports for name, value in getattr(report, "user_properties", ()) if name == "client"
    }
    if said:
        terminalreporter.section("real clients")
        for line in sorted(said):
            terminalreporter.write_line(line)
