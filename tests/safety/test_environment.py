"""What stays inside: nothing connects anywhere, no secret in the environment leaves, setup lets agents write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agtrace.asking import claude_log
from tests.agtrace.terminal import AGTRACE, agtrace, agtrace_here
from tests.e2e.test_http import listening
from tests.safety.test_files import serve

SESSION = "fb3cff44-13ae-41a6-a6df-f287e0552835"
GUARD = """
import os, sys

REACHED = ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind", "socket.getaddrinfo",
           "socket.gethostbyname", "socket.gethostbyaddr", "urllib.Request", "http.client.connect", "ftplib.connect")

def refuse(event, arguments):
    if event in REACHED:
        with open(os.environ["REACHED"], "a") as file:
            file.write(f"{event} {arguments[1:]}\\n")
        raise PermissionError(event)

sys.addaudithook(refuse)
"""
"""Python runs it first in every process: it refuses and notes whatever would reach another process or machine."""


@pytest.fixture
def guarded(tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Processes that can't connect to anything; gives the file that has what they tried."""
    claude_log(own_home / ".claude", SESSION).prompt("Fetch https://evil.example/").call("Bash", {"command": "x"}, "x")
    (tmp_path / "guard").mkdir()
    (tmp_path / "guard" / "sitecustomize.py").write_text(GUARD)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "guard"))
    monkeypatch.setenv("REACHED", str(tmp_path / "reached"))
    yield tmp_path / "reached"


def test_no_connection_is_made_and_no_name_looked_up(guarded: Path, tmp_path: Path) -> None:
    """The guard itself is seen at work last: it refuses a connection to this machine."""
    for command in (["index"], ["report", "--html", str(tmp_path / "page.html")], ["doctor"]):
        assert agtrace(*command).code in (0, 1)
    assert serve().stdout.count(b'"result"') == 3
    assert not guarded.exists(), guarded.read_text()
    tried = "import socket; socket.create_connection(('127.0.0.1', 9))"
    assert subprocess.run([sys.executable, "-c", tried], capture_output=True, check=False).returncode == 1
    assert "socket.getaddrinfo" in guarded.read_text()


TOKEN = "a-token-that-only-clients-know"
OTHER = "what-another-program-keeps-here"


@pytest.mark.thorough
def test_no_secret_of_the_environment_leaves(own_home: Path, tmp_path: Path) -> None:
    """Neither the token nor what is there for others: in no answer, log line, figure, command line, file or message."""
    variables = {"AGTRACE_HTTP_TOKEN": TOKEN, "SOMEBODYS_API_KEY": OTHER}
    claude_log(own_home / ".claude", SESSION).prompt("Which variables are there?")
    commands = (["doctor", "--json"], ["setup", "codex"])
    said = [agtrace_here(*command, **variables) for command in commands]
    told = [text for answer in said for text in (answer.out, answer.err)]
    with listening(own_home, **variables) as server:
        for headers in ({}, {"Authorization": ""}, {"Authorization": f"Bearer {TOKEN}x"}):
            for path in ("/healthz", "/readyz", "/metrics", f"/mcp?token={TOKEN}"):
                _, answered, text = server.request("GET", path, **headers)
                told += [json.dumps(answered), text]
        for place in (f"?token={TOKEN}", f"?access_token={TOKEN}", f"?authorization=Bearer%20{TOKEN}"):
            headers = {"Authorization": "", "Cookie": f"token={TOKEN}"}
            assert server.request("POST", f"/mcp{place}", "{}", **headers)[0] == 401, "only in its header"
        told.append(_command_lines(server.process.pid))
    answered = serve(**variables)
    told += [answered.stdout.decode(), answered.stderr.decode()]
    told += [path.read_bytes().decode("latin-1") for path in (tmp_path / "data").iterdir() if path.is_file()]
    assert len(told) > 20
    assert not [text for text in told if TOKEN in text or OTHER in text]


def _command_lines(process: int) -> str:
    """What everybody on the machine can see of a process."""
    seen = subprocess.run(["ps", "-o", "args=", "-p", str(process)], capture_output=True, text=True, check=False)
    return seen.stdout


RECORDER = """#!{python}
import json, os, sys
json.dump([sys.argv[1:], os.getcwd()], open({told!r}, "a"))
open({told!r}, "a").write("\\n")
"""


def test_setup_lets_the_agent_itself_write_and_names_us_by_a_whole_path(own_home: Path, tmp_path: Path) -> None:
    """Also where the PATH has a folder relative to the current one, in which another agtrace might lie tomorrow."""
    told, programs = tmp_path / "told", tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").write_text(RECORDER.format(python=sys.executable, told=str(told)))
    (programs / "agtrace").symlink_to(AGTRACE)
    for program in programs.iterdir():
        program.chmod(0o755)
    done = subprocess.run(
        [AGTRACE, "setup", "claude", "--apply"], cwd=tmp_path, capture_output=True, timeout=300, check=True,
        env={**os.environ, "PATH": f"bin:{os.environ['PATH']}"},
    )  # fmt: skip
    calls = [json.loads(line)[0] for line in told.read_text().splitlines()]
    carried = f"AGTRACE_DATA_DIR={tmp_path / 'data'}"
    assert calls == [
        ["mcp", "add", "--scope", "user", "agtrace", "--env", carried, "--", str(programs / "agtrace"), "mcp"]
    ]
    assert str(programs / "agtrace").encode() in done.stdout
    assert list(own_home.iterdir()) == []
