"""What a session did is recognized where a command's output shows it, and never from a text that mentions it."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.landmarks.attempts import attempts, restored, stored
from agtrace_indexer.landmarks.recognition import landmarks
from agtrace_indexer.run import index
from agtrace_indexer.run.rebuild import rebuild
from agtrace_schema.events import Outcome

from tests.agtrace.asking import claude_log
from tests.indexer.test_codex_families import T0, Rollout
from tests.indexer.test_forget import forget_here

OK, FAILED, UNKNOWN, REJECTED = Outcome.OK, Outcome.FAILED, Outcome.UNKNOWN, Outcome.REJECTED

_ROWS = """
SELECT e.event_index, l.kind, l.name, l.detail, l.verdict, l.evidence
FROM landmark l JOIN event e USING (session_id, event_index) ORDER BY e.session_id, e.event_index, l.number
"""


PULL = "https://github.com/owner/sea/pull/7"
SESSION = "5e5510d0-0000-4000-8000-000000000001"


def left(command: str, output: str = "", outcome: Outcome = OK, *, in_script: bool = False) -> list[str]:
    """What a command left, each as `kind name verdict`."""
    remembered = restored(json.loads(json.dumps(stored(attempts(command)))))
    found = landmarks(remembered, output, outcome, in_script=in_script)
    return [f"{one.kind} {one.name} {one.verdict}" for one in found]


def rows(database: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(_ROWS).fetchall()


MADE = "[main 3fa9c21] Fix the tide\n 1 file changed, 2 insertions(+)\n"
COMMIT = ["commit 3fa9c21 created"]


@pytest.mark.parametrize(
    ("command", "output", "expected"),
    [
        ("git commit -m 'Fix the tide'", MADE, COMMIT),
        ("rtk git add a && rtk git commit -m x", "ok \u2713 1 file changed\nok \u2713\n", ["commit None created"]),
        ("git add -A; git commit -qF - <<E\nx\nE\nmake lint", "linted\n", ["commit None created"]),
        ("git add -A && git commit -m 'Fix the tide' && git push", MADE, COMMIT),
        ("git -C /work/sea commit -aqm x; git log -1 --oneline", "3fa9c21 x\n", COMMIT),
        ("cd /work && git -c user.name=a commit -F - <<'EOF'\nFix the tide\nEOF", MADE, COMMIT),
        ("git commit -m \"$(cat <<'EOF'\nFix the tide\n\nIt's \"high\" ; git push\nEOF\n)\"", MADE, COMMIT),
        ("git cherry-pick a b", "[main 1111111] one\n[main 2222222] two\n",
         ["commit 1111111 created", "commit 2222222 created"]),
        ("bash -lc 'git commit -m x'", MADE, COMMIT),
        ("git pull", "Merge made by the 'ort' strategy.\n", ["commit None created"]),
        ("git commit -qm x && git push", "To host:sea\n   1111111..3fa9c21  main -> main\n",
         [*COMMIT, "push main None"]),
        ("git commit -qm x", "", ["commit None created"]),
        ("git commit -m x 2>&1 | tail -1", MADE, COMMIT),
        ("git fetch && git switch -c tide origin/main", "branch 'tide' set up to track 'origin/main'.\n",
         ["branch tide created"]),
        ("git worktree add -b tide ../tide", "Preparing worktree (new branch 'tide')\n", ["branch tide created"]),
        ('git checkout -b "$NAME"', "Switched to a new branch 'tide'\n", ["branch tide created"]),
        ("gh pr create --title 'Fix; test' --body \"$(cat <<'EOF'\n- go test ./... \"passes\"\nEOF\n)\"",
         "Warning: 1 uncommitted change\nhttps://github.com/owner/sea/pull/104\n", ["pull_request 104 created"]),
        ("gh -R owner/sea pr merge 104 --squash --delete-branch", "", ["pull_request 104 merged"]),
        ("gh pr merge", "✓ Squashed and merged pull request #104 (Fix the tide)\n", ["pull_request 104 merged"]),
        ("gh pr close 104 -c 'no longer needed'", "✓ Closed pull request #104 (Fix)\n", ["pull_request 104 closed"]),
        ("gh issue create -t x -b y", "\nhttps://github.com/owner/sea/issues/7\n", ["issue 7 created"]),
        ("glab mr create --fill", "!12 Fix\n https://gitlab.com/g/sea/-/merge_requests/12\n",
         ["pull_request 12 created"]),
        ("gh release create v1.2.0 --notes x", "https://github.com/owner/sea/releases/tag/v1.2.0\n",
         ["release v1.2.0 created"]),
        ("git tag v1.2.0 && git push origin v1.2.0", "To host\n * [new tag]         v1.2.0 -> v1.2.0\n",
         ["release v1.2.0 created"]),
        ("npm publish --access public", "+ @sea/tide@1.2.0\n", ["release @sea/tide@1.2.0 created"]),
        ("cargo publish", "   Uploading tide v1.2.0\n    Published tide v1.2.0 at registry `crates-io`\n",
         ["release tide v1.2.0 created"]),
        ("twine upload dist/*", "View at:\nhttps://pypi.org/project/tide/1.2.0/\n", ["release tide/1.2.0 created"]),
    ],
)  # fmt: skip
def test_commits_branches_pull_requests_issues_and_releases_are_what_their_programs_say_they_did(
    command: str, output: str, expected: list[str]
) -> None:
    assert left(command, output) == expected


@pytest.mark.parametrize(
    ("command", "output", "outcome"),
    [
        ("git commit -m x", "nothing to commit, working tree clean\n", FAILED),
        ("rtk git commit -m x", "FAILED: git commit\n1 fail\n", OK),
        ("git commit -m x | tail -3", "husky - pre-commit hook failed\n", OK),
        ("cat notes.txt", MADE, OK),
        ("echo 'git commit -m x'", MADE, OK),
        ("git commit -m x", MADE, REJECTED),
        ("git merge side", "CONFLICT (content): Merge conflict in a\n", FAILED),
        ("git commit -m x", "", UNKNOWN),
        ("git checkout -b tide", "fatal: a branch named 'tide' already exists\n", FAILED),
        ('git branch "$NAME"', "", OK),
        ("git worktree add --detach ../x", "Preparing worktree (detached HEAD 3fa9c21)\n", OK),
        ("git push", "To host\n ! [rejected]        main -> main (fetch first)\nerror: failed to push\n", FAILED),
        ("git push --dry-run", "To host\n   1111111..2222222  main -> main\n", OK),
        ("git fetch && git status", "From host\n   1111111..2222222  main       -> origin/main\n", OK),
        ("git push", "To host\n   1111111..2222222  main -> main\n", REJECTED),
        ("gh pr create --fill",
         'a pull request for branch "tide" already exists:\nhttps://github.com/o/s/pull/9\n', FAILED),
        ("gh pr merge 9", "X Pull request is not mergeable\n", FAILED),
        ("gh pr create --help", "USAGE\n  https://github.com/o/s/pull/9\n", OK),
        ("npm publish", "npm error code E403\n", FAILED),
        ("npm run lint && npm test", "1 problem\n", FAILED),
        ("mise run fmt && mise run test", "[fmt] ERROR task failed\n", FAILED),
        ("pytest", "bash: pytest: command not found\n", FAILED),
        ("python -m pytest", "/usr/bin/python: No module named pytest\n", FAILED),
        ("npm test", 'npm error Missing script: "test"\n', FAILED),
        ("npx --no-install vitest | tail", "npm error npx canceled due to missing packages and no YES option\n", OK),
        ("make test", "make: *** No rule to make target 'test'.  Stop.\n", FAILED),
        ("ls missing || pytest", "", OK),
        ("pytest", "", REJECTED),
    ],
)  # fmt: skip
def test_what_did_nothing_or_may_not_have_run_left_nothing(command: str, output: str, outcome: Outcome) -> None:
    assert left(command, output, outcome) == []


@pytest.mark.parametrize(
    ("command", "output", "expected"),
    [
        ("git push", "To host:sea\n   1111111..3fa9c21  main -> main\n", [("main", "1111111..3fa9c21")]),
        ("git push -u origin tide 2>&1",
         "remote: hi\nTo host:sea\n * [new branch]        tide -> tide\nbranch 'tide' set\n",
         [("tide", "new branch")]),
        ("git push origin HEAD:side", "To host\n   1111111..2222222  HEAD -> side\n", [("side", "1111111..2222222")]),
        ("git push 2>&1 | tail -1", "   1111111..2222222  main -> main\n", [("main", "1111111..2222222")]),
        ("git push && git push", "To host\n   1111111..2222222  main -> main\nEverything up-to-date\n",
         [("main", "1111111..2222222")]),
        ("git pull && git push",
         "From host\n   1111111..2222222  main       -> origin/main\nTo host\n   2222222..3333333  main -> main\n",
         [("main", "2222222..3333333")]),
        ("git push --all", "To host\n   1111111..2222222  a -> a\n * [new branch]      b -> b\n",
         [("a", "1111111..2222222"), ("b", "new branch")]),
    ],
)  # fmt: skip
def test_a_push_is_one_that_brought_commits_to_a_branch(
    command: str, output: str, expected: list[tuple[str, str]]
) -> None:
    found = landmarks(attempts(command), output, OK)
    assert [(one.kind, one.name, one.detail) for one in found] == [("push", *told) for told in expected]


RUNS = """
pytest -q | pytest
uv run --with pytest-xdist pytest -n 2 | pytest
poetry run python -m pytest tests | pytest
.venv/bin/python -m pytest | pytest
python3 -m unittest discover | unittest
coverage run -m pytest | pytest
PYTHONPATH=. timeout 60 pytest | pytest
GOCACHE=$(pwd)/.cache GOOS=linux go test ./... | go test
bash -lc "cd web && npx -y vitest run" | vitest
npx playwright test | playwright test
npm test | npm test
npm t -- --coverage | npm t
npm --prefix web run test:unit | npm run test:unit
pnpm -C web test | pnpm test
pnpm --filter sea run e2e | pnpm run e2e
yarn jest | jest
yarn test:ci | yarn test:ci
bun test | bun test
bun run test | bun run test
node --test | node --test
go test -race ./... | go test
cargo test --all | cargo test
cargo nextest run | cargo nextest
make -j4 test | make test
mise run test:ci | mise run test:ci
mise test tide.test.ts | mise test
conda run -n tide --no-capture-output pytest -q | pytest
bun x vitest run | vitest
just ci | just ci
just test | just test
ctest --output-on-failure | ctest
bundle exec rspec | rspec
vendor/bin/phpunit | phpunit
./gradlew :app:testDebugUnitTest | gradlew :app:testDebugUnitTest
mvn -q test | mvn test
dotnet test | dotnet test
xcodebuild -scheme Sea test | xcodebuild test
swift test | swift test
tox -e py311 | tox
nox -s tests | nox
docker compose exec -T web pytest | pytest
python manage.py test | manage.py test
mix test | mix test
"""


BUILDS = """
make | make
make build | make build
go build ./... | go build
cargo build --release | cargo build
npm run build | npm run build
pnpm build | pnpm build
npx tsc --noEmit | tsc
docker build -t sea . | docker build
docker compose build | docker compose build
cmake --build build -j | cmake --build
./gradlew assembleDebug | gradlew assembleDebug
mvn package | mvn package
dotnet build | dotnet build
python -m build | python -m build
uv build | uv build
next build | next build
vite build | vite build
xcodebuild -scheme Sea build | xcodebuild build
gcc -o sea sea.c | gcc
go test -c ./sea | go test -c
cargo test --no-run | cargo test --no-run
"""


@pytest.mark.parametrize(("kind", "lines"), [("test_run", RUNS), ("build", BUILDS)])
def test_a_run_is_told_by_its_program_through_wrappers_and_its_exit_code(kind: str, lines: str) -> None:
    for line in lines.strip().splitlines():
        command, _, name = line.rpartition(" | ")
        assert left(command) == [f"{kind} {name} passed"]
        assert left(command, "1 thing is wrong", FAILED) == [f"{kind} {name} failed"]


NEITHER = """
cat tests/test_sea.py
ls test build
rg pytest
git grep 'npm test'
pytest --collect-only
pytest --version
npm run lint
npm install
npm run test:watch:setup
make lint
make clean
go vet ./...
go run ./cmd/build
cargo clippy
cargo fmt --check
docker ps
echo "npm run build"
sed -n 1,20p Makefile
kill -9 $(pgrep -f pytest)
which pytest
pip install pytest
python build.py
node server.js
tsc --version
make -n test
"""


@pytest.mark.parametrize("command", NEITHER.strip().splitlines())
def test_what_only_names_a_program_runs_nothing(command: str) -> None:
    assert left(command, "3 passed in 1.0s\nPASS\n") == []


@pytest.mark.parametrize(
    ("command", "output", "outcome", "expected"),
    [
        ("pytest | tail -3", "=== 1 failed, 3 passed in 1.2s ===", OK, "failed"),
        ("pytest | tail -3", "=== 4 passed in 1.2s ===", OK, "passed"),
        ("pytest -q 2>&1 | tail -1", "4 passed, 1 warning in 1.2s", OK, "passed"),
        ("pytest | tail -1", "see the log", OK, "unknown"),
        ("nohup npm run build > log 2>&1 &", "", OK, "unknown"),
        ("cd web && npm test &", "", OK, "unknown"),
        ("pytest; git status", "=== 1 failed in 1.2s ===\n", OK, "failed"),
        ("pytest || true", "=== 1 failed in 1.2s ===", OK, "failed"),
        ("pytest > log 2>&1; echo \"exit: $?\"", "exit: 1\n", OK, "failed"),
        ("pytest > log 2>&1; echo $?", "0\n", OK, "passed"),
        ("set -o pipefail; pytest | tail -1", "x", FAILED, "failed"),
        ("go test ./... 2>&1 | tail", "ok  \tsea/tide\t0.2s\nFAIL\tsea/wave\t0.1s\nFAIL\n", OK, "failed"),
        ("go test ./... | tail -5", "ok  \tsea/tide\t(cached)\n", OK, "passed"),
        ("npm test 2>&1 | tail", "Tests:       1 failed, 5 passed, 6 total\n", OK, "failed"),
        ("npx vitest run | tail", "      Tests  6 passed (6)\n", OK, "passed"),
        ("npm test | tail", "  5 passing (20ms)\n  1 failing\n", OK, "failed"),
        ("bun test | tail", " 12 pass\n 0 fail\nRan 12 tests\n", OK, "passed"),
        ("cargo test | tail", "test result: ok. 3 passed; 0 failed; 0 ignored\n", OK, "passed"),
        ("cargo test | tail", "test result: FAILED. 2 passed; 1 failed\n", OK, "failed"),
        ("bundle exec rspec | tail", "5 examples, 1 failure\n", OK, "failed"),
        ("mvn test | tail", "[ERROR] Tests run: 3, Failures: 1, Errors: 0\n[INFO] BUILD FAILURE\n", OK, "failed"),
        ("mise run test | tail", "[test] ERROR task failed\n", OK, "failed"),
        ("python -m unittest | cat", "Ran 3 tests in 0.1s\n\nOK\n", OK, "passed"),
        ("npm test | grep Test", "      Tests  9 passed (9)\n     Errors  1 error\n", OK, "failed"),
        ("cmake --build build | tail -1", "[100%] Built target sea\n", OK, "passed"),
        ("pytest && npm run deploy", "=== 4 passed in 1.2s ===\ndeploy failed\n", FAILED, "passed"),
    ],
)  # fmt: skip
def test_where_the_exit_code_is_hidden_the_words_of_the_output_decide(
    command: str, output: str, outcome: Outcome, expected: str
) -> None:
    (found,) = landmarks(attempts(command), output, outcome)
    assert found.verdict == expected


def test_a_landmark_says_whether_the_exit_code_or_the_output_decided() -> None:
    (exited,), (piped,) = (
        landmarks(attempts(command), "=== 4 passed in 1.2s ===", OK) for command in ("pytest", "pytest | tail")
    )
    assert (exited.evidence, piped.evidence) == ("exit_code", "output")
    assert exited.detail == piped.detail == "4 passed in 1.2s"


def test_a_call_that_tests_builds_and_commits_has_a_landmark_for_each() -> None:
    found = left("go build ./... && go test ./... | tail -5 && git commit -am x", f"ok  \tsea\t0.1s\n{MADE}")
    assert sorted(found) == ["build go build passed", *COMMIT, "test_run go test passed"]


RED, GREEN = "=== 1 failed, 3 passed in 0.2s ===\n", "=== 4 passed in 0.1s ===\n"


@pytest.mark.parametrize(
    ("command", "output", "expected"),
    [
        ("pytest a && pytest b", GREEN + RED, ["pytest passed", "pytest failed"]),
        ("pytest a\npytest b", RED + RED, ["pytest failed", "pytest failed"]),
        ("pytest a; pytest b; false", RED + GREEN, ["pytest failed", "pytest passed"]),
        ("pytest a && pytest b", RED, ["pytest failed"]),
        ("pytest a && npx jest", f"{GREEN}Tests: 1 failed, 2 total\n", ["pytest passed", "jest failed"]),
        ("npm run build && npm test", "Tests: 1 failed, 2 total\nnpm error code 1\n",
         ["npm run build passed", "npm test failed"]),
        ("npm run build && npm test", "a.ts(1,2): error TS2304: x\nnpm error code 1\n", ["npm run build failed"]),
        ("cargo build && cargo test", "error[E0308]: mismatched types\nerror: could not compile `sea`\n",
         ["cargo build failed"]),
        ("cargo build && cargo test", "test result: FAILED. 2 passed; 1 failed\n",
         ["cargo build passed", "cargo test failed"]),
        ("go build ./... && go test ./...", "sea_test.go:3:2: undefined: tide\nFAIL\tsea [build failed]\n",
         ["go build passed", "go test failed"]),
        ("go build ./... && go test ./...", "sea.go:3:2: undefined: tide\n", ["go build failed"]),
    ],
)  # fmt: skip
def test_of_several_runs_each_has_its_own_verdict_and_what_waits_for_one_that_failed_has_not_run(
    command: str, output: str, expected: list[str]
) -> None:
    assert [found.split(" ", 1)[1] for found in left(command, output, FAILED)] == expected


def test_each_of_several_test_runs_has_its_own_counts() -> None:
    found = landmarks(attempts("pytest a; pytest b"), RED + GREEN, OK)
    assert [one.detail for one in found] == ["1 failed, 3 passed in 0.2s", "4 passed in 0.1s"]


def test_a_script_of_code_mode_is_judged_by_the_exit_code_that_it_prints() -> None:
    assert left("pytest", '{"exit_code":1,"output":"x"}', OK, in_script=True) == ["test_run pytest failed"]
    assert left("pytest", "Script completed\nOutput:\nx", OK, in_script=True) == ["test_run pytest unknown"]
    printed = '{"output": "[main 3fa9c21] Fix the tide\\n 1 file changed\\n", "exit_code": 0}'
    assert left("git commit -m x", printed, OK, in_script=True) == COMMIT


def test_a_long_message_hides_nothing(tmp_path: Path) -> None:
    body = "\n".join(f"- step {n}: run 'pytest' && \"git commit\" `make`" for n in range(400))
    assert left(f"git commit -m \"$(cat <<'EOF'\nFix\n\n{body}\nEOF\n)\" && pytest", MADE) == [
        *COMMIT,
        "test_run pytest passed",
    ]


def test_a_result_that_comes_later_completes_what_its_call_began(tmp_path: Path, database: Path) -> None:
    log = claude_log(tmp_path / "logs", SESSION).prompt("go")
    log.call("Bash", {"command": "pytest"}, None)
    index(database, [str(tmp_path / "logs")])
    assert rows(database) == []
    call = f"toolu_{SESSION[:8]}_1"
    log.write("user", [{"type": "tool_result", "tool_use_id": call, "content": "=== 4 passed in 1.2s ==="}])
    index(database, [])
    assert [row[1:5] for row in rows(database)] == [("test_run", "pytest", "4 passed in 1.2s", "passed")]


def test_a_command_of_codex_that_goes_on_is_judged_by_how_it_ended(tmp_path: Path, database: Path) -> None:
    rollout = Rollout(tmp_path, T0).says("user", "go")
    _runs(rollout, "c1", "go test ./...", "Wall time: 1 seconds\nProcess running with session ID 7\nOutput:\n")
    rollout.path.parent.mkdir(parents=True)
    _write(rollout)
    index(database, [str(tmp_path)])
    assert [row[1:5] for row in rows(database)] == [("test_run", "go test", None, "unknown")]
    rollout.item("function_call", name="write_stdin", arguments='{"session_id":7}', call_id="c2")
    output = "Wall time: 1 seconds\nProcess exited with code 1\nOutput:\nFAIL\tsea\t0.1s\nFAIL\n"
    rollout.item("function_call_output", call_id="c2", output=output)
    _write(rollout)
    index(database, [])
    assert [row[1:] for row in rows(database)] == [("test_run", "go test", None, "failed", "exit_code")]
    with closing(sqlite3.connect(database)) as connection:  # the call that asked how it ended went well
        assert connection.execute("SELECT failed_calls FROM session").fetchall() == [(1,)]


def _runs(rollout: Rollout, call: str, command: str, output: str) -> None:
    rollout.item("function_call", name="exec_command", arguments=json.dumps({"cmd": command}), call_id=call)
    rollout.item("function_call_output", call_id=call, output=output)


def _write(rollout: Rollout) -> None:
    rollout.path.write_text("".join(json.dumps(record) + "\n" for record in rollout.records), "utf-8")


def test_claude_code_itself_says_what_git_did(tmp_path: Path, database: Path) -> None:
    log = claude_log(tmp_path / "logs", SESSION).prompt("go")
    log.call("Bash", {"command": "./save.sh"}, None)
    did = {"commit": {"sha": "3fa9c21", "kind": "committed"}, "pr": {"number": 7, "url": PULL, "action": "created"}}
    answer = {"type": "tool_result", "tool_use_id": f"toolu_{SESSION[:8]}_1", "content": "done"}
    log.write("user", [answer], toolUseResult={"stdout": "done", "gitOperation": did})
    index(database, [str(tmp_path / "logs")])
    assert [row[1:] for row in rows(database)] == [
        ("commit", "3fa9c21", None, "created", "record"),
        ("pull_request", "7", PULL, "created", "record"),
    ]


def test_a_pull_request_that_claude_code_links_again_and_again_is_linked_once(tmp_path: Path, database: Path) -> None:
    log = claude_log(tmp_path / "logs", SESSION).prompt("go")
    for _ in range(3):
        log.raw({"type": "pr-link", "sessionId": SESSION, "prNumber": 7, "prUrl": PULL})
        index(database, [str(tmp_path / "logs")])
    assert [row[1:5] for row in rows(database)] == [("pull_request", "7", PULL, "linked")]


@pytest.mark.parametrize("said", ['User has answered: "Which tide?"="High". Continue.', "User selected: High"])
def test_a_question_is_a_landmark_before_it_is_answered_and_has_the_answer_afterwards(
    said: str, tmp_path: Path, database: Path
) -> None:
    log = claude_log(tmp_path / "logs", SESSION).prompt("go")
    asked = {"questions": [{"question": "Which tide?", "header": "Tide", "options": []}]}
    log.call("AskUserQuestion", asked, None)
    index(database, [str(tmp_path / "logs")])
    assert [row[1:5] for row in rows(database)] == [("question", "Which tide?", None, "unanswered")]
    log.write("user", [{"type": "tool_result", "tool_use_id": f"toolu_{SESSION[:8]}_1", "content": said}])
    index(database, [])
    assert [row[1:5] for row in rows(database)] == [("question", "Which tide?", "High", "answered")]


def test_a_compaction_is_a_landmark(tmp_path: Path, database: Path) -> None:
    log = claude_log(tmp_path / "logs", SESSION).prompt("go")
    log.raw({"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "uuid": "u",
             "sessionId": SESSION, "compactMetadata": {"trigger": "auto"}})  # fmt: skip
    index(database, [str(tmp_path / "logs")])
    assert [row[1] for row in rows(database)] == ["compaction"]


def test_every_landmark_hangs_on_a_call_or_a_notification_that_is_there(indexed_samples: Path) -> None:
    orphans = """
    SELECT l.kind, e.type, l.verdict FROM landmark l LEFT JOIN event e USING (session_id, event_index)
    WHERE coalesce(e.type, -1) != CASE WHEN l.kind = 'compaction' OR l.verdict = 'linked' THEN 6 ELSE 3 END
    """
    with closing(sqlite3.connect(indexed_samples)) as connection:
        assert connection.execute(orphans).fetchall() == []
        assert connection.execute("SELECT count(*) FROM landmark").fetchone()[0] > 20


def test_landmarks_go_with_a_forgotten_session_and_outlive_its_log_through_a_repair(
    tmp_path: Path, database: Path
) -> None:
    log = claude_log(tmp_path / "logs", SESSION).prompt("go")
    log.call("Bash", {"command": "git commit -m 'Fix the tide'"}, MADE)
    index(database, [str(tmp_path / "logs")])
    before = rows(database)
    log.path.unlink()
    index(database, [])
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DROP INDEX landmark_named")
    rebuild(database)
    assert rows(database) == before != []
    forget_here(database, SESSION)
    assert rows(database) == []


def test_a_command_of_thousands_of_checks_is_looked_at_in_bounded_time() -> None:
    """The first hundred count: what each came to is looked for in the whole output."""
    start = time.process_time()
    found = attempts("npm test 1 failed\n" * 3_000)
    told = list(landmarks(found, "--- FAIL: TestA (0.0s)\n" * 3_000, Outcome.FAILED))
    assert len(found) == 100 and len(told) <= 100
    assert time.process_time() - start < 20  # two or three are usual
