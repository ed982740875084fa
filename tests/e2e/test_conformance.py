"""The official conformance suite against the server over HTTP, for both revisions of the protocol that agtrace speaks.

Checks that don't apply to agtrace are in `conformance`, with the reason. The suite fails on a failure that isn't listed
and on an entry that passes; an entry that it didn't run fails here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.clients import CONFORMANCE, Client, machine, require, run
from tests.e2e.test_http import listening

BASELINES = Path(__file__).parent / "conformance"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A machine with sample sessions, and the suite."""
    require(CONFORMANCE)
    return machine(tmp_path / "machine")


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_the_server_conforms_as_far_as_the_suite_applies(
    home: Path,
    revision: str,
    versions: Callable[[Client], str],
    record_property: Callable[[str, object], None],
) -> None:
    baseline = BASELINES / f"{revision}.yml"
    command = ["conformance", "server", "--requirements", revision, "--expected-failures", str(baseline)]
    with listening(home, "127.0.0.1:0", "--no-token") as server:
        ended = run([*command, "--url", server.url], home)
        excused = re.findall(r"^  ~ (\S+)", ended.stdout, re.MULTILINE)
        passed = sum(map(int, re.findall(r"^[✓✗] \S+: (\d+) passed", ended.stdout, re.MULTILINE)))
        said = f"{versions(CONFORMANCE)}: {revision}: {passed} checks pass, {len(excused)} don't apply"
        record_property("client", said)
        assert ended.returncode == 0, ended.stdout[ended.stdout.find("=== SUMMARY") :]
    entries = re.findall(r"^  - (\S+)", baseline.read_text(), re.MULTILINE)
    assert sorted(excused) == sorted(entries), "an entry that the suite didn't come across"
