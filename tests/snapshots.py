"""The answers of every tool for the sample sessions, as files that a reviewer can read.

`python -m tests.snapshots --write` (`make docs`) writes them; a test compares them with agtrace's answers. Parts that
differ between machines are in brackets: the folder of the samples, and cursors, which are signed. The `budget` of an
answer depends on the length of that folder's path and is left out.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agtrace_indexer.run import index

from agtrace.answers.log import silent
from agtrace.answers.service import Service
from agtrace.settings import load

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_sessions"
FOLDER = ROOT / "tests" / "answers"

_CURSOR = re.compile(r"[\w-]{10,60}\.[\w-]{6}\.[\w-]{16}")
_WIDTH = "110"


CLAUDE, AGENT, LARGE, GEMINI = "e97a4b06", "agent-a3f", "d41f7a52", "338b9da1"
"""Sample sessions."""

REQUESTS: dict[str, list[dict[str, Any]]] = {
    "list_sessions": [
        {"limit": 3},
        {"provider": "codex", "since": "2026-10-01", "limit": 2},
        {"path": "store.py", "has_failures": True, "min_tokens": 50_000, "fields": "title,failed_calls"},
        {"query": "surge", "since": "2026-11-09"},
        {"sort": "failure_run", "limit": 2},
    ],
    "get_project_info": [{}],
    "run_sql": [
        {"sql": "SELECT tool, count(*), sum(failed) FROM tool_calls GROUP BY 1 ORDER BY 3 DESC, 1 LIMIT 3"},
        {"sql": "SELECT events FROM sessions"},
    ],
    "get_session_details": [
        {"session_id": CLAUDE},
        {"session_id": CLAUDE, "detail_level": "turns", "turn_index": 0, "include_reasoning": True},
        {"session_id": CLAUDE, "detail_level": "steps", "turn_index": 0},
        {"session_id": CLAUDE, "detail_level": "full", "turn_index": 1},
        {"session_id": AGENT},
        {"session_id": GEMINI, "detail_level": "turns"},
        {"session_id": CLAUDE, "sections": "tools,files,failures"},
        {"session_id": LARGE, "sections": ["tools"]},
        {"session_id": LARGE, "fields": "title,stats.cost_usd,failing_turns"},
        {"session_id": "nosuchid"},
    ],
    "analyze_session": [{"session_id": LARGE, "include_loops": True}],
    "search_event_previews": [
        {"query": "surge warning on the map"},
        {"query": "surge", "order": "newest", "limit": 4},
        {"query": "database is locked", "group_by": "session", "limit": 2},
        {"query": "database is locked", "order": "oldest", "limit": 1},
        {"query": "timeout locked", "limit": 1},
        {"query": "", "path": "map.js", "event_type": "ToolCall", "limit": 1},
        {"query": "locked database", "order": "newest"},
        {"query": "zebra quagga"},
    ],
    "get_event_details": [
        {"session_id": CLAUDE, "event_index": 8},
        {"session_id": CLAUDE, "event_index": 55},
        {"session_id": LARGE, "event_index": 57},
        {"session_id": LARGE, "event_index": 110, "mode": "minimal"},
        {"session_id": LARGE, "event_index": 110, "start_line": 13, "end_line": 15},
        {"session_id": LARGE, "event_index": 110, "start_line": 13, "end_line": 99},
        {"session_id": CLAUDE, "event_index": 99999},
    ],
    "read_artifact": [
        {"ref": f"ax://event/{LARGE}/57"},
        {"ref": f"ax://session/{AGENT}", "end_line": 12},
        {"ref": f"ax://analysis/{CLAUDE}"},
        {"ref": "ax://nowhere"},
    ],
    "compare_sessions": [{"id1": CLAUDE, "id2": GEMINI}],
    "get_reasoning_chain": [{"session_id": CLAUDE}],
}
"""The calls of each tool."""

COMMANDS: list[list[str]] = [
    ["sessions", "--limit", "6"],
    ["show", CLAUDE],
    ["show", CLAUDE, "--turns", "0"],
    ["show", CLAUDE, "--turns", "0", "--level", "steps"],
    ["show", CLAUDE, "--sections", "tools,failures"],
    ["show", f"{CLAUDE}:8"],
    ["show", f"{LARGE}:110", "--mode", "minimal"],
    ["show", f"ax://session/{AGENT}", "--lines", "1:12"],
    ["search", "database is locked", "--by-session", "--limit", "2"],
    ["search", "locked database", "--session", LARGE],
    ["search", "surge", "--newest", "--limit", "2"],
    ["why", "/home/mira/projects/tidepool/tidepool/alerts.py"],
    ["compare", CLAUDE, GEMINI],
    ["analyze", LARGE],
    ["cost", "--by", "model"],
    ["cost", "--by", "week", "--json"],
]
"""The commands that a person types."""


def snapshots() -> Iterator[tuple[Path, str]]:
    """Yield every file with the text that it should have."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"HOME": folder, "AGTRACE_DATA_DIR": folder, "PATH": os.environ.get("PATH", ""), "TZ": "UTC"}
        index(Path(folder) / "index.sqlite3", [str(SAMPLES)])
        answers = Service(load(environment), refresh_seconds=60, log=silent)
        for tool, requests in REQUESTS.items():
            given = (_answered(answers, tool, arguments) for arguments in requests)
            yield FOLDER / f"{tool}.md", f"# {tool}\n\n" + "\n".join(given)
        yield FOLDER / "terminal.md", "# The same for a person\n\n" + "\n".join(_printed(environment))


def _answered(answers: Service, tool: str, arguments: Mapping[str, Any]) -> str:
    said = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    given = answers.ask(tool, arguments)
    shown = {name: part for name, part in given.value.items() if name != "budget"}
    text = _neutral(json.dumps(shown, ensure_ascii=False, indent=1))
    return f"## {tool}({said})\n\n```json\n{text}\n```\n"


_IN_ONE_PROCESS = """
import json, sys
from click.testing import CliRunner
from agtrace.commands.group import agtrace
commands = json.load(sys.stdin)
json.dump([CliRunner().invoke(agtrace, command, catch_exceptions=False).stdout for command in commands], sys.stdout)
"""


def _printed(environment: Mapping[str, str]) -> Iterator[str]:
    done = subprocess.run(
        [sys.executable, "-c", _IN_ONE_PROCESS],
        env={**environment, "COLUMNS": _WIDTH, "NO_COLOR": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        input=json.dumps(COMMANDS), capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    for command, said in zip(COMMANDS, json.loads(done.stdout), strict=True):
        printed = "\n".join(line.rstrip() for line in said.splitlines())
        yield f"## agtrace {shlex.join(command)}\n\n```\n{_neutral(printed)}\n```\n"


_AGE = re.compile(r"(?m)^(\S+ {2,6}(?:\d{4}-\d\d-\d\d  )?)((?:now|\d+(?:mo|[mhdwy])) *)(?=  [a-z])")
"""How long ago something happened in a session, which changes from day to day."""


_UNFINISHED = re.compile(r" so far \(index catching up[^)]*\)")
"""On a busy machine the index may not be compared with the logs in time."""


def _neutral(text: str) -> str:
    aged = _AGE.sub(lambda found: f"{found[1]}{'[age]':{len(found[2])}}", text)
    aged = _UNFINISHED.sub("", aged)
    return _CURSOR.sub("[cursor]", aged.replace(str(SAMPLES), "[samples]"))


def main() -> None:
    """Write the files, or list those that are stale."""
    FOLDER.mkdir(exist_ok=True)
    for path, text in snapshots():
        if "--write" in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path.relative_to(ROOT)} is stale: run make docs")


if __name__ == "__main__":
    main()
