"""No secret gets out, whatever is asked, and what only looks like one is kept: all secrets once, half of the rest."""

from __future__ import annotations

import pytest

from tests.secrets.__main__ import MOST_MASKED
from tests.secrets.corpus import Case, near_misses, secrets
from tests.secrets.measuring import Score, measure
from tests.secrets.sieve import Sieve, bare

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def score(tmp_path_factory: pytest.TempPathFactory) -> Score:
    """What came of the corpus, in a home of its own."""
    folder = tmp_path_factory.mktemp("secrets")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HOME", str(folder))
        environment.setenv("AGTRACE_DATA_DIR", str(folder / "data"))
        return measure(folder, whole=False)


def test_no_secret_comes_out_of_any_tool_resource_prompt_command_report_log_line_or_file(score: Score) -> None:
    assert score.leaks == {}


def test_no_search_for_a_secret_or_a_part_of_it_finds_anything(score: Score) -> None:
    assert score.hits == {}


def test_of_what_only_looks_like_a_secret_at_most_two_per_cent_are_masked(score: Score) -> None:
    assert len(score.masked) <= MOST_MASKED * len(score.near_misses), sorted(score.masked)


def test_what_was_told_is_many_times_the_corpus(score: Score) -> None:
    """A question that is refused tells nothing: this test fails where most of them are."""
    assert score.characters > 6_000_000


def test_the_corpus_has_300_secrets_of_40_kinds_and_300_near_misses_and_holds_60_of_each_out() -> None:
    hidden, shown = secrets(), near_misses()
    assert len(hidden) >= 300 and len({case.kind for case in hidden}) >= 40
    assert len(shown) >= 300
    assert min(sum(case.held_out for case in cases) for cases in (hidden, shown)) >= 60
    assert len({case.id for case in [*hidden, *shown]}) == len(hidden) + len(shown)


@pytest.mark.parametrize(
    "text", ["{0}", "is {1}", '"{0}"', "{2}\n│ {3}", "\\n{0}\\n", "{2}\x1b[0m{3}", "{2}\\u200b{3}", "%5B{0}%5D"]
)
def test_the_sieve_finds_twelve_characters_in_a_row_however_they_are_written(text: str) -> None:
    whole = "QUICKLY-7f3A-brown-9x8Q-fox"
    fox = Case("fox-01", f"key={whole};", (whole,), False)
    sieve = Sieve([fox, Case("owl-01", "key=a-quiet-owl-77;", ("a-quiet-owl-77",), False)])
    shown = text.format(whole, whole[8:20], whole[:9], whole[9:])
    assert list(sieve.found(shown)) == ["fox-01"]
    assert sieve.found(whole[:11] + " or " + whole[-11:]) == {}


def test_the_sieve_lets_pass_what_stands_beside_a_secret_and_what_two_secrets_share() -> None:
    cases = [
        Case(f"token-{n}", f"my long password: vendor-token-of-{n}-{n * 12}", (f"vendor-token-of-{n}-{n * 12}",), False)
        for n in "ab"
    ]
    sieve = Sieve(cases)
    assert sieve.found("my long password: vendor-token-of-") == {}
    assert list(sieve.found(bare("vendor-token-of-a-aaaaaaaa"))) == ["token-a"]
