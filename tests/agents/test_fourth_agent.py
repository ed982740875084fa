"""A new agent is one folder and its name in the registry: everything else knows it then, and no other file changes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TERN = Path(__file__).parent / "tern"
NAMED = (
    ("import GEMINI\n", "import GEMINI\nfrom agtrace_indexer.providers.tern import TERN\n"),
    ("(CLAUDE_CODE, CODEX, GEMINI)", "(CLAUDE_CODE, CODEX, GEMINI, TERN)"),
)
"""What is written into the registry: an import and a name."""

ASKING = """
import json, sys
from click.testing import CliRunner
from agtrace.commands import group
for arguments in json.load(sys.stdin):
    run = CliRunner().invoke(group.agtrace, arguments, prog_name="agtrace", env={"COLUMNS": "160"})
    print(json.dumps([run.exit_code, run.stdout, run.stderr]))
"""
"""Runs commands one after the other in one process."""

TOOLS = """
import json
from agtrace.settings import variables
from agtrace.tools import TOOLS
from agtrace.tools.arguments import input_schema
print(json.dumps([input_schema(TOOLS["list_sessions"].arguments), TOOLS["list_sessions"].description, variables()]))
"""

START = 1_790_000_000_000


def lines(session: str) -> list[dict[str, Any]]:
    """A session of Tern's: a failed build, an edit, calls to agtrace, an error of the API."""
    told: list[dict[str, Any]] = [
        {"tern": "start", "id": session, "cwd": "/srv/tidepool", "model": "tern-1"},
        {"tern": "ask", "text": "Mend the tide gauge"},
        {"tern": "call", "id": "c1", "tool": "dive", "with": {"line": "make gauge"}},
        {"tern": "back", "id": "c1", "text": "gauge.py:3: SyntaxError: high water", "fine": False},
        {"tern": "call", "id": "c2", "tool": "preen", "with": {"target": "src/gauge.py", "was": "a", "becomes": "b"}},
        {"tern": "back", "id": "c2", "text": "changed", "fine": True},
        {"tern": "call", "id": "c0", "tool": "peer", "with": {"target": "src/gauge.py"}},
        {"tern": "back", "id": "c0", "text": "b = 1", "fine": True},
        {"tern": "call", "id": "c3", "tool": "dive", "with": {"line": "agtrace search 'high water'"}},
        {"tern": "back", "id": "c3", "text": "high water, 9 times", "fine": True},
        {"tern": "call", "id": "c4", "tool": "agtrace/list_sessions", "with": {"query": "high water"}},
        {"tern": "back", "id": "c4", "text": "high water sessions", "fine": True},
        {"tern": "eaten", "in": 1200, "out": 34},
        {"tern": "say", "text": "The gauge is mended"},
        {"tern": "ask", "text": "And the moon?"},
        {"tern": "storm", "text": "529: the sky is overloaded"},
        {"tern": "song", "text": "kee-arr"},
    ]
    return [record | {"at": START + 1000 * number, "step": number} for number, record in enumerate(told)]


@pytest.fixture(scope="module")
def nest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of the indexer that knows Tern, and Tern's home: a log of lines and one that is a document."""
    folder = tmp_path_factory.mktemp("nest")
    package = folder / "code" / "agtrace_indexer"
    shutil.copytree(ROOT / "indexer" / "agtrace_indexer", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(TERN, package / "providers" / "tern", ignore=shutil.ignore_patterns("__pycache__"))
    registry = package / "providers" / "registry.py"
    text = registry.read_text()
    for before, after in NAMED:
        assert text.count(before) == 1
        text = text.replace(before, after)
    registry.write_text(text)
    flights = folder / "tern" / "flights"
    flights.mkdir(parents=True)
    (flights / "flight-1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines("t-1")))
    (flights / "flight-2.json").write_text(json.dumps({"tern": "flight", "lines": lines("t-2")}, indent=1))
    return folder


def run(nest: Path, code: str, given: Any = None) -> list[Any]:
    """What a process prints that knows Tern: a JSON value a line."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(nest / "home"), "TERN_NEST": str(nest / "tern"),
        "AGTRACE_DATA_DIR": str(nest / "data"), "PYTHONPATH": str(nest / "code"),
    }  # fmt: skip
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment, input=json.dumps(given), capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


def ask(nest: Path, *commands: str) -> list[str]:
    """What commands print, each given as its words; all of them end well."""
    answers = run(nest, ASKING, [command.split() for command in commands])
    assert [code for code, _, _ in answers] == [0] * len(commands), answers
    return [out for _, out, _ in answers]


@pytest.fixture(scope="module")
def indexed(nest: Path) -> Path:
    ask(nest, "index")
    return nest


def test_its_logs_are_found_in_its_home_and_listed(indexed: Path) -> None:
    listed, doctor = ask(indexed, "sessions --provider tern --json", "doctor --json")
    sessions = json.loads(listed)["data"]["sessions"]
    assert {found["id"]: found["provider"] for found in sessions} == {"t-1": "tern", "t-2": "tern"}
    assert str(indexed / "tern" / "flights") in doctor and "song" in doctor


def test_search_finds_what_it_did_and_leaves_out_what_it_asked_agtrace(indexed: Path) -> None:
    answers = ask(
        indexed,
        "search water --provider tern --json",
        "search water --provider tern --own --json",
        "search SyntaxError --failed --json",
        "search preen --path gauge.py --json",
    )
    assert [len(json.loads(answer)["data"]["matches"]) for answer in answers] == [2, 10, 2, 2]


def test_the_files_that_it_read_and_changed_are_told_apart(indexed: Path) -> None:
    (shown,) = ask(indexed, "show t-1 --sections files --json")
    files = json.loads(shown)["data"]["files"]
    assert [(file["path"], file["reads"], file["writes"]) for file in files] == [("src/gauge.py", 1, 1)]


def test_its_turns_end_as_its_notices_tell(indexed: Path) -> None:
    for session in ("t-1", "t-2"):
        (shown,) = ask(indexed, f"show {session} --json")
        turns = json.loads(shown)["data"]["turns"]
        assert [(turn["user_message"], turn["outcome"]) for turn in turns] == [
            ("Mend the tide gauge", "partial"),
            ("And the moon?", "failed"),
        ]


def test_its_health_is_told_by_the_words_of_its_package(indexed: Path) -> None:
    analysis, report = ask(indexed, "analyze t-1 --json", "report --provider tern")
    told = json.loads(analysis)["data"]
    assert told["ending"]["ending"] == "error_left" and "the sky is overloaded" in told["ending"]["reason"]
    assert {"api_errors", "left_failure"} & {finding["detector"] for finding in told["insights"]}
    assert "2 sessions of Tern" in report


def test_our_server_can_be_added_to_it(indexed: Path) -> None:
    setup, offered = ask(indexed, "setup tern", "setup --help")
    assert f"tern feed agtrace -e AGTRACE_DATA_DIR={indexed / 'data'} -- " in setup
    assert f"Or write into {indexed / 'tern' / 'settings.json'}" in setup
    assert "{claude|codex|gemini|tern}" in offered


def test_tools_settings_and_help_name_it(indexed: Path) -> None:
    ((schema, description, variables),) = run(indexed, TOOLS)
    assert schema["properties"]["provider"]["enum"] == ["claude_code", "codex", "gemini", "tern"]
    assert "Claude Code, Codex, Gemini CLI and Tern" in description
    assert variables["TERN_NEST"] == "the home of Tern's logs; default ~/.tern"
    (shown,) = ask(indexed, "--help")
    assert "Gemini CLI and Tern" in " ".join(shown.split())
