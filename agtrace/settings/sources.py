"""Where settings come from: defaults, a file, environment variables, the command line; later ones win.

Nothing is half used: a source with a fault is refused as a whole,
with every fault in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from agtrace_schema.fields import Unfit, fields
from msgspec import Struct
from msgspec.structs import replace

from agtrace.settings.environment import CONFIG, at_home, command_line, config_file, given
from agtrace.settings.faults import (
    Fault,
    InvalidSettings,
    expected,
    expected_within,
    meant,
    nearest,
    shown,
    unfit,
    veiled,
)
from agtrace.settings.files import Unreadable, parsed
from agtrace.settings.model import (
    Group,
    Key,
    Protection,
    Settings,
    Values,
    group_of,
    in_camel_case,
    keys,
    made,
    value_of,
)

_ON_COMMAND_LINE = "--set"
_OPTIONS = ("index", "user")
"""The settings that have an option of their own."""
_DEFAULT = "default"
_PREFIX = "AGTRACE_"
_SIMILAR = 0.8
"""How similar a variable must be to one of ours to be taken for it: others may begin with AGTRACE_, too."""


class Found(Struct, frozen=True):
    """Settings and where each value comes from."""

    settings: Settings
    file: Path | None
    """The configuration file; None if there is none."""
    origins: Mapping[str, str]
    """By key, and by name of a client; a key that isn't there has its default."""

    def origin(self, key: str) -> str:
        """Return where the value of a key comes from: `default`, the file's path, a variable, or `--set`."""
        found = {origin: None for name, origin in self.origins.items() if name == key or name.startswith(f"{key}.")}
        return ", ".join(found) or _DEFAULT


def read(environment: Mapping[str, str] | None = None, *, without_file: bool = False) -> Found:
    """Return the settings. Raises `InvalidSettings` with every fault of every source."""
    values = given(environment)
    path, named = config_file(values)
    is_there = not without_file and (named or path.is_file())
    from_file = of_file(path) if is_there else _Source({}, ())
    return _merged([from_file, _of_variables(values), _of_command_line()], values, path if is_there else None)


def examined(path: Path, environment: Mapping[str, str] | None = None) -> Found | tuple[Fault, ...]:
    """Return the settings that a file would give, or all its faults."""
    values, path = given(environment), path.absolute()
    try:
        return _merged([of_file(path), _of_variables(values), _of_command_line()], values, path)
    except InvalidSettings as error:
        return error.faults


def variables() -> dict[str, str]:
    """Return the variables of agtrace, with their meanings; those of tools and digests by their pattern."""
    return {CONFIG: "the configuration file, in TOML, YAML or JSON; default: config.toml in the platform's folder"} | {
        key.variable: key.meaning for key in keys().values()
    }


def misspelled(environment: Mapping[str, str] | None = None) -> list[str]:
    """Return a sentence for each variable that sets nothing, but has almost the name of one that does."""
    known = {name.removeprefix(_PREFIX): name for name in (CONFIG, *_variables())}
    strays = [name for name in given(environment) if name.startswith(_PREFIX) and name not in known.values()]
    near = ((name, nearest(name.removeprefix(_PREFIX), known, _SIMILAR)) for name in strays)
    return [f"the variable {name} sets nothing: perhaps {known[meant]} is meant" for name, meant in near if meant]


# -- sources ---------------------------------------------------------------------------------------


class _Given(Struct, frozen=True):
    """A value, where it comes from, and how its key is spelled there."""

    value: Any
    origin: str
    name: str


class _Source(Struct, frozen=True):
    """What a source sets."""

    values: Mapping[str, _Given]
    """By key; by `clients.NAME` for clients."""
    faults: tuple[Fault, ...]

    @classmethod
    def of(cls, given: Iterable[tuple[str, _Given]], faults: list[Fault]) -> _Source:
        """Return what is set, each key once: two spellings of a key may not contradict each other."""
        found: dict[str, _Given] = {}
        for key, one in given:
            other = found.setdefault(key, one)
            if other.value != one.value:
                faults.append(Fault(one.origin, key, f"is given twice ({other.name} and {one.name}); keep one"))
        return cls(found, tuple(faults))


def of_file(path: Path) -> _Source:
    """Read a file."""
    try:
        data = parsed(path)
    except Unreadable as problem:
        return _Source({}, (Fault(str(path), "", str(problem)),))
    faults: list[Fault] = []
    settings = {key: value for key, value in data.items() if key != "$schema"}  # which editors look for in JSON
    found = [
        (key, _Given(_from_file(value, key, path.parent), str(path), name))
        for key, name, value in _leaves(Values, settings, "", str(path), faults)
    ]
    return _Source.of(found, faults)


def _leaves(
    group: type[Group], data: Mapping[Any, Any], prefix: str, origin: str, faults: list[Fault]
) -> Iterator[tuple[str, str, Any]]:
    """Yield the keys of a group, as they are written, and their values; what has no place in it becomes a fault."""
    known = fields(group)
    names = {in_camel_case(name): name for name in known} | {name: name for name in known}
    for written, value in data.items():
        name = names.get(written) if isinstance(written, str) else None
        key = f"{prefix}{written if name is None else name}"
        below = None if name is None else group_of(known[name])
        if name is None:
            faults.append(unfit(origin, key, veiled(value), meant(str(written), known)))
        elif below is None:
            yield from ((one, written, within) for one, within in _values(key, value, origin, faults))
        elif below is Protection and isinstance(value, bool):
            yield f"{key}.enabled", written, value
        elif isinstance(value, Mapping):
            yield from _leaves(below, value, f"{key}.", origin, faults)
        else:
            faults.append(unfit(origin, key, veiled(value), f"a table with {', '.join(fields(below))}"))


def _values(name: str, value: Any, origin: str, faults: list[Fault]) -> Iterator[tuple[str, Any]]:
    """Yield a key and its value; of names with values, each by itself, so that a source may set some of them."""
    if keys()[name].holds is not Mapping:
        yield name, value
    elif isinstance(value, Mapping):
        yield from ((f"{name}.{one}", within) for one, within in value.items())
    else:
        faults.append(unfit(origin, name, veiled(value), expected(keys()[name])))


def _from_file(value: Any, name: str, folder: Path) -> Any:
    """Return the value that stands for one of a file: 60.0 is a whole number, and a path begins at the file."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if _key(name).holds is Path and isinstance(value, str) and value:
        return str(folder / at_home(value))
    return value


def _key(name: str) -> Key:
    """Return the setting of a name: of `clients.NAME`, it is `clients`."""
    return keys().get(name) or keys()[name.partition(".")[0]]


@cache
def _spelled() -> Mapping[str, Key]:
    """Return every setting by each name that it has in a variable or on the command line."""
    switches = {
        name.removesuffix(".enabled"): key
        for name, key in keys().items()
        if key.group is Protection and name.endswith(".enabled")
    }
    return {**keys(), **switches}


@cache
def _variables() -> Mapping[str, Key]:
    """Return every setting by the variables that set it."""
    nested = {f"{_PREFIX}{name.replace('.', '__').upper()}": key for name, key in _spelled().items()}
    return {**{key.variable: key for key in keys().values()}, **nested}


def _of_variables(environment: Mapping[str, str]) -> _Source:
    """Read the environment: `AGTRACE_` and the key, in capitals, with `__` for each dot."""
    if not any(name.startswith(_PREFIX) for name in environment):  # listing all keys takes longer than most answers
        return _Source({}, ())
    faults: list[Fault] = []
    found = [
        (name, _Given(value, variable, variable))
        for variable, key in _variables().items()
        if (text := environment.get(variable, "").strip())
        for name, value in _values(key.name, _from_text(text, key), variable, faults)
    ]
    for name in environment:
        if name.startswith(_PREFIX) and "__" in name and name not in _variables():
            known = {known.removeprefix(_PREFIX): known for known in _variables()}
            near = nearest(name.removeprefix(_PREFIX), known)
            perhaps = f", perhaps {known[near]}" if near else " (`agtrace config --all` lists the keys)"
            faults.append(unfit(name, name, veiled(environment[name]), f"a known variable{perhaps}"))
    return _Source.of(found, faults)


def _of_command_line() -> _Source:
    faults: list[Fault] = []
    return _Source.of(_set_on_command_line(faults), faults)


def _set_on_command_line(faults: list[Fault]) -> Iterator[tuple[str, _Given]]:
    for written, text in command_line().items():
        name = _in_snake_case(written)
        group, _, one = written.partition(".")
        key = _spelled().get(name)
        if key is not None:
            values = _values(key.name, _from_text(text, key), _ON_COMMAND_LINE, faults)
        elif one and group in keys():
            values = iter([(written, _from_json(text))])
        else:
            faults.append(unfit(_ON_COMMAND_LINE, written, veiled(text), meant(name, keys())))
            continue
        yield from ((known, _Given(value, _ON_COMMAND_LINE, written)) for known, value in values)


def _in_snake_case(name: str) -> str:
    """Return a key that may be written in camelCase as the model spells it."""
    parts = {in_camel_case(part): part for key in keys() for part in key.split(".")}
    return ".".join(parts.get(part, part) for part in name.split("."))


_SWITCHES = {"0": False, "1": True, "false": False, "true": True, "off": False, "on": True}


def _from_text(text: str, key: Key) -> Any:
    """Return the value that a text stands for; the text itself if it can't, which is a fault later."""
    if key.holds in (int, float):
        try:
            return key.holds(text)
        except ValueError:
            return text
    if key.holds is Mapping:
        return _from_json(text)
    if key.holds is bool:
        return _SWITCHES.get(text.lower(), text)
    if key.holds is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


# -- checks ----------------------------------------------------------------------------------------


def _merged(sources: list[_Source], environment: Mapping[str, str], file: Path | None) -> Found:
    """Return the settings of several sources, later ones above earlier ones. Raises `InvalidSettings`."""
    faults = [fault for source in sources for fault in source.faults]
    found = {key: value for source in sources for key, value in source.values.items()}
    if not found and not faults:
        return Found(Settings(environment=environment), file, {})
    origins = {key: one.origin for key, one in found.items()}
    usable, unusable = _usable(found)
    faults += unusable
    if not unusable:
        settings = made(Settings, _tree({**_required(), **usable, "environment": environment}))
        if "default_page_size" not in found:
            settings = replace(settings, default_page_size=min(settings.default_page_size, settings.max_page_size))
        faults += _crossed(settings, origins)
    if faults:
        raise InvalidSettings(tuple(faults))
    return Found(settings, file, origins)


def _usable(found: Mapping[str, _Given]) -> tuple[dict[str, Any], list[Fault]]:
    """Return the values by key, and the faults of those that can't be used."""
    values: dict[str, Any] = {}
    faults: list[Fault] = []
    for name, one in found.items():
        try:
            values[name] = _read(name, one.value)
        except _Unusable as wrong:
            faults += (_fault(name, one, *place) for place in wrong.places)
    return values, faults


class _Unusable(Exception):
    """A value that a setting can't have: the items of a list that are wrong, with their places, or it as a whole."""

    def __init__(self, *places: tuple[Any, int | None]) -> None:
        super().__init__()
        self.places = places


def _read(name: str, given: Any) -> Any:
    """Return the value of a setting, or of one name of `clients`. Raises `_Unusable`."""
    key = _key(name)
    try:
        if name not in keys():
            return key.field.read({"": given}, strict=True)[""]
        if key.holds is tuple and isinstance(given, list):
            given = tuple(given)
        return key.field.read(given, strict=True)
    except Unfit:
        if key.holds is not tuple or not isinstance(given, tuple):
            raise _Unusable((given, None)) from None
        raise _Unusable(*((one, place) for place, one in enumerate(given) if not _fits(key, one))) from None


def _fits(key: Key, item: Any) -> bool:
    """Whether a list may have this item."""
    try:
        key.field.read((item,), strict=True)
    except Unfit:
        return False
    return True


@cache
def _required() -> Mapping[str, Any]:
    """Return the defaults of the keys whose group has none of its own: a source may set only some of its keys."""
    defaults = Values(data_dir=Path())
    return {key.name: value_of(defaults, key.name) for key in keys().values() if key.field.is_required}


def _tree(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by key as nested objects."""
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *groups, name = key.split(".") if key in keys() else key.split(".", 1)
        at = tree
        for group in groups:
            at = at.setdefault(group, {})
        at[name] = value
    return tree


def _fault(name: str, one: _Given, value: Any, place: int | None) -> Fault:
    """Return the fault of a value, or of the item of a list at a place."""
    key = _key(name)
    if one.origin == _ON_COMMAND_LINE and name in _OPTIONS:
        return unfit(f"--{name}", "", "something else", expected(key))
    if key.secret:
        return unfit(one.origin, name, "something else", expected(key))
    if place is not None:
        return unfit(one.origin, f"{name}[{place}]", veiled(value), expected_within(key))
    as_text = one.origin.startswith((_PREFIX, _ON_COMMAND_LINE))
    allowed = expected(key, as_text=as_text) if name in keys() else expected_within(key)
    return unfit(one.origin, name, shown(value), allowed)


def _crossed(values: Values, origins: Mapping[str, str]) -> Iterator[Fault]:
    """Yield what contradicts another setting."""
    most = values.max_page_size
    pages = {"default_page_size": values.default_page_size} | {
        f"tools.{tool}.page_size": getattr(values.tools, tool).page_size for tool in fields(type(values.tools))
    }
    for key, size in pages.items():
        if size is not None and size > most:
            origin = origins.get(key) or origins["max_page_size"]
            yield unfit(origin, key, str(size), f"at most max_page_size, which is {most}")
    for mode in fields(type(values.modes)):
        limits = getattr(values.modes, mode)
        if limits.width > limits.chars:
            key = next(key for key in (f"modes.{mode}.width", f"modes.{mode}.chars") if key in origins)
            yield unfit(
                origins[key], f"modes.{mode}.width", str(limits.width), f"at most chars, which is {limits.chars}"
            )
