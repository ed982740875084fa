"""The signature of an error: its most characteristic line, without what varies."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agtrace.text.signatures import signatures_in, telling_failure, telling_text
from tests.depth import examples

_TRACEBACK = 'Traceback (most recent call last):\n  File "{file}", line {line}, in run\n    step()\n{error}'

SAME = [
    (
        'Script completed\nOutput:\n{"chunk_id":"5c","exit_code":1,"output":"$ ebb\\nerror: no gauge"}',
        "error: no gauge",
    ),
    (
        _TRACEBACK.format(file="/srv/a.py", line=3, error="ModuleNotFoundError: No module named 'yaml'"),
        "Exit code 1\n" + _TRACEBACK.format(file="b.py", line=90, error="ModuleNotFoundError: No module named 'yaml'"),
    ),
    (
        "E   ModuleNotFoundError: No module named 'yaml'\nERROR tests/test_io.py\n!!! Interrupted: 1 error !!!",
        "ModuleNotFoundError: No module named 'yaml'",
    ),
    (
        "error[E0308]: mismatched types\n  --> src/main.rs:4:18\nerror: could not compile `tide` due to 1 previous",
        "error[E0308]: mismatched types\n  --> src/lib.rs:40:1\nerror: could not compile `tide` due to 2 previous",
    ),
    (
        "thread 'main' panicked at src/main.rs:3:5:\nindex out of bounds: the len is 3 but the index is 7",
        "thread 'w-2' panicked at src/pool.rs:9:1:\nindex out of bounds: the len is 0 but the index is 0",
    ),
    (
        "src/app.ts(12,5): error TS2322: Type 'string' is not assignable to type 'number'.",
        "src/lib/io.ts(7,40): error TS2322: Type 'null' is not assignable to type 'Row'.",
    ),
    (
        "FAILED tests/test_a.py::test_sum - assert 1 == 2",
        "FAILED tests/test_a.py::test_sum - assert 5 == 2\n1 failed in 2s",
    ),
    (
        "2026-11-02T10:00:01Z ERROR app: connection to db-7 refused",
        "\x1b[31m2026-11-03T23:59:59.123+01:00 ERROR app: connection to db-12 refused\x1b[0m",
    ),
    ("fatal: not a git repository: /a/b", "Exit code 128\nfatal: not a git repository:   /c"),
    ("cat: config.yaml: No such file or directory", "cat: ./other/notes.md: No such file or directory"),
    ("curl: (7) Failed to connect to localhost port 8080", "curl: (7) Failed to connect to localhost port 5432"),
    ("segfault at 0x7ffe0012 in worker 3f2a9c41d", "segfault at 0x0 in worker 77aa01b2"),
    ("Output: error: target shim binary not found\nExit Code: 1", "error: target shim binary not found"),
    ("<tool_use_error>File has not been read yet.</tool_use_error>", "File has not been read yet."),
    ("エラー: 設定 'a' が見つかりません", "エラー: 設定 'b' が見つかりません"),
]

DIFFERENT = [
    ("ModuleNotFoundError: No module named 'yaml'", "ModuleNotFoundError: No module named 'toml'"),
    ("ValueError: bad value in row 3", "KeyError: bad value in row 3"),
    ("error[E0308]: mismatched types", "error[E0382]: borrow of moved value: `x`"),
    ("FAILED tests/test_a.py::test_sum - assert 1 == 2", "FAILED tests/test_a.py::test_mean - assert 1 == 2"),
    ("bash: rg: command not found", "bash: line 1: rg: permission denied"),
    ("fatal: not a git repository", "fatal: no upstream configured for branch 'main'"),
    ("./main.go:12:3: undefined: foo", "./main.go:12:3: undefined: bar"),
]

NONE = [
    "",
    "Exit code 1",
    "command failed",
    "Error: Command failed with exit code 2.",
    "make: *** [Makefile:12: test] Error 1",
    "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1\nnpm ERR! app@1.0.0 test: `jest`\nnpm ERR! Exit status 1",
    "=== 3 failed, 20 passed in 4.2s ===",
    "AssertionError: assert 3 == 4",
    "Process exited with code 1\nOutput:\n",
    "1 error, 0 warnings, 0 informations",
    "Error: 'x'",
    "  at run (/a/b.js:3:1)\n  at main (/a/b.js:9:1)",
]


@pytest.mark.parametrize(("one", "other", "same"), [(*pair, pair in SAME) for pair in (*SAME, *DIFFERENT)])
def test_the_same_error_has_the_same_signature_and_another_one_has_another(one: str, other: str, same: bool) -> None:
    first, second = next(signatures_in(one)), next(signatures_in(other))
    assert (first.key == second.key) is same


@pytest.mark.parametrize("text", NONE)
def test_what_only_says_that_something_failed_has_no_signature(text: str) -> None:
    assert [*signatures_in(text)] == []


def test_a_signature_names_the_line_as_it_was_printed() -> None:
    printed = "Compiling tide v0.3\n\x1b[1merror[E0308]\x1b[0m: mismatched types in `a`\n --> src/a.rs:1:2"
    assert next(signatures_in(printed)).line == "error[E0308]: mismatched types in `a`"


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10**12), st.integers(0, 10**6), st.text("0123456789abcdef", min_size=8, max_size=16))
def test_numbers_and_ids_never_matter(first: int, second: int, digits: str) -> None:
    plain = next(signatures_in("TimeoutError: request 1 to host a1b2c3d4 took 2 ms"))
    told = next(signatures_in(f"TimeoutError: request {first} to host 0x{digits} took {second} ms"))
    assert told.key == plain.key


def test_long_lines_take_linear_time() -> None:
    begun = time.process_time()
    for piece in ("a", "a/", "'", "1.", "error: ", "x-", '"a" '):
        next(signatures_in(piece * 4_000), None)
    assert time.process_time() - begun < 2  # quadratic would be minutes


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        (
            "Error: Job 'test' failed\n[ci/test-1]   ❌  Failure - Main Run checks [1s]\n[ci/test-1] 🏁  Job failed",
            "❌  Failure - Main Run checks [1s]",
        ),
        (
            "test\tRun checks\t2026-07-13T14:58:41.6847348Z src/a.py:3:1 - error: Type of x is unknown\n"
            "test\tRun checks\t2026-07-13T14:58:41.7000364Z ##[error]Process completed with exit code 1.",
            "src/a.py:3:1 - error: Type of x is unknown",
        ),
        (
            "[CI/test-1]   | src/a.py:3:1 - error: Type of x is unknown\n[CI/test-1] exitcode '1': failure",
            "src/a.py:3:1 - error: Type of x is unknown",
        ),
        (
            "--- FAIL: TestWait (0.00s)\n    wait_test.go:34: got nil, want an error\nFAIL\nFAIL\tx.io/wait\t0.1s",
            "wait_test.go:34: got nil, want an error",
        ),
        ("Exit code 1\nTraceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'a'", "KeyError: 'a'"),
        (
            "[test] ERROR task failed\npanic: listen tcp: bind: not permitted",
            "panic: listen tcp",
        ),
    ],
)
def test_what_is_quoted_is_the_line_that_says_why(text: str, quoted: str) -> None:
    assert telling_text(text).startswith(quoted)


def test_a_failure_is_quoted_with_the_innermost_test_that_failed() -> None:
    text = "--- FAIL: TestWait (0.00s)\n    --- FAIL: TestWait/late (0.00s)\n        wait_test.go:34: got nil, want one"
    assert telling_failure(text) == "TestWait/late: wait_test.go:34: got nil, want one"


def test_a_failure_amid_a_long_output_is_quoted() -> None:
    passed = [f"ok  \tx.io/gauge{number}\t0.1s" for number in range(400)]
    failed = [
        "--- FAIL: TestLock (0.00s)",
        "    lock_test.go:4: got one lamp, want two",
        "FAIL",
        "FAIL\tx.io/lock\t0.1s",
    ]
    assert telling_failure("\n".join([*passed, *failed, *passed])) == (
        "TestLock: lock_test.go:4: got one lamp, want two"
    )


def test_of_a_text_of_megabytes_the_beginning_and_the_end_are_examined() -> None:
    text = "x" * 3_000_000 + "\nerror: the gauge is broken for good\n"
    start = time.process_time()
    assert telling_text(text) == "error: the gauge is broken for good"
    assert time.process_time() - start < 5  # a few thousandths are usual
