"""Rules that a user adds and texts that a user allows, in `redaction.json` next to the index."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer import redact
from agtrace_indexer.redact import UnusableRules
from agtrace_indexer.run import index
from agtrace_indexer.texts.blocks import unpack

from agtrace.answers.log import silent
from agtrace.answers.service import Service
from agtrace.settings import load
from tests.conftest import copy_of_samples
from tests.contents import contents
from tests.secrets.stored import bytes_of, rows_of

BADGE = {"add": [{"name": "badge", "pattern": "BDG-[0-9]{8}"}]}
SAID = "my badge is BDG-12345678, let me in"


@pytest.fixture(autouse=True)
def built_in_again(tmp_path: Path) -> Iterator[None]:
    """All of a process has the same rules: those of this test go with it."""
    yield
    redact.use(tmp_path / "nowhere")


def write(folder: Path, rules: Any) -> None:
    folder.mkdir(exist_ok=True)
    text = rules if isinstance(rules, str) else json.dumps(rules)
    (folder / redact.OWN_FILE).write_text(text)


def masked(folder: Path, text: str) -> str:
    redact.use(folder)
    return redact.redact(text)


def test_an_added_rule_masks_and_says_its_name_or_only_its_group_secret(tmp_path: Path) -> None:
    write(tmp_path, BADGE)
    assert masked(tmp_path, SAID) == "my badge is [redacted: badge], let me in"
    assert redact.redact("password=abc12345") == "password=[redacted: password]"
    write(tmp_path, {"add": [{"name": "badge", "pattern": "badge is (?P<secret>[A-Z]{3}-[0-9]+)"}]})
    assert masked(tmp_path, SAID) == "my badge is [redacted: badge], let me in"


def test_even_the_first_answer_is_masked_by_them_though_it_is_a_refusal(tmp_path: Path) -> None:
    write(tmp_path, BADGE)
    refused = Service(load({"AGTRACE_DATA_DIR": str(tmp_path)}), log=silent).ask("list_sessions", {"BDG-12345678": 1})
    assert "[redacted: badge]" in refused.text and "12345678" not in refused.text


def test_an_allowed_text_or_pattern_stays(tmp_path: Path) -> None:
    write(tmp_path, {"allow": ["hunter2", {"pattern": "test-[a-z0-9]+"}]})
    text = 'password="hunter2", DB_PASSWORD=test-abc123'
    assert masked(tmp_path, text) == text
    assert redact.redact_json({"password": "hunter2"}) == {"password": "hunter2"}
    assert "hunter22" not in redact.redact('password="hunter22"')


def test_a_change_of_the_file_is_seen_and_so_is_its_end(tmp_path: Path) -> None:
    assert masked(tmp_path, SAID) == SAID
    write(tmp_path, BADGE)
    assert masked(tmp_path, SAID) != SAID
    (tmp_path / redact.OWN_FILE).unlink()
    assert masked(tmp_path, SAID) == SAID


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("{", "not valid JSON"),
        ("", "bytes"),
        ([], "object"),
        ({"added": []}, "added"),
        ({"add": {}}, "lists"),
        ({"add": [{"pattern": "a"}]}, "name"),
        ({"add": [{"name": "github-token", "pattern": "a"}]}, "built-in"),
        ({"add": [{"name": "a", "pattern": "("}]}, "rule 1"),
        ({"add": [{"name": "a", "pattern": "(?<=a)b"}]}, "linear time"),
        ({"add": [{"name": "a", "pattern": "a*"}]}, "empty"),
        ({"add": [{"name": "a", "pattern": "a", "colour": 1}]}, "colour"),
        ({"allow": [{"pattern": "["}]}, "allow"),
        ({"allow": [""]}, "empty"),
        ({"decisions": {"00d1f7b3a2c4e586": "show"}}, "allow or mask"),
    ],
)
def test_a_file_that_cant_be_used_is_named_with_what_is_wrong_and_the_rules_before_it_stay(
    tmp_path: Path, rules: Any, said: str
) -> None:
    write(tmp_path, BADGE)
    assert masked(tmp_path, SAID) != SAID
    write(tmp_path, rules)
    with pytest.raises(UnusableRules) as trouble:
        redact.use(tmp_path)
    assert str(tmp_path / redact.OWN_FILE) in str(trouble.value) and said in str(trouble.value)
    assert redact.redact(SAID) != SAID


@pytest.mark.thorough
def test_a_rule_that_takes_too_long_masks_the_whole_text(tmp_path: Path) -> None:
    write(tmp_path, {"add": [{"name": "slow", "pattern": "(?:a|aa)+b[0-9]"}]})
    text = "b1" * 2 + "a" * 60 + " ab1"
    start = time.process_time()
    assert "ab1" not in masked(tmp_path, text)
    assert time.process_time() - start < 10


# --- the index


def log(folder: Path) -> Path:
    """A log of Claude Code that says the badge in a prompt, in arguments and in a result."""
    home = folder / "home" / "projects" / "-a"
    home.mkdir(parents=True)
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": f"echo {SAID}"}}
    lines: list[dict[str, Any]] = [
        {"type": "user", "message": {"role": "user", "content": SAID}},
        {"type": "assistant", "message": {"id": "m1", "role": "assistant", "model": "x", "content": [call]}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": SAID}]}},
    ]
    for number, line in enumerate(lines):
        line |= {"uuid": f"u{number}", "sessionId": "s1", "cwd": "/a", "timestamp": f"2026-11-01T00:00:0{number}Z"}
    path = home / "s1.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def stored(database: Path) -> str:
    """All texts of an index."""
    with closing(sqlite3.connect(database)) as connection:
        blocks = connection.execute("SELECT text FROM block_data").fetchall()
        rows = connection.execute("SELECT title, snippet FROM session").fetchall()
        requests = connection.execute("SELECT text FROM request").fetchall()
    return repr([unpack(part) for block in blocks for part in block]) + repr(rows) + repr(requests)


@pytest.mark.parametrize("gone", [False, True], ids=["live", "archived"])
def test_a_new_rule_masks_what_is_indexed_also_of_logs_that_vanished(tmp_path: Path, gone: bool) -> None:
    path, data = log(tmp_path), tmp_path / "data"
    database = data / "index.sqlite3"
    index(database, [str(tmp_path / "home")])
    assert stored(database).count("BDG-12345678") >= 4
    if gone:
        path.unlink()
        index(database, ())
    write(data, BADGE)
    index(database, ())
    assert "12345678" not in stored(database) and stored(database).count("[redacted: badge]") >= 4
    assert [where for where, told in bytes_of(data) if redact.OWN_FILE not in where and "12345678" in told] == []
    assert index(database, ()).files_opened == 0, "it is masked once"


def test_a_new_rule_masks_every_name_of_a_log_that_vanished(tmp_path: Path) -> None:
    path, database = log(tmp_path), tmp_path / "data" / "index.sqlite3"
    named = ('"s1"', '"m1"', '"t1"', '"x"', '"Bash"', '"/a"', '"u1"')
    text = path.read_text().replace('"cwd"', '"version": "BDG-12345678", "gitBranch": "BDG-12345678", "cwd"')
    for number, name in enumerate(named):
        text = text.replace(name, f'"BDG-1234567{number}"')
    path.with_name("other.jsonl").write_text(text)
    path.unlink()
    index(database, [str(tmp_path / "home")])
    assert "BDG-" in dict(rows_of(database))["table session"]
    path.with_name("other.jsonl").unlink()
    index(database, ())
    write(tmp_path / "data", BADGE)
    index(database, ())
    assert [where for where, told in [*rows_of(database), *bytes_of(database.parent)] if "BDG-1234" in told] == []


@pytest.mark.parametrize("gone", [False, True], ids=["live", "archived"])
def test_a_new_rule_that_finds_nothing_leaves_the_sessions_of_every_agent_as_they_are(
    tmp_path: Path, gone: bool
) -> None:
    home, database = tmp_path / "logs", tmp_path / "data" / "index.sqlite3"
    copy_of_samples(home)
    index(database, [str(home)])
    if gone:
        shutil.rmtree(home)
        home.mkdir()
        index(database, ())
    before = contents(database)
    assert before
    write(tmp_path / "data", BADGE)
    index(database, ())
    assert {**contents(database), "files": before["files"]} == before


def test_nothing_is_read_while_the_rules_cant_be_used(tmp_path: Path) -> None:
    log(tmp_path)
    write(tmp_path / "data", "{")
    with pytest.raises(UnusableRules):
        index(tmp_path / "data" / "index.sqlite3", [str(tmp_path / "home")])
    assert not (tmp_path / "data" / "index.sqlite3").exists()
