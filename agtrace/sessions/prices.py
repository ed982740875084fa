"""Prices of tokens in US dollars, and the sizes of models' context windows.

Prices are data: `data/prices.json`, which gives each one's source and date, overridden by the user's own table.
They are list prices of the vendors' own APIs for one request; subscriptions and resellers charge differently.
The cost for a model without a price is None, never 0, and no model is guessed from the beginning of its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from agtrace_schema.codes import CONTEXT_CLASSES
from agtrace_schema.model import Record
from agtrace_schema.patterns import later
from msgspec import DecodeError, Meta, Struct, ValidationError, convert, json
from msgspec.structs import replace

from agtrace.problems import SettingError

LONGEST_NAME = 200
ONE_MILLION = "[1m]"
"""Claude Code's mark on the name of a model that it runs with a window of a million tokens."""


class ModelUsage(Struct, frozen=True):
    """The summed tokens of responses with the same rates."""

    model: str | None
    speed: str | None
    """None or "standard", "fast" for faster processing (Anthropic's fast mode, OpenAI's priority), "us" for processing
    in the United States alone, or "fast us"."""
    context_class: int
    """The number of `CONTEXT_CLASSES`, 0 to 3, exceeded by each request's whole input: uncached, cached and written."""
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

    def rates(self, context_class: int) -> Rates:
        """Return the rates of a request: the size of its input decides the price of all its tokens."""
        exceeded = [bound for bound in self.above if CONTEXT_CLASSES.index(bound) < context_class]
        return self.above[max(exceeded)] if exceeded else self


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

    def cost(self, usage: ModelUsage) -> float | None:
        """Return the cost in US dollars; None if there is no price for this speed."""
        asked = {*(usage.speed or "standard").split()} - {"standard"}
        price = {(): self.standard, ("fast",): self.fast}.get((*asked - {"us"},))
        factor = self.us if "us" in asked else 1
        return None if price is None or factor is None else factor * price.rates(usage.context_class).dollars(usage)


class _Vendor(_Part):
    """Models of one vendor; source, date and factor apply to each model without its own."""

    source: Text
    dated: date
    us: Dollars | None = None
    models: Mapping[Text, Model]


class _File(_Part):
    vendors: Mapping[Text, _Vendor]

    def models(self) -> Iterator[tuple[str, Model]]:
        """Yield every model with its name; its source and date are filled in."""
        for vendor in self.vendors.values():
            for name, model in vendor.models.items():
                yield (
                    name,
                    replace(
                        model,
                        source=model.source or vendor.source,
                        dated=model.dated or vendor.dated,
                        us=model.us or vendor.us,
                    ),
                )


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
        written = path.read_bytes()
    except OSError as error:
        raise PriceFileError(path, error.strerror or str(error)) from None
    try:
        return json.decode(written, type=_File)
    except ValidationError as error:
        raise PriceFileError(path, _told(written, error)) from None
    except (DecodeError, UnicodeDecodeError) as error:
        raise PriceFileError(path, f"invalid JSON: {error}") from None


def _told(written: bytes, error: ValidationError) -> str:
    """Return what is wrong, and where: with the names of vendor and model, which the library leaves out."""
    try:
        data = json.decode(written)
    except ValidationError as too_large:  # a number
        return _at("", too_large)
    for place, kind, part in _parts(data):
        try:
            convert(part, kind, str_keys=True)
        except ValidationError as within:
            return _at(place, within)
    return _at("", error)


def _parts(data: Any) -> Iterator[tuple[str, type[_Part], Any]]:
    """Yield the models of a table, and its vendors without them, each with its place and the type it should have."""
    for vendor, part in _items(data, "vendors"):
        for name, model in _items(part, "models"):
            yield f".vendors.{vendor}.models.{name}", Model, model
        yield f".vendors.{vendor}", _Vendor, {**part, "models": {}} if isinstance(part, dict) else part


def _items(data: Any, name: str) -> Iterable[tuple[str, Any]]:
    inner = data.get(name) if isinstance(data, dict) else None
    return inner.items() if isinstance(inner, dict) else ()


def _at(place: str, error: ValidationError) -> str:
    """Return a sentence about a part of a table: `vendors.acme.models.x.standard.input: expected float, got str`."""
    why, _, within = str(error).partition(" - at `$")
    named = re.fullmatch(r"Object (missing required|contains unknown) field `(.+)`", why)
    where = f"{place}{within.rstrip('`')}{'.' + named[2] if named else ''}".removeprefix(".")
    if named:
        why = "is missing" if named[1].startswith("missing") else "is unknown"
    why = why.replace("`", "").replace("Expected", "expected")
    return f"{where}: {why}" if where else why


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


def _names(model: str) -> Iterator[str]:
    """Yield the names to look a model up by: as given, then without route, region, date and mode, then in Anthropic's
    order.

    Nothing else is cut off, so that a variant of a model is not taken for the model.
    """
    yield _spelling(model)
    bare = _spelling(_VERSION.sub("", _REGION.sub("", _ROUTE.sub("", model.strip().lower()))))
    yield bare
    yield _VERSION_FIRST.sub(r"claude-\2-\1", bare)


def _spelling(name: str) -> str:
    """Normalize a name: lower case, and dashes for the dots in versions, so claude-opus-4.5 is claude-opus-4-5."""
    return re.sub(r"(?<=\d)\.(?=\d)", "-", name.strip().lower())
