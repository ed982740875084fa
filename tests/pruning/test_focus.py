"""The built-in pruner: the lines that a question is about, and the laws that hold for every text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agtrace.text.failing_lines import read
from agtrace.text.focus import LEAST_ROOM, LONG, Focused, Unfocused, focus
from tests.depth import examples

UNHURRIED = 60.0
QUESTION = "Keep the lines that decide which timeout is used"


def focused(text: str, question: str = QUESTION, *, first_line: int = 1, most_chars: int | None = None) -> Focused:
    found = focus(text, question, first_line=first_line, most_chars=most_chars, seconds=UNHURRIED)
    assert isinstance(found, Focused), found
    return found


def kept(text: str, question: str = QUESTION) -> list[str]:
    """Return the kept lines, without the gaps."""
    lines = text.split("\n")
    return [line for start, end in focused(text, question).kept for line in lines[start - 1 : end]]


def reason(text: str, question: str = QUESTION, *, most_chars: int | None = None) -> str:
    found = focus(text, question, most_chars=most_chars, seconds=UNHURRIED)
    assert isinstance(found, Unfocused), found
    return found.reason


# -- texts -----------------------------------------------------------------------------------------

NAMES = ("cart", "catalog", "coupon", "customer", "invoice", "mailer", "order", "refund", "shipping", "stock", "tax")

PAGE = """
class {0}Page:
    def __init__(self, shop):
        self.shop = shop
        self.rows = []

    def render(self, rows):
        for row in rows:
            self.rows.append(row.{0})
        return self.shop.template('{0}.html', rows=self.rows)
"""

CLIENT = """
class Client:
    def __init__(self, settings):
        self.settings = settings
        self.session = None

    def _read_timeout(self, request):
        if request.timeout is not None:
            return request.timeout
        return self.settings.default_timeout

    def close(self):
        if self.session:
            self.session.close()
        self.session = None
"""


def _among(one: str, others: str) -> str:
    """Put a text between others, one for each name."""
    written = [others.format(name.title()) for name in NAMES]
    return "\n".join([*written[:6], one, *written[6:]])


def python() -> str:
    """Return a module with classes that have nothing to do with the one in the middle."""
    return "import shop\n\n" + _among(CLIENT, PAGE)


def build_log() -> str:
    steps = [
        f"2026-01-05T10:00:{at % 60:02}Z INFO compiled module {name}-{at} in {at * 7} ms"
        for at, name in enumerate(NAMES * 12)
    ]
    steps[60] = "2026-01-05T10:00:31Z WARN the cache of the linker is disabled, as its folder is read-only"
    steps[100] = "error: linking `shop` failed: cannot find -lssl"
    return "\n".join(steps)


DIFFS = {
    "unified": "--- a/shop.py\n+++ b/shop.py\n@@ -1,3 +1,4 @@\n import shop\n+timeout = 3\n"
    + " context = None\n" * 200,
    "git show": "commit 0a1b2c\nAuthor: A\n\n    Set a timeout\n\ndiff --git a/x b/x\nindex 1..2 100644\n"
    + "+timeout = 1\n-x\n" * 200,
    "combined": "diff --cc shop.py\nindex 1,2..3\n@@@ -1,2 -1,2 +1,3 @@@\n" + "++timeout = 1\n  more()\n" * 200,
    "in colour": "\x1b[1mdiff --git a/x b/x\x1b[m\n\x1b[36m@@ -1 +1 @@\x1b[m\n"
    + "\x1b[32m+timeout = 1\x1b[m\n x\n" * 200,
    "with context": "*** a/x\n--- b/x\n***************\n*** 1,2 ****\n" + "! timeout = 1\n  x\n" * 200,
    "plain": "3c3\n< timeout = 1\n---\n> timeout = 2\n" + "90,91d89\n< x\n" * 200,
    "behind other output": "ok\n" * 300 + "diff --git a/x b/x\n@@ -1 +1 @@\n-timeout = 1\n+timeout = 2\n",
}


# -- what is kept ----------------------------------------------------------------------------------


def test_of_python_the_function_that_is_asked_for_stays_under_its_class() -> None:
    lines = kept(python())
    assert "class Client:" in lines
    assert [line.strip() for line in lines if "timeout" in line] == [
        "def _read_timeout(self, request):",
        "if request.timeout is not None:",
        "return request.timeout",
        "return self.settings.default_timeout",
    ]
    assert len(lines) < 0.4 * len(python().split("\n"))


def test_of_a_build_log_what_is_asked_for_stays_with_the_errors_and_both_ends() -> None:
    log = build_log().split("\n")
    lines = kept(build_log(), "Keep the warning about the cache of the linker")
    assert {log[0], log[60], log[100], log[-1]} <= set(lines)
    assert len(lines) < 0.4 * len(log)


def test_of_a_long_traceback_the_first_and_the_last_frames_stay() -> None:
    frames = [line for at in range(300) for line in (f'  File "/srv/deep.py", line {at}, in f{at}', "    f()")]
    log = "\n".join(
        ["INFO waiting for a timeout", *["INFO fine"] * 100, "Traceback (most recent call last):", *frames, "E: no"]
    )
    lines = kept(log)
    assert frames[0] in lines and frames[-2] in lines and lines[-1] == "E: no"
    assert len(lines) < 0.25 * len(log.split("\n"))


@pytest.mark.parametrize(
    "question",
    ["Where are the timeouts read?", "reading timeout", "readTimeout", "_READ_TIMEOUT", "What is the deadline?"],
)
def test_words_are_found_in_other_forms_inside_identifiers_and_by_those_that_stand_for_them(question: str) -> None:
    assert "    def _read_timeout(self, request):" in kept(python(), question)


def test_a_small_budget_holds_the_failures_and_then_the_best() -> None:
    found = focused(build_log(), "Keep the warning about the cache of the linker", most_chars=500)
    assert len(found.text) <= 500
    assert "error: linking" in found.text and "the cache of the linker" in found.text


# -- where nothing is left out ---------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "\n", " \n\t\n" * 500])
def test_a_text_without_characters_stays(text: str) -> None:
    assert reason(text) == "empty"


@pytest.mark.parametrize("kind", DIFFS)
def test_a_diff_stays(kind: str) -> None:
    assert reason(DIFFS[kind]) == "diff"
    assert reason(DIFFS[kind], most_chars=500) == "diff"


@pytest.mark.parametrize("question", ["", "What is this about?", "Where are the dolphins fed?", "?!"])
def test_a_text_stays_of_which_no_word_of_the_question_tells_anything(question: str) -> None:
    assert reason(python(), question) == "no_telling_words"
    everywhere = "\n".join(f"the timeout of {name} is {at}" for at, name in enumerate(NAMES * 9))
    assert reason(everywhere, "Which timeout?") == "no_telling_words"


def test_a_text_stays_if_the_time_is_over() -> None:
    ticking = count()
    assert focus(python(), QUESTION, clock=lambda: float(next(ticking)), seconds=2.5) == Unfocused("too_slow")
    assert isinstance(focus(python(), QUESTION, clock=lambda: 0.0, seconds=0.0), Focused)


# -- laws ------------------------------------------------------------------------------------------

_WORDS = [
    "timeout",
    "readTimeout",
    "retry_count",
    "class Shop:",
    "def f(x):",
    "if x:",
    "return",
    "}",
    "{",
    "# note",
    "\t",
    "→",
]
_FAILING = [
    "FAILED tests/test_a.py::test_b - assert 1 == 2",
    "error: no such file",
    "=== 1 failed, 2 passed in 3.4s ===",
    "Traceback (most recent call last):",
    '  File "a.py", line 3, in f',
    "ValueError: no",
    "E   assert 1 == 2",
    "--- FAIL: TestX (0.00s)",
]
_lines = st.one_of(
    st.just(""),
    st.sampled_from(_FAILING),
    st.builds(
        lambda indent, words: " " * indent + " ".join(words),
        st.integers(0, 12),
        st.lists(st.sampled_from(_WORDS), min_size=1, max_size=6),
    ),
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=60),
    st.text("x timeou", min_size=1, max_size=30).map(lambda text: text * 20),
)
_texts = st.builds(
    lambda groups, end: "\n".join(line for lines, times in groups for line in lines * times) + end,
    st.lists(st.tuples(st.lists(_lines, min_size=1, max_size=12), st.integers(1, 12)), min_size=1, max_size=8),
    st.sampled_from(["", "\n", "\n\n"]),
)
_questions = st.lists(st.sampled_from([*_WORDS, "the", "timeouts", "retries", "shop", "note"]), max_size=5).map(
    " ".join
)
_laws = settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])


def _parts(found: Focused, lines: list[str], first: int) -> Iterator[tuple[str, str]]:
    """Yield each line of a result with what should stand there."""
    at, written = first, iter(found.text.split("\n"))
    for start, end in [*found.kept, (first + len(lines), first + len(lines) - 1)]:
        if start > at:
            yield next(written), f"({start - at} lines left out: {at}-{start - 1})"
        for number in range(start, end + 1):
            yield next(written), lines[number - first]
        at = end + 1
    assert list(written) == [], "more lines than kept and left out"


@pytest.mark.thorough
@_laws
@given(_texts, _questions, st.integers(1, 100_000), st.booleans())
def test_kept_lines_and_gaps_are_together_the_whole_text(text: str, question: str, first: int, large: bool) -> None:
    """No line that reports a failure is in a gap, and the same question has the same answer."""
    if large:
        some = (text * 3 + "\n" + "filling x\n" * 3).split("\n")
        text = "\n".join(some * (LONG // len(some) + 1))
    found = focus(text, question, first_line=first, seconds=UNHURRIED)
    assert focus(text, question, first_line=first, seconds=UNHURRIED) == found
    if isinstance(found, Unfocused):
        return
    lines = text.removesuffix("\n").split("\n")
    assert all(written == expected for written, expected in _parts(found, lines, first))
    numbers = {number for start, end in found.kept for number in range(start, end + 1)}
    assert {at for at, told in enumerate(read(lines), first) if told and told.kind != "detail"} <= numbers
    assert (found.total_lines, found.kept_lines) == (len(lines), len(numbers))
    assert all(one[1] + 1 < other[0] for one, other in zip(found.kept, found.kept[1:], strict=False))
    assert len(found.text) <= len(text) - max(1000, len(text) // 5)


@_laws
@given(_texts, _questions, st.integers(0, 3000), st.integers(1, 100_000))
def test_a_budget_is_kept_to(text: str, question: str, most: int, first: int) -> None:
    found = focus(text, question, first_line=first, most_chars=most, seconds=UNHURRIED)
    if isinstance(found, Unfocused):
        return
    assert len(found.text) <= max(most, LEAST_ROOM)
    for written, expected in _parts(found, text.removesuffix("\n").split("\n"), first):
        assert written == expected or (written.endswith("...") and expected.startswith(written[:-3]))


# -- hostile texts ---------------------------------------------------------------------------------

HOSTILE: dict[str, Callable[[int], str]] = {
    "NULs": lambda size: "timeout\n" + "\0\n" * (size // 2),
    "lone surrogates": lambda size: "timeout\n" + "\ud800 error: \udfff\n" * (size // 12),
    "one line": lambda size: "timeout " + "x" * size,
    "one line among others": lambda size: "timeout\n" + "a\n" * 500 + "aB_1 " * (size // 5),
    "empty lines": lambda size: "timeout" + "\n" * size + "end",
    "ever deeper": lambda size: "\n".join(" " * at + "timeout" for at in range(int((2 * size) ** 0.5))),
    "ever deeper tracebacks": lambda size: (
        "timeout\n" + "\n".join(" " * (at % 300) + "Traceback (most recent call last)" for at in range(size // 180))
    ),
    "signatures": lambda size: "timeout\n" + "f(\n a\n)\n" * (size // 8),
    "growing when lowered": lambda size: "timeout\n" + "\u0130timeout\n" * (size // 9),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_text_raises_nothing_and_takes_time_in_proportion_to_its_size(kind: str) -> None:
    def taken(size: int) -> float:
        text = HOSTILE[kind](size)
        begun = time.process_time()
        focus(text, QUESTION, seconds=UNHURRIED)
        focus(text, QUESTION, most_chars=2000, seconds=UNHURRIED)
        return time.process_time() - begun

    small = max(min(taken(10_000) for _ in range(2)), 0.005)
    assert taken(100_000) < 40 * small


@_laws
@given(st.text(max_size=400), st.text(max_size=100), st.one_of(st.none(), st.integers(-5, 10**9)))
def test_any_text_and_any_question_have_an_answer(text: str, question: str, most: int | None) -> None:
    for whole in (text, text * 20, (text + "\n") * 20):
        assert isinstance(focus(whole, question, most_chars=most, seconds=UNHURRIED), (Focused, Unfocused))
