"""`agtrace config`: what is set and by what, which files can be used, and the schema of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.agtrace.terminal import Said, agtrace_here

TOKEN = "tok-" + "73b1" * 6

TEN_FAULTS = """
default_page_size = 0
max_page_size = 201
token_budget_threshold = "many"
chunk_size = true
keep_days = 0.5
cursor_ttl_seconds = 0
[http]
hosts = ["*"]
[ab]
mode = "on"
[limits]
max_json_depth = 7
[tools.list_sessions]
rollout = 101
"""
TEN = {
    "default_page_size": ("0", "a whole number from 1 to 200"),
    "max_page_size": ("201", "a whole number from 1 to 200"),
    "token_budget_threshold": ("'many'", "a whole number from 1000 to 30000"),
    "chunk_size": ("true", "a whole number from 500 to 30000"),
    "keep_days": ("0.5", "a whole number from 1 to 36500"),
    "cursor_ttl_seconds": ("0", "a whole number from 1 to 31622400"),
    "http.hosts[0]": ("'*'", "a host name"),
    "ab.mode": ("'on'", "one of off, split"),
    "limits.max_json_depth": ("7", "a whole number from 1 to 6"),
    "tools.list_sessions.rollout": ("101", "a whole number from 0 to 100"),
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
    told = agtrace_here("config", "check", faulty, "--json").json()
    assert told["valid"] is False
    assert {fault["key"]: fault["value"] for fault in told["faults"]} == {key: value for key, (value, _) in TEN.items()}
    assert all(TEN[fault["key"]][1] in fault["expected"] for fault in told["faults"])


@pytest.mark.parametrize("command", [["config"], ["sessions"], ["metrics"], ["index"]])
def test_other_commands_end_with_2_and_name_all_of_them(faulty: Path, command: list[str]) -> None:
    said = agtrace_here("--config", faulty, *command)
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


def test_a_token_is_shown_as_the_server_has_it_and_the_doctor_diagnoses_though_the_file_is_faulty(
    faulty: Path, tmp_path: Path
) -> None:
    data = {"AGTRACE_DATA_DIR": str(tmp_path / "data"), "AGTRACE_CONFIG": str(faulty)}
    shown, told = agtrace_here("mcp", "--show-token", **data), agtrace_here("doctor", **data)
    assert shown.code == 0 and len(shown.out.strip()) > 16 and len(shown.err.splitlines()) == 10
    assert told.code == 1 and f"{faulty}: chunk_size: expected" in told.out


def test_without_a_file_the_one_in_force_is_checked(tmp_path: Path, faulty: Path) -> None:
    assert agtrace_here("config", "check", AGTRACE_CONFIG=str(faulty)).code == 2
    good = written(tmp_path / "good.toml", "default_page_size = 20")
    for said in (
        agtrace_here("config", "check", AGTRACE_CONFIG=str(good)),
        agtrace_here("config", "check", good, AGTRACE_CONFIG=str(good)),
    ):
        assert said.code == 0 and said.out == f"{good} can be used. It is what is in force.\n"
    none = agtrace_here("config", "check", XDG_CONFIG_HOME=str(tmp_path))
    assert none.code == 0 and "no configuration file" in none.out


def test_of_very_many_faults_the_first_are_told_and_json_has_all(tmp_path: Path) -> None:
    file = written(tmp_path / "many.toml", "".join(f"clients.c{number} = 1\n" for number in range(200)))
    said = checked(file)
    assert len(said.err.splitlines()) == 21 and "and 180 more" in said.err and len(said.err) < 5_000
    assert len(agtrace_here("config", "check", file, "--json").json()["faults"]) == 200


def test_a_key_that_is_not_known_is_named_and_stops_nothing(tmp_path: Path) -> None:
    content = "max_page_size = 60\ndefault_page_sise = 5\n[tools.list_sessions.features]\npagination = false\n"
    file = written(tmp_path / "old.toml", content)
    said, told = checked(file), agtrace_here("config", "check", file, "--json").json()
    assert said.code == 0 and "max_page_size: 50 -> 60" in said.out
    assert f"{file}: default_page_sise: expected a known key, perhaps default_page_size" in said.err
    assert f"{file}: tools.list_sessions.features: expected a known key: enabled, rollout" in said.err
    assert {one["key"] for one in told["unknown"]} == {"default_page_sise", "tools.list_sessions.features"}
    listed = agtrace_here("config", AGTRACE_CONFIG=str(file))
    assert listed.code == 0 and listed.err == said.err
    assert "perhaps default_page_size" in agtrace_here("doctor", AGTRACE_CONFIG=str(file)).out


def test_a_path_in_a_file_begins_at_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "team").mkdir()
    written(tmp_path / "team" / "a.toml", 'data_dir = "data"\nprices = "../prices.json"')
    monkeypatch.chdir(tmp_path)
    said = agtrace_here("config", AGTRACE_CONFIG="team/a.toml", AGTRACE_DATA_DIR="")
    assert f"{tmp_path}/team/data " in said.out and f"{tmp_path}/team/../prices.json " in said.out


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    for name in ("a.toml", "a.yaml", "a.json"):
        said = checked(written(tmp_path / name, "\n"))
        assert (said.code, said.err) == (0, "") and "changes nothing" in said.out


def test_only_some_keys_of_a_group_may_be_set(tmp_path: Path) -> None:
    said = checked(written(tmp_path / "some.toml", "[limits]\nmax_json_depth = 2\n"))
    assert said.code == 0 and said.out.splitlines()[1:] == ["  limits.max_json_depth: 3 -> 2"]


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
        ("a.json", '{"max_page_size": 60, "max_page_size": 70}', "max_page_size is given twice"),
        ("a.json", '{"limits": {"max_bytes": 5000, "max_bytes": 6000}}', "max_bytes is given twice"),
        ("a.yaml", "http:\n  hosts: []\n  hosts: []", "a key is given twice; keep one (at line 3)"),
        ("a.json", '{"max_page_size": 60, "maxPageSize": 70}', "max_page_size: is given twice"),
        ("a.toml", f"default_page_size = 0x{'f' * 9_000}", "a whole number from 1 to 200"),
        ("a.toml", f"chunk_lines = {'9' * 9_000}", "valid TOML: a number is far too large"),
        ("a.toml", "prices = " + "[" * 60_000, "valid TOML"),
        ("a.toml", b'prices = "\xe9"', "expected UTF-8; byte 10 isn't valid UTF-8"),
        ("a.toml", "#" * 65_537, "65,536 bytes"),
        ("a.yaml", "- a\n- b", "keys and values"),
        ("a.yaml", BOMB, "valid YAML"),
        ("a.yaml", BOMB.replace("[", "{<<: [").replace("]", "]}"), "valid YAML"),
        ("a.yaml", "a: &a [*a]", "valid YAML"),
        ("a.yaml", "[" * 60_000, "valid YAML"),
        ("a.yaml", "a: !!python/object/apply:os.getcwd []", "valid YAML"),
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
        why = "it isn't a file" if path is folder else "no such file or directory"
        assert said.code == 2 and f"{path}: can't be read: {why}\n" in said.err


def test_a_home_of_nobody_is_taken_as_it_is_written(tmp_path: Path) -> None:
    assert checked(written(tmp_path / "a.toml", 'prices = "~nobody-of-this-name/p.json"')).code == 0
    said = agtrace_here("--config", "~nobody-of-this-name/a.toml", "config")
    assert said.code == 2 and "can't be read" in said.err


def test_a_value_on_the_command_line_is_checked_as_well() -> None:
    for given in ("default_page_size=0", "default_page_size", "nothing=1", f"clients={'[' * 60_000}"):
        said = agtrace_here("--set", given, "config")
        assert said.code == 2 and said.err


@pytest.mark.parametrize(
    ("given", "key", "value"),
    [
        ("maxPageSize=70", "max_page_size", 70),
        ("tools.list_sessions.enabled=false", "tools.list_sessions.enabled", False),
        ("tools.listSessions.rollout=25", "tools.list_sessions.rollout", 25),
        ("clients.my.client=5000", "clients.my.client", 5000),
    ],
)
def test_the_command_line_takes_a_key_as_a_file_does(given: str, key: str, value: Any) -> None:
    rows = {row["key"]: row for row in agtrace_here("--set", given, "config", "--json").json()["settings"]}
    assert (rows[key]["value"], rows[key]["source"]) == (value, "--set")


def test_each_client_s_limit_comes_from_the_last_source_that_names_it(tmp_path: Path) -> None:
    file = written(tmp_path / "a.toml", "clients = {one = 5000, two = 5000}")
    said = agtrace_here("--set", "clients.two=6000", "config", "--json", AGTRACE_CONFIG=str(file)).json()
    rows = {row["key"]: (row["value"], row["source"]) for row in said["settings"]}
    assert (rows["clients.one"], rows["clients.two"]) == ((5000, str(file)), (6000, "--set"))


def test_two_variables_of_one_setting_may_not_contradict_each_other() -> None:
    said = agtrace_here("config", AGTRACE_TELEMETRY="0", AGTRACE_TELEMETRY__ENABLED="1")
    assert said.code == 2 and "is given twice" in said.err
    assert agtrace_here("config", AGTRACE_TELEMETRY="0", AGTRACE_TELEMETRY__ENABLED="0").code == 0


def test_a_variable_that_is_almost_one_of_ours_is_told_and_others_are_left_alone(tmp_path: Path) -> None:
    misspelled = {"AGTRACE_MAX_PAGE_SISE": "3", "AGTRACE_E2E": "1", "AGTRACE_DATA_DIR": str(tmp_path / "data")}
    said = agtrace_here("config", **misspelled)
    assert said.code == 0
    assert said.err.endswith("this variable sets nothing: perhaps AGTRACE_MAX_PAGE_SIZE is meant\n")
    assert "AGTRACE_MAX_PAGE_SISE: this variable sets nothing" in agtrace_here("doctor", **misspelled).out
    unknown = agtrace_here("config", AGTRACE_FOO__BAR="3")
    assert unknown.code == 0 and "AGTRACE_FOO__BAR: this variable sets nothing" in unknown.err
    assert "perhaps AGTRACE_LIMITS__MAX_BYTES" in agtrace_here("config", AGTRACE_LIMITS__MAX_BITES="3").err


def test_a_fault_shows_a_value_as_it_was_written() -> None:
    assert "got 'max_page_size='" in agtrace_here("--set", "max_page_size=", "config").err
    assert "expected true or false, got 'maybe'" in agtrace_here("config", AGTRACE_TELEMETRY="maybe").err


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
    assert said.code == told.code
    assert TOKEN not in said.err + told.out and TOKEN[4:] not in said.err + told.out


def test_a_token_from_any_source_is_not_shown(tmp_path: Path) -> None:
    file = written(tmp_path / "a.toml", f'http.token = "{TOKEN}"')
    sources = [{"AGTRACE_CONFIG": str(file)}, {"AGTRACE_HTTP_TOKEN": TOKEN}, {"AGTRACE_HTTP__TOKN": TOKEN}]
    told = [agtrace_here("config", **environment) for environment in sources]
    told += [agtrace_here("--set", f"http.{key}={TOKEN}", "config") for key in ("token", "tokn")]
    assert [said.code for said in told] == [0, 0, 0, 2, 2]  # everybody can read an argument
    for said in told:
        assert TOKEN not in said.out + said.err


# -- what is set, and by what ----------------------------------------------------------------------


def test_each_key_says_where_its_value_comes_from(tmp_path: Path) -> None:
    file = written(tmp_path / "a.toml", "default_page_size = 5\nmax_page_size = 60\nchunk_lines = 50\n")
    said = agtrace_here(
        "--set", "chunk_lines=60", "config", "--json",
        AGTRACE_CONFIG=str(file), AGTRACE_MAX_PAGE_SIZE="70", AGTRACE_TOOLS__LIST_SESSIONS__ROLLOUT="25",
    ).json()  # fmt: skip
    rows = {row["key"]: (row["value"], row["source"]) for row in said["settings"]}
    assert said["file"] == str(file)
    assert rows["default_page_size"] == (5, str(file))
    assert rows["max_page_size"] == (70, "AGTRACE_MAX_PAGE_SIZE")
    assert rows["tools.list_sessions.rollout"] == (25, "AGTRACE_TOOLS__LIST_SESSIONS__ROLLOUT")
    assert rows["chunk_lines"] == (60, "--set")
    assert rows["token_budget_threshold"] == (4_000, "default")
    assert rows["http.token"] == (None, "default")
    assert rows["data_dir"][1] == "AGTRACE_DATA_DIR"


def test_a_setting_is_a_line_that_nothing_cuts() -> None:
    said = agtrace_here("config", AGTRACE_TOOLS__LIST_SESSIONS__ROLLOUT="25", COLUMNS="40")
    (line,) = (line for line in said.out.splitlines() if "25 " in line)
    assert line.split() == ["tools.list_sessions.rollout", "25", "AGTRACE_TOOLS__LIST_SESSIONS__ROLLOUT"]
    assert len(agtrace_here("config", "--json").json()["version"]) == 12


def test_the_path_is_that_of_the_option_or_the_variable_or_the_platform(tmp_path: Path) -> None:
    place = agtrace_here("config", "path", XDG_CONFIG_HOME=str(tmp_path)).out.strip()
    assert place == str(tmp_path / "agtrace" / "config.toml")
    assert agtrace_here("config", "path", AGTRACE_CONFIG="/x/y.json").out.strip() == "/x/y.json"
    given = agtrace_here("--config", "/x/z.yaml", "config", "path", AGTRACE_CONFIG="/x/y.json")
    assert given.out.strip() == "/x/z.yaml"


# -- the schema of a file --------------------------------------------------------------------------

USABLE: list[dict[str, Any]] = [
    {},
    {"$schema": "./schema.json"},
    {"user": None, "prices": None},
    {"default_page_size": 200, "max_page_size": 50},
    {"token_budget_threshold": 30_000, "chunk_size": None},
    {"limits": {"max_json_depth": 6}},
    {"tools": {"list_sessions": {"enabled": False}, "read_artifact": {"rollout": 0}}},
    {"clients": {"claude-code": 20_000}},
    {"http": {"token": TOKEN, "hosts": ["a.example"], "origins": []}},
    {"telemetry": {"enabled": False, "keep_days": 366, "arguments": True}},
    {"ab": {"mode": "split", "share": 0}},
    {"data_dir": "~/data", "prices": None},
    {"http": {"hosts": ["a.example:80", "[::1]:8080"], "origins": ["https://a.example", "app://x"]}},
]
UNUSABLE: list[dict[str, Any]] = [
    {"default_page_size": "10"},
    {"default_page_size": 0},
    {"default_page_size": None},
    {"max_page_size": 201},
    {"token_budget_threshold": 999},
    {"chunk_lines": 10.5},
    {"limits": 3},
    {"tools": {"list_sessions": False}},
    {"tools": {"list_sessions": {"rollout": 101}}},
    {"clients": {"claude-code": 100}},
    {"http": {"token": "short"}},
    {"http": {"token": "sixteen characters"}},
    *({"http": {"hosts": [host]}} for host in ("*", "", "a b", "http://a/b", "a:port")),
    *({"http": {"origins": [origin]}} for origin in ("*", "nonsense", "https://", "https://a/b")),
    {"prices": ""},
    {"telemetry": {"enabled": 1}},
    {"ab": {"mode": "on"}},
    {"max_page_size": None},
]


@pytest.fixture(scope="module")
def schema() -> Any:
    return agtrace_here("config", "schema").json()


def test_the_schema_is_one(schema: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert len(json.dumps(schema)) < 40_000, "each group stands there once"


@pytest.mark.parametrize(
    ("values", "usable"), [*((one, True) for one in USABLE), *((one, False) for one in UNUSABLE)], ids=json.dumps
)
def test_the_schema_accepts_what_the_check_accepts(
    schema: Any, tmp_path: Path, values: dict[str, Any], usable: bool
) -> None:
    said = checked(written(tmp_path / "a.json", json.dumps(values)))
    assert (said.code == 0) is usable, said
    assert jsonschema.Draft202012Validator(schema).is_valid(values) is usable
