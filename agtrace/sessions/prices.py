"""Prices of tokens in US dollars, and the sizes of models' context windows.

Prices are data: `data/prices.json`, which gives each one's source and date, overridden by the user's own table.
They are list prices of the vendors' own APIs for one request; subscriptions and resellers charge differently.
The cost for a model without a price is None, never 0, and no model is guessed from the beginning of its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from agtrace_schema.codes import CONTEXT_CLASSES, PRICE_DAYS
from agtrace_schema.model import Record
from agtrace_schema.patterns import later
from msgspec import DecodeError, Meta, Struct, ValidationError, convert, json
from msgspec.structs import replace

from agtrace.problems import SettingError

LONGEST_NAME = 200
ONE_MILLION = "[1m]"
"""Claude Code's mark on the name of a model that it runs with a window of a million tokens."""
SEARCHES = later(r"\b([0-9]{1,6})_searches\b")


class ModelUsage(Struct, frozen=True):
    """The summed tokens of responses with the same rates."""

    model: str | None
    speed: str | None
    """None or "standard", "fast" for faster processing (Anthropic's fast mode, OpenAI's priority), "us" for processing
    in the United States alone, "2_searches" for what each response searched the web; several with blanks."""
    context_class: int
    """The number of `CONTEXT_CLASSES`, 0 to 3, exceeded by each request's whole input, cached or not; and 4 for each of
    `PRICE_DAYS` that had come."""
    responses: int
    input_tokens: int
    """Uncached input."""
    cache_creation_5m_tokens: int
    cache_creation_1h_tokens: int
    cache_read_tokens: int
    output_tokens: int
    """Includes reasoning."""


class PriceFileError(SettingError):
    """The user's price table can't be used."""

    def __init__(self, path: Path, trouble: str) -> None:
        Exception.__init__(self, f"the price table {path} can't be used: {trouble}")


Dollars = Annotated[float, Meta(ge=0)]
"""US dollars per million tokens."""
Text = Annotated[str, Meta(min_length=1)]


class _Part(Record, forbid_unknown_fields=True):
    """A part of a price table."""


_P = TypeVar("_P", bound=_Part)


class Rates(_Part):
    """The price of each kind of token; a kind without a price of its own costs as much as uncached input."""

    input: Dollars
    cache_write_5m: Dollars | None = None
    cache_write_1h: Dollars | None = None
    cache_read: Dollars | None = None
    output: Dollars

    def dollars(self, usage: ModelUsage) -> float:
        """Return the cost of these tokens."""
        parts = (
            (usage.input_tokens, self.input),
            (usage.cache_creation_5m_tokens, self.cache_write_5m),
            (usage.cache_creation_1h_tokens, self.cache_write_1h),
            (usage.cache_read_tokens, self.cache_read),
            (usage.output_tokens, self.output),
        )
        return sum(tokens * (self.input if rate is None else rate) for tokens, rate in parts) / 1_000_000


class Price(Rates):
    """The rates of a model at one speed, and different rates for requests whose input is above a bound."""

    above: Mapping[int, Rates] = {}
    """By the bound, which is one of `CONTEXT_CLASSES`."""

    def __post_init__(self) -> None:
        """Raise `ValueError` for a bound that isn't one."""
        for tokens in self.above:
            if tokens not in CONTEXT_CLASSES:
                raise ValueError(f"expected one of {', '.join(map(str, CONTEXT_CLASSES))} tokens, got {tokens}")

    def rates(self, exceeding: int) -> Rates:
        """Return the rates of a request: the size of its input decides the price of all its tokens."""
        exceeded = [bound for bound in self.above if CONTEXT_CLASSES.index(bound) < exceeding]
        return self.above[max(exceeded)] if exceeded else self


class Earlier(_Part):
    """The prices of a model before a day."""

    standard: Price | None = None
    fast: Price | None = None


class Model(_Part):
    """A model's names, window and prices."""

    also: tuple[Text, ...] = ()
    """Other names, in addition to those that `_names` understands."""
    window: Annotated[int, Meta(ge=1000)] | None = None
    """Tokens of input and output together."""
    source: Text | None = None
    dated: date | None = None
    """When the source was read or, if that isn't known, the day of its newest change."""
    note: Text | None = None
    standard: Price | None = None
    fast: Price | None = None
    us: Dollars | None = None
    """The factor of all its prices for processing in the United States alone."""
    search: Dollars | None = None
    """US dollars for a thousand searches in the web."""
    before: Mapping[str, Earlier] = {}
    """Former prices by the day until which they held, which is one of `PRICE_DAYS`."""

    def __post_init__(self) -> None:
        """Raise `ValueError` for a day that isn't one."""
        for day in self.before:
            if day not in PRICE_DAYS:
                raise ValueError(f"expected one of {', '.join(PRICE_DAYS)}, got {day}")

    def cost(self, usage: ModelUsage) -> float | None:
        """Return the cost in US dollars; None if there is no price for this speed."""
        period, exceeding = divmod(usage.context_class, len(CONTEXT_CLASSES) + 1)
        former = next((self.before[day] for day in PRICE_DAYS[period:] if day in self.before), None)
        searches = sum(map(int, SEARCHES.findall(usage.speed or ""))) * usage.responses
        speeds = {*SEARCHES.sub("", usage.speed or "").split()} - {"standard", "sum"}
        price = {(): (former or self).standard, ("fast",): (former or self).fast}.get((*speeds - {"us"},))
        factor = self.us if "us" in speeds else 1
        if price is None or factor is None or (searches and self.search is None):
            return None
        return factor * price.rates(exceeding).dollars(usage) + searches * (self.search or 0) / 1000


class _Vendor(_Part):
    """Models of one vendor; source, date and factor apply to each model without its own."""

    source: Text
    dated: date
    us: Dollars | None = None
    search: Dollars | None = None
    models: Mapping[Text, Model]


class _File(_Part):
    vendors: Mapping[Text, _Vendor]

    def models(self) -> Iterator[tuple[str, Model]]:
        """Yield every model with its name; its source and date are filled in."""
        for vendor in self.vendors.values():
            for name, model in vendor.models.items():
                common = ("source", "dated", "us", "search")
                yield name, replace(model, **{one: getattr(model, one) or getattr(vendor, one) for one in common})


class PriceTable(Struct, frozen=True):
    """Prices and windows by model name."""

    source: str
    """The tables that it was made from; `Model.source` is the source of one model's price."""
    models: Mapping[str, Model]
    """The models by normalized name."""
    aliases: Mapping[str, str]
    """Normalized other names, each with the model's normalized name."""

    @property
    def dated(self) -> str:
        """The date of the newest source, ISO 8601; each model has a date of its own."""
        return max(model.dated for model in self.models.values() if model.dated).isoformat()

    def window(self, model: str | None) -> int | None:
        """Return the context window in tokens; None if it isn't known."""
        known = self.find(model)
        if known and model and ONE_MILLION in model.lower():
            return 1_000_000
        return known.window if known else None

    def cost(self, usage: ModelUsage) -> float | None:
        """Return the cost in US dollars; None if the model, or the model at this speed, has no price."""
        known = self.find(usage.model)
        return known.cost(usage) if known else None

    def missed(self, model: str | None, *, lasting: bool) -> float:
        """Return what it costs to write a token to the cache instead of reading it from there; 0 if unknown."""
        known = self.find(model)
        if known is None or known.standard is None:
            return 0
        rates = known.standard
        written = rates.cache_write_1h if lasting else rates.cache_write_5m
        paid = (rates.input if rate is None else rate for rate in (written, rates.cache_read))
        return (next(paid) - next(paid)) / 1_000_000

    def find(self, model: str | None) -> Model | None:
        """Find a model by its name in a log; None if it isn't in the table."""
        if model is None or len(model) > LONGEST_NAME:
            return None
        found = (self.models.get(self.aliases.get(name, name)) for name in _names(model))
        return next(filter(None, found), None)


def load(override: Path | None) -> PriceTable:
    """Return the built-in table, overridden by the user's: their model replaces the built-in one of the same name.

    Raises `SettingError`, naming file and field, for a file that can't be read or isn't a price table.
    """
    built_in = _built_in()
    if override is None:
        return built_in
    own = _table(_read(override), override.name)
    kept = {name: model for name, model in built_in.aliases.items() if name not in own.models}
    return PriceTable(
        f"{own.source}, over {built_in.source}", {**built_in.models, **own.models}, {**kept, **own.aliases}
    )


@cache
def _built_in() -> PriceTable:
    data = (Path(__file__).parents[1] / "data" / "prices.json").read_bytes()
    return _table(json.decode(data, type=_File), "list prices that come with agtrace")


def _read(path: Path) -> _File:
    try:
        data = json.decode(path.read_bytes())
        vendors = data["vendors"] if isinstance(data, dict) and isinstance(data.get("vendors"), dict) else {}
        for vendor, part in vendors.items():
            models = part.get("models") if isinstance(part, dict) else None
            for name, model in models.items() if isinstance(models, dict) else ():
                _checked(model, Model, f"vendors.{vendor}.models.{name}")
            _checked({**part, "models": {}} if isinstance(models, dict) else part, _Vendor, f"vendors.{vendor}")
        return _checked(data, _File, "")
    except OSError as error:
        raise PriceFileError(path, error.strerror or str(error)) from None
    except ValidationError as error:
        raise PriceFileError(path, str(error)) from None
    except (DecodeError, UnicodeDecodeError) as error:
        raise PriceFileError(path, f"invalid JSON: {error}") from None


def _checked(value: Any, kind: type[_P], place: str) -> _P:
    """Return a part of a table. Raises `ValidationError`, which says where: `vendors.a.models.x.window: ...`."""
    try:
        return convert(value, kind, str_keys=True)
    except ValidationError as error:
        why, _, within = str(error).partition(" - at `$")
        match = re.fullmatch(r"Object (missing required|contains unknown) field `(.+)`", why)
        where = f"{place}{within.rstrip('`')}{f'.{match[2]}' if match else ''}".removeprefix(".")
        if match:
            why = "is missing" if match[1].startswith("missing") else "is unknown"
        raise ValidationError(f"{where}: {why}" if where else why) from None


def _table(file: _File, source: str) -> PriceTable:
    models = {_spelling(name): model for name, model in file.models()}
    aliases = {_spelling(other): name for name, model in models.items() for other in model.also}
    return PriceTable(source, models, aliases)


# -- names -----------------------------------------------------------------------------------------

_ROUTE = later(r"^(?:(?:openrouter|bedrock|vertex_ai|models|anthropic|openai|google|gemini)/)+")
_REGION = later(r"^(?:(?:us|us-gov|eu|apac|jp|au|global)\.)?anthropic\.")
_VERSION = later(r"(?:\[1m\]|-v\d+:\d+|@(?:20\d{6}|default|latest)|-latest|-20\d{6}|-20\d\d-\d\d-\d\d)+$")
_VERSION_FIRST = later(r"^claude-(\d+(?:-\d+)?)-(opus|sonnet|haiku|fable)$")
"""Cursor's names for Claude models since the fourth generation, such as claude-4.5-sonnet."""


@lru_cache(1000)
def _names(model: str) -> tuple[str, ...]:
    """Return the names to look a model up by: as given, then without route, region, date and mode, then in Anthropic's
    order.

    Nothing else is cut off, so that a variant of a model is not taken for the model.
    """
    bare = _spelling(_VERSION.sub("", _REGION.sub("", _ROUTE.sub("", model.strip().lower()))))
    return _spelling(model), bare, _VERSION_FIRST.sub(r"claude-\2-\1", bare)


def _spelling(name: str) -> str:
    """Normalize a name: lower case, and dashes for the dots in versions, so claude-opus-4.5 is claude-opus-4-5."""
    return re.sub(r"(?<=\d)\.(?=\d)", "-", name.strip().lower())
