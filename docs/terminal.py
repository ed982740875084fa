"""Draws docs/terminal.svg: real commands on the sample sessions, as a terminal shows them.

Run it with the project's environment: `make picture`.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
_COMMANDS = (
    ("index", "sample_sessions"),
    ("sessions", "--limit", "5"),
    ("search", "database is locked", "--by-session", "--failed"),
    ("show", "d41f7a52:57"),
    ("show", "8c0d35f1", "--turns"),
    ("analyze", "01a0ec9d"),
)
_WIDTH = 110


def main() -> None:
    """Run the commands in an index of their own and write the picture."""
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "AGTRACE_DATA_DIR": folder, "FORCE_COLOR": "1", "COLUMNS": str(_WIDTH)}
        for command in _COMMANDS:
            typed = " ".join(f"'{word}'" if " " in word else word for word in command)
            console.print(Text(f"$ agtrace {typed}", style="bold cyan"))
            executable = Path(sys.executable).with_name("agtrace")
            done = subprocess.run(
                [executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
            )
            console.print(Text.from_ansi(done.stdout.replace(f"{ROOT}/", "")))
    picture = console.export_svg(title="agtrace", unique_id="agtrace")
    fonts = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # they would be fetched from elsewhere
    (ROOT / "docs" / "terminal.svg").write_text(fonts.sub("", picture), encoding="utf-8")


if __name__ == "__main__":
    main()
