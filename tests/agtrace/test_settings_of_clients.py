"""Our server in the settings of each client: put in, taken out, and everything else left alone.

`clients` has a file of each client as its documentation shows one, before and after.
"""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from agtrace.upkeep import client_settings as change
from agtrace.upkeep.client_settings import Refused
from agtrace.upkeep.clients import CLIENTS, Client, Language, Machine

SAMPLES = Path(__file__).with_name("clients")
EXECUTABLE = "/opt/bin/agtrace"
VARIABLES = {"AGTRACE_DATA_DIR": "/srv/agtrace"}
NAMES = sorted(path.stem for path in SAMPLES.glob("*.before"))
STRANGE = 'C:\\Program Files\\agtrace "beta" \x7f 潮汐 🐟.exe'


def client_of(sample: str) -> Client:
    return CLIENTS[sample.removesuffix("-2")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A Linux machine with an empty home and no variables."""
    return Machine(tmp_path / "home", {}, "linux")


def written(client: Client, machine: Machine, content: bytes) -> Path:
    """Write the settings of a client, and return the file."""
    file = client.files(machine)[0]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def add(client: Client, machine: Machine) -> None:
    change.adding(client, machine, EXECUTABLE, VARIABLES).make()


def said(client: Client, text: str) -> Any:
    """What settings say, read by a parser of their own."""
    if client.language is Language.YAML:
        return yaml.safe_load(text)
    lines = (re.sub(r'^((?:[^"/]|"(?:[^"\\]|\\.)*"|/(?!/))*)//.*', r"\1", line) for line in text.splitlines())
    plain = re.sub(r",(\s*[}\]])", r"\1", re.sub(r"/\*.*?\*/", "", "\n".join(lines), flags=re.DOTALL))
    return json.loads(plain) if plain.strip() else None


def test_every_client_has_a_sample() -> None:
    assert {name.removesuffix("-2") for name in NAMES} == set(CLIENTS)


@pytest.mark.parametrize("name", NAMES)
def test_settings_get_our_entry_and_lose_it_to_the_byte(name: str, machine: Machine) -> None:
    client = client_of(name)
    before, after = ((SAMPLES / f"{name}.{when}").read_bytes() for when in ("before", "after"))
    file = written(client, machine, before)
    assert not change.where(client, machine)[1]
    for _ in range(2):
        add(client, machine)
        assert file.read_bytes() == after
    assert change.where(client, machine) == (file, True)
    for _ in range(2):
        change.removing(client, machine).make()
        assert file.read_bytes() == (b"{}\n" if name == "antigravity" else before), "servers that were empty go, too"


@pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)
@pytest.mark.parametrize("content", [None, b"", b"\n"], ids=["missing", "empty", "blank"])
def test_settings_that_are_missing_or_empty_are_begun(client: Client, content: bytes | None, machine: Machine) -> None:
    file = client.files(machine)[0] if content is None else written(client, machine, content)
    add(client, machine)
    (path,) = [client.path({})]
    entry = said(client, file.read_text())
    for step in (*path, "agtrace"):
        (entry,) = [entry[step]]
    assert entry == client.entry(EXECUTABLE, VARIABLES)
    change.removing(client, machine).make()
    assert said(client, file.read_text()) in ({}, None)


@pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)
def test_a_strange_path_arrives_whole(client: Client, machine: Machine) -> None:
    change.adding(client, machine, STRANGE, {"AGTRACE_DATA_DIR": f"{STRANGE}\n"}).make()
    value = said(client, client.files(machine)[0].read_text())
    assert value == {client.path({})[0]: {"agtrace": client.entry(STRANGE, {"AGTRACE_DATA_DIR": f"{STRANGE}\n"})}}


MINE: dict[str, dict[str, Any]] = {
    "cursor": {"type": "stdio", "command": "/old", "args": [], "env": {"MINE": "1"}, "envFile": "/a"},
    "goose": {"type": "stdio", "cmd": "/old", "enabled": False, "envs": {"MINE": "1"}, "timeout": 9, "bundled": None},
}  # fmt: skip


@pytest.mark.parametrize("name", MINE)
def test_an_entry_that_is_there_keeps_what_the_user_set_in_it(name: str, machine: Machine) -> None:
    client = CLIENTS[name]
    (step,) = client.path({})
    value = {"first": 1, step: {"other": {"x": "y"}, "agtrace": MINE[name], "third": {}}, "last": [1]}
    text = json.dumps(value, indent=3) if name == "cursor" else yaml.safe_dump(value, sort_keys=False)
    file = written(client, machine, text.encode())
    add(client, machine)
    entry = client.entry(EXECUTABLE, VARIABLES)
    variables = "env" if name == "cursor" else "envs"
    merged = {**MINE[name], **entry, variables: {"MINE": "1", **VARIABLES}}
    now = said(client, file.read_text())
    assert now == {**value, step: {**value[step], "agtrace": merged}}  # type: ignore[dict-item]
    assert list(now[step]) == ["other", "agtrace", "third"], "in its place"
    add(client, machine)
    assert said(client, file.read_text()) == now


def test_an_entry_for_a_server_over_http_is_replaced_as_a_whole(machine: Machine) -> None:
    client = CLIENTS["vscode"]
    file = written(client, machine, b'{"servers": {"agtrace": {"type": "http", "url": "http://127.0.0.1:8765/mcp"}}}')
    add(client, machine)
    assert said(client, file.read_text()) == {"servers": {"agtrace": client.entry(EXECUTABLE, VARIABLES)}}


@pytest.mark.parametrize(
    ("name", "content", "where"),
    [
        ("cursor", b'{\n  "mcpServers": {\n    "a" {}\n  }\n}', "line 3, column 9: Expecting ':' delimiter"),
        ("cursor", b'{"mcpServers": {}', "line 1, column 18: Expecting ',' delimiter"),
        ("cursor", b'{"a": 1}\n{"b": 2}', "line 2, column 1: Extra data"),
        ("cursor", b"{'a': 1}", "line 1, column 2: Expecting property name"),
        ("cursor", b'{// mine\n"a": tru}', "line 2, column 6: Expecting value"),
        ("cursor", b'{"a": "x\n"}', "line 1, column 9: Invalid control character"),
        ("cursor", b'{"a": 1 /* }', "line 1, column 9: Expecting ',' delimiter"),
        ("cursor", b'{"a": ' + b"[" * 50_000, "too many levels"),
        ("cursor", b'{"a": ' + b"9" * 5_000 + b"}", "Exceeds the limit"),
        ("cursor", b'{"mcpServers": []}', "mcpServers must be names with values"),
        ("cursor", b'{"mcpServers": null}', "mcpServers must be names with values"),
        ("cursor", b"[]", "the settings must be names with values"),
        ("cursor", b'{"mcpServers": {},\n "mcpServers": {}}', '"mcpServers" is there twice'),
        ("cursor", b'{"a": "\xff"}', "byte 8 isn't UTF-8"),
        ("goose", b"a: b: c\n", "line 1, column 5: mapping values are not allowed here"),
        ("goose", b"a: 1\nb: [1\n", "line 3, column 1"),
        ("goose", b"a: 1\n---\nb: 1\n", "line 2, column 1: but found another document"),
        ("goose", b"- a\n", "the settings must be names with values"),
        ("goose", b"extensions:\n  - a\n", "extensions must be names with values"),
        ("goose", b"extensions:\n  a: 1\nextensions:\n  b: 1\n", "found duplicate key"),
        ("goose", b"{a: 1}\n", "settings in { } can't be added to"),
        ("goose", b"extensions: {a: {b: 1}}\n", "settings in { } can't be added to"),
        ("goose", b"a: \x07\n", "special characters are not allowed"),
        ("goose", b"a: " + b"[" * 1_000, "too many levels"),
    ],
)  # fmt: skip
def test_settings_that_are_malformed_are_refused_with_the_place(
    name: str, content: bytes, where: str, machine: Machine
) -> None:
    client = CLIENTS[name]
    file = written(client, machine, content)
    with pytest.raises(Refused) as refused:
        add(client, machine)
    assert where in str(refused.value) and str(refused.value).startswith(f"{file}: ")
    assert file.read_bytes() == content


def test_a_link_stays_a_link_and_permissions_stay(machine: Machine, tmp_path: Path) -> None:
    client = CLIENTS["cursor"]
    kept = tmp_path / "dotfiles" / "mcp.json"
    kept.parent.mkdir()
    kept.write_bytes(b"{}")
    kept.chmod(0o640)
    link = client.files(machine)[0]
    link.parent.mkdir(parents=True)
    link.symlink_to(os.path.relpath(kept, link.parent))
    add(client, machine)
    assert link.is_symlink() and b"agtrace" in kept.read_bytes()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640
    assert sorted(path.name for path in kept.parent.iterdir()) == ["mcp.json", "mcp.json.before-agtrace"]


def test_what_settings_were_stays_beside_them_with_their_permissions(machine: Machine) -> None:
    file = written(CLIENTS["cursor"], machine, b'{"mine": "secret"}')
    file.chmod(0o600)
    add(CLIENTS["cursor"], machine)
    former = file.with_name("mcp.json.before-agtrace")
    assert former.read_bytes() == b'{"mine": "secret"}' and stat.S_IMODE(former.stat().st_mode) == 0o600


def test_new_settings_are_their_owners_alone(machine: Machine) -> None:
    add(CLIENTS["qwen"], machine)
    assert stat.S_IMODE(CLIENTS["qwen"].files(machine)[0].stat().st_mode) == 0o600


def test_settings_that_another_program_changed_meanwhile_are_left_alone(machine: Machine) -> None:
    client = CLIENTS["cursor"]
    file = written(client, machine, b"{}")
    planned = change.adding(client, machine, EXECUTABLE, {})
    file.write_bytes(b'{"theirs": 1}')
    with pytest.raises(Refused, match="changed by another program"):
        planned.make()
    assert (file.read_bytes(), os.listdir(file.parent)) == (b'{"theirs": 1}', ["mcp.json"])


def test_what_is_not_a_file_and_what_is_huge_is_refused(machine: Machine) -> None:
    client = CLIENTS["cursor"]
    file = written(client, machine, b" " * (change.MOST_BYTES + 1))
    with pytest.raises(Refused, match="more than 8,000,000 bytes"):
        add(client, machine)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(Refused, match="isn't a file"):
        add(client, machine)
    file.unlink()
    file.symlink_to(file.name)
    with pytest.raises(Refused, match="can't be read"):
        add(client, machine)


def test_of_two_files_the_one_that_has_us_or_else_the_first_that_is_there_is_edited(machine: Machine) -> None:
    client = CLIENTS["opencode"]
    first, second = client.files(machine)
    assert change.where(client, machine)[0] == first
    second.parent.mkdir(parents=True)
    second.write_text("{}")
    assert change.where(client, machine)[0] == second
    first.write_text("{}")
    assert change.where(client, machine)[0] == first
    second.write_text('{"mcp": {"agtrace": {}}}')
    assert change.where(client, machine) == (second, True)


HOME = Path("/home/mira")


@pytest.mark.parametrize(
    ("name", "platform", "environment", "path"),
    [
        ("cursor", "linux", {}, "/home/mira/.cursor/mcp.json"),
        ("vscode", "linux", {}, "/home/mira/.config/Code/User/mcp.json"),
        ("vscode", "linux", {"XDG_CONFIG_HOME": "/srv/c"}, "/srv/c/Code/User/mcp.json"),
        ("vscode", "darwin", {"XDG_CONFIG_HOME": "/srv/c"},
         "/home/mira/Library/Application Support/Code/User/mcp.json"),
        ("vscode", "win32", {"APPDATA": "/data/roaming"}, "/data/roaming/Code/User/mcp.json"),
        ("vscode", "win32", {}, "/home/mira/AppData/Roaming/Code/User/mcp.json"),
        ("claude-desktop", "darwin", {},
         "/home/mira/Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude-desktop", "win32", {"APPDATA": "/data/roaming"}, "/data/roaming/Claude/claude_desktop_config.json"),
        ("claude-desktop", "linux", {}, "/home/mira/.config/Claude/claude_desktop_config.json"),
        ("copilot", "linux", {}, "/home/mira/.copilot/mcp-config.json"),
        ("copilot", "linux", {"COPILOT_HOME": "/srv/copilot"}, "/srv/copilot/mcp-config.json"),
        ("opencode", "darwin", {}, "/home/mira/.config/opencode/opencode.json"),
        ("opencode", "linux", {"XDG_CONFIG_HOME": "/srv/c"}, "/srv/c/opencode/opencode.json"),
        ("kilo", "linux", {}, "/home/mira/.config/kilo/kilo.json"),
        ("zed", "linux", {"XDG_CONFIG_HOME": "/srv/c"}, "/srv/c/zed/settings.json"),
        ("zed", "linux", {"FLATPAK_XDG_CONFIG_HOME": "/srv/f"}, "/srv/f/zed/settings.json"),
        ("zed", "darwin", {"XDG_CONFIG_HOME": "/srv/c"}, "/home/mira/.config/zed/settings.json"),
        ("zed", "win32", {"APPDATA": "/data/roaming"}, "/data/roaming/Zed/settings.json"),
        ("qwen", "linux", {}, "/home/mira/.qwen/settings.json"),
        ("qwen", "linux", {"QWEN_HOME": "/srv/qwen"}, "/srv/qwen/settings.json"),
        ("qwen", "linux", {"QWEN_HOME": ""}, "/home/mira/.qwen/settings.json"),
        ("kiro", "linux", {}, "/home/mira/.kiro/settings/mcp.json"),
        ("goose", "linux", {}, "/home/mira/.config/goose/config.yaml"),
        ("goose", "darwin", {"XDG_CONFIG_HOME": "/srv/c"}, "/srv/c/goose/config.yaml"),
        ("goose", "linux", {"GOOSE_PATH_ROOT": "/srv/g"}, "/srv/g/config/config.yaml"),
        ("goose", "win32", {"APPDATA": "/data/roaming"}, "/data/roaming/Block/goose/config/config.yaml"),
        ("antigravity", "linux", {}, "/home/mira/.gemini/config/mcp_config.json"),
    ],
)  # fmt: skip
def test_the_settings_file_follows_the_platform_and_the_clients_own_variables(
    name: str, platform: str, environment: dict[str, str], path: str
) -> None:
    assert CLIENTS[name].files(Machine(HOME, environment, platform))[0] == Path(path)
