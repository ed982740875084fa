"""A new agent is one folder and its name in the registry: everything else then knows it, and no other file changes."""

from __future__ import annotations

import json

import pytest
from agtrace_indexer.providers.registry import SETUPS
from agtrace_indexer.run import index

from tests.agents.nest import Knowing, Nest

NAMES = """
import json
from agtrace.settings import variables
from agtrace.tools.arguments import known_agent
print(json.dumps([variables(), [known_agent("Tern"), known_agent("tern")]]))
"""

SESSIONS = ("t-1", "t-2", "t-3", "t-4", "t-5")


@pytest.fixture(scope="module")
def indexed(knowing: Knowing, tmp_path_factory: pytest.TempPathFactory) -> Nest:
    """A session of each kind of source, two in the database."""
    nest = Nest(tmp_path_factory.mktemp("nest"), knowing)
    nest.log("t-1")
    nest.document("t-2")
    nest.rows("t-3", "t-4")
    nest.feathers("t-5")
    nest.ask("index")
    return nest


def test_its_logs_are_found_in_its_home_and_listed(indexed: Nest) -> None:
    listed, doctor = indexed.ask("sessions --provider tern --json", "doctor --json")
    sessions = json.loads(listed)["data"]["sessions"]
    assert {found["id"]: found["provider"] for found in sessions} == dict.fromkeys(SESSIONS, "tern")
    assert str(indexed.flights) in doctor and "song" in doctor


def test_search_finds_what_it_did_and_leaves_out_what_it_asked_agtrace(indexed: Nest) -> None:
    answers = indexed.ask(
        "search water --newest --provider tern --json",
        "search SyntaxError --newest --failed --json",
        "search preen --newest --path gauge.py --json",
    )
    assert [len(json.loads(answer)["data"]["matches"]) for answer in answers] == [5, 5, 5]


def test_the_files_that_it_read_and_changed_are_told_apart(indexed: Nest) -> None:
    (shown,) = indexed.ask("show t-1 --sections files --json")
    files = json.loads(shown)["data"]["files"]
    assert [(file["path"], file["reads"], file["writes"]) for file in files] == [("src/gauge.py", 1, 1)]


def test_its_turns_end_as_its_notices_tell(indexed: Nest) -> None:
    for session in SESSIONS:
        (shown,) = indexed.ask(f"show {session} --json")
        turns = json.loads(shown)["data"]["turns"]
        assert [(turn["user_message"], turn["outcome"]) for turn in turns] == [
            ("Mend the tide gauge", "partial"),
            ("And the moon?", "failed"),
        ]


def test_its_health_is_told_by_the_words_of_its_package(indexed: Nest) -> None:
    analysis, report = indexed.ask("analyze t-1 --json", "report --provider tern")
    told = json.loads(analysis)["data"]
    assert told["ending"]["ending"] == "error_left" and "the sky is overloaded" in told["ending"]["reason"]
    assert {"ended_on_failure"} & {finding["detector"] for finding in told["insights"]}
    assert "5 sessions of Tern" in report


def test_our_server_can_be_added_to_it(indexed: Nest) -> None:
    setup, offered = indexed.ask("setup tern", "setup --help")
    assert f"tern mcp add agtrace --env AGTRACE_DATA_DIR={indexed.data} -- " in setup
    assert f"Or put this into {indexed.folder / 'tern' / 'settings.json'}" in setup
    clients = offered.split("Clients:")[1].replace(",", " ").split()
    assert clients[: len(SETUPS) + 1] == [*SETUPS, "tern"]


def test_tools_and_settings_know_its_names(indexed: Nest) -> None:
    variables, known = indexed.knowing.value_of(NAMES)
    assert known == ["tern"] * 2
    assert variables["TERN_NEST"] == "the home of Tern's logs; default ~/.tern"


def test_what_an_agtrace_before_took_for_no_logs_is_read_once_it_knows_the_agent(nest: Nest) -> None:
    nest.log("t-1")
    nest.document("t-2")
    assert index(nest.data / "index.sqlite3", [str(nest.flights)]).sessions == 0
    (listed,) = nest.data_of("sessions")
    assert {session["id"] for session in listed["sessions"]} == {"t-1", "t-2"}
    assert index(nest.data / "index.sqlite3", []).sessions == 2, "what was read stays"
