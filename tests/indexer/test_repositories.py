"""Repositories: folders are joined by what only one repository has, and by nothing else."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest
from agtrace_indexer.events.remotes import repository_at
from agtrace_indexer.index.membership import FOLDER, NAME, REMOTE, SHARED, Folder, Repository, repositories
from agtrace_indexer.index.projects import project_hash
from agtrace_indexer.run import index
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.agtrace.asking import Asker, claude_log
from tests.conftest import LOGS, copy_index
from tests.depth import examples
from tests.finding.ranking import indexed
from tests.finding.repositories import joined

HARBOUR, FORK = "github.com/mira/harbour", "github.com/otto/harbour"


def folder(number: int, root: str | None, **more: object) -> Folder:
    return Folder(number, project_hash(root or str(number)), root, **more)  # type: ignore[arg-type]


def groups(found: Iterable[Repository]) -> set[frozenset[int]]:
    return {frozenset(one.folders) for one in found}


def together(*folders: Folder) -> set[frozenset[int]]:
    return {members for members in groups(repositories(folders)) if len(members) > 1}


# -- what joins ------------------------------------------------------------------------------------


def test_clones_with_the_same_recorded_remote_are_one_repository() -> None:
    (one,) = repositories([
        folder(1, "/home/mira/harbour", recorded={HARBOUR: 1}),
        folder(2, "/Users/mira/src/boats", recorded={HARBOUR: 2}),
    ])  # fmt: skip
    assert (one.name, one.remote, one.made, set(one.folders)) == ("harbour", HARBOUR, REMOTE, {1, 2})
    assert {"harbour", "mira/harbour", "boats"} <= set(one.names)


def test_the_names_that_windows_and_wsl_have_for_a_folder_are_one_repository() -> None:
    windows = (
        r"C:\Users\mira\harbour", r"c:\users\mira\harbour" "\\", r"\\?\C:\Users\mira\harbour", "C:/Users/mira/harbour",
        "/mnt/c/Users/mira/harbour", "/cygdrive/c/Users/mira/Harbour", r"\??\C:\Users\mira\harbour",
        "/c/Users/mira/harbour",
    )  # fmt: skip
    wsl = ("/home/mira/dock", r"\\wsl$\Ubuntu\home\mira\dock", r"\\?\UNC\wsl.localhost\Ubuntu\home\mira\dock")
    shared = (r"\\host\share\dock", r"\\?\UNC\HOST\share\dock")
    other = (r"D:\Users\mira\harbour", "/mnt/c2/Users/mira/harbour", "/home/mira/Dock")
    found = repositories(folder(number, root) for number, root in enumerate((*windows, *wsl, *shared, *other)))
    assert groups(found) == {
        frozenset(range(8)),
        frozenset((8, 9, 10)),
        frozenset((11, 12)),
        *map(frozenset, ((13,), (14,), (15,))),
    }
    assert {one.made for one in found} == {FOLDER}


def test_folders_that_share_two_commits_are_one_repository() -> None:
    commits = {"3fa9c21d0b1e", "77b0aa12cd34"}
    (one,) = repositories([
        folder(1, "/home/mira/harbour", commits=commits),
        folder(2, "/home/mira/dock", commits=commits | {"0a1b2c3d4e5f"}),
    ])  # fmt: skip
    assert one.made == SHARED


def test_a_worktree_beside_its_repository_belongs_to_it() -> None:
    found = repositories([folder(1, "/home/mira/harbour"), folder(2, "/home/mira/harbour/.worktrees/tides")])
    assert [(one.name, one.made, len(one.folders)) for one in found] == [("harbour", NAME, 2)]


def test_however_many_worktrees_and_clones_a_repository_has_they_belong_to_it() -> None:
    worktrees = [folder(n, f"/home/mira/harbour/.worktrees/tide-{n}") for n in range(2, 102)]
    assert len(repositories([folder(1, "/home/mira/harbour"), *worktrees])) == 1
    commits = {"3fa9c21d0b1e", "77b0aa12cd34"}
    assert len(repositories([folder(n, f"/home/otto/{n}/boat-{n}", commits=commits) for n in range(100)])) == 1


def test_a_folder_of_which_nothing_is_known_is_a_repository_of_its_own() -> None:
    (one,) = repositories([folder(1, "/home/mira/harbour")])
    assert (one.name, one.remote, one.made) == ("harbour", None, FOLDER)


# -- what doesn't: traps ---------------------------------------------------------------------------

TRAPS = {
    "two repositories of one name": [
        folder(1, "/home/mira/app", recorded={"github.com/mira/app": 1}),
        folder(2, "/home/otto/app", recorded={"github.com/otto/app": 1}),
    ],
    "two folders of one common name": [folder(1, "/home/mira/app"), folder(2, "/home/otto/app")],
    "a fork, with its commits and files": [
        folder(1, "/home/mira/harbour", recorded={HARBOUR: 1}, commits={"3fa9c21d0b1e", "77b0aa12cd34"},
               files={"harbour/tides.py", "harbour/quay.py"}),
        folder(2, "/home/otto/harbour", recorded={FORK: 1}, commits={"3fa9c21d0b1e", "77b0aa12cd34"},
               files={"harbour/tides.py", "harbour/quay.py"}),
    ],
    "a monorepo and a package that was taken out of it": [
        folder(1, "/home/mira/mono", recorded={"github.com/mira/mono": 1}, files={"packages/tides/tides.py"}),
        folder(2, "/home/mira/tides", recorded={"github.com/mira/tides": 1}, files={"packages/tides/tides.py"}),
    ],
    "a submodule": [
        folder(1, "/home/mira/harbour", recorded={HARBOUR: 1}, files={"libtide/src/tide.c", "libtide/src/moon.c"}),
        folder(2, "/home/mira/harbour/libtide", recorded={"github.com/mira/libtide": 1}, files={"src/tide.c"}),
    ],
    "a scratch folder in which one worked on several": [
        folder(1, "/tmp", shown={HARBOUR: 3, "github.com/mira/quay": 3}),
        folder(2, "/home/mira/harbour", recorded={HARBOUR: 1}),
        folder(3, "/home/mira/quay", recorded={"github.com/mira/quay": 1}),
    ],
    "a home directory": [
        folder(1, "/home/mira", shown={HARBOUR: 5}, commits={"3fa9c21d0b1e", "77b0aa12cd34"}),
        folder(2, "/home/mira/harbour", recorded={HARBOUR: 1}, commits={"3fa9c21d0b1e", "77b0aa12cd34"}),
    ],
    "the same library copied into two": [
        folder(1, "/home/mira/harbour", files={"vendor/zlib/deflate.c", "vendor/zlib/inflate.c", "harbour/a.py"}),
        folder(2, "/home/mira/quay", files={"vendor/zlib/deflate.c", "vendor/zlib/inflate.c", "quay/b.py"}),
    ],
    "files that every repository has": [
        folder(1, "/home/mira/harbour", files={"src/index.js", "tests/conftest.py", ".github/workflows/ci.yml"}),
        folder(2, "/home/mira/quay", files={"src/index.js", "tests/conftest.py", ".github/workflows/ci.yml"}),
    ],
    "files in the user's own folder": [
        folder(1, "/home/mira/harbour", files={"~/.claude/skills/tides/SKILL.md", "~/notes/tides/moon.md"}),
        folder(2, "/home/mira/quay", files={"~/.claude/skills/tides/SKILL.md", "~/notes/tides/moon.md"}),
    ],
    "skills of agents that were copied into two": [
        folder(1, "/home/mira/harbour", files={".claude/skills/tides/SKILL.md", ".codex/skills/moon/SKILL.md"}),
        folder(2, "/home/mira/quay", files={".claude/skills/tides/SKILL.md", ".codex/skills/moon/SKILL.md"}),
    ],
    "what one template made of two": [
        folder(1, "/home/mira/harbour", files={"src/lib/lanterns.ts", "src/components/HarbourBell.tsx",
               "src/main/java/com/example/demo/DemoApplication.java", "app/controllers/sessions_controller.rb",
               "src/test/java/com/example/demo/DemoApplicationTests.java", "spec/requests/sessions_spec.rb"}),
        folder(2, "/home/mira/quay", files={"src/lib/lanterns.ts", "src/components/HarbourBell.tsx",
               "src/main/java/com/example/demo/DemoApplication.java", "app/controllers/sessions_controller.rb",
               "src/test/java/com/example/demo/DemoApplicationTests.java", "spec/requests/sessions_spec.rb"}),
    ],
    "one commit": [
        folder(1, "/home/mira/harbour", commits={"3fa9c21d0b1e"}),
        folder(2, "/home/mira/quay", commits={"3fa9c21d0b1e"}),
    ],
    "one mention of another's address": [
        folder(1, "/home/mira/quay", shown={HARBOUR: 1}), folder(2, "/home/mira/harbour", recorded={HARBOUR: 1}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("folders", TRAPS.values(), ids=TRAPS)
def test_what_two_repositories_may_share_does_not_join_them(folders: list[Folder]) -> None:
    assert together(*folders) == set()


# -- laws ------------------------------------------------------------------------------------------

_REMOTES = some.sampled_from([HARBOUR, FORK, "github.com/mira/quay"])
_ROOTS = ["/home/mira/harbour", "/home/otto/harbour", "/home/mira/quay", "/tmp", "/home/mira", "/srv/git/harbour",
          "/home/mira/harbour/.worktrees/a", "/home/mira/dock"]  # fmt: skip
_COMMITS = some.sets(some.sampled_from(["3fa9c21d0b1e", "77b0aa12cd34", "0a1b2c3d4e5f"]))
_FILES = some.sets(some.sampled_from(["harbour/tides.py", "harbour/deep/er/moon.py", "quay/crane.py", "src/main.py"]))
_TOLD = some.tuples(some.dictionaries(_REMOTES, some.integers(1, 9), max_size=1),
                    some.dictionaries(_REMOTES, some.integers(1, 3)), _COMMITS, _FILES)  # fmt: skip


def _made(told: list[tuple[dict[str, int], dict[str, int], set[str], set[str]]]) -> list[Folder]:
    return [
        folder(number, root, recorded=recorded, shown=shown, commits=commits, files=files)
        for number, (root, (recorded, shown, commits, files)) in enumerate(zip(_ROOTS, told, strict=False), 1)
    ]


@given(told=some.lists(_TOLD, min_size=2, max_size=len(_ROOTS)), order=some.randoms())
@settings(max_examples=examples(150), deadline=None)
def test_folders_with_different_recorded_remotes_stay_apart_and_their_order_does_not_matter(
    told: list[tuple[dict[str, int], dict[str, int], set[str], set[str]]], order: object
) -> None:
    folders = _made(told)
    found = repositories(folders)
    assert sorted(id for one in found for id in one.folders) == [one.id for one in folders]
    by_id = {one.id: one for one in folders}
    for one in found:
        assert len({remote for id in one.folders for remote in by_id[id].recorded}) <= 1
    shuffled = list(folders)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert groups(repositories(shuffled)) == groups(found)


# -- from logs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "repository"),
    [
        ("git@github.com:Mira/Harbour.git", HARBOUR),
        ("https://user:secret@github.com/mira/harbour", HARBOUR),
        ("ssh://git@github.com:22/mira/harbour.git", HARBOUR),
        ("https://github.com/mira/harbour/pull/104", HARBOUR),
        ("/srv/git/harbour.git", None),
        ("https://github.com/mira", None),
    ],
)
def test_an_address_names_a_repository_however_it_is_written(address: str, repository: str | None) -> None:
    assert repository_at(address) == repository


def _told(database: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(
            "SELECT r.name, r.remote, r.made, group_concat(hash) FROM repository r "
            "JOIN (SELECT f.repository_id, p.hash FROM repository_folder f JOIN project p ON p.id = f.project_id "
            "ORDER BY p.hash) ON repository_id = r.id GROUP BY r.id ORDER BY 1, 4"
        ).fetchall()


def _logs(home: Path) -> None:
    pushed = "To github.com:mira/harbour.git\n   3fa9c21..77b0aa1  main -> main\n"
    for number, cwd in enumerate(("/srv/mira/harbour", "/srv/otto/boats", "/srv/otto/quay")):
        log = claude_log(home, f"{number}badc0de-0000-4000-8000-000000000001", cwd=cwd)
        log.prompt("Push").call("Bash", {"command": "git push"}, pushed if number < 2 else "Everything up-to-date")
        log.call("Bash", {"command": "git push"}, pushed if number < 2 else "Everything up-to-date")


def test_a_repository_that_grew_is_that_of_a_fresh_index(tmp_path: Path) -> None:
    _logs(tmp_path / "whole")
    grown = tmp_path / "grown.db"
    for part in (0.4, 0.8, 1.0):
        for path in sorted((tmp_path / "whole").rglob("*.jsonl")):
            copy = tmp_path / "home" / path.relative_to(tmp_path / "whole")
            copy.parent.mkdir(parents=True, exist_ok=True)
            lines = path.read_bytes().splitlines(keepends=True)
            copy.write_bytes(b"".join(lines[: round(len(lines) * part)]))
        index(grown, [str(tmp_path / "home")], otherwise=[])
    index(tmp_path / "fresh.db", [str(tmp_path / "home")], otherwise=[])
    found = _told(grown)
    assert found == _told(tmp_path / "fresh.db")
    assert [row[:3] for row in found] == [("harbour", HARBOUR, REMOTE), ("quay", None, FOLDER)]


def test_what_a_copy_of_a_session_shows_again_is_no_second_vote(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "home", "0badc0de-0000-4000-8000-000000000001", cwd="/srv/otto/boats")
    log.prompt("Push").call(
        "Bash", {"command": "git push"}, "To github.com:mira/harbour.git\n   3fa9c21..77b0aa1  a -> a\n"
    )
    (path,) = (tmp_path / "home").rglob("*.jsonl")
    copy = path.with_name("1badc0de-0000-4000-8000-000000000001.jsonl")
    copy.write_text(path.read_text().replace('"sessionId":"0badc0de', '"sessionId":"1badc0de')
                    .replace('"sessionId": "0badc0de', '"sessionId": "1badc0de'))  # fmt: skip
    index(tmp_path / "index.db", [str(tmp_path / "home")], otherwise=[])
    with closing(sqlite3.connect(tmp_path / "index.db")) as connection:
        assert connection.execute("SELECT count(*) FROM event WHERE copy_of IS NOT NULL").fetchone()[0] > 0
    assert [row[:3] for row in _told(tmp_path / "index.db")] == [("boats", None, FOLDER)]


def test_a_file_that_was_known_of_a_folder_inside_counts_for_the_outer_one_too(tmp_path: Path) -> None:
    def logs(home: Path) -> None:
        mono, tides = "/srv/mira/mono", "/srv/mira/mono/tides"
        for number, (cwd, base) in enumerate([(tides, mono), ("/srv/otto/dock", "/srv/otto/dock"), (mono, mono)]):
            log = claude_log(home, f"{number}badc0de-0000-4000-8000-000000000001", cwd=cwd).prompt("Read")
            for name in ("tides/moon/phase.c", "tides/quay/crane.c"):
                log.call("Read", {"file_path": f"{base}/{name}"}, "")

    logs(tmp_path / "whole")
    paths = sorted((tmp_path / "whole").rglob("*.jsonl"))
    for count in (0, None):
        for path in paths:
            copy = tmp_path / "home" / path.relative_to(tmp_path / "whole")
            copy.parent.mkdir(parents=True, exist_ok=True)
            is_last = path.name.startswith("2badc0de")
            lines = path.read_bytes().splitlines(keepends=True)
            copy.write_bytes(b"".join(lines[:1] if is_last and count == 0 else lines))
        index(tmp_path / "grown.db", [str(tmp_path / "home")], otherwise=[])
    index(tmp_path / "fresh.db", [str(tmp_path / "home")], otherwise=[])
    assert _told(tmp_path / "grown.db") == _told(tmp_path / "fresh.db")
    assert len(_told(tmp_path / "fresh.db")) == 2


def test_a_project_is_named_by_any_of_its_names_and_means_all_its_folders(tmp_path: Path) -> None:
    _logs(tmp_path / "home")
    asker = Asker(tmp_path / "data", tmp_path / "home")
    names = [
        "harbour", "HARBOUR", "arbou", "mira/harbour", "git@github.com:mira/harbour.git", "boats", "/srv/otto/boats",
        "/srv/otto/boats/quay/crane.py", "otto/boats", project_hash("/srv/otto/boats")[:10],
    ]  # fmt: skip
    for name in names:
        assert len(asker.ask("list_sessions", project=name)["data"]["sessions"]) == 2, name
        assert asker.ask("search_event_previews", query="", project=name)["data"]["matches"]
    (harbour, quay) = sorted(asker.ask("get_project_info")["data"]["projects"], key=lambda item: item["name"])
    assert (harbour["name"], harbour["made"], harbour["session_count"]) == ("harbour", "remote", 2)
    assert len(harbour["folders"]) == 1 and "folders" not in quay
    sql = "SELECT project, count(*), count(DISTINCT session) FROM tool_calls GROUP BY 1"
    assert asker.ask("run_sql", sql=sql)["data"]["rows"] == [["harbour", 4, 2], ["quay", 2, 1]]


def test_what_lies_below_a_home_directory_is_no_part_of_it(tmp_path: Path) -> None:
    for number, cwd in enumerate(("/home/jo", "/home/jo/abacus")):
        claude_log(tmp_path / "home", f"{number}badc0de-0000-4000-8000-000000000001", cwd=cwd).prompt("Hello")
    asker = Asker(tmp_path / "data", tmp_path / "home")
    for path in ("/home/jo", "/home/jo/abacus", "/home/jo/abacus/tests"):
        assert len(asker.ask("list_sessions", project=path)["data"]["sessions"]) == 1, path
    assert "/home/jo/another" in asker.error("list_sessions", project="/home/jo/another")["message"]


def test_a_project_that_nobody_knows_is_refused_with_names_that_are_known(tmp_path: Path) -> None:
    _logs(tmp_path / "home")
    asker = Asker(tmp_path / "data", tmp_path / "home")
    error = asker.error("list_sessions", project="harbor")
    assert error["details"]["field"] == "project" and error["details"]["allowed"][0] == "harbour"


def test_the_names_that_may_be_meant_come_first_those_that_begin_so_then_hold_it_then_are_like_it(
    tmp_path: Path,
) -> None:
    for number, name in enumerate(("ode-reef", "amber", "reed", "re-modes", "moses")):
        log = claude_log(tmp_path / "home", f"{number}badc0de-0000-4000-8000-000000000001", cwd=f"/srv/{name}")
        log.prompt("Hello")
    asker = Asker(tmp_path / "data", tmp_path / "home")
    named = {"re": "nearest: re-modes, reed, ode-reef", "mosses": "nearest: moses", "qqqq": "known: amber, moses, "}
    for project, names in named.items():
        assert f"(the index has 5); {names}" in asker.error("list_sessions", project=project)["message"]


def test_two_projects_of_one_name_are_both_asked_and_told_apart(tmp_path: Path) -> None:
    for number, cwd in enumerate(("/srv/mira/app", "/srv/otto/app")):
        claude_log(tmp_path / "home", f"{number}badc0de-0000-4000-8000-000000000001", cwd=cwd).prompt("Hello")
    asker = Asker(tmp_path / "data", tmp_path / "home")
    both = "of 2 projects: /srv/mira/app, /srv/otto/app"
    assert asker.ask("list_sessions", project="app")["summary"] == f"Found 2 sessions {both}"
    assert both in asker.ask("search_event_previews", query="hello", project="app", order="newest")["summary"]
    assert asker.ask("list_sessions", project="mira/app, otto/app")["summary"] == f"Found 2 sessions {both}"
    assert "nobody" in asker.error("list_sessions", project="mira/app,nobody")["message"]
    assert len(asker.ask("list_sessions", project="/srv/mira/app")["data"]["sessions"]) == 1
    assert len(asker.ask("list_sessions", project="otto/app")["data"]["sessions"]) == 1


def test_what_codex_records_of_its_folder_is_the_remote(tmp_path: Path) -> None:
    meta = {"id": "019f0000-0000-7000-8000-000000000001", "cwd": "/srv/mira/dock", "cli_version": "0.99.0",
            "git": {"repository_url": "https://token@github.com/mira/harbour.git"}}  # fmt: skip
    records = [{"timestamp": "2026-10-01T10:00:00Z", "type": "session_meta", "payload": meta}]
    log = tmp_path / "logs" / "rollout-2026-10-01T10-00-00-019f0000-0000-7000-8000-000000000001.jsonl"
    log.parent.mkdir()
    log.write_text("".join(json.dumps(record) + "\n" for record in records))
    index(tmp_path / "index.db", [str(tmp_path / "logs")], otherwise=[])
    assert [row[:3] for row in _told(tmp_path / "index.db")] == [("harbour", HARBOUR, REMOTE)]


@pytest.mark.skipif(not LOGS.is_dir(), reason="the folder of real logs (shared/logs) is not here")
def test_on_real_logs_nothing_is_joined_wrongly_and_98_percent_are_in_their_group(
    indexed_logs: Path, database: Path
) -> None:
    found = joined(indexed(copy_index(indexed_logs, database).parent))
    assert found.wrong == [] and found.in_group >= 0.98 * found.sessions
