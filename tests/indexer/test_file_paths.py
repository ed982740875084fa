"""Which files a call names: in its arguments, in a patch, and in a patch within a script of Codex's code mode."""

from __future__ import annotations

import json

import pytest
from agtrace_indexer.events.assembly import touched
from agtrace_indexer.events.commands import Command
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.events import Json, ToolCall

PATCH = (
    "*** Begin Patch\n*** Update File: src/sea.py\n@@\n-low\n+high\n*** Add File: new/tide.py\n+ebb\n"
    "*** Update File: src/old.py\n*** Move to: src/ebb's.py\n@@\n-a\n+b\n*** End Patch"
)
FILES = {"src/sea.py": "write", "new/tide.py": "write", "src/old.py": "write", "src/ebb's.py": "write"}


def of_codex(name: str, arguments: Json) -> dict[str, str]:
    return touched(ToolCall("c1", name, arguments), AGENTS["codex"].tools)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("apply_patch", PATCH),
        ("apply_patch", {"input": PATCH}),
        ("shell", {"command": ["apply_patch", PATCH]}),
        ("exec_command", {"cmd": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}),
    ],
)
def test_a_patch_writes_the_files_of_its_headers(name: str, arguments: Json) -> None:
    assert of_codex(name, arguments) == FILES


@pytest.mark.parametrize(
    "script",
    [
        f"const patch = {json.dumps(PATCH)};\nconst r = await tools.apply_patch(patch);\ntext(r.output);",
        "await tools.apply_patch([" + ", ".join(json.dumps(line) for line in PATCH.split("\n")) + '].join("\\n"));',
        f'await tools.apply_patch({json.dumps(PATCH)}); await tools.exec_command({{"cmd": "git diff"}});',
    ],
)
def test_a_patch_in_a_script_of_code_mode_writes_its_files_too(script: str) -> None:
    assert of_codex("exec", script) == FILES


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("cat src/app.py Makefile | head -5", ["src/app.py", "Makefile"]),
        ("cd src && nl -ba app.py | sed -n '1,20p' && make", ["src/app.py"]),
        ("bash -lc \"sed -n '1,80p' /w/app.py; head -n 20 a.md b.md > c.md\"", ["/w/app.py", "a.md", "b.md"]),
        ("rg -n 'x.y' src/app.py src && grep -c main.go", ["src/app.py"]),
        ("sed -i s/a/b/ src/app.py; ls src; cat <<'EOF' > new.py\ncat old.py\nEOF", []),
    ],
)
def test_a_command_reads_the_files_that_it_shows(command: str, files: list[str]) -> None:
    call = ToolCall("c1", "Bash", {"command": command})
    assert touched(call, AGENTS["claude_code"].tools, Command(command)) == dict.fromkeys(files, "read")


def test_a_patch_in_a_literal_of_several_lines_writes_its_files() -> None:
    assert of_codex("exec", f"await tools.apply_patch(`{PATCH}`)") == FILES


def test_a_windows_path_in_a_script_is_whole() -> None:
    patch = "*** Begin Patch\n*** Update File: C:\\new\\sea.py\n@@\n-a\n+b\n*** End Patch"
    assert of_codex("exec", f"await tools.apply_patch({json.dumps(patch)})") == {"C:\\new\\sea.py": "write"}


def test_a_command_that_only_speaks_of_patches_writes_nothing() -> None:
    assert of_codex("exec", 'await tools.exec_command({"cmd": "rg \'Begin Patch\' docs"})') == {}
