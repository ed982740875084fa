"""Draws docs/picker.svg and docs/terminal.svg: bare `agtrace` and `agtrace why`, over the sample sessions.

Run it with the project's environment: `make picture`.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text
from textual.widgets import Input

from agtrace.answers.log import silent
from agtrace.answers.service import Service
from agtrace.commands.pick import _Source
from agtrace.render.picker import Picker
from agtrace.settings import load
from agtrace.tools.arguments import parse_options

ROOT = Path(__file__).resolve().parents[1]
_WIDTH, _HEIGHT = 120, 20
_SECONDS = 60
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # they would be fetched from elsewhere
_HOME = "/home/mira"
_FILE = "tidepool/store.py"
_CONTENT = """\
def connect(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA busy_timeout=5005")
    return connection
"""
"""What the sessions left there."""


def main() -> None:
    """Lay the samples out as a home, index them, and write both pictures."""
    with tempfile.TemporaryDirectory() as folder:
        home, project = Path(folder), Path(folder, "projects", "tidepool")
        shutil.copytree(ROOT / "sample_sessions" / "claude", home / ".claude")
        for log in home.rglob("*.jsonl"):
            log.write_text(log.read_text("utf-8").replace(_HOME, folder), "utf-8")
        (project / _FILE).parent.mkdir(parents=True)
        (project / _FILE).write_text(_CONTENT, "utf-8")
        os.environ |= {"HOME": folder, "AGTRACE_DATA_DIR": str(home / "data"), "COLUMNS": str(_WIDTH)}
        agtrace = Path(sys.executable).with_name("agtrace")
        subprocess.run([agtrace, "index"], capture_output=True, check=True)
        said = subprocess.run([agtrace, "why", f"{_FILE}:2-3"], cwd=project, capture_output=True, text=True, check=True)
        _write("terminal", _drawn(f"agtrace why {_FILE}:2-3", said.stdout.replace(folder, _HOME)))
        _write("picker", asyncio.run(_picker()).replace(folder, _HOME))


def _write(name: str, picture: str) -> None:
    picture = re.sub(r"terminal-\d+", name, _FONTS.sub("", picture))
    (ROOT / "docs" / f"{name}.svg").write_text(picture.replace("Picker", "agtrace"), encoding="utf-8")


def _drawn(typed: str, said: str) -> str:
    """Return a command with what it printed as a picture."""
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ {typed}", style="bold cyan"))
    console.print(Text.from_ansi(said))
    return console.export_svg(title="agtrace why", unique_id="terminal")


async def _picker() -> str:
    """Return what is seen after some words were typed."""
    app = Picker(_Source(Service(load(), refresh_seconds=0.3, log=silent, read=parse_options)))
    async with app.run_test(size=(_WIDTH, _HEIGHT)) as pilot:
        app.query_one("Input", Input).value = "database is locked"
        end = time.monotonic() + _SECONDS
        while (app._query != "database is locked" or app._shown == "") and time.monotonic() < end:
            await pilot.pause(0.1)
        await pilot.press("down")
        await pilot.pause(1)
        picture = app.export_screenshot()
        app.exit()
    return picture


if __name__ == "__main__":
    main()
