"""The token of the HTTP transport: made once, readable only by its owner, and shown without being stored elsewhere."""

from __future__ import annotations

import json
import os
import pty
import stat
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agtrace.problems import SettingError
from agtrace.serving.http_auth import load_token
from tests.agtrace.terminal import agtrace_here
from tests.e2e.test_http import AGTRACE, listening, refused

KEPT = "a-token-that-was-kept-here"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Where the token of the test's data folder lies, once there is one."""
    return tmp_path / "data" / "http.token"


def test_it_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    kept = tmp_path / "new" / "http.token"
    before = os.umask(0)
    try:
        token = load_token(kept)
    finally:
        os.umask(before)
    assert len(token) >= 43 and load_token(kept) == token
    assert [(path.name, stat.S_IMODE(path.lstat().st_mode)) for path in kept.parent.iterdir()] == [(kept.name, 0o600)]
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    kept.unlink()
    assert load_token(kept) != token


def test_who_come_at_once_get_the_same(kept: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(load_token, [kept] * 64))) == 1


def link(path: Path) -> None:
    """To a token that the owner of the link knows."""
    (path.parent.parent / "known").write_text(KEPT)
    path.symlink_to(path.parent.parent / "known")


def link_to_nothing(path: Path) -> None:
    """So that the token would be written where the link leads."""
    path.symlink_to(path.parent.parent / "nothing")


def readable(path: Path) -> None:
    """By the group."""
    path.write_text(KEPT)
    path.chmod(0o640)


def short(path: Path) -> None:
    """As after a full disk."""
    path.touch(0o600)


@pytest.mark.parametrize(
    ("put", "said"),
    [(link, "is not a regular file"), (link_to_nothing, "is not a regular file"), (os.mkfifo, "is not a regular file"),
     (Path.mkdir, "is not a regular file"), (readable, "may be accessible to other users"),
     (short, "doesn't hold a token")],
    ids=["link", "link to nothing", "pipe", "folder", "readable", "short"],
)  # fmt: skip
def test_one_that_others_may_know_is_refused(kept: Path, put: Callable[[Path], None], said: str) -> None:
    """And stays as it is: it may be somebody's."""
    put(kept)
    with pytest.raises(SettingError, match=f"http.token {said}.*remove it"):
        load_token(kept)
    told = agtrace_here("mcp", "--show-token")
    assert (told.code, told.out) == (2, "") and said in told.err
    assert not (kept.parent.parent / "nothing").exists()
    assert os.path.lexists(kept)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_one_that_somebody_else_put_there_is_refused(kept: Path) -> None:
    kept.write_text(KEPT)
    kept.chmod(0o600)
    os.chown(kept, 65534, -1)
    with pytest.raises(SettingError, match="may be accessible to other users"):
        load_token(kept)


@pytest.mark.thorough
def test_it_is_shown_to_who_asks_and_is_in_no_log_and_no_answer(own_home: Path, kept: Path) -> None:
    with listening(own_home) as server:
        token = kept.read_text().strip()
        answers = [server.post("tools/list", Authorization=wrong)[2] for wrong in ("", f"Bearer {token}", "Bearer x")]
        answers += [server.request("GET", path)[2] for path in ("/healthz", "/readyz", "/metrics")]
    assert token not in json.dumps([answers, server.logged])
    assert agtrace_here("mcp", "--show-token").out == f"{token}\n"
    assert agtrace_here("mcp", "--show-token", AGTRACE_HTTP_TOKEN=KEPT).out == f"{KEPT}\n"


def test_one_that_others_can_read_serves_no_more_and_the_doctor_names_it(kept: Path) -> None:
    load_token(kept)
    kept.chmod(0o604)
    kept.parent.chmod(0o755)
    assert "may be accessible to other users" in refused("127.0.0.1:0")
    said = "".join(agtrace_here("doctor").out.split())  # a long path is broken where the line ends
    assert f"otheruserscanreadhttp.token:chmod600{kept}" in said


RECORDER = '#!/bin/sh\nprintf "%s\\n" "$(basename "$0") $*" "environment $AGTRACE_HTTP_TOKEN" >> "$TOLD"\n'


@pytest.mark.parametrize(
    "options", [(), pytest.param(("--no-token",), marks=pytest.mark.thorough)], ids=["token", "no token"]
)
def test_a_terminal_is_told_what_to_paste_and_a_shell_makes_the_token_of_it(
    own_home: Path, kept: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """A line for each agent, whose own command gets the address; the token is in its environment alone."""
    url, lines = screen(*options)
    assert [line.rpartition("; ")[2].split()[:3] for line in lines] == [
        [agent, "mcp", "add"] for agent in ("claude", "codex", "gemini")
    ]
    programs = tmp_path / "bin"
    programs.mkdir()
    for agent in ("claude", "codex", "gemini"):
        (programs / agent).write_text(RECORDER)
        (programs / agent).chmod(0o755)
    away = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(own_home), "TOLD": str(tmp_path / "told")}
    for line in lines:
        subprocess.run(["sh", "-c", line], env=away, check=True, timeout=300)
    told = (tmp_path / "told").read_text().splitlines()
    added, environment = told[::2], told[1::2]
    assert all(url in command for command in added)
    token = kept.read_text().strip() if kept.exists() else ""
    assert bool(token) == (options == ())
    assert environment == [f"environment {token}"] * 3
    header, named = "--header Authorization: Bearer ${AGTRACE_HTTP_TOKEN}", "--bearer-token-env-var AGTRACE_HTTP_TOKEN"
    assert [header in added[0], named in added[1], header in added[2]] == [bool(token)] * 3
    assert not token or token not in "".join([*lines, *added])


def screen(*options: str) -> tuple[str, list[str]]:
    """What a terminal shows that a server was started at: its address, and the lines to paste."""
    ours, theirs = pty.openpty()
    command = [AGTRACE, "mcp", "--http", "127.0.0.1:0", *options]
    with subprocess.Popen(command, stderr=theirs, close_fds=True) as process, open(ours) as shown:
        os.close(theirs)
        url = json.loads(shown.readline())["url"]
        lines = []
        while len(lines) < 3:
            line = shown.readline()
            lines += [line.strip()] if " mcp add " in line else []
        process.terminate()
    return url, lines
