"""Kinds of tool executions: a command, a poll, one that only reads, a probe; and what counts as one attempt."""

from __future__ import annotations

from typing import Any

import pytest
from agtrace_indexer.events.shell import LONGEST_COMMAND, parts
from agtrace_schema.events import Outcome
from hypothesis import given, settings
from hypothesis import strategies as st

from agtrace.health.facts.actions import (
    asks_human,
    attempts,
    command_of,
    deed,
    is_passed_over,
    is_poll,
    is_probe,
    only_reads,
)
from tests.depth import examples
from tests.detecting.histories import Telling, only_call

POLLS = [
    "sleep 5; gh run view 1",
    "bash -lc 'sleep 3'",
    "npm test -- --watch",
    "gh run watch 8123",
    "gh pr checks 5 | head",
    "kubectl -n prod get pods",
    "docker ps | grep web",
    "curl -fsS http://localhost:8080/healthz",
    "until curl -sf http://x/up; do sleep 1; done",
    "tail -f server.log",
    "systemctl status nginx",
]
READS = [
    "cat a.txt",
    "ls -la 2>/dev/null | wc -l",
    "cd a && git diff HEAD~1 -- f && git --no-pager log --oneline | head",
    "git -C /x status",
    "git branch --show-current",
    "sed -n '1,5p' f",
    "find . -name '*.py' | xargs grep -n sleep",
    "nl -ba x.go | sed -n '3,7p'",
    'for f in *.py; do head -3 "$f"; done',
    "awk '{print $1}' f",
    "pytest --version",
    "echo 'sleep 5; rm -rf x'",
    "bash -c 'cat a; ls b'",
    "git diff $(git merge-base main HEAD) -- src",
    'sqlite3 tide.db "SELECT level FROM readings LIMIT 30"',
    "psql -c 'explain select 1'",
]
ACTIONS = [
    "npm test",
    "npm test --watch=false",
    "gh run rerun 5",
    "docker ps && npm test",
    "kubectl apply -f deploy.yml",
    "curl -X POST localhost/health -d x",
    "curl localhost:8080/users",
    "ls > files.txt",
    "echo hi | tee f",
    "sed -i s/a/b/ f",
    "find . -name '*.pyc' -delete",
    "git branch -d old",
    "git stash",
    "cat <<'EOF' > run.py\nprint(1)\nEOF",
    "cat $(make files)",
    'echo "$(rm x)"',
    "grep x f && rm f",
    'sqlite3 tide.db "DELETE FROM readings"',
    'sqlite3 tide.db "WITH old AS (SELECT 1) DELETE FROM readings"',
    "sqlite3 tide.db < schema.sql",
    "",
]


@pytest.mark.parametrize("command", POLLS)
def test_waiting_and_asking_for_a_state_is_a_poll(command: str) -> None:
    assert is_poll(only_call("Bash", {"command": command}))


@pytest.mark.parametrize("command", READS)
def test_a_command_of_readers_only_reads_and_is_no_poll(command: str) -> None:
    call = only_call("Bash", {"command": command})
    assert only_reads(call)
    assert not is_poll(call)


@pytest.mark.parametrize("command", ACTIONS)
def test_any_other_command_is_an_action(command: str) -> None:
    call = only_call("Bash", {"command": command})
    assert not only_reads(call)
    assert not is_poll(call)


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        *[(tool, "read") for tool in ("Read", "Grep", "Glob", "LS", "WebFetch", "ToolSearch", "read_many_files")],
        *[(tool, "read") for tool in ("list_directory", "search_file_content", "mcp__linear__get_issue", "view_image")],
        *[(tool, "read") for tool in ("mcp__brave-search__brave_web_search", "mcp__playwright__browser_snapshot")],
        *[(tool, "poll") for tool in ("write_stdin", "wait_agent", "BashOutput", "TaskOutput", "Monitor")],
        *[(tool, "poll") for tool in ("mcp__playwright__browser_wait_for", "mcp__ci__get_build_status")],
        *[(tool, "human") for tool in ("AskUserQuestion", "ExitPlanMode", "request_user_input", "ask_user")],
        *[(tool, "action") for tool in ("Edit", "Write", "TodoWrite", "apply_patch", "replace", "Skill")],
        *[(tool, "action") for tool in ("mcp__x__get_or_create_page", "mcp__db__query", "update_plan")],
    ],
)
def test_tools_are_known_by_the_words_of_their_names(tool: str, kind: str) -> None:
    call = only_call(tool, {"path": "x"})
    told = {"poll": is_poll(call), "read": only_reads(call), "human": asks_human(call)}
    assert next((name for name, fits in told.items() if fits), "action") == kind


@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("grep foo x", ""),
        ("cd src && grep foo y", ""),
        ("test -f a && echo yes", ""),
        ("[ -d x ]", ""),
        ("diff a b", "< error: x\n> fatal mistake"),
        ("which node", "/usr/bin/which: no node in (/bin)"),
        ("type node", "bash: line 1: type: node: not found"),
        ("command -v node", ""),
        ("git diff --exit-code", "diff --git a/x b/x"),
        ("make; grep warning build.log", ""),
        ("gh pr view --json number,url", 'no pull requests found for branch "tide"'),
        ("pytest | grep FAILED", ""),
        ("set -o pipefail; cat x | grep y | head", ""),
        ("bash -lc 'rg foo'", "Chunk ID: 0a1b2c\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\n"),
    ],
)
def test_a_probe_says_no_by_exit_code_1(command: str, result: str) -> None:
    assert is_probe(only_call("Bash", {"command": command}, result, outcome=Outcome.FAILED, exit_code=1))
    assert is_probe(only_call("Bash", {"command": command}, f"Exit code 1\n{result}", outcome=Outcome.FAILED))


@pytest.mark.parametrize(
    ("command", "result", "code"),
    [
        ("grep foo x", "grep: x: No such file or directory", 2),
        ("grep foo x", "grep: x: No such file or directory", 1),
        ("rg foo", "zsh:1: command not found: rg", 1),
        ("cd nowhere && grep foo x", "bash: line 1: cd: nowhere: No such file or directory", 1),
        ("git diff --exit-code", "fatal: not a git repository", 1),
        ("npm test && grep foo x", "", 1),
        ("grep foo x && npm test", "", 1),
        ("grep foo x | npm test", "", 1),
        ("git diff --stat", "", 1),
        ("npm test", "", 1),
        ("grep foo x", "", 0),
    ],
)
def test_what_printed_an_error_or_ran_anything_else_is_no_probe(command: str, result: str, code: int) -> None:
    outcome = Outcome.FAILED if code else Outcome.OK
    assert not is_probe(only_call("Bash", {"command": command}, result, outcome=outcome, exit_code=code))


@pytest.mark.parametrize(
    ("tool", "arguments", "command"),
    [
        ("Bash", {"command": " npm  test\n--quiet "}, "npm test --quiet"),
        ("exec_command", {"cmd": "ls"}, "ls"),
        ("functions.exec_command", {"cmd": "ls"}, "ls"),
        ("container.exec", {"cmd": ["bash", "-lc", "ls a"]}, "ls a"),
        ("shell", {"command": ["git", "commit", "-m", "a b"]}, "git commit -m 'a b'"),
        ("local_shell", {"type": "exec", "command": ["bash", "-lc", "ls"]}, "ls"),
        ("run_shell_command", {"command": "ls", "description": "list"}, "ls"),
        ("exec", 'const r = await tools.exec_command({"cmd":"ls \\"a b\\"","workdir":"/x"});', 'ls "a b"'),
        ("exec", 'await tools.exec_command({"cmd":"ls"}); await tools.apply_patch(p);', None),
        ("exec", "await tools.exec_command({cmd});", None),
        ("Read", {"command": "ls"}, None),
        ("Bash", {"command": 7}, None),
        ("Bash", None, None),
    ],
)
def test_the_command_of_every_shell(tool: str, arguments: Any, command: str | None) -> None:
    assert command_of(only_call(tool, arguments)) == command


def test_what_a_command_is_said_to_be_for_makes_no_other_action() -> None:
    one, two, three = (
        only_call("Bash", {"command": "make", **more})
        for more in ({"description": "Build"}, {"description": "Build again"}, {"description": "Build", "timeout": 9})
    )
    assert deed(one) == deed(two) != deed(three)


def test_what_one_response_asked_for_together_is_one_attempt() -> None:
    told = Telling().human().run("make a", code=2).run("make b", together=True).run("make c", code=2)
    assert [len(calls) for calls in attempts(told.history)] == [2, 1]


@pytest.mark.parametrize("outcome", [Outcome.REJECTED, Outcome.INTERRUPTED])
def test_refused_interrupted_and_unanswered_executions_are_passed_over(outcome: Outcome) -> None:
    told = Telling().run("make", outcome=outcome).run("make", answered=False, outcome=Outcome.UNKNOWN).run("make")
    assert list(map(is_passed_over, told.history.calls)) == [True, True, False]


@settings(max_examples=examples(75), deadline=None)
@given(st.text(st.sampled_from("ab \"'\\$(){}<>|&;\n#`=-!"), max_size=60))
def test_no_command_is_an_error(command: str) -> None:
    call = only_call("Bash", {"command": command}, outcome=Outcome.FAILED, exit_code=1)
    assert all(len(word) <= len(command) for part in parts(command) for word in part.words)
    assert {type(is_poll(call)), type(only_reads(call)), type(is_probe(call))} == {bool}


def test_a_command_of_any_length_is_looked_at_in_no_time() -> None:
    """What is too long isn't understood: an action."""
    for piece in ("'", '"', '\\"', "$(", "(", "<<a\n", "bash -c '", "|", "a=$("):
        assert isinstance(parts((piece * LONGEST_COMMAND)[:LONGEST_COMMAND]), tuple)
    assert not only_reads(only_call("Bash", {"command": "cat " + "a" * LONGEST_COMMAND}))
