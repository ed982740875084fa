"""Where settings come from: defaults, a file, environment variables, the command line; later ones win.

Nothing is half used: a source with a fault is refused as a whole,
with every fault in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel

from agtrace.settings.environment import CONFIG, command_line, config_file, given
from agtrace.settings.faults import Fault, InvalidSettings, expected, meant, shown, veiled
from agtrace.settings.files import Unreadable, parsed
from agtrace.settings.model import Key, Protection, Settings, Values, group_of, keys, value_of

_ON_COMMAND_LINE = "--set"
_DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Found:
    """Settings and where each value comes from."""

    settings: Settings
    file: Path | None
    """The configuration file; None if there is none."""
    origins: Mapping[str, str] = field(repr=False)
    """By key; a key that isn't there has its default."""

    def origin(self, key: str) -> str:
        """Return where the value of a key comes from: `default`, the file's path, a variable, or `--set`."""
        return self.origins.get(key, _DEFAULT)


def read(environment: Mapping[str, str] | None = None, *, without_file: bool = False) -> Found:
    """Return the settings. Raises `InvalidSettings` with every fault of every source."""
    values = given(environment)
    path, named = config_file(values)
    is_there = not without_file and (named or path.is_file())
    from_file = of_file(path) if is_there else _Source({}, ())
    return _merged([from_file, _of_variables(values), _of_command_line()], values, path if is_there else None)


def examined(path: Path, environment: Mapping[str, str] | None = None) -> Found | tuple[Fault, ...]:
    """Return the settings that a file would give, or all its faults."""
    values = given(environment)
    try:
        return _merged([of_file(path), _of_variables(values), _of_command_line()], values, path)
    except InvalidSettings as error:
        return error.faults


def variables() -> dict[str, str]:
    """Return the variables of agtrace, with their meanings; those of tools and digests by their pattern."""
    return {CONFIG: "the configuration file, in TOML, YAML or JSON; default: config.toml in the platform's folder"} | {
        key.variable: key.meaning for key in keys().values()
    }


# -- sources ---------------------------------------------------------------------------------------


class _Given(NamedTuple):
    """A value, where it comes from, and how it is written there."""

    value: Any
    origin: str
    written: Any


class _Source(NamedTuple):
    """What a source sets."""

    values: Mapping[str, _Given]
    """By key."""
    faults: tuple[Fault, ...]


def of_file(path: Path) -> _Source:
    """Read a file."""
    try:
        data = parsed(path)
    except Unreadable as problem:
        return _Source({}, (Fault(str(path), "", problem.found, problem.expected),))
    faults: list[Fault] = []
    settings = {key: value for key, value in data.items() if key != "$schema"}  # which editors look for in JSON
    leaves: dict[str, Any] = {}
    for key, value in _leaves(Values, settings, "", str(path), faults):
        if key in leaves:
            faults.append(Fault(str(path), key, veiled(value), "each key once, in one of its spellings"))
        leaves[key] = value
    return _Source({key: _Given(value, str(path), value) for key, value in leaves.items()}, tuple(faults))


def _leaves(
    group: type[BaseModel], data: Mapping[Any, Any], prefix: str, origin: str, faults: list[Fault]
) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of a group; what has no place in it becomes a fault."""
    names = {to_camel(name): name for name in group.model_fields} | {name: name for name in group.model_fields}
    for written, value in data.items():
        name = names.get(written) if isinstance(written, str) else None
        key = f"{prefix}{written if name is None else name}"
        below = None if name is None else group_of(group.model_fields[name])
        if name is None:
            faults.append(Fault(origin, key, veiled(value), meant(str(written), list(group.model_fields))))
        elif below is None:
            yield key, value
        elif below is Protection and isinstance(value, bool):
            yield f"{key}.enabled", value
        elif isinstance(value, Mapping):
            yield from _leaves(below, value, f"{key}.", origin, faults)
        else:
            faults.append(Fault(origin, key, veiled(value), f"a table with {', '.join(below.model_fields)}"))


def _of_variables(environment: Mapping[str, str]) -> _Source:
    """Read the environment: `AGTRACE_` and the key, in capitals, with `__` for each dot."""
    found: dict[str, _Given] = {}
    nested = {_nested(key.name): key for key in keys().values()}
    for variable, key in {**nested, **{key.variable: key for key in keys().values()}}.items():
        text = environment.get(variable, "").strip()
        if text:
            found[key.name] = _Given(_from_text(text, key), variable, text)
    unknown = (name for name in environment if name.startswith("AGTRACE_") and "__" in name and name not in nested)
    return _Source(
        found, tuple(Fault(name, name, veiled(environment[name]), meant(name, [*nested])) for name in unknown)
    )


def _of_command_line() -> _Source:
    found: dict[str, _Given] = {}
    faults: list[Fault] = []
    for name, text in command_line().items():
        key = keys().get(name)
        if key is None:
            faults.append(Fault(_ON_COMMAND_LINE, name, veiled(text), meant(name, [*keys()])))
        else:
            found[key.name] = _Given(_from_text(text, key), _ON_COMMAND_LINE, text)
    return _Source(found, tuple(faults))


def _nested(key: str) -> str:
    return f"AGTRACE_{key.replace('.', '__').upper()}"


_SWITCHES = {"0": False, "1": True, "false": False, "true": True}


def _from_text(text: str, key: Key) -> Any:
    """Return the value that a text stands for; the text itself if it can't, which is a fault later."""
    try:
        if key.holds is int:
            return int(text)
        if key.holds is float:
            return float(text)
        if key.holds is Mapping:
            return json.loads(text)
    except (ValueError, RecursionError):
        return text
    if key.holds is bool:
        return _SWITCHES.get(text.lower(), text)
    if key.holds is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


# -- checks ----------------------------------------------------------------------------------------


def _merged(sources: list[_Source], environment: Mapping[str, str], file: Path | None) -> Found:
    """Return the settings of several sources, later ones above earlier ones. Raises `InvalidSettings`."""
    faults = [fault for source in sources for fault in source.faults]
    found = {key: value for source in sources for key, value in source.values.items()}
    origins = {key: one.origin for key, one in found.items()}
    try:
        values = Values.model_validate(_tree({**_required(), **{key: one.value for key, one in found.items()}}))
    except ValidationError as error:
        wrong = {_key_of(one["loc"]): one["input"] for one in error.errors(include_url=False)}
        faults += (_fault(key, value, found) for key, value in wrong.items())
    else:
        faults += _crossed(values, origins)
    if faults:
        raise InvalidSettings(tuple(faults))
    return Found(Settings.model_construct(**dict(values), environment=environment), file, origins)


@cache
def _required() -> Mapping[str, Any]:
    """Return the defaults of the keys whose group has none of its own: a source may set only some of its keys."""
    defaults = Values(data_dir=Path())
    return {key.name: value_of(defaults, key.name) for key in keys().values() if key.field.is_required()}


def _tree(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by key as nested objects."""
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *groups, name = key.split(".")
        at = tree
        for group in groups:
            at = at.setdefault(group, {})
        at[name] = value
    return tree


def _key_of(place: tuple[Any, ...]) -> str:
    """Return the key that a place in the settings belongs to: an item of a list belongs to its list."""
    parts = [str(part) for part in place]
    whole = next((end for end in range(1, len(parts) + 1) if ".".join(parts[:end]) in keys()), len(parts))
    return ".".join(parts[:whole] if whole == len(parts) or parts[0] != "clients" else parts)


def _fault(name: str, value: Any, found: Mapping[str, _Given]) -> Fault:
    """Return the fault of a value, or of an item within it."""
    key = keys().get(name) or keys()[name.partition(".")[0]]
    one = found[key.name]
    if key.secret:
        return Fault(one.origin, name, "something else", expected(key))
    wrong = one.written if key.name == name and not isinstance(one.value, (list, dict)) else value
    return Fault(one.origin, name, shown(wrong), expected(key, as_text=one.origin.startswith("AGTRACE_")))


def _crossed(values: Values, origins: Mapping[str, str]) -> Iterator[Fault]:
    """Yield what contradicts another setting."""
    most = values.max_page_size
    pages = {"default_page_size": values.default_page_size} | {
        f"tools.{tool}.page_size": getattr(values.tools, tool).page_size for tool in type(values.tools).model_fields
    }
    for key, size in pages.items():
        if size is not None and size > most:
            origin = origins.get(key) or origins["max_page_size"]
            yield Fault(origin, key, str(size), f"at most max_page_size, which is {most}")
    for mode in type(values.modes).model_fields:
        limits = getattr(values.modes, mode)
        if limits.width > limits.chars:
            key = next(key for key in (f"modes.{mode}.width", f"modes.{mode}.chars") if key in origins)
            yield Fault(
                origins[key], f"modes.{mode}.width", str(limits.width), f"at most chars, which is {limits.chars}"
            )
