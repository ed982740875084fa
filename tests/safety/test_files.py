"""Files: those made are only their owner's, those read are below the roots, and the agents' are never changed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.index.maintenance import optimize
from agtrace_indexer.index.projects import project_root
from agtrace_indexer.logs.discovery import LogFile, walk
from agtrace_indexer.logs.files import open_regular
from agtrace_indexer.redact import load_key
from agtrace_indexer.run import index

from agtrace.text.kept_texts import KeptTexts
from agtrace.tools import TOOLS
from agtrace.tools.arguments import input_schema
from agtrace.upkeep.doctor import exposure
from tests.agtrace.asking import Asker, claude_log
from tests.agtrace.terminal import AGTRACE, agtrace, agtrace_here
from tests.conftest import SAMPLES
from tests.depth import part

SESSION = "fb3cff44-13ae-41a6-a6df-f287e0552835"
posix = pytest.mark.skipif(os.name == "nt", reason="files have no modes there")

HELLO = [
    {"id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/call", "params": {"name": "list_sessions", "arguments": {"limit": 1}}},
    {"id": 3, "method": "resources/read", "params": {"uri": "ax://report"}},
]  # fmt: skip
"""A client that greets, lists a session and reads a report."""


def serve(**environment: str) -> subprocess.CompletedProcess[bytes]:
    """Let a server answer a client, to the end of its input."""
    with subprocess.Popen(
        [AGTRACE, "mcp"], env={**os.environ, **environment}, stdin=-1, stdout=-1, stderr=-1
    ) as process:
        assert process.stdin and process.stdout
        lines = [json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in HELLO]
        process.stdin.write(b"".join(lines))
        process.stdin.flush()
        answers = [process.stdout.readline() for message in HELLO if "id" in message]
        process.stdin.close()
        logged = process.stderr.read() if process.stderr else b""
    return subprocess.CompletedProcess(process.args, process.returncode, b"".join(answers), logged)


@pytest.fixture
def home(own_home: Path) -> Path:
    """A home with a few sample sessions of three agents."""
    for agent, below in (
        ("claude", "projects/-home-mira-projects-lanternfish"), ("codex", "sessions/2026/10"), ("gemini", "tmp"),
    ):  # fmt: skip
        shutil.copytree(SAMPLES / agent / below, own_home / f".{agent}" / below)
    return own_home


# -- what is made --------------------------------------------------------------------------------------


@posix
@pytest.mark.usefixtures("home")
def test_all_that_is_made_is_for_its_owner_alone(tmp_path: Path, database: Path) -> None:
    """The folder, the index with what SQLite lays beside it, lock, key and page, though the umask hides nothing."""
    before = os.umask(0o000)
    try:
        assert agtrace("index").code == 0
        assert agtrace_here("forget", "--project", "lanternfish", "--yes").code == 0
        with closing(sqlite3.connect(database)) as reader:  # as long as somebody reads, the WAL stays
            reader.execute("SELECT * FROM meta").fetchall()
            assert serve().returncode == 0
            assert agtrace_here("report", "--html", tmp_path / "page.html").code == 0
            optimize(database)
            made = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in database.parent.iterdir()}
            assert made.pop("archive") == 0o700
    finally:
        os.umask(before)
    beside = {"index.sqlite3-wal", "index.sqlite3-shm", "index.lock", "cursor.key", "forgotten"}
    assert beside | {"index.sqlite3"} <= set(made)
    assert set(made.values()) == {0o600}
    assert stat.S_IMODE(database.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "page.html").stat().st_mode) == 0o600


@posix
def test_a_umask_that_hides_all_is_no_hindrance(home: Path, database: Path) -> None:
    before = os.umask(0o077)
    try:
        index(database, [str(home)])
        load_key(database.with_name("cursor.key"))
    finally:
        os.umask(before)
    assert index(database, []).files_changed == 0


@posix
def test_the_doctor_names_what_others_can_read_and_a_folder_that_they_can_write_into(database: Path) -> None:
    """Such as a folder that was there before, and an index that was copied into it."""
    assert _troubles() == ["no logs found"]
    database.chmod(0o644)
    assert _troubles() == ["no logs found"], "nobody comes into the folder"
    database.parent.chmod(0o755)
    assert f"other users can read index.sqlite3: chmod 600 {database}" in _troubles()
    for path in database.parent.iterdir():
        path.chmod(0o600)
    (database.parent / "of another program").touch(0o644)
    assert _troubles() == ["no logs found"]
    database.parent.chmod(0o777)
    assert _troubles()[-1] == f"other users can put files into {database.parent}"


def _troubles() -> list[str]:
    """What the doctor says, up to what there is to do about files of the agents."""
    said = agtrace_here("doctor", "--json")
    assert said.code == 1
    return [sentence.partition(": set")[0].partition(": run an")[0] for sentence in said.json()["trouble"]]


@posix
def test_a_link_that_lies_where_a_file_is_made_is_not_followed(tmp_path: Path, database: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    for name in ("index.new", "cursor.key"):
        (database.parent / name).symlink_to(victim)
    index(database, [str(tmp_path / "nothing")])
    load_key(database.with_name("cursor.key"))
    assert victim.read_text() == "theirs"
    assert not any(path.is_symlink() for path in database.parent.iterdir())


def _link(key: Path) -> None:
    key.with_name("other").write_bytes(b"k" * 32)
    key.symlink_to(key.with_name("other"))


def _seen_by_others(key: Path) -> None:
    key.write_bytes(b"k" * 32)
    key.chmod(0o644)


SPOILED: dict[str, Callable[[Path], Any]] = {
    "empty": lambda key: key.write_bytes(b""),
    "too long": lambda key: key.write_bytes(b"k" * 33),
    "endless": lambda key: key.symlink_to("/dev/zero"),
    "a link": _link,
    "a pipe": os.mkfifo,
    "seen by others": _seen_by_others,
    "unreadable": lambda key: (key.write_bytes(b"kk"), key.chmod(0)),
}


@posix
@pytest.mark.parametrize("how", SPOILED)
def test_a_key_that_can_not_be_trusted_is_made_anew(how: str, tmp_path: Path) -> None:
    key = tmp_path / "cursor.key"
    SPOILED[how](key)
    with at_once():
        made = load_key(key)
    assert len(made) == 32 and made != b"k" * 32 and load_key(key) == made
    assert stat.S_IMODE(key.lstat().st_mode) == 0o600 and stat.S_ISREG(key.lstat().st_mode)


@contextmanager
def at_once() -> Iterator[None]:
    """What waits for ever ends the test."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(10)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# -- what is read --------------------------------------------------------------------------------------


@pytest.fixture
def listed(tmp_path: Path) -> tuple[LogFile, Path]:
    """A log as its folder listed it, and a log elsewhere that nobody asked for."""
    claude_log(tmp_path / "root", SESSION).prompt("mine")
    claude_log(tmp_path / "elsewhere", SESSION).prompt("theirs")
    (found,) = walk([str(tmp_path / "root")])
    assert _content(found) is not None
    return found, tmp_path / "elsewhere"


def _content(found: LogFile) -> bytes | None:
    try:
        with at_once(), open_regular(found) as file:
            return file.read()
    except OSError:
        return None


def test_a_log_that_became_a_link_since_it_was_listed_is_not_followed(listed: tuple[LogFile, Path]) -> None:
    found, elsewhere = listed
    Path(found.path).unlink()
    Path(found.path).symlink_to(next(elsewhere.rglob("*.jsonl")))
    assert _content(found) is None


@pytest.mark.parametrize("up", [1, 2])
def test_a_folder_that_became_a_link_since_it_was_listed_is_not_followed(listed: tuple[LogFile, Path], up: int) -> None:
    found, elsewhere = listed
    folder, other = Path(found.path).parents[up - 1], next(elsewhere.rglob("*.jsonl")).parents[up - 1]
    shutil.rmtree(folder)
    folder.symlink_to(other, target_is_directory=True)
    assert Path(found.path).exists() and _content(found) is None


def test_a_pipe_that_took_the_place_of_a_log_is_not_awaited(listed: tuple[LogFile, Path]) -> None:
    found, _ = listed
    Path(found.path).unlink()
    os.mkfifo(found.path)
    assert _content(found) is None


def test_a_root_may_be_a_link_for_it_is_the_user_who_names_it(tmp_path: Path, database: Path) -> None:
    """A folder, a single log, and a folder on the way to either."""
    log = claude_log(tmp_path / "real", SESSION).prompt("mine").path
    for number, (name, target) in enumerate((("folder", log.parent), ("log.jsonl", log), ("way", tmp_path / "real"))):
        (tmp_path / name).symlink_to(target, target_is_directory=target.is_dir())
        root = tmp_path / name / "projects" if name == "way" else tmp_path / name
        assert index(database.with_name(f"{number}.sqlite3"), [str(root)]).events == 1


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="there is no /proc here")
def test_files_of_the_kernel_are_read_as_far_as_they_can_be_and_not_awaited(database: Path) -> None:
    """They call themselves regular and empty; some would be waited for, some can't be read."""
    with at_once():
        for path in ("/proc/self/mem", "/proc/self/environ", "/proc/kmsg"):
            assert index(database, [path]).sessions == 0


@pytest.mark.parametrize(
    "elsewhere",
    [
        r"\\evil.example\share",
        "//evil.example/share",
        r"\/evil.example/share",
        r"/\evil.example\share",
        r"\\?\UNC\evil.example\share",
        r"\\.\UNC\evil.example\share",
        r"\??\UNC\evil.example\share",
        "//?/UNC/evil.example/share",
        r"C:\work\..\\evil.example",
        "/net/evil.example/share",
        "/NET/evil.example",
        "/afs/evil.example",
        "/Network/Servers/evil.example",
        "/System/Volumes/Data/net/evil.example",
        "/home/../net/evil.example",
        "/home/./../net/evil.example",
        "/proc/self/root/net/evil.example",
        "/net/evil.example/.claude/worktrees/one",
    ],
)
def test_a_folder_of_another_machine_that_a_log_names_is_not_looked_at(
    elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That would be a connection to a machine of the log's choice, with the user's name in it."""
    asked: list[object] = []
    for call in ("stat", "lstat", "open"):
        monkeypatch.setattr(os, call, lambda path, *_, **__: asked.append(path))
    root = project_root(elsewhere)
    monkeypatch.undo()
    assert elsewhere.startswith(root) and asked == []


def test_a_folder_of_this_machine_that_a_log_names_is_looked_at_where_no_link_leads(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "network" / "net").mkdir(parents=True)
    assert project_root(f"{tmp_path}/network/net") == str(tmp_path)
    assert project_root(f"{tmp_path}/network/../network") == f"{tmp_path}/network/../network"
    assert project_root(f"/{tmp_path}/network") == f"/{tmp_path}/network"
    (tmp_path / "network" / ".git").symlink_to("/net/evil.example")
    project_root.cache_clear()
    assert project_root(f"{tmp_path}/network/net") == f"{tmp_path}/network"


# -- ids and paths in requests -------------------------------------------------------------------------

OPENED: list[str] = []


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("open", "os.listdir", "os.scandir") and noting:
        OPENED.append(str(arguments[0]))


noting: list[bool] = []
sys.addaudithook(_note)

PATHS = ["../../secret.txt", "{home}/secret.txt", "file://{home}/secret.txt", "%2e%2e/secret.txt", "~/secret.txt",
         "..\\secret.txt", "{home}/secret.txt\0.jsonl", "ax://session/{home}/secret.txt", "ax://event/../secret.txt/0",
         "ax://session/../../secret.txt", "ax://analysis/..%2fsecret.txt", "ax://report/../secret.txt"]  # fmt: skip


@pytest.fixture(scope="module")
def asker(tmp_path_factory: pytest.TempPathFactory) -> Asker:
    """A session, and beside its log a file with a secret."""
    home = tmp_path_factory.mktemp("machine")
    claude_log(home / ".claude", SESSION).prompt("Where is it?").call("Read", {"file_path": "x"}, "x")
    (home / "secret.txt").write_text("the secret of the other file\n")
    return Asker(home / "data", home / ".claude", still=True)


@pytest.mark.parametrize("path", part(PATHS, 0, 2))
def test_no_id_and_no_path_of_a_request_is_ever_opened(asker: Asker, path: str) -> None:
    """Any argument that is a text, of any tool; and as a place of any command."""
    home = asker.settings.data_dir.parent
    given = path.format(home=home)
    OPENED.clear()
    noting.append(True)
    try:
        texts = [asker.anything(name, **arguments).text for name, arguments in _calls_with(given)]
        for command in (["show"], ["analyze"], ["compare", SESSION], ["report", "--project"]):
            said = agtrace_here(*command, given.replace("\0", ""), AGTRACE_DATA_DIR=str(asker.settings.data_dir))
            texts.append(said.out + said.err)
    finally:
        noting.clear()
    assert not [text for text in texts if "the other file" in text]
    assert OPENED and not [opened for opened in OPENED if "secret.txt" in opened]


def _calls_with(given: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, tool in TOOLS.items():
        schema = input_schema(tool.arguments)
        needed = dict.fromkeys(schema.get("required", ()), given) | (
            {"event_index": 0} if "event_index" in schema["properties"] else {}
        )
        yield name, needed
        for field, kind in schema["properties"].items():
            if "string" in str(kind):
                yield name, needed | {field: given}


# -- the agents' folders -------------------------------------------------------------------------------


def _state(folder: Path) -> dict[str, tuple[int, ...]]:
    """What a write, a new name there or a changed mode would change, of everything below a folder; links don't."""
    seen = ((path, path.lstat()) for path in [folder, *folder.rglob("*")])
    return {str(p): (s.st_ino, s.st_mode, s.st_size, s.st_mtime_ns) for p, s in seen}


@pytest.mark.thorough
def test_nothing_in_the_folders_of_the_agents_is_ever_touched(home: Path, tmp_path: Path, database: Path) -> None:
    """By no command and no server: neither a log nor a folder, a time or a mode."""
    before = _state(home)
    assert len(before) > 15
    with subprocess.Popen([AGTRACE, "index", "--watch"], stdout=-1, text=True) as watching:
        assert watching.stdout
        while "watching" not in watching.stdout.readline():
            pass
        watching.terminate()
    assert serve().returncode == 0
    index(database, [], rebuild=True)
    session = agtrace_here("sessions", "--json").json()["data"]["sessions"][0]["id"]
    for command in (
        ["search", "tide"], ["show", session], ["show", f"{session}:1"], ["show", f"ax://session/{session}"],
        ["analyze", session], ["report", "--html", str(tmp_path / "page.html")], ["doctor"],
        ["setup", "claude"], ["setup", "qwen"], ["setup"], ["forget", session, "--yes"],
        ["doctor", "--repair"],
    ):  # fmt: skip
        assert agtrace_here(*command).code in (0, 1), command
    assert _state(home) == before


@posix
def test_kept_outputs_are_for_their_owner_alone_and_open_by_their_id_alone(asker: Asker) -> None:
    """Whatever the umask; the doctor names the folder if others can look into it."""
    folder = asker.settings.kept_outputs
    before = os.umask(0)
    try:
        id = KeptTexts(folder).keep("the output of a command")
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()] == [0o600]
    assert asker.ask("read_artifact", ref=f"ax://exec/{id}")["data"]["text"] == "the output of a command"
    for other in (f"{id}.zst", f"../outputs/{id}", "../index.sqlite3", f"{id}%00", "*", ""):
        assert asker.error("read_artifact", ref=f"ax://exec/{other}")["code"] == "invalid_artifact_ref"
    asker.settings.data_dir.chmod(0o755)
    assert not [told for told in exposure(asker.settings.data_dir) if "outputs" in told]
    folder.chmod(0o755)
    told = f"other users can read outputs: chmod 700 {folder}"
    assert told in exposure(asker.settings.data_dir)
