"""Where settings come from: defaults, a file, environment variables, the command line; later ones win.

Of a file with a fault nothing is used, of variables and the command line all but the faulty ones.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from pathlib import Path
from typing import Any, NamedTuple

from agtrace_schema.patterns import later
from msgspec import Struct
from pydantic import ValidationError

from agtrace.problems import SettingError
from agtrace.settings import SHORTEST_TOKEN
from agtrace.settings.environment import ALIASES, CONFIG, PREFIX, at_home, command_line, config_file, environment_of
from agtrace.settings.model import SECRET, Settings
from agtrace.settings.schema import ADAPTER, allowed, keys, names_at, schema_at

MOST_TOLD = 20
"""The most faults of which each is told."""

_LONGEST_SHOWN = 60
_SET = "--set"
_OPTIONS = ("index", "user")
"""Settings that have an option of their own."""

_DEEPEST = 3
"""The most parts of a key, as in `tools.list_sessions.rollout`."""

_SIMILAR = 0.8
"""How similar a variable must be to one of ours to be taken for it: others may begin with AGTRACE_, too."""

Name = tuple[str, ...]
"""The parts of a key."""


class Fault(NamedTuple):
    """A value that can't be used, a key that isn't known, or a whole source."""

    origin: str
    """The file's path, the variable, or the option."""
    key: str
    """Empty if the source as a whole can't be used."""
    problem: str
    """What is wrong, such as `expected a path, got 1`."""
    value: str = ""
    """As given, shortened; nothing of a secret. Empty if nothing is wrong with the value by itself."""
    expected: str = ""
    """What it may be."""

    def __str__(self) -> str:
        named = self.key and not self.origin.startswith((PREFIX, f"--{self.key}"))
        return f"{self.origin}: {self.key}: {self.problem}" if named else f"{self.origin}: {self.problem}"


class InvalidSettings(SettingError):
    """Settings that can't be used, with every fault."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(fault_sentences(faults)))
        self.faults = tuple(faults)


def fault_sentences(faults: Sequence[Fault]) -> list[str]:
    """Return a sentence for each fault; of very many, for the first ones, and how many more there are."""
    more = len(faults) - MOST_TOLD
    left_out = [f"... and {more:,} more: `agtrace config check --json` names them"] if more > 0 else []
    return [*map(str, faults[:MOST_TOLD]), *left_out]


class SourcedSettings(Struct, frozen=True):
    """Settings and where each value comes from."""

    settings: Settings
    """Without what has a fault."""
    file: Path | None
    """The configuration file; None if there is none."""
    origins: Mapping[str, str]
    """By key; a key that isn't there has its default."""
    faults: tuple[Fault, ...]
    unknown: tuple[Fault, ...]
    """Keys that set nothing."""

    def origin(self, key: str) -> str:
        """Return where the value of a key comes from: `default`, the file's path, a variable, or an option."""
        return self.origins.get(key, "default")


def read(environment: Mapping[str, str] | None = None, file: Path | None = None) -> SourcedSettings:
    """Return the settings, with a certain file or with the one that is named or at its usual place. Never raises."""
    variables = environment_of(environment)
    path, named = config_file(variables) if file is None else (file.absolute(), True)
    is_there = named or path.is_file()
    sources = [_of_file(path) if is_there else _Source(), _of_variables(variables), _of_command_line()]
    values = {name: one for source in sources for name, one in source.values.items()}
    settings = ADAPTER.validate_python(_tree(values))
    return SourcedSettings(
        Settings(**{name: getattr(settings, name) for name in settings.__struct_fields__}, environment=variables),
        path if is_there else None,
        {".".join(name): one.origin for name, one in values.items()},
        tuple(fault for source in sources for fault in source.faults),
        tuple(fault for source in sources for fault in source.unknown),
    )


# -- sources ---------------------------------------------------------------------------------------


class _Given(NamedTuple):
    value: Any
    origin: str


class _Source(NamedTuple):
    values: Mapping[Name, _Given] = {}
    faults: Sequence[Fault] = ()
    unknown: Sequence[Fault] = ()


def _of_file(path: Path) -> _Source:
    try:
        data = {key: value for key, value in parsed(path).items() if key != "$schema"}  # editors look for it in JSON
    except Unreadable as problem:
        return _Source(faults=[Fault(str(path), "", str(problem))])
    found = ((name, _from(path.parent, name, value)) for name, value in _leaves(data))
    source = _checked([(name, value, str(path)) for name, value in found], strict=True)
    return source._replace(values={}) if source.faults else source


def _leaves(value: Any, name: Name = ()) -> Iterator[tuple[Name, Any]]:
    """Yield keys with their values. Each may be written in camelCase, but for the names of clients."""
    if not isinstance(value, Mapping) or len(name) == _DEEPEST:
        yield name, value
        return
    for key, one in value.items():
        text = str(key).encode("utf-8", "backslashreplace").decode()  # JSON may hold half a letter
        yield from _leaves(one, (*name, text if name == ("clients",) else _in_snake_case(text)))


def _in_snake_case(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _from(folder: Path, name: Name, value: Any) -> Any:
    """Return a value of a file: a path begins at its folder."""
    is_path = name in (("data_dir",), ("prices",)) and isinstance(value, str) and value
    return str(folder / at_home(value)) if is_path else value


def _of_variables(environment: Mapping[str, str]) -> _Source:
    """Read the environment: `AGTRACE_` and the key, in capitals, with `__` for each dot."""
    named = {name: text.strip() for name, text in environment.items() if name.startswith(PREFIX) and name != CONFIG}
    found = [
        (key, value, name)
        for name, text in named.items()
        if text
        for key, value in _from_text(tuple(ALIASES.get(name, name).removeprefix(PREFIX).lower().split("__")), text)
    ]
    source = _checked(found, strict=False)
    return source._replace(unknown=[near for one in source.unknown if (near := _misspelled(one)) is not None])


def _misspelled(one: Fault) -> Fault | None:
    """Return what is said of a variable that sets nothing: nothing if it may belong to something else."""
    known = {key.variable.removeprefix(PREFIX) for key in keys().values()}
    near = _nearest(one.origin.removeprefix(PREFIX), known, _SIMILAR)
    if near is None and "__" not in one.origin:
        return None
    perhaps = f"perhaps {PREFIX}{near} is meant" if near else "`agtrace config` lists the keys"
    return one._replace(problem=f"this variable sets nothing: {perhaps}")


def _of_command_line() -> _Source:
    found = []
    for key, text in command_line().items():
        group, _, rest = key.partition(".")
        name = (group, rest) if group == "clients" and rest else tuple(map(_in_snake_case, key.split(".")))
        origin = f"--{key}" if key in _OPTIONS else _SET
        found += [(one, value, origin) for one, value in _from_text(name, text)]
    source = _checked(found, strict=False)
    return source._replace(faults=[*source.faults, *source.unknown], unknown=())


def _from_text(name: Name, text: str) -> Iterable[tuple[Name, Any]]:
    """Return what a variable says of a key: a text, or a table in JSON, by name."""
    try:
        return _leaves(json.loads(text), name) if text.startswith("{") else [(name, text)]
    except (ValueError, RecursionError):
        return [(name, text)]


# -- checks ----------------------------------------------------------------------------------------


def _checked(found: Iterable[tuple[Name, Any, str]], *, strict: bool) -> _Source:
    """Return what can be used of these keys, values and origins; `strict` if a text stands for nothing but a text."""
    values: dict[Name, _Given] = {}
    faults: list[Fault] = []
    unknown: list[Fault] = []
    for name, value, origin in found:
        if values.setdefault(name, _Given(value, origin)).value != value:
            faults.append(Fault(origin, ".".join(name), f"is given twice, as in {values[name].origin}; keep one"))
    try:
        ADAPTER.validate_python(_tree(values), strict=strict)
    except ValidationError as error:
        for one in error.errors(include_url=False, include_context=False):
            wrong = {
                name
                for name in values
                if all(part == other for part, other in zip(name, one["loc"], strict=False) if other != "[key]")
            }
            origin = next((values[name].origin for name in wrong), "")
            if one["type"] == "extra_forbidden" or one["loc"][-1] == "[key]":
                unknown.append(_unknown(origin, one["loc"], one["input"]))
            else:
                faults.append(_unfit(origin, one["loc"], one["input"]))
            values = {name: given for name, given in values.items() if name not in wrong}
    return _Source(values, faults, unknown)


def _tree(values: Mapping[Name, _Given]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, one in sorted(values.items(), key=lambda item: len(item[0])):
        table = tree
        for part in name[:-1]:
            below = table.get(part)
            table[part] = table = below if isinstance(below, dict) else {}
        table[name[-1]] = one.value
    return tree


def _unfit(origin: str, place: tuple[str | int, ...], value: Any) -> Fault:
    key, schema = _place_text(place), schema_at(place)
    if key in SECRET:
        shown = "something else"
    elif "properties" in schema or isinstance(place[-1], int):
        shown = _veiled(value)
    else:
        shown = _value_text(value)
    expected = allowed(schema)
    return Fault(origin, key, f"expected {expected}, got {shown}", shown, expected)


def _unknown(origin: str, place: tuple[str | int, ...], value: Any) -> Fault:
    place = tuple(part for part in place if part != "[key]")
    known = names_at(place[:-1])
    near = _nearest(str(place[-1]), known)
    few = f": {', '.join(known)}" if len(known) <= 12 else " (`agtrace config` lists them)"
    expected = "a known key" + (f", perhaps {near}" if near else few)
    shown = _veiled(value)
    return Fault(origin, _place_text(place), f"expected {expected}, got {shown}", shown, expected)


def _place_text(place: Sequence[str | int]) -> str:
    return ".".join(map(str, place)) if isinstance(place[-1], str) else f"{_place_text(place[:-1])}[{place[-1]}]"


def _value_text(value: Any) -> str:
    """Return a value as a fault shows it: as in a file."""
    if isinstance(value, Mapping | list):  # may be nested deeply
        return "a table" if isinstance(value, Mapping) else "a list"
    if isinstance(value, int) and value.bit_length() > _LONGEST_SHOWN:
        return "a number that is far too large"
    if isinstance(value, date | time):
        return value.isoformat()
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=repr)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def _veiled(value: Any) -> str:
    """Return a value that has no place in the settings as a fault shows it: a longer text may be a misplaced token."""
    return "a text" if isinstance(value, str) and len(value) >= SHORTEST_TOKEN else _value_text(value)


def _nearest(given: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """Return the known name that is most similar to a given one; None if none is similar enough (0 to 1)."""
    import difflib  # only if needed

    return next(iter(difflib.get_close_matches(given, known, 1, least)), None)


# -- files --------------------------------------------------------------------------------------------

LARGEST = 65_536
"""Bytes."""

_LONGEST_NAME = 60
_DEEPEST_YAML = 20
"""Far more than a setting needs; the parser's time grows with the square of the depth."""

_QUOTED = later(r"'[^'<]{4,}'")
"""A piece of a file in a parser's message; not a single letter, nor the name of a form such as '<scalar>'."""


class Unreadable(Exception):
    """A file that can't be read or isn't what its suffix says; the message is the rest of a sentence about it."""


def parsed(path: Path) -> Mapping[Any, Any]:
    """Return the content of a file; an empty one has none. Raises `Unreadable`."""
    kind = path.suffix.lower()
    if kind not in _PARSERS:
        raise Unreadable("expected a name that ends in .toml, .yaml, .yml or .json")
    name, parser = _PARSERS[kind]
    text = _text(path)
    try:
        result = parser(text) if text.strip() else {}
    except RecursionError:
        raise Unreadable(f"expected valid {name}: it is nested too deeply") from None
    except Exception as error:  # noqa: BLE001  # each library has errors of its own, some of them undocumented
        raise Unreadable(f"expected valid {name}: {_mistake(error)}") from None
    if result is None:
        return {}
    if not isinstance(result, Mapping):
        raise Unreadable("expected keys and values")
    return result


def _text(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():
            raise Unreadable("can't be read: it isn't a file")
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        why = error.strerror or str(error)
        raise Unreadable(f"can't be read: {why[:1].lower()}{why[1:]}") from None
    if len(data) > LARGEST:
        raise Unreadable(f"expected at most {LARGEST:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"expected UTF-8; byte {error.start} isn't valid UTF-8") from None


def _mistake(error: Exception) -> str:
    """Return what is wrong and where, with nothing of the file's text, which may be a token."""
    if "set_int_max_str_digits" in str(error):
        return "a number is far too large"
    mark = getattr(error, "problem_mark", None)
    said = str(error) if mark is None else f"{getattr(error, 'problem', '')} (at line {mark.line + 1})"
    return " ".join(_QUOTED.sub("...", said).split())


def _yaml(text: str) -> Any:
    from ruamel.yaml import YAML, AliasEvent, CollectionEndEvent, CollectionStartEvent
    from ruamel.yaml.constructor import DuplicateKeyError
    from ruamel.yaml.error import MarkedYAMLError

    reader = YAML(typ="safe", pure=True)
    reader.version = (1, 1)  # in which `off` is false
    depth = 0
    for event in reader.parse(text):
        if isinstance(event, AliasEvent):  # a few can stand for billions of values
            raise MarkedYAMLError(problem="an alias, which isn't supported", problem_mark=event.start_mark)
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > _DEEPEST_YAML:
            raise RecursionError
    try:
        return reader.load(text)
    except DuplicateKeyError as error:  # its message has both values
        raise MarkedYAMLError(problem="a key is given twice; keep one", problem_mark=error.problem_mark) from None


def _json(text: str) -> Any:
    def strict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise ValueError(f"{twice[:_LONGEST_NAME]} is given twice; keep one")
        return result

    return json.loads(text, object_pairs_hook=strict)


def _toml(text: str) -> Any:
    import tomllib  # only if there is such a file

    return tomllib.loads(text)


_PARSERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    ".toml": ("TOML", _toml),
    ".yaml": ("YAML", _yaml),
    ".yml": ("YAML", _yaml),
    ".json": ("JSON", _json),
}
