"""`agtrace doctor` says what files look like that no agent's parser recognizes, and which agents aren't read yet."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.agtrace.asking import claude_log
from tests.agtrace.terminal import agtrace, agtrace_here, index_here

HEADER = {"type": "opened", "id": "a1", "cwd": "/w"}
MESSAGE = {"type": "said", "id": "a2", "text": "The key is hunter2hunter2."}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs"


def _lines(path: Path, *records: Any) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def test_files_of_an_unknown_agent_are_described_by_their_fields_and_types(folder: Path) -> None:
    _lines(folder / "one.jsonl", HEADER, MESSAGE)
    _lines(folder / "two.jsonl", HEADER, MESSAGE, {"type": "closed", "reason": "done"})
    index_here(folder)
    (look,) = agtrace_here("doctor", "--json").json()["unrecognized"]
    assert look == {
        "form": "JSON lines", "fields": ["type", "id", "cwd", "text", "reason"],
        "types": ["type=opened", "type=said", "type=closed"], "files": 2, "path": str(folder / "one.jsonl"),
    }  # fmt: skip
    shown = agtrace_here("doctor").out
    assert "2 files: JSON lines; fields type, id, cwd, text, reason; type=opened, type=said, type=closed" in shown
    assert "hunter2" not in shown and "CONTRIBUTING.md" in shown


def test_a_document_is_described_by_the_messages_in_it(folder: Path) -> None:
    messages = [{"role": "user", "text": "Hello"}, {"role": "model", "text": "x" * 100_000}]
    (folder / "talk.json").write_text(json.dumps({"id": "t", "messages": messages}, indent=1), encoding="utf-8")
    index_here(folder)
    (look,) = agtrace_here("doctor", "--json").json()["unrecognized"]
    assert (look["form"], look["fields"], look["types"][:1]) == ("a JSON document", ["id", "messages"], ["role=user"])


def test_what_is_not_json_is_told_apart_and_not_quoted(folder: Path) -> None:
    (folder / "talk.md").write_text("# A talk\n", encoding="utf-8")
    (folder / "talk.bin").write_bytes(b"\1\0\2")
    sqlite3.connect(folder / "talk.db").execute("CREATE TABLE talk (text)").connection.close()
    index_here(folder)
    found = agtrace_here("doctor", "--json").json()["unrecognized"]
    assert sorted(look["form"] for look in found) == ["an SQLite database", "binary data", "text"]
    assert "A talk" not in agtrace_here("doctor").out


@pytest.mark.parametrize(
    "record", ["[]", "[[1]]", '{"": 1}', '{"type": {"a": [null]}}', '{"\\u001b[31m": 1}', "{", "[1, 2"]
)
def test_strange_json_is_described_without_its_texts(folder: Path, record: str) -> None:
    (folder / "strange.jsonl").write_text(f"{record}\n{record}\n", encoding="utf-8")
    index_here(folder)
    assert all(look["types"] == [] for look in agtrace_here("doctor", "--json").json()["unrecognized"])
    assert "\x1b[31m:" not in agtrace_here("doctor").out


def test_an_agent_that_was_used_here_but_is_not_read_is_named(tmp_path: Path) -> None:
    place = tmp_path / ".factory" / "sessions"
    place.mkdir(parents=True)
    index_here(tmp_path)
    found = agtrace_here("doctor", HOME=str(tmp_path))
    assert f"Factory Droid: not read yet ({place})" in found.out


TOLD = (
    {"at": "2026-11-20T10:00:00Z", "kind": "start", "session": "a1"},
    {"at": "2026-11-20T10:00:01Z", "kind": "human", "text": "The key is hunter2hunter2."},
    {"at": "2026-11-20T10:00:02Z", "kind": "reply", "text": "So it is."},
)


@pytest.mark.parametrize("place", [".acorn/logs/2026-11-20", ".config/acorn", ".local/share/acorn/sessions/a1"])
def test_a_folder_in_which_two_sides_talk_is_told_to_be_one_of_an_unknown_agent(place: str) -> None:
    folder = Path.home() / place
    folder.mkdir(parents=True)
    _lines(folder / "a1.jsonl", *TOLD)
    (found,) = agtrace_here("doctor", "--json").json()["not_indexed"]
    assert found["agent"] is None
    assert Path(found["folder"]).name in (".acorn", "acorn") and found["path"] == str(folder / "a1.jsonl")
    assert (found["fields"], found["types"]) == (
        ["at", "kind", "session", "text"], ["kind=start", "kind=human", "kind=reply"],
    )  # fmt: skip
    shown = agtrace_here("doctor").out
    assert "folders that look like those of agents agtrace doesn't know: 1" in shown
    assert "CONTRIBUTING.md shows how to add an agent" in shown and "hunter2" not in shown


def test_folders_of_known_agents_and_of_other_programs_are_none_of_an_unknown_agent(tmp_path: Path) -> None:
    home = Path.home()
    (home / ".codex" / "old").mkdir(parents=True)
    _lines(home / ".codex" / "old" / "a1.jsonl", *TOLD)
    (home / ".vibe" / "logs" / "session").mkdir(parents=True)
    _lines(home / ".vibe" / "logs" / "session" / "a1.jsonl", *TOLD)
    (home / ".npm" / "_logs").mkdir(parents=True)
    _lines(home / ".npm" / "_logs" / "a1.jsonl", {"level": "info", "type": "request", "message": "GET"})
    (tmp_path / "elsewhere").mkdir()
    _lines(tmp_path / "elsewhere" / "a1.jsonl", *TOLD)
    (home / ".linked").symlink_to(tmp_path / "elsewhere")
    (home / ".ssh").mkdir(mode=0o000)
    try:
        assert agtrace_here("doctor", "--json").json()["not_indexed"] == []
    finally:
        (home / ".ssh").chmod(0o700)


def test_logs_of_a_known_agent_in_a_folder_that_is_not_indexed_are_told_as_such(tmp_path: Path) -> None:
    kept = Path.home() / ".claude-before" / "projects" / "-srv-tidepool"
    claude_log(tmp_path, "6d1c2b3a-0000-4000-8000-000000000001").prompt("Draw the tide.").say("Done.")
    shutil.copytree(tmp_path / "projects" / "-home-mira-projects-tidepool", kept)
    (found,) = agtrace_here("doctor", "--json").json()["not_indexed"]
    assert (found["agent"], found["folder"]) == ("Claude Code", str(Path.home() / ".claude-before"))
    assert "folders with logs that aren't indexed: 1" in agtrace_here("doctor").out
    index_here(kept)
    assert agtrace_here("doctor", "--json").json()["not_indexed"] == []


def test_index_names_files_taken_for_no_logs_and_stores_of_known_agents_that_it_does_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    stores = {
        "Copilot CLI's sessions before 0.0.342": ".copilot/history-session-state/x.json",
        "OpenCode before 0.6": ".local/share/opencode/project/a/storage/x",
        "Cursor CLI": ".config/cursor/chats/a/b/store.db",
        "Antigravity's tokens": ".gemini/antigravity/conversations/x.db",
        "Cursor": ".config/Cursor/User/globalStorage/state.vscdb",
        "Copilot Chat": ".config/Code - Insiders/User/workspaceStorage/a/chatSessions/x.json",
        "Crush": str(folder / ".crush" / "crush.db"),
    }
    for store in stores.values():
        (tmp_path / store).parent.mkdir(parents=True)
        (tmp_path / store).touch()
    _lines(folder / "rollout-of-another-shape.jsonl", HEADER)
    (folder / "empty.jsonl").touch()
    (folder / "linked.jsonl").symlink_to("empty.jsonl")
    told = agtrace("index", "--json", folder).json()
    no_format = "not a log format that agtrace knows"
    assert told["no_logs"] == {
        str(folder / "rollout-of-another-shape.jsonl"): no_format, str(folder / "empty.jsonl"): "an empty file",
        stores["Crush"]: "an empty file",
        str(folder / "linked.jsonl"): "a symbolic link, not followed: index its target by its own path",
    }  # fmt: skip
    assert [store["agent"] for store in told["unread_agents"]] == [*stores]
    said = agtrace("index").out
    assert f"not read: 1 file, {no_format}" in said and "not read yet: Cursor, " in said
