"""Digests: within their limits for any text, and with every failing line that fits."""

from __future__ import annotations

import re
import unicodedata

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agtrace.shaping.digest import Digest, Gathered, Mode, cut_line, gather, of_mode
from agtrace.text.chunking import escaped_size
from agtrace.text.failing_lines import read
from tests.depth import examples

MODES: list[Mode] = ["minimal", "standard", "verbose"]
BUDGET = 102_400
LINES = st.one_of(
    st.sampled_from(
        ["", "tide", "潮汐 " * 40, "🌊" * 300, "e\u0301" * 250, "\x1b[31mred\x1b[0m", '"\\' * 90, "x" * 3_000]
    ),
    st.sampled_from(["error: the gauge is gone", "E   assert 3 == 4", "1 failed, 2 passed in 0.1s", "0 failed"]),
    st.integers(0, 400).map(lambda number: f"FAILED tests/test_tide.py::test_{number:03} - assert 3 == {number}"),
    st.integers(0, 9).map(lambda number: f"error: {'the gauge is gone ' * (20 * number)}"),
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=60),
)
TEXTS = st.lists(st.tuples(LINES, st.integers(1, 60)), max_size=60).map(
    lambda runs: [line for line, times in runs for _ in range(times)]
)


def gathered(lines: list[str], mode: Mode) -> Gathered:
    return gather(zip(lines, read(lines), strict=True), of_mode(mode))


def failing(lines: list[str]) -> dict[int, str]:
    """The lines that tell of a failure, by number."""
    told = enumerate(zip(lines, read(lines), strict=True), 1)
    return {number: line for number, (line, found) in told if found and found.kind != "detail"}


def run(cases: int, failures: int, noise: int) -> list[str]:
    """The output of a test run as xcodebuild prints it: a compiler's call and three lines for each case."""
    lines = []
    for case in range(cases):
        lines.append(f"CompileSwift normal arm64 /src/Tide{case}.swift " + "-Xcc -I/src/include " * (noise // 20))
        lines.append(f"Test Case '-[TideTests testCase{case}]' started.")
        if case % (cases // failures) == 3:
            lines.append(
                f"/src/TideTests.swift:{case}: error: -[TideTests testCase{case}] : XCTAssertEqual failed: 3 != 4"
            )
        state = "failed" if case % (cases // failures) == 3 else "passed"
        lines.append(f"Test Case '-[TideTests testCase{case}]' {state} (0.012 seconds).")
    return [*lines, f"\t Executed {cases} tests, with {failures} failures (0 unexpected) in 12.3 (12.9) seconds"]


@settings(max_examples=examples(35), deadline=None)
@given(TEXTS, st.sampled_from(MODES), st.sampled_from([900, 2_500, 9_000, 40_000, BUDGET]))
@example([], "minimal", 900)
@example(["x" * 1_000_000], "standard", 9_000)
@example(["error: 潮 " * 40] * 5_000, "verbose", BUDGET)
@example(["\x01" * 199] * 400, "standard", 9_000)
def test_a_digest_keeps_every_limit(lines: list[str], mode: Mode, room: int) -> None:
    limits, digest = of_mode(mode), gathered(lines, mode).digest(room)
    assert len(digest.text) <= limits.chars
    assert digest.text.count("\n") + 1 <= limits.lines
    assert escaped_size(digest.text) <= room
    assert all(len(line) <= limits.width for line in digest.text.split("\n"))
    if not digest.shortened:
        assert digest.text == "\n".join(lines)


@settings(max_examples=examples(35), deadline=None)
@given(TEXTS, st.sampled_from(MODES), st.sampled_from([900, 9_000, BUDGET]))
@example(["tide"] * 9_000 + ["error: here"] + ["tide"] * 999, "minimal", 9_000)
@example([f"FAILED tests/test_tide.py::test_{n} - {'x' * 150}" for n in range(90)], "minimal", 9_000)
def test_a_digest_has_every_failing_line_that_fits_with_its_number(lines: list[str], mode: Mode, room: int) -> None:
    whole = gathered(lines, mode)
    digest, limits, expected = whole.digest(room), of_mode(mode), failing(lines)
    assert whole.failures.count == len(expected)
    if not digest.shortened:
        return
    shown = {int(number) for number in re.findall(r"^(\d+): ", digest.text, re.MULTILINE)} & expected.keys()
    plain = {cut_line(line, limits.width) for line in expected.values()}  # in the head or the tail, without its number
    around = sum(line in plain for line in digest.text.split("\n"))
    assert len(shown) + around >= len(expected) - digest.omitted_failures
    numbered = [cut_line(f"{number}: {line}", limits.width) for number, line in expected.items()]
    needed = sum(len(line) + 1 for line in numbered), len(numbered), sum(escaped_size(line) + 2 for line in numbered)
    fit = all(
        part <= most for part, most in zip(needed, (limits.chars - 400, limits.lines - 3, room - 410), strict=True)
    )
    if fit:
        assert digest.omitted_failures == 0 and set(numbered) <= set(digest.text.split("\n"))
    if digest.omitted_failures:
        assert f"{digest.omitted_failures:,} of {len(expected):,} failing lines left out" in digest.text


@settings(max_examples=examples(40), deadline=None)
@given(TEXTS, st.sampled_from(MODES))
def test_a_digest_counts_what_it_leaves_out_and_says_where_it_is(lines: list[str], mode: Mode) -> None:
    digest = gathered(lines, mode).digest(9_000)
    if not digest.omitted:
        assert digest.lines == len(lines)
        return
    first, last = digest.omitted
    told = f"... {len(lines) - digest.lines:,} lines left out: start_line={first}, end_line={last} shows them"
    assert told in digest.text
    assert 1 <= first <= last <= len(lines)
    assert last - first + 1 >= len(lines) - digest.lines


def test_a_digest_has_head_and_tail_of_a_text_without_failures() -> None:
    lines = [f"line {number}" for number in range(1, 10_001)]
    digest = gathered(lines, "minimal").digest(9_000)
    shown = digest.text.split("\n")
    assert shown[:2] == ["line 1", "line 2"] and shown[-2] == "line 10000"
    assert shown[-1] == "... (line limit reached: 100 lines)"
    assert digest.omitted_failures == 0


def test_a_digest_that_is_cut_by_characters_ends_with_their_number() -> None:
    digest = gathered(["潮汐表" * 30] * 900, "standard").digest(BUDGET * 2)
    assert digest.text.endswith("\n... (char limit reached: 40000 chars)")
    assert len(digest.text) > 39_000


def test_lines_that_are_cut_are_counted() -> None:
    digest = gathered(["tide", "x" * 201, "y" * 200], "standard").digest(9_000)
    assert digest == Digest(f"tide\n{'x' * 197}...\n{'y' * 200}\n... (1 lines cut at 200 characters)", 3, True, 0, None)


@pytest.mark.parametrize(
    ("mode", "cases", "noise"),
    [
        ("minimal", 1_000, 2_400),
        ("standard", 171, 0),
        ("standard", 171, 2_400),
        ("standard", 389, 200),
        ("standard", 1_000, 2_400),
    ],
)
def test_a_test_run_is_reduced_to_a_tenth_with_all_its_failures(mode: Mode, cases: int, noise: int) -> None:
    failures = {171: 9, 389: 38, 1_000: 50}[cases]
    lines = run(cases, failures, noise)
    whole = gathered(lines, mode)
    digest = whole.digest(of_mode(mode).budget - 1_500, lean=True)
    assert len(digest.text) <= 0.1 * len("\n".join(lines))
    assert whole.failures.tests == len(set(re.findall(r"testCase\d+\]' failed", "\n".join(lines))))
    assert (
        whole.failures.verdict
        == f"Executed {cases} tests, with {failures} failures (0 unexpected) in 12.3 (12.9) seconds"
    )
    for name in re.findall(r"(testCase\d+)\]' failed", "\n".join(lines)):
        assert f"-[TideTests {name}]" in digest.text


def test_failed_tests_are_shown_by_name_alone_where_their_lines_do_not_all_fit() -> None:
    lines = [f"FAILED tests/test_tide.py::test_{number:02} - {'why ' * 60}" for number in range(60)]
    digest = gathered(lines, "minimal").digest(9_000)
    assert [line for line in digest.text.split("\n") if line[0].isdigit()] == [
        f"{number + 1}: tests/test_tide.py::test_{number:02}" for number in range(60)
    ]
    assert digest.omitted_failures == 0


@given(st.text(max_size=80), st.integers(8, 60))
@example("a" * 20 + "e\u0301\u0302\u0301" * 20, 24)
@example("👩\u200d👩\u200d👧" * 12, 24)
def test_a_line_is_not_cut_between_a_character_and_its_accents(text: str, most: int) -> None:
    short = cut_line(text, most)
    assert len(short) <= most
    assert short == text or (short.endswith("...") and text.startswith(short[:-3]))
    if short != text and len(short) - 3 > most // 2:
        behind = text[len(short) - 3]
        assert unicodedata.category(behind) not in ("Mn", "Me") and "\u200d" not in (behind, text[len(short) - 4])


def test_tests_in_a_tree_are_not_counted_twice() -> None:
    lines = ["  tide", "    ✕ is low (5 ms)", "    ✕ is high (2 ms)", "  ● tide › is low", "  ● tide › is high"]
    assert gathered(lines, "minimal").failures.tests == 2
    assert gathered(lines, "minimal").failures.told(2_000)[0]["names"] == ["tide › is low", "tide › is high"]
    assert gathered(lines[:3], "minimal").failures.tests == 2


@settings(max_examples=examples(30), deadline=None)
@given(TEXTS, st.integers(300, 25_000))
def test_what_is_told_of_failures_fits_and_counts_the_rest(lines: list[str], most: int) -> None:
    failures = gathered(lines, "minimal").failures
    told, complete = failures.told(most)
    assert len(orjson.dumps(told)) <= max(most, 400)
    shown = len(told.get("lines", [])) + ("verdict" in told)
    assert told["failing_lines"] == len(failing(lines)) == shown + told.get("more", {}).get("lines", 0)
    assert told["failed_tests"] == len(told.get("names", [])) + told.get("more", {}).get("names", 0)
    assert complete == ("more" not in told)
