"""Every string in a log is masked before it is cut: no token in any leaf or key gets out, whole or in part."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.events.drafts import SessionFacts
from agtrace_indexer.providers.claude_code.tools import deeds
from agtrace_indexer.providers.copilot.parser import begin
from agtrace_indexer.providers.opencode.parser import note_session
from agtrace_indexer.run import index

from tests.agtrace.asking import Asker, query
from tests.conftest import SAMPLES, keep_rules
from tests.secrets.leaves import Spoiled, leaked, spoil, spoil_kinds, token_of
from tests.secrets.stored import bytes_of, rows_of

pytestmark = pytest.mark.thorough

_LARGEST = 100_000
"""Bytes of a log whose records are taken."""


_SHOWN = (".model", "[].name", "payload.name", "version", ".branch", ".gitBranch", ".cwd", "sessionId", "payload.id")
"""Places that answers show, cut to the width of a label."""


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory: pytest.TempPathFactory) -> list[Spoiled]:
    """The sample sessions, each as often as it takes to have a token in all of its places."""
    home = tmp_path_factory.mktemp("leaves")
    found = (log for pattern in ("agent-*.jsonl", "*-*-*.json*") for log in sorted(SAMPLES.rglob(pattern)))
    logs = (log for log in found if log.suffix != ".zst" and log.stat().st_size < _LARGEST)
    return [each for log in logs for each in spoil(log, home)]


@pytest.fixture(scope="module")
def asker(spoiled: list[Spoiled], tmp_path_factory: pytest.TempPathFactory, compiled_rules: Path) -> Asker:
    data = tmp_path_factory.mktemp("data")
    keep_rules(compiled_rules, data)
    return Asker(data, spoiled[0].path.parents[4], still=True)


def _stored(folder: Path, spoiled: Sequence[Spoiled]) -> dict[str, set[str]]:
    """Where in a data folder a token stands, or a third of one, and from which places."""
    looked_at = itertools.chain(rows_of(folder / "index.sqlite3"), bytes_of(folder))
    return {where: found for where, text in looked_at if (found := leaked(text, spoiled))}


def _questions(asker: Asker, paths: Sequence[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every tool: lists, and the sessions of these logs."""
    yield from ((name, {"limit": 50}) for name in ("list_sessions", "get_project_info"))
    yield "search_event_previews", {"order": "newest", "query": "", "limit": 50}
    one = "SELECT s.uid FROM session s JOIN file f ON f.id = s.file_id WHERE f.path = ?"
    sessions = [found[0][0] for path in paths if (found := query(asker, one, str(path)))]
    for uid, other in itertools.pairwise(sessions):
        session = {"session_id": uid}
        yield "get_session_details", session | {"sections": ["session", "tools", "files", "failures", "models"]}
        yield "get_session_details", session | {"detail_level": "steps"}
        yield from (("analyze_session", session), ("get_reasoning_chain", session))
        yield "compare_sessions", {"id1": uid, "id2": other}
        yield from (("get_event_details", session | {"event_index": number}) for number in (0, 2))
        yield "read_artifact", {"ref": f"ax://session/{uid}"}


def test_a_token_in_any_place_of_a_record_is_stored_nowhere(spoiled: list[Spoiled], asker: Asker) -> None:
    assert len(spoiled) > 1_000
    assert query(asker, "SELECT count(*) FROM session")[0][0] > len({each.path for each in spoiled}) * 9 // 10, (
        "a log whose token took the place of what tells whose it is has none"
    )
    assert _stored(asker.settings.data_dir, spoiled) == {}


def test_a_token_in_any_place_of_a_record_is_in_no_answer(spoiled: list[Spoiled], asker: Asker) -> None:
    shown = list(dict.fromkeys(each.path for each in spoiled if each.place.endswith(_SHOWN)))
    for name, asked in _questions(asker, shown):
        assert leaked(asker.anything(name, **asked).text, spoiled) == set(), (name, asked)
    for each in spoiled[::300]:
        found = asker.anything("search_event_previews", order="newest", query=each.token[4:16])
        assert found.value["data"]["matches"] == [], each.place


def test_what_is_shown_cut_is_masked_before(tmp_path: Path) -> None:
    said = "see " + ", ".join([token_of("")] * 50)
    did = {"commit": {"sha": said}, "pr": {"number": 7, "url": said, "action": "created"}}
    note_session({"title": said}, facts := SessionFacts())
    tmp_path.joinpath("workspace.yaml").write_text(f"name: {said}\n")
    named = [facts.title, begin(tmp_path / "events.jsonl").sessions[""].title]
    assert leaked(f"{deeds({'gitOperation': did})} {named}", [Spoiled("", token_of(""), tmp_path)]) == set()


def test_a_token_in_any_place_of_the_kinds_of_records_that_agents_write_is_stored_nowhere(
    logs: Path, tmp_path: Path
) -> None:
    found = [log for agent in ("claude", "codex", "gemini") for log in sorted((logs / agent).rglob("*.jsonl"))]
    spoiled = list(spoil_kinds((log for log in found if 0 < log.stat().st_size < _LARGEST), tmp_path / "home"))
    index(tmp_path / "data" / "index.sqlite3", [str(tmp_path / "home")])
    assert len(spoiled) > 2_000
    assert _stored(tmp_path / "data", spoiled) == {}
