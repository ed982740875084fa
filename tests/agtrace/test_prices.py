"""The cost of tokens, by the built-in table and by a user's table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from agtrace.problems import SettingError
from agtrace.sessions.prices import CONTEXT_CLASSES, PRICE_DAYS, Model, ModelUsage, Price, Rates, load

MILLION = 1_000_000
TABLE = load(None)


def usage(model: str | None, *tokens: int, speed: str | None = None, context_class: int = 0) -> ModelUsage:
    """Tokens in the order uncached, written for 5 minutes, written for an hour, read, output; the rest is 0."""
    five = (*tokens, *[0] * (5 - len(tokens)))
    return ModelUsage(model, speed, context_class, 1, *five)


def cost_of_a_million(model: str, kind: int = 0, *, context_class: int = 0, speed: str | None = None) -> float | None:
    """What a million tokens of one kind cost, by the built-in table."""
    tokens = [0] * 5
    tokens[kind] = MILLION
    return TABLE.cost(usage(model, *tokens, speed=speed, context_class=context_class))


# -- what tokens cost ------------------------------------------------------------------------------


def test_every_kind_of_token_has_its_own_price() -> None:
    assert [cost_of_a_million("claude-opus-4-5", kind) for kind in range(5)] == [5, 6.25, 10, 0.5, 25]
    spent = TABLE.cost(usage("claude-opus-4-5", 1_000, 2_000, 3_000, 400_000, 5_000))
    assert spent == pytest.approx(0.005 + 0.0125 + 0.03 + 0.2 + 0.125)


def test_a_cache_write_for_an_hour_costs_twice_the_input_and_one_for_five_minutes_a_quarter_more() -> None:
    """At the five-minute price an hour's writes are 38 % too cheap."""
    older = {"claude-3-haiku", "claude-3-sonnet"}
    checked = 0
    for name, model in TABLE.models.items():
        for rates in _all_rates(model) if name.startswith("claude") and name not in older else ():
            assert rates.cache_write_5m == pytest.approx(rates.input * 1.25), name
            assert rates.cache_write_1h == pytest.approx(rates.input * 2), name
            checked += 1
    assert checked > 20


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gpt-5.4"])
def test_a_cache_write_without_a_price_of_its_own_costs_as_much_as_input(model: str) -> None:
    written = [cost_of_a_million(model, kind) for kind in (1, 2)]
    assert written == [cost_of_a_million(model)] * 2
    assert cost_of_a_million("gpt-6-sol", 1) == 2.5  # this one has a price


@pytest.mark.parametrize(
    ("model", "bound", "below", "above"),
    [
        ("claude-sonnet-4-5", 200_000, 3, 6),
        ("claude-sonnet-4", 200_000, 3, 6),
        ("gemini-2.5-pro", 200_000, 1.25, 2.5),
        ("gemini-3-pro-preview", 200_000, 2, 4),
        ("gpt-5.4", 272_000, 2.5, 5),
        ("gpt-6.1-sol", 272_000, 2, 4),
    ],
)
def test_above_a_bound_the_whole_request_has_another_price(model: str, bound: int, below: float, above: float) -> None:
    exceeding = CONTEXT_CLASSES.index(bound) + 1
    prices = [cost_of_a_million(model, context_class=number) for number in range(len(CONTEXT_CLASSES) + 1)]
    assert prices == [below] * exceeding + [above] * (len(prices) - exceeding)


def test_fast_mode_has_the_prices_of_its_model() -> None:
    assert [cost_of_a_million("claude-opus-4-8", kind, speed="fast") for kind in range(5)] == [10, 12.5, 20, 1, 50]
    assert cost_of_a_million("claude-opus-4-6", speed="fast") == 30
    assert (
        cost_of_a_million("claude-opus-4-6", speed="fast us")
        == cost_of_a_million("claude-opus-4-6", speed="us") * 6
        == 33
    )
    assert cost_of_a_million("gpt-5.5", speed="us") is None
    assert cost_of_a_million("claude-opus-4-6", speed="standard") == cost_of_a_million("claude-opus-4-6") == 5


def test_a_price_is_that_of_the_day_and_searches_in_the_web_have_one() -> None:
    periods = [4 * period for period in range(len(PRICE_DAYS) + 1)]
    for model, prices in (
        ("o3", [10, *[2] * 5]),
        ("gpt-5.6", [*[5] * 3, *[4] * 3]),
        ("gpt-5.6-luna", [1, 1, *[0.2] * 4]),
    ):
        assert [cost_of_a_million(model, context_class=period) for period in periods] == prices
    assert cost_of_a_million("gpt-5.6-terra", context_class=3) == 5  # a large request before the day
    assert cost_of_a_million("claude-opus-4-6", speed="us 50_searches sum") == 5 * 1.1 + 0.5
    assert cost_of_a_million("gemini-2.5-pro", speed="1_searches") is None


@pytest.mark.parametrize(("model", "speed"), [("claude-sonnet-4-6", "fast"), ("claude-opus-4-8", "ludicrous")])
def test_a_speed_without_a_price_is_unknown(model: str, speed: str) -> None:
    assert cost_of_a_million(model, speed=speed) is None


# -- what is unknown -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [None, "", "<synthetic>", "haiku", "claude", "gpt-5.9-foo", "gpt-5-codex-foo", "gpt-5.1-codex-maximal",
     "claude-opus-4-5-preview", "claude-opus-4-50", "claude-opus-9", "my/gpt-5", "gemini-2.5-pro:free",
     "claude-opus-4-5 and more", "claude-opus-4-latest-5", "gpt-5" + "-latest" * 5_000],
)  # fmt: skip
def test_a_model_that_is_not_in_the_table_costs_none_and_not_zero(model: str | None) -> None:
    """No price is guessed from the beginning of a name."""
    assert TABLE.cost(usage(model, MILLION)) is None
    assert TABLE.cost(usage(model)) is None
    assert TABLE.window(model) is None


@pytest.mark.parametrize("model", ["gpt-5.3-codex-spark", "claude-mythos-5-2"])
def test_a_model_may_have_a_window_and_no_price(model: str) -> None:
    assert TABLE.window(model) is not None
    assert cost_of_a_million(model) is None


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("claude-opus-4.5", "claude-opus-4-5"),
        ("Claude-Opus-4-5 ", "claude-opus-4-5"),
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-opus-4-5@20251101", "claude-opus-4-5"),
        ("claude-opus-4-5[1m]", "claude-opus-4-5"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("claude-3.7-sonnet", "claude-3-7-sonnet"),
        ("claude-sonnet-4-0", "claude-sonnet-4"),
        ("anthropic/claude-sonnet-4.6", "claude-sonnet-4-6"),
        ("openrouter/anthropic/claude-sonnet-4.6", "claude-sonnet-4-6"),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0[1m]", "claude-sonnet-4-5"),
        ("claude-4.5-sonnet", "claude-sonnet-4-5"),
        ("claude-4-opus", "claude-opus-4"),
        ("openai/gpt-5-2025-08-07", "gpt-5"),
        ("gpt-5-1", "gpt-5.1"),
        ("gpt-5.6", "gpt-5.6-sol"),
        ("codex-mini-latest", "codex-mini"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("gemini-2.0-flash-001", "gemini-2.0-flash"),
    ],
)
def test_a_model_is_known_by_each_way_to_write_its_name(written: str, name: str) -> None:
    assert TABLE.find(written) is TABLE.find(name) is not None


def test_variants_of_a_model_have_prices_of_their_own() -> None:
    assert cost_of_a_million("gpt-5.1-codex-mini") == 0.25
    assert cost_of_a_million("gpt-5.1-codex") == cost_of_a_million("gpt-5.1-codex-max") == 1.25
    assert cost_of_a_million("gpt-4o-2024-05-13") == 5  # the name with its day stands in the table
    assert cost_of_a_million("gpt-4o-2024-08-06") == cost_of_a_million("gpt-4o") == 2.5


def test_the_mark_of_a_million_tells_the_window() -> None:
    assert TABLE.window("claude-sonnet-4-5") == 200_000
    assert TABLE.window("claude-sonnet-4-5-20250929[1m]") == MILLION
    assert TABLE.window("unknown[1m]") is None


# -- a table of the user's -------------------------------------------------------------------------


def own(tmp_path: Path, models: dict[str, Any]) -> Path:
    """A price table of the user's."""
    path = tmp_path / "my-prices.json"
    vendor = {"source": "our contract", "dated": "2027-01-01", "models": models}
    path.write_text(json.dumps({"vendors": {"mine": vendor}}), encoding="utf-8")
    return path


def test_a_price_of_the_users_wins_however_the_name_is_written_and_leaves_the_others(tmp_path: Path) -> None:
    path = own(tmp_path, {"Claude-Opus-4.5": {"standard": {"input": 1, "output": 2}}})
    table = load(path)
    for name in ("claude-opus-4-5", "claude-opus-4.5", "us.anthropic.claude-opus-4-5-20251101-v1:0"):
        assert table.cost(usage(name, MILLION)) == 1
    assert table.window("claude-opus-4-5") is None  # the whole entry is theirs
    assert table.cost(usage("claude-opus-4-6", MILLION)) == 5
    assert load(None).cost(usage("claude-opus-4-5", MILLION)) == 5


def test_a_users_model_may_be_new_and_have_other_names_bounds_and_a_fast_mode(tmp_path: Path) -> None:
    above = {"272000": {"input": 5, "output": 6}, "100000": {"input": 3, "output": 4}}
    price = {"input": 1, "output": 2, "above": above}
    model = {"window": 4_000, "also": ["house.model"], "standard": price, "fast": {"input": 9, "output": 9}}
    table = load(own(tmp_path, {"our-model": model}))
    assert table.window("house.model") == 4_000
    assert [table.cost(usage("our-model", MILLION, context_class=number)) for number in range(4)] == [1, 3, 3, 5]
    assert table.cost(usage("our-model", MILLION, speed="fast")) == 9


def test_a_table_tells_of_what_it_is_made_and_each_model_where_its_price_is_from(tmp_path: Path) -> None:
    price = {"standard": {"input": 7, "output": 8}}
    theirs = price | {"source": "an offer", "dated": "2026-12-31"}
    table = load(own(tmp_path, {"gpt-5": price, "gpt-5-mini": theirs}))
    assert table.source == f"my-prices.json, over {TABLE.source}"
    assert (TABLE.dated, table.dated) == ("2026-11-12", "2027-01-01")
    origins = [(model.source, model.dated) for name in ("gpt-5", "gpt-5-mini") if (model := table.find(name))]
    assert origins == [("our contract", date(2027, 1, 1)), ("an offer", date(2026, 12, 31))]


MODEL = '{{"vendors": {{"mine": {{"source": "us", "dated": "2027-01-01", "models": {{"m": {}}}}}}}}}'


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("", "invalid JSON"),
        ("{", "invalid JSON"),
        ("\xff", "invalid JSON"),
        ("[]", "object"),
        ("{}", "vendors: is missing"),
        ('{"vendors": {}, "price": 1}', "price: is unknown"),
        ('{"vendors": {"mine": {"source": "us", "models": {}}}}', "vendors.mine.dated: is missing"),
        ('{"vendors": {"mine": {"source": "us", "dated": "lately", "models": {}}}}', "vendors.mine.dated"),
        (MODEL.format('{"standard": {"input": 1}}'), "vendors.mine.models.m.standard.output: is missing"),
        (MODEL.format('{"standard": {"input": "1", "output": 1}}'), "models.m.standard.input"),
        (MODEL.format('{"standard": {"input": -1, "output": 1}}'), "models.m.standard.input"),
        (MODEL.format('{"standard": {"input": NaN, "output": 1}}'), "invalid JSON"),
        (MODEL.format('{"standard": {"input": 1, "output": 1e999}}'), "Number out of range"),
        (MODEL.format('{"standard": {"input": 1, "output": 1, "cached": 1}}'), "models.m.standard.cached"),
        (MODEL.format('{"window": 10}'), "models.m.window"),
        (
            MODEL.format('{"standard": {"input": 1, "output": 1, "above": {"128000": {"input": 1, "output": 1}}}}'),
            "100000, 200000, 272000",
        ),
    ],
)
def test_a_users_table_of_a_wrong_shape_is_refused_with_file_and_field(tmp_path: Path, text: str, trouble: str) -> None:
    path = tmp_path / "prices.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(SettingError) as refused:
        load(path)
    assert str(path) in str(refused.value)
    assert trouble in str(refused.value)


def test_a_users_table_that_cannot_be_read_is_refused_with_its_path(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.json", tmp_path):
        with pytest.raises(SettingError, match=str(path)):
            load(path)


# -- the built-in table ----------------------------------------------------------------------------


def _prices(model: Model) -> Iterator[Price]:
    yield from (price for price in (model.standard, model.fast) if price)


def _all_rates(model: Model) -> Iterator[Rates]:
    for price in _prices(model):
        yield price
        yield from price.above.values()


def test_every_model_has_a_source_a_day_a_window_and_prices_in_a_sensible_order() -> None:
    """Reading a cache is no dearer than input, writing one no cheaper, output no cheaper, large and fast dearer."""
    for name, model in TABLE.models.items():
        assert model.source is not None and model.source.startswith("https://"), name
        assert model.dated is not None and date(2025, 1, 1) <= model.dated <= date(2026, 11, 21), name
        assert model.standard or "no" in (model.note or "").split(), f"without a price {name} says why"
        assert model.window is not None and 1_000 <= model.window <= 2 * MILLION, name
        for rates in _all_rates(model):
            assert 0 < rates.input <= rates.output < 1_000, name
            assert rates.cache_read is None or 0 < rates.cache_read <= rates.input, name
            for written in (rates.cache_write_5m, rates.cache_write_1h):
                assert written is None or rates.input <= written <= rates.input * 2, name
        for price in _prices(model):
            assert all(price.input < more.input and price.output < more.output for more in price.above.values()), name
            assert set(price.above) <= set(CONTEXT_CLASSES), name
        if model.fast:
            assert model.standard and model.standard.input < model.fast.input, name


def test_no_name_stands_twice_in_the_built_in_table() -> None:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(pairs) == len(dict(pairs)), [name for name, _ in pairs]
        return dict(pairs)

    written = json.loads(files("agtrace").joinpath("data", "prices.json").read_bytes(), object_pairs_hook=once)
    models = [entry for vendor in written["vendors"].values() for entry in vendor["models"].items()]
    assert len(models) == len(TABLE.models)
    others = [other for _, model in models for other in model.get("also", ())]
    assert len(others) == len(set(others)) == len(TABLE.aliases)
    assert TABLE.aliases.keys() & TABLE.models.keys() == set()
    assert set(TABLE.aliases.values()) <= TABLE.models.keys()


def test_the_price_table_in_the_documentation_does_what_it_says(tmp_path: Path) -> None:
    page = Path(__file__).resolve().parents[2].joinpath("docs", "commands.md").read_text(encoding="utf-8")
    own = tmp_path / "prices.json"
    own.write_text(page.partition("```json\n")[2].partition("```")[0], encoding="utf-8")
    table = load(own)
    assert table.window("our-model") == 200_000
    large = CONTEXT_CLASSES.index(200_000) + 1
    assert table.cost(usage("our-model", MILLION)) == 1
    assert table.cost(usage("our-model", 0, MILLION)) == 1  # no price of its own: as much as input
    assert table.cost(usage("our-model", MILLION, context_class=large)) == 2
    for bound in CONTEXT_CLASSES:
        assert str(bound) in page
