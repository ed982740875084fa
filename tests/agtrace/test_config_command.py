"""`agtrace config`: what is set and by what, which files can be used, and the schema of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.agtrace.terminal import Said, agtrace, agtrace_here

TOKEN = "tok-" + "73b1" * 6

TEN_FAULTS = """
default_page_size = 0
max_page_size = 201
token_budget_threshold = "many"
chunk_size = true
keep_days = 0.5
nothing = 1
[http]
hosts = "here"
[ab]
mode = "on"
[modes.minimal]
chars = 1
[tools.list_sessions.features.chunking]
rollout = 101
"""
TEN = {
    "default_page_size": ("0", "a whole number from 1 to 200"),
    "max_page_size": ("201", "a whole number from 1 to 200"),
    "token_budget_threshold": ("'many'", "a whole number from 1000 to 30000"),
    "chunk_size": ("True", "a whole number from 500 to 30000"),
    "keep_days": ("0.5", "a whole number from 1 to 36500"),
    "nothing": ("1", "a known key"),
    "http.hosts": ("'here'", "a list of texts"),
    "ab.mode": ("'on'", "one of off, shadow, split"),
    "modes.minimal.chars": ("1", "a whole number from 500 to 1000000"),
    "tools.list_sessions.features.chunking.rollout": ("101", "a whole number from 0 to 100"),
}


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    return written(tmp_path / "ten.toml", TEN_FAULTS)


def written(file: Path, content: str | bytes) -> Path:
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def checked(file: Path) -> Said:
    return agtrace_here("config", "check", file)


# -- which files can be used -----------------------------------------------------------------------


def test_every_one_of_ten_faults_is_named_with_key_value_and_range(faulty: Path) -> None:
    said = checked(faulty)
    assert said.code == 2 and said.out == ""
    lines = said.err.splitlines()
    assert len(lines) == 10
    for key, (value, expected) in TEN.items():
        (line,) = (line for line in lines if f"{faulty}: {key}: " in line)
        assert f"expected {expected}" in line and line.endswith(f"got {value}")


def test_the_same_ten_faults_are_told_in_json(faulty: Path) -> None:
    said = agtrace_here("config", "check", faulty, "--json")
    told = said.json()
    assert said.code == 2 and told["valid"] is False
    assert {fault["key"]: fault["value"] for fault in told["faults"]} == {key: value for key, (value, _) in TEN.items()}
    assert all(TEN[fault["key"]][1] in fault["expected"] for fault in told["faults"])


@pytest.mark.parametrize("command", [["config"], ["sessions"], ["metrics"], ["index"], ["mcp", "--show-token"]])
def test_other_commands_end_with_2_and_name_all_of_them(faulty: Path, command: list[str]) -> None:
    said = agtrace("--config", faulty, *command)
    assert said.code == 2 and len(said.err.splitlines()) == 10
    assert all(f" {key}: expected {expected}" in said.err for key, (_, expected) in TEN.items())


def test_a_file_that_can_be_used_says_what_it_would_change(tmp_path: Path) -> None:
    file = written(tmp_path / "good.yaml", f"defaultPageSize: 20\nhttp: {{token: {TOKEN}}}\n")
    said = checked(file)
    assert said.code == 0 and "default_page_size: 10 -> 20" in said.out and "http.token: - -> (secret)" in said.out
    told = agtrace_here("config", "check", file, "--json").json()
    assert (
        told["valid"] and {"key": "default_page_size", "old": 10, "new": 20, "needs_restart": False} in told["changes"]
    )
    assert TOKEN not in said.out + json.dumps(told)


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    for name in ("a.toml", "a.yaml", "a.json"):
        said = checked(written(tmp_path / name, "\n"))
        assert (said.code, said.err) == (0, "") and "changes nothing" in said.out


def test_only_some_keys_of_a_group_may_be_set(tmp_path: Path) -> None:
    said = checked(written(tmp_path / "some.toml", "[modes.minimal]\nchars = 600\n"))
    assert said.code == 0 and said.out.splitlines()[1:] == ["  modes.minimal.chars: 5000 -> 600"]


BOMB = "a: &a [x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.ini", "default_page_size = 5", ".toml, .yaml, .yml or .json"),
        ("a", "default_page_size = 5", ".toml, .yaml, .yml or .json"),
        ("a.toml", "default_page_size = ", "valid TOML"),
        ("a.toml", "default_page_size = 5\ndefault_page_size = 6", "valid TOML"),
        ("a.toml", f"default_page_size = 0x{'f' * 9_000}", "a whole number from 1 to 200"),
        ("a.toml", f"chunk_lines = {'9' * 9_000}", "valid TOML"),
        ("a.toml", "prices = " + "[" * 60_000, "valid TOML"),
        ("a.toml", b'prices = "\xe9"', "UTF-8"),
        ("a.toml", "#" * 65_537, "65,536 bytes"),
        ("a.yaml", "- a\n- b", "keys and values"),
        ("a.yaml", BOMB, "valid YAML"),
        ("a.yaml", BOMB.replace("[", "{<<: [").replace("]", "]}"), "valid YAML"),
        ("a.yaml", "a: &a [*a]", "valid YAML"),
        ("a.yaml", "[" * 60_000, "valid YAML"),
        ("a.yaml", "a: !!python/object/apply:os.getcwd []", "valid YAML"),
        ("a.yaml", "1: 2", "a known key"),
        ("a.json", '{"default_page_size": NaN}', "a whole number"),
        ("a.json", "[" * 60_000, "valid JSON"),
        *((f"{depth}.json", '{"limits": ' + "[" * depth + "]" * depth + "}", "") for depth in range(825, 1_000, 25)),
    ],
    ids=lambda part: part[:20] if isinstance(part, str) else "",
)  # fmt: skip
def test_what_is_no_configuration_is_refused_in_a_sentence(
    tmp_path: Path, name: str, content: Any, expected: str
) -> None:
    said = checked(written(tmp_path / name, content))
    assert said.code == 2 and f"agtrace: {tmp_path / name}: " in said.err and expected in said.err
    assert len(said.err) < 2_000


def test_a_file_that_is_not_there_and_a_folder_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "folder.toml"
    folder.mkdir()
    for path in (tmp_path / "none.toml", folder):
        said = checked(path)
        assert said.code == 2 and f"{path}: expected a file that can be read" in said.err


def test_a_home_of_nobody_is_taken_as_it_is_written(tmp_path: Path) -> None:
    assert checked(written(tmp_path / "a.toml", 'prices = "~nobody-of-this-name/p.json"')).code == 0
    said = agtrace("--config", "~nobody-of-this-name/a.toml", "config")
    assert said.code == 2 and "a file that can be read" in said.err


def test_a_value_on_the_command_line_is_checked_as_well() -> None:
    for given in (
        "default_page_size=0",
        "default_page_size",
        "nothing=1",
        f"clients={'[' * 60_000}",
        "http.token=short",
    ):
        said = agtrace("--set", given, "config")
        assert said.code == 2 and said.err and "short" not in said.err


# -- a token is never shown ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.yaml", f'http:\n  token: "{TOKEN}\n'),
        ("a.yaml", f"http:\n  token: *{TOKEN}\n"),
        ("a.yaml", f"http:\n  token: !{TOKEN} x\n"),
        ("a.yaml", f"http:\n  token: !!int {TOKEN}\n"),
        ("a.yaml", f"http:\n  token: {TOKEN}\n token: {TOKEN}\n"),
        ("a.yaml", f"http:\n- token: {TOKEN}\n"),
        ("a.toml", f'[http]\ntoken = "{TOKEN}\n'),
        ("a.toml", f"[http]\ntoken = {TOKEN}\n"),
        ("a.toml", f'http.token = "{TOKEN}"\nhttp.token = "{TOKEN}"'),
        ("a.toml", f'http.token = "{TOKEN} "'),
        ("a.toml", f'http_token = "{TOKEN}"'),
        ("a.toml", f'http = "{TOKEN}"'),
        ("a.json", f'{{"http": {{"token": "{TOKEN}}}}}'),
        ("a.json", f'{{"http": {{"Token": "{TOKEN}"}}}}'),
    ],
)
def test_a_mistake_around_a_token_does_not_show_it(tmp_path: Path, name: str, content: str) -> None:
    said, told = checked(written(tmp_path / name, content)), agtrace_here("config", "check", tmp_path / name, "--json")
    assert said.code == told.code == 2
    assert TOKEN not in said.err + told.out and TOKEN[4:] not in said.err + told.out


def test_a_token_from_any_source_is_not_shown(tmp_path: Path) -> None:
    file = written(tmp_path / "a.toml", f'http.token = "{TOKEN}"')
    sources = [{"AGTRACE_CONFIG": str(file)}, {"AGTRACE_HTTP_TOKEN": TOKEN}, {"AGTRACE_HTTP__TOKN": TOKEN}]
    told = [agtrace_here("config", "--all", **environment) for environment in sources]
    told += [agtrace("--set", f"http.{key}={TOKEN}", "config", "--all") for key in ("token", "tokn")]
    assert [said.code for said in told] == [0, 0, 2, 0, 2]
    for said in told:
        assert TOKEN not in said.out + said.err and ("(secret)" in said.out or said.code == 2)


# -- what is set, and by what ----------------------------------------------------------------------


def test_each_key_says_where_its_value_comes_from(tmp_path: Path) -> None:
    file = written(tmp_path / "a.toml", "default_page_size = 5\nmax_page_size = 60\nchunk_lines = 50\n")
    said = agtrace(
        "--set", "chunk_lines=60", "config", "--json",
        AGTRACE_CONFIG=str(file), AGTRACE_MAX_PAGE_SIZE="70", AGTRACE_TOOLS__LIST_SESSIONS__PAGE_SIZE="3",
    ).json()  # fmt: skip
    rows = {row["key"]: (row["value"], row["source"]) for row in said["settings"]}
    assert said["file"] == str(file)
    assert rows["default_page_size"] == (5, str(file))
    assert rows["max_page_size"] == (70, "AGTRACE_MAX_PAGE_SIZE")
    assert rows["tools.list_sessions.page_size"] == (3, "AGTRACE_TOOLS__LIST_SESSIONS__PAGE_SIZE")
    assert rows["chunk_lines"] == (60, "--set")
    assert rows["token_budget_threshold"] == (4_000, "default")
    assert rows["http.token"] == (None, "default")
    assert rows["data_dir"][1] == "AGTRACE_DATA_DIR"


def test_the_path_is_that_of_the_option_or_the_variable_or_the_platform(tmp_path: Path) -> None:
    place = agtrace_here("config", "path", XDG_CONFIG_HOME=str(tmp_path)).out.strip()
    assert place == str(tmp_path / "agtrace" / "config.toml")
    assert agtrace_here("config", "path", AGTRACE_CONFIG="/x/y.json").out.strip() == "/x/y.json"
    assert agtrace("--config", "/x/z.yaml", "config", "path", AGTRACE_CONFIG="/x/y.json").out.strip() == "/x/z.yaml"


# -- the schema of a file --------------------------------------------------------------------------

USABLE: list[dict[str, Any]] = [
    {},
    {"$schema": "./schema.json"},
    {"default_page_size": 50, "max_page_size": 200},
    {"token_budget_threshold": 30_000, "chunk_size": None},
    {"limits": {"max_json_depth": 6}},
    {"modes": {"verbose": {"width": 300}}},
    {"tools": {"list_sessions": {"page_size": 3, "max_bytes": 2_048, "features": {"pagination": False}}}},
    {"tools": {"read_artifact": {"features": {"chunking": {"rollout": 0}, "summarization": {"enabled": True}}}}},
    {"clients": {"claude-code": 20_000}},
    {"http": {"token": TOKEN, "hosts": ["a.example"], "origins": []}},
    {"telemetry": {"enabled": False, "keep_days": 366, "arguments": True}},
    {"ab": {"mode": "split", "share": 0}},
    {"data_dir": "~/data", "prices": None, "search_events": True},
]
UNUSABLE: list[dict[str, Any]] = [
    {"default_page_size": "10"},
    {"default_page_size": 0},
    {"default_page_size": None},
    {"max_page_size": 201},
    {"token_budget_threshold": 999},
    {"chunk_lines": 10.5},
    {"limits": {"max_json_depths": 6}},
    {"limits": 3},
    {"modes": {"verbose": {"width": 39}}},
    {"tools": {"list_session": {}}},
    {"tools": {"list_sessions": {"features": {"pagination": 25}}}},
    {"tools": {"list_sessions": {"features": {"pagination": {"rollout": 101}}}}},
    {"clients": {"claude-code": 100}},
    {"http": {"token": "short"}},
    {"http": {"token": "sixteen characters"}},
    {"http": {"hosts": "a.example"}},
    {"telemetry": {"enabled": 1}},
    {"ab": {"mode": "on"}},
    {"nothing": 1},
]


@pytest.fixture(scope="module")
def schema() -> Any:
    return agtrace_here("config", "schema").json()


def test_the_schema_is_one(schema: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize(
    ("values", "usable"), [*((one, True) for one in USABLE), *((one, False) for one in UNUSABLE)], ids=json.dumps
)
def test_the_schema_accepts_what_the_check_accepts(
    schema: Any, tmp_path: Path, values: dict[str, Any], usable: bool
) -> None:
    said = checked(written(tmp_path / "a.json", json.dumps(values)))
    assert (said.code == 0) is usable, said
    assert jsonschema.Draft202012Validator(schema).is_valid(values) is usable
