"""`agtrace config`: what is set and by what, which files can be used, and the schema of a file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from agtrace_schema.fields import fields

from agtrace.settings.model import Tools
from agtrace.tools import TOOLS
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
    "chunk_size": ("true", "a whole number from 500 to 30000"),
    "keep_days": ("0.5", "a whole number from 1 to 36500"),
    "nothing": ("1", "a known key"),
    "http.hosts": ("'here'", "a list, each a host name"),
    "ab.mode": ("'on'", "one of off, split"),
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


@pytest.mark.parametrize("command", [["config"], ["sessions"], ["metrics"], ["index"]])
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


def test_a_token_is_shown_as_the_server_has_it_and_the_doctor_diagnoses_though_the_file_is_faulty(
    faulty: Path, tmp_path: Path
) -> None:
    data = {"AGTRACE_DATA_DIR": str(tmp_path / "data"), "AGTRACE_CONFIG": str(faulty)}
    shown, told = agtrace_here("mcp", "--show-token", **data), agtrace_here("doctor", **data)
    assert shown.code == 0 and len(shown.out.strip()) > 16 and len(shown.err.splitlines()) == 10
    assert told.code == 1 and f"{faulty}: nothing: expected a known key" in told.out


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
    file = written(tmp_path / "many.toml", "".join(f"key_{number} = 1\n" for number in range(2_000)))
    said = checked(file)
    assert len(said.err.splitlines()) == 21 and "and 1,980 more" in said.err and len(said.err) < 5_000
    assert len(agtrace_here("config", "check", file, "--json").json()["faults"]) == 2_000


def test_an_item_of_a_list_and_a_client_are_named_with_what_they_may_be(tmp_path: Path) -> None:
    content = 'clients.foo = 10\nhttp.origins = [1]\nhttp.hosts = ["ok.example", "*"]\nkeep_days = 2026-11-03\n'
    lines = checked(written(tmp_path / "a.toml", content)).err.splitlines()
    for told in (
        "clients.foo: expected a whole number from 2048 to 102400, got 10",
        "http.origins[0]: expected an origin, such as https://agtrace.example, got 1",
        "http.hosts[1]: expected a host name, such as agtrace.example or agtrace.example:8765, got '*'",
        "keep_days: expected a whole number from 1 to 36500, got 2026-11-03",
    ):
        assert any(line.endswith(told) for line in lines), lines


def test_a_page_size_that_nobody_set_follows_the_largest(tmp_path: Path) -> None:
    said = checked(written(tmp_path / "a.toml", "max_page_size = 5"))
    assert said.code == 0 and "default_page_size: 10 -> 5" in said.out
    assert checked(written(tmp_path / "a.toml", "max_page_size = 5\ndefault_page_size = 6")).code == 2


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
        ("a.json", '{"max_page_size": 60, "max_page_size": 70}', "max_page_size is given twice"),
        ("a.json", '{"limits": {"max_bytes": 5000, "max_bytes": 6000}}', "max_bytes is given twice"),
        ("a.yaml", "http:\n  hosts: []\n  hosts: []", "hosts is given twice; keep one (at line 3)"),
        ("a.json", '{"max_page_size": 60, "maxPageSize": 70}', "(max_page_size and maxPageSize); keep one"),
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
        why = "it isn't a file" if path is folder else "no such file or directory"
        assert said.code == 2 and f"{path}: can't be read: {why}\n" in said.err


def test_a_home_of_nobody_is_taken_as_it_is_written(tmp_path: Path) -> None:
    assert checked(written(tmp_path / "a.toml", 'prices = "~nobody-of-this-name/p.json"')).code == 0
    said = agtrace("--config", "~nobody-of-this-name/a.toml", "config")
    assert said.code == 2 and "can't be read" in said.err


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


@pytest.mark.parametrize(
    ("given", "key", "value"),
    [
        ("maxPageSize=70", "max_page_size", 70),
        ("tools.list_sessions.features.pagination=false", "tools.list_sessions.features.pagination.enabled", False),
        ("tools.listSessions.features.chunking=off", "tools.list_sessions.features.chunking.enabled", False),
        ("clients.my.client=5000", "clients", {"my.client": 5000}),
    ],
)
def test_the_command_line_takes_a_key_as_a_file_does(given: str, key: str, value: Any) -> None:
    rows = {row["key"]: row for row in agtrace("--set", given, "config", "--json").json()["settings"]}
    assert (rows[key]["value"], rows[key]["source"]) == (value, "--set")


def test_a_variable_switches_a_protection_as_a_whole() -> None:
    said = agtrace_here("config", AGTRACE_TOOLS__LIST_SESSIONS__FEATURES__PAGINATION="off")
    assert re.search(r"tools.list_sessions.features.pagination.enabled +false +AGTRACE_TOOLS__LIST_", said.out)


def test_each_client_s_limit_comes_from_the_last_source_that_names_it(tmp_path: Path) -> None:
    file = written(tmp_path / "a.toml", "clients = {one = 5000, two = 5000}")
    said = agtrace("--set", "clients.two=6000", "config", "--json", AGTRACE_CONFIG=str(file)).json()
    (row,) = (row for row in said["settings"] if row["key"] == "clients")
    assert row == {"key": "clients", "value": {"one": 5000, "two": 6000}, "source": f"{file}, --set"}


def test_two_variables_of_one_setting_may_not_contradict_each_other() -> None:
    said = agtrace_here("config", AGTRACE_TELEMETRY="0", AGTRACE_TELEMETRY__ENABLED="1")
    assert said.code == 2 and "(AGTRACE_TELEMETRY and AGTRACE_TELEMETRY__ENABLED); keep one" in said.err
    assert agtrace_here("config", AGTRACE_TELEMETRY="0", AGTRACE_TELEMETRY__ENABLED="false").code == 0


def test_a_variable_that_is_almost_one_of_ours_is_told_and_others_are_left_alone(tmp_path: Path) -> None:
    misspelled = {"AGTRACE_MAX_PAGE_SISE": "3", "AGTRACE_E2E": "1", "AGTRACE_DATA_DIR": str(tmp_path / "data")}
    said = agtrace_here("config", **misspelled)
    assert said.code == 0
    assert said.err.endswith("AGTRACE_MAX_PAGE_SISE sets nothing: perhaps AGTRACE_MAX_PAGE_SIZE is meant\n")
    assert "AGTRACE_MAX_PAGE_SISE sets nothing" in agtrace_here("doctor", **misspelled).out
    unknown = agtrace_here("config", AGTRACE_FOO__BAR="3")
    assert unknown.code == 2 and "perhaps" not in unknown.err
    assert "perhaps AGTRACE_LIMITS__MAX_BYTES" in agtrace_here("config", AGTRACE_LIMITS__MAX_BITES="3").err


def test_a_fault_shows_a_value_as_it_was_written() -> None:
    assert "got 'max_page_size='" in agtrace("--set", "max_page_size=", "config").err
    assert (
        "expected 0 or 1 (or false, true, off, on), got 'maybe'"
        in agtrace_here("config", AGTRACE_TELEMETRY="maybe").err
    )


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


def test_a_setting_is_a_line_that_nothing_cuts() -> None:
    rollout = "AGTRACE_TOOLS__LIST_SESSIONS__FEATURES__PAGINATION__ROLLOUT"
    for options in ([], ["--all"]):
        said = agtrace_here("config", *options, **{rollout: "25", "COLUMNS": "40"})
        (line,) = (line for line in said.out.splitlines() if "25 " in line)
        assert line.split() == ["tools.list_sessions.features.pagination.rollout", "25", rollout]
    told = agtrace_here("config", "--json").json()
    assert len(told["version"]) == 12


def test_the_path_is_that_of_the_option_or_the_variable_or_the_platform(tmp_path: Path) -> None:
    place = agtrace_here("config", "path", XDG_CONFIG_HOME=str(tmp_path)).out.strip()
    assert place == str(tmp_path / "agtrace" / "config.toml")
    assert agtrace_here("config", "path", AGTRACE_CONFIG="/x/y.json").out.strip() == "/x/y.json"
    assert agtrace("--config", "/x/z.yaml", "config", "path", AGTRACE_CONFIG="/x/y.json").out.strip() == "/x/z.yaml"


# -- the schema of a file --------------------------------------------------------------------------

USABLE: list[dict[str, Any]] = [
    {},
    {"$schema": "./schema.json"},
    {"user": None, "tools": {"listSessions": {"pageSize": None}}},
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
    {"max_page_size": 60.0, "clients": {"claude-code": 20_000.0}},
    {"max_page_size": 5},
    {"maxPageSize": 60, "tools": {"listSessions": {"pageSize": 3}}},
    {"http": {"hosts": ["a.example:80", "[::1]:8080"], "origins": ["https://a.example", "app://x"]}},
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
    *({"http": {"hosts": [host]}} for host in ("*", "", "a b", "http://a/b", "a:port")),
    *({"http": {"origins": [origin]}} for origin in ("*", "nonsense", "https://", "https://a/b")),
    {"prices": ""},
    {"maxPageSize": 201},
    {"telemetry": {"enabled": 1}},
    {"ab": {"mode": "on"}},
    {"nothing": 1},
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


def test_every_tool_can_be_configured() -> None:
    assert set(fields(Tools)) == {*TOOLS, "search_events"}
