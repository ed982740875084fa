"""Secrets and harmless texts made without knowledge of the rules: no more go wrong than the goals allow."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.secrets.independent.rates import CORPORA, GOALS, Rate, Row, by_group, missed, rows


@pytest.fixture(scope="module", params=CORPORA)
def corpus(request: pytest.FixtureRequest) -> str:
    """The name of one of the corpora."""
    return str(request.param)


@pytest.fixture(scope="module")
def rates(corpus: str) -> dict[str, Rate]:
    """How many rows of each group went wrong."""
    return {rate.name: rate for rate in by_group(rows(corpus))}


@pytest.mark.parametrize("group", GOALS)
def test_no_more_goes_wrong_than_the_goal_allows(rates: dict[str, Rate], group: str) -> None:
    assert rates[group].percent <= GOALS[group], [row.id for row in rates[group].wrong]


def test_a_goal_is_missed_by_what_comes_out_and_by_what_is_changed() -> None:
    out = Row("a", "named", "prose", "the word is swordfish", ("swordfish",))
    changed = Row("b", "ordinary", "prose", "password=swordfish1", ("swordfish1",))
    stays = Row("c", "ordinary", "prose", "the word is swordfish", ("swordfish",))
    assert [row.wrong for row in (out, changed, stays)] == [True, True, False]
    assert {rate.name for rate in missed(by_group([out, changed, stays]))} == {"named", "ordinary"}


def test_the_rows_have_ids_of_their_own_and_every_group_its_goal_or_none(corpus: str) -> None:
    everything = rows(corpus)
    assert len({row.id for row in everything}) == len(everything) >= 2_800
    assert all(row.pieces and all(piece in row.text for piece in row.pieces) for row in everything)
    groups = Counter(row.group for row in everything)
    assert groups.keys() >= GOALS.keys() and groups.keys() - GOALS.keys() <= {"weak forms", "policy forms"}
