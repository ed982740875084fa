"""`agtrace secrets`: what was masked and where, what may be a secret, and what a user decides about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from agtrace_indexer import redact
from agtrace_indexer.run import decide, index

from agtrace.settings import load
from tests.agtrace.asking import ClaudeLog, claude_log
from tests.agtrace.terminal import agtrace, agtrace_here, index_here
from tests.secrets.stored import bytes_of

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
PASSWORD, POSSIBLE, PRINTED, OPEN = "Kq8vLw3pZ", "sunshine", "horse battery", "public_secret: Zt5rNb8mQ1wX"
SESSION = "5e551000-0000-4000-8000-000000000000"


@pytest.fixture(autouse=True)
def log(tmp_path: Path) -> Iterator[ClaudeLog]:
    """A log that is indexed. All of a process has the same rules: those of this test go with it."""
    log = claude_log(tmp_path / "home", SESSION).prompt(f"It says {TOKEN}, and {TOKEN} again.")
    log.prompt(f"password: {POSSIBLE}\nfor the rest, password='{PASSWORD}' will do, {OPEN}")
    log.call("Bash", {"command": "pass show tide"}, PRINTED).call("Login", {"user": "mira", "password": PASSWORD}, "ok")
    index_here(tmp_path / "home")
    yield log
    redact.use(tmp_path / "nowhere")


def listed(*arguments: str) -> dict[str, dict[str, str]]:
    """What is listed, by tier and kind."""
    found = agtrace_here("secrets", "--json", *arguments).json()
    return {f"{one['tier']} {one['kind']}": one for one in found["secrets"] + found["possible_secrets"]}


def test_each_secret_is_listed_with_its_place_and_dots_instead_of_it() -> None:
    found = listed()
    assert {name: (one["event_index"], one["events"]) for name, one in found.items()} == {
        "definite github-token": (0, 1), "likely printed-secret": (3, 1), "likely password": (1, 2),
        "possible password": (1, 1),
    }  # fmt: skip
    assert found["definite github-token"]["text"] == "It says ••••••••, and [redacted: github-token] again."
    assert found["likely password"]["text"].endswith(f"password='••••••••' will do, {OPEN}")
    assert found["possible password"]["text"].startswith("password: •••••••• for the rest, password='[redacted")
    whole = agtrace_here("secrets", "--json").json()
    assert (whole["definite"], whole["likely"], whole["possible"]) == (1, 2, 1)
    for none in (["--until", "2020-01-01"], ["--provider", "codex"], ["--session", SESSION, "--since", "2099-01-01"]):
        assert agtrace_here("secrets", *none).code == 0 and listed(*none) == {}
    assert len(listed("--session", SESSION[:8], "--limit", "1")) == 2
    assert agtrace_here("secrets", "--allow", "00").code == 2
    said = agtrace_here("secrets")
    assert said.code == 1 and not [one for one in (TOKEN, PASSWORD, POSSIBLE, PRINTED) if one in said.out + repr(whole)]


@pytest.mark.parametrize("gone", [False, True], ids=["live", "archived"])
def test_a_decision_is_kept_and_the_index_follows_it(log: ClaudeLog, tmp_path: Path, gone: bool) -> None:
    claude_log(tmp_path / "home", "0" + SESSION[1:]).prompt(f"Another one, with {TOKEN}.")
    index_here()
    if gone:
        log.path.unlink()
        index_here()
    database, found = load().database, listed()
    assert "(1 changed)" in agtrace("secrets", "--allow", found["likely password"]["id"]).out, "one of two logs has it"
    assert f"password='{PASSWORD}'" in agtrace_here("show", SESSION, "--all").out
    assert listed().keys() == found.keys() - {"likely password"}
    decide(database, {redact.fingerprint(POSSIBLE): "mask", redact.fingerprint(PASSWORD): "mask"})
    index(database, ())
    assert [where for where, told in bytes_of(database.parent) if "archive" not in where and POSSIBLE in told] == []
    assert listed().keys() == found.keys() - {"possible password"}
    assert PASSWORD not in agtrace_here("show", SESSION, "--all").out


def test_what_is_possible_is_masked_in_what_leaves_and_a_new_token_is_reported() -> None:
    assert POSSIBLE in agtrace_here("show", SESSION, "--all").out
    exported = (agtrace_here("export", SESSION, form).out for form in ("--jsonl", "--html", "--markdown"))
    assert POSSIBLE not in "".join(exported)
    since = ("report", "--since", "2020-01-01")
    told = agtrace_here(*since, "--json").json()["new_secrets"]
    assert told.startswith("1 token was printed in a session: rotate it") and told in agtrace_here(*since).out


def test_a_query_is_looked_for_as_it_is_and_masked_where_it_is_repeated() -> None:
    found = agtrace_here("search", OPEN.removeprefix("public_"), "--newest", "--json").json()
    assert found["summary"].endswith("containing 'secret: [redacted: secret]'") and found["data"]["matches"]
