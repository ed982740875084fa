"""The lines of an output that report a failure: those of test runners and compilers, but not those that look alike."""

from __future__ import annotations

from textwrap import dedent

import pytest

from agtrace.shaping.digest import Failures
from agtrace.text.failing_lines import LOOKED_AT, Failing, read

PY = "tests/test_tide.py::test_ebb"

FAILED_TESTS = [
    ("pytest", f"FAILED {PY} - AssertionError: assert 3 == 4", PY),
    ("pytest", f"FAILED {PY}[1 - 2] - assert 0", f"{PY}[1 - 2]"),
    ("pytest", f"FAILED {PY}", PY),
    ("pytest", f"{PY} FAILED                                        [ 13%]", PY),
    ("pytest", f"{PY} ERROR                                         [ 99%]", PY),
    ("pytest", f"ERROR {PY} - fixture 'harbour' not found", PY),
    ("pytest", "ERROR tests/test_tide.py - ModuleNotFoundError: No module named 'tide'", "tests/test_tide.py"),
    ("pytest in colours", f"\x1b[31mFAILED\x1b[0m {PY} - assert 0", PY),
    ("pytest-xdist", f"[gw0] [  3%] FAILED {PY} ", PY),
    ("unittest", "FAIL: test_ebb (tests.test_tide.TideTest.test_ebb)", "test_ebb (tests.test_tide.TideTest.test_ebb)"),
    ("unittest", "ERROR: test_ebb (tests.test_tide.TideTest)", "test_ebb (tests.test_tide.TideTest)"),
    ("unittest", "test_ebb (tests.test_tide.TideTest) ... FAIL", "test_ebb (tests.test_tide.TideTest)"),
    ("unittest", "test_ebb (tests.test_tide.TideTest) ... ERROR", "test_ebb (tests.test_tide.TideTest)"),
    ("Jest", "  ● tide › at ebb › is low", "tide › at ebb › is low"),
    ("Jest", "    ✕ is low (5 ms)", "is low"),
    ("Vitest", "   × is low 5ms", "is low"),
    ("Vitest", " FAIL  src/tide.test.ts > tide > is low", "src/tide.test.ts > tide > is low"),
    ("Vitest", " × src/tide.test.ts > tide > is low 12ms", "src/tide.test.ts > tide > is low"),
    ("node --test", "✖ is low (1.2ms)", "is low"),
    ("Playwright", "  ✘  3 [chromium] › tide.spec.ts:3:1 › is low (5.0s)", "[chromium] › tide.spec.ts:3:1 › is low"),
    ("Playwright", "  1) [chromium] › tide.spec.ts:3:1 › is low ─────", "[chromium] › tide.spec.ts:3:1 › is low"),
    ("Bun", "(fail) tide > is low [0.52ms]", "tide > is low"),
    ("RSpec", "rspec ./spec/tide_spec.rb:12 # Tide is low at ebb", "./spec/tide_spec.rb:12"),
    ("ExUnit", "  1) test is low (TideTest)", "test is low (TideTest)"),
    ("PHPUnit", "2) App\\Tests\\TideTest::testEbb", "App\\Tests\\TideTest::testEbb"),
    ("Go", "--- FAIL: TestEbb (0.00s)", "TestEbb"),
    ("Go", "    --- FAIL: TestEbb/at_night (0.00s)", "TestEbb/at_night"),
    ("Cargo", "test tide::ebb ... FAILED", "tide::ebb"),
    ("cargo nextest", "        FAIL [   0.005s] tidepool tide::ebb", "tidepool tide::ebb"),
    ("TAP", "not ok 3 - is low at ebb", "is low at ebb"),
    ("CTest", " 3/10 Test  #3: ebb ..............***Failed    0.05 sec", "ebb"),
    ("CTest", "\t  3 - ebb (Failed)", "ebb"),
    ("GoogleTest", "[  FAILED  ] TideTest.Ebb (3 ms)", "TideTest.Ebb"),
    ("Maven", "[ERROR] com.tide.TideTest.ebb  Time elapsed: 0.01 s  <<< FAILURE!", "com.tide.TideTest.ebb"),
    ("Maven", "ebb(com.tide.TideTest)  Time elapsed: 0.01 sec  <<< ERROR!", "ebb(com.tide.TideTest)"),
    ("Gradle", "TideTest > ebb() FAILED", "TideTest > ebb()"),
    ("xUnit", "[xUnit.net 00:00:01.23]     Tide.Tests.Ebb [FAIL]", "Tide.Tests.Ebb"),
    ("dotnet", "  Failed Tide.Tests.Ebb [5 ms]", "Tide.Tests.Ebb"),
    ("XCTest", "Test Case '-[TideTests testEbb]' failed (0.012 seconds).", "-[TideTests testEbb]"),
    ("Deno", "is low at ebb ... FAILED (3ms)", "is low at ebb"),
]

VERDICTS = [
    ("pytest", "================ 60 failed, 940 passed in 3.21s ================", "60 failed, 940 passed in 3.21s"),
    ("pytest", "60 failed, 940 passed in 3 s", "60 failed, 940 passed in 3 s"),
    ("pytest", "=========== 2 passed, 1 error in 0.12s ===========", "2 passed, 1 error in 0.12s"),
    ("unittest", "FAILED (failures=3, errors=1)", "FAILED (failures=3, errors=1)"),
    ("Jest", "Tests:       60 failed, 940 passed, 1000 total", "Tests:       60 failed, 940 passed, 1000 total"),
    ("Vitest", "      Tests  3 failed | 940 passed (943)", "Tests  3 failed | 940 passed (943)"),
    ("Mocha", "  3 failing", "3 failing"),
    ("RSpec", "10 examples, 3 failures", "10 examples, 3 failures"),
    ("minitest", "10 runs, 20 assertions, 0 failures, 2 errors, 0 skips", None),
    ("Cargo", "test result: FAILED. 1 passed; 2 failed; 0 ignored", None),
    ("TAP", "# fail 3", "fail 3"),
    ("CTest", "90% tests passed, 1 tests failed out of 10", "90% tests passed, 1 tests failed out of 10"),
    ("GoogleTest", "[  FAILED  ] 2 tests, listed below:", "2 tests"),
    ("Maven", "[ERROR] Tests run: 3, Failures: 1, Errors: 0", "Tests run: 3, Failures: 1, Errors: 0"),
    ("PHPUnit", "Tests: 3, Assertions: 5, Failures: 1.", "Tests: 3, Assertions: 5, Failures: 1."),
    ("Gradle", "3 tests completed, 1 failed", "3 tests completed, 1 failed"),
    ("dotnet", "Failed!  - Failed:     1, Passed:     2, Skipped:     0, Total:     3", None),
    ("XCTest", "\t Executed 171 tests, with 3 failures (0 unexpected) in 1.2 (1.3) seconds", None),
    ("ESLint", "✖ 3 problems (2 errors, 1 warning)", "3 problems (2 errors, 1 warning)"),
    ("mypy", "Found 3 errors in 2 files (checked 5 source files)", None),
]  # fmt: skip

ERRORS = [
    "src/tide.c:3:5: error: expected ';' before '}' token",
    "src/tide.py:12: error: Incompatible return value type",
    "src/tide.c:1:10: fatal error: tide.h: No such file or directory",
    "src/tide.ts(3,5): error TS2304: Cannot find name 'ebb'.",
    "src/tide.ts:3:5 - error TS2304: Cannot find name 'ebb'.",
    "error TS5023: Unknown compiler option 'ebb'.",
    "Tide.cs(3,5): error CS1002: ; expected [/src/Tide.csproj]",
    "error[E0308]: mismatched types",
    "error: could not compile `tidepool` (lib) due to 2 previous errors",
    "ld: error: undefined symbol: ebb",
    "tide.py: error: unrecognized arguments: --ebb",
    "  3:5  error  'ebb' is not defined  no-undef",
    "ModuleNotFoundError: No module named 'tide'",
    "requests.exceptions.HTTPError: 404 Client Error",
    "    TypeError: ebb is not a function",
    "Error: Cannot find module './tide'",
    "Uncaught ReferenceError: ebb is not defined",
    'Exception in thread "main" java.lang.NullPointerException',
    "Caused by: java.io.IOException: closed",
    "[ERROR] Failed to execute goal on project tidepool",
    "ERROR: Could not find a version that satisfies the requirement tide",
    "ERROR:root:the gauge is gone",
    "2026-11-20 10:00:00,123 ERROR tide.gauge the gauge is gone",
    "fatal: not a git repository (or any of the parent directories): .git",
    "panic: runtime error: index out of range [3] with length 3",
    "thread 'tide::ebb' panicked at src/tide.rs:3:5:",
    "npm ERR! code ELIFECYCLE",
    "npm error code 1",
    "error Command failed with exit code 1.",
    "ERROR in ./src/tide.ts 3:5",
    "CMake Error at CMakeLists.txt:3 (find_package):",
    "  × Some errors were emitted while running checks.",
    "FAIL src/tide.test.js (5.2 s)",
    "FAIL\tgithub.com/mira/tidepool\t0.012s",
    "FAIL",
    "[INFO] BUILD FAILURE",
    "FAILURE: Build failed with an exception.",
    "> Task :test FAILED",
    "** TEST FAILED **",
    "  ● Test suite failed to run",
    "make: *** [Makefile:3: test] Error 1",
    "ninja: build stopped: subcommand failed.",
    "./tide.go:3:5: undefined: ebb",
    "src/tide.py:3:5: F401 `os` imported but unused",
    "bash: line 1: tide: command not found",
    "cat: ebb.txt: No such file or directory",
    "Segmentation fault (core dumped)",
    "Exit code 1",
    "Exit code: 2",
    "Process exited with code 127",
    "exit status 1",
    "Command failed with exit code 2",
    '{"output":"...","metadata":{"exit_code":1,"duration_seconds":0.1}}',
    "FAIL Required test coverage of 80% not reached. Total coverage: 70.12%",
    "!!!!!!!!!!!!!! Interrupted: 2 errors during collection !!!!!!!!!!!!!!",
    "_____________ ERROR collecting tests/test_tide.py _____________",
]

NO_FAILURES = [
    "0 failed",
    "1000 passed, 0 failed in 3.2s",
    "=============== 940 passed in 3.21s ===============",
    "=============== 940 passed, 2 xfailed, 1 warning in 3.21s ===============",
    '"error": null',
    '  "errors": [],',
    "errors: 0",
    "error: null",
    "error: none",
    "Error: 0",
    "Error: (none)",
    "no errors found",
    "No errors",
    "Found 0 errors",
    "Success: no issues found in 12 source files",
    "SYNTAX OK",
    "Tests:       940 passed, 940 total",
    "Tests run: 3, Failures: 0, Errors: 0, Skipped: 0",
    "10 examples, 0 failures",
    "10 runs, 20 assertions, 0 failures, 0 errors, 0 skips",
    "test result: ok. 940 passed; 0 failed; 0 ignored",
    "test tide::error_handling ... ok",
    "100% tests passed, 0 tests failed out of 10",
    "# fail 0",
    "ok 3 - fails with an error",
    "not ok 3 - is low # TODO the gauge is not there yet",
    "[  PASSED  ] 3 tests.",
    "Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3",
    "Executed 171 tests, with 0 failures (0 unexpected) in 1.2 (1.3) seconds",
    "Test Case '-[TideTests testFailed]' passed (0.012 seconds).",
    "✖ 3 problems (0 errors, 3 warnings)",
    "tests/test_tide.py::test_error_handling PASSED",
    "tests/test_errors.py::test_failed_login PASSED                  [ 13%]",
    "tests/test_tide.py::test_known XFAIL (not fixed)                [ 14%]",
    "    ✓ rejects a failed login (5 ms)",
    "--- PASS: TestFailure (0.00s)",
    "BUILD SUCCESSFUL in 3s",
    "src/error.py",
    "-rw-r--r-- 1 mira mira 1204 Nov 20 10:00 error.py",
    "  --fail-under=80       fail if the coverage is below",
    "pytest --cov --cov-fail-under=80 -k 'not failed'",
    '    raise ValueError("the error is here")',
    "class EbbError(Exception):",
    "    except KeyError as error:",
    "        ValueError: If the tide is unknown.",
    "src/tide.py:12:    raise ValueError(error)",
    "src/tide.py:12:error: the text of a log",
    "   12\tError: the text of a file that is read",
    "     9→FAILED tests/test_tide.py::test_ebb - in a file that is read",
    "console.error(`exit code ${code}`)",
    "  error: string;",
    "| error | what went wrong |",
    "The build failed because of an error that nobody saw.",
    "exit code 1 means that something failed, 2 that nothing was found",
    "Exit code: 0",
    "Process exited with code 0",
    '{"output":"...","metadata":{"exit_code":0,"duration_seconds":0.1}}',
    "sys.exit(1)",
    "3 × 4 = 12",
    "fix: an error in the tide (#12)",
    "modified:   src/failures.py",
    "● nginx.service - a server",
    "warning: unused variable: `error`",
    "INFO 2026-11-20 retry after error",
    "Downloading errors-1.2.tar.gz (12 kB)",
    "100 % failure-free since 2026",
    "a b c d e   f",
    "",
]


def told(*lines: str) -> list[Failing | None]:
    return list(read(lines))


def test_a_failed_test_is_known_by_its_name_and_a_verdict_by_its_count() -> None:
    expected = {line: ("test", name) for _, line, name in FAILED_TESTS}
    expected |= {line: ("verdict", words or line.strip()) for _, line, words in VERDICTS}
    expected |= dict.fromkeys(ERRORS, ("error", None))
    assert {line: (one.kind, one.name) for line in expected for one in told(line) if one} == expected


def test_what_only_speaks_of_errors_is_no_failure() -> None:
    """`0 failed`, an error of null, source code, hits of grep, a file that is read."""
    assert [line for line in NO_FAILURES if told(line) != [None]] == []


def test_what_pytest_explains_belongs_to_a_failure() -> None:
    lines = told("E       assert 3 == 4", "tests/test_tide.py:12: AssertionError")
    assert [failing and failing.kind for failing in lines] == ["detail", "detail"]


def test_a_traceback_ends_with_its_error_whatever_that_is_called() -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "tide.py", line 3, in ebb',
        "    low()",
        "tide.NoWater",
        "low()",
    ]
    assert [number for number, failing in enumerate(told(*lines)) if failing] == [3]
    indented = ["  Traceback (most recent call last):", "    File", "      low()", "  NoWater: here", "  water"]
    assert [number for number, failing in enumerate(told(*indented)) if failing] == [3]


def test_numbers_name_tests_only_where_mocha_counted_failures() -> None:
    assert told("  1) first do this") == [None]
    after = told("  2 passing (10ms)", "  1 failing", "", "  1) tide", "       is low:")
    assert [failing and failing.name for failing in after] == [None, "1 failing", None, "1) tide", None]


def test_only_the_beginning_of_a_long_line_is_looked_at() -> None:
    assert told("x" * LOOKED_AT + " FAILED") == [None]
    (failing,) = told("error: " + "x" * 1_000_000)
    assert failing is not None


def test_a_line_that_is_no_unicode_is_read() -> None:
    assert told("error: \ud800 is no character")[0] is not None
    assert told("\ud800") == [None]


OUTPUTS = {
    "pytest": (
        """\
    tests/test_tide.py::test_ebb FAILED                                      [ 50%]
    tests/test_tide.py::test_error_is_shown PASSED                           [100%]

    =================================== FAILURES ===================================
    ___________________________________ test_ebb ___________________________________

        def test_ebb():
    >       assert tide() == 4
    E       assert 3 == 4
    E        +  where 3 = tide()

    tests/test_tide.py:12: AssertionError
    =========================== short test summary info ============================
    FAILED tests/test_tide.py::test_ebb - assert 3 == 4
    ========================= 1 failed, 1 passed in 0.03s ==========================
    """,
        ["tests/test_tide.py::test_ebb"],
        "1 failed, 1 passed in 0.03s",
    ),
    "Jest": (
        """\
    FAIL src/tide.test.js
      tide
        ✕ is low (5 ms)
        ✓ is high (1 ms)

      ● tide › is low

        expect(received).toBe(expected) // Object.is equality

          at Object.<anonymous> (src/tide.test.js:3:9)

    Test Suites: 1 failed, 1 total
    Tests:       1 failed, 1 passed, 2 total
    """,
        ["tide › is low"],
        "Tests:       1 failed, 1 passed, 2 total",
    ),
    "Mocha": (
        """\
    > mocha

      tide
        1) is low
        ✔ is high

      1 passing (4ms)
      1 failing

      1) tide
           is low:

          AssertionError [ERR_ASSERTION]: 3 == 4
    """,
        ["1) tide"],
        "1 failing",
    ),
    "GoogleTest": (
        """\
    [ RUN      ] TideTest.Ebb
    tide_test.cc:8: Failure
    [  FAILED  ] TideTest.Ebb (0 ms)
    [==========] 2 tests from 1 test suite ran. (0 ms total)
    [  PASSED  ] 1 test.
    [  FAILED  ] 1 test, listed below:
    [  FAILED  ] TideTest.Ebb

     1 FAILED TEST
    """,
        ["TideTest.Ebb"],
        "1 test",
    ),
}


@pytest.mark.parametrize("runner", OUTPUTS)
def test_the_failed_tests_of_a_run_are_counted_once_each(runner: str) -> None:
    output, names, verdict = OUTPUTS[runner]
    lines = dedent(output).splitlines()
    failures = Failures()
    for number, (line, failing) in enumerate(zip(lines, read(lines), strict=True), 1):
        if failing:
            failures.note(number, line, failing)
    assert [line.name for line in failures.tests_named()] == names
    assert (failures.tests, failures.verdict) == (len(names), verdict)
