"""`agtrace service`: files that systemd and launchd understand, whatever the paths; only --apply starts anything."""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from agtrace.problems import NotInstalled
from agtrace.upkeep.service import is_installed, property_list, service, unit
from tests.agtrace.terminal import agtrace_here

PATHS = ["/usr/bin/agtrace", "/opt/my tools/agtrace", '/opt/a "b"/100%/$HOME/\\x/agtrace', "/opt/Überschall/agtrace"]


@pytest.mark.parametrize("path", PATHS)
def test_launchd_reads_the_paths_back(path: str) -> None:
    read = plistlib.loads(property_list(path, {"AGTRACE_DATA_DIR": path}))
    assert read["ProgramArguments"] == [path, "index", "--watch"]
    assert read["EnvironmentVariables"] == {"AGTRACE_DATA_DIR": path}
    assert read["RunAtLoad"] is True


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="has no systemd")
@pytest.mark.parametrize("folder", ["plain", "my tools", "Überschall", "100%"])
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path, folder: str) -> None:
    executable = tmp_path / folder / "agtrace"
    executable.parent.mkdir()
    executable.write_text("#!/bin/sh\n")
    executable.chmod(0o755)
    path = tmp_path / "agtrace.service"
    path.write_text(unit(str(executable), {"AGTRACE_DATA_DIR": f'{tmp_path}/my "data" 5% \\ $HOME'}))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(path)], capture_output=True, text=True, timeout=300,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )  # fmt: skip
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_unit_quotes_what_systemd_would_read_otherwise() -> None:
    text = unit("/opt/my tools/agtrace", {"AGTRACE_DATA_DIR": '/a "b" 5%'})
    assert 'ExecStart="/opt/my tools/agtrace" index --watch\n' in text
    assert 'Environment="AGTRACE_DATA_DIR=/a \\"b\\" 5%%"\n' in text


def test_only_what_decides_what_is_indexed_is_written_down_and_no_secret() -> None:
    environment = {
        "AGTRACE_DATA_DIR": "/data", "AGTRACE_HTTP_TOKEN": "a-token-of-mine", "CODEX_HOME": "/codex", "PATH": "/bin",
    }  # fmt: skip
    for platform in ("linux", "darwin"):
        content = service(platform, "/bin/agtrace", environment, Path("/home/mira"), 501).content.decode()
        assert "/data" in content and "/codex" in content and "a-token" not in content and "PATH" not in content


def test_the_places_and_commands_of_each_platform() -> None:
    home = Path("/home/mira")
    linux = service("linux", "/bin/agtrace", {}, home, 501)
    assert str(linux.path) == "/home/mira/.config/systemd/user/agtrace.service"
    moved = service("linux", "/bin/agtrace", {"XDG_CONFIG_HOME": "/conf"}, home, 501)
    assert str(moved.path) == "/conf/systemd/user/agtrace.service"
    mac = service("darwin", "/bin/agtrace", {}, home, 501)
    assert mac.start == (("launchctl", "bootstrap", "gui/501", str(mac.path)),)
    assert str(mac.path) == "/home/mira/Library/LaunchAgents/agtrace.index.plist"
    with pytest.raises(NotInstalled):
        service("win32", "/bin/agtrace", {}, home, 0)
    with pytest.raises(NotInstalled):
        service("linux", "/bin/a\ngtrace", {}, home, 0)


@pytest.fixture
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A systemctl that writes down how it is called, and fails if a file says so."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "systemctl"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/called\ntest ! -e {tmp_path}/fails\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path / "called"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="is about systemd")
def test_without_apply_it_only_shows_with_it_it_starts_and_removes_what_it_wrote(
    own_home: Path, systemctl: Path
) -> None:
    path = own_home / ".config" / "systemd" / "user" / "agtrace.service"
    shown = agtrace_here("service")
    assert shown.code == 0 and "not installed" in shown.out and "index --watch" in shown.out
    assert not path.exists() and not systemctl.exists(), "nothing was written or run"
    assert agtrace_here("service", "--apply").code == 0
    assert systemctl.read_text().splitlines() == ["--user daemon-reload", "--user enable --now agtrace.service"]
    assert f"AGTRACE_DATA_DIR={os.environ['AGTRACE_DATA_DIR']}" in path.read_text()
    assert is_installed("linux", {}, own_home)
    assert "installed and running" in agtrace_here("service").out
    assert agtrace_here("service", "--remove").code == 0 and not path.exists()
    assert "--user disable --now agtrace.service" in systemctl.read_text()
    assert "not installed" in agtrace_here("service", "--remove").out


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="is about systemd")
def test_a_service_that_can_t_be_started_says_why(own_home: Path, systemctl: Path) -> None:
    systemctl.with_name("fails").touch()
    said = agtrace_here("service", "--apply")
    assert said.code == 1 and "systemctl --user daemon-reload failed" in said.err


def test_apply_and_remove_exclude_each_other() -> None:
    assert agtrace_here("service", "--apply", "--remove").code == 2
