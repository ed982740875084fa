"""Tokens in every leaf and key of the records of all agents, each token in a different place.

A place is the path of a leaf, `.message.content[].id`, or of a key, which is then in braces. A token replaces it or
follows it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from tests.depth import depth

_TOGETHER = 4
"""The number of logs over which a kind of record is spread."""
_PLACES = depth(4, 1)
"""The number of places that a copy of a log has a token in, but for those that tell what a record is."""
_TELLING = ("type", "subtype", "operation", "kind")
_THIRD = re.compile("Qz7[0-9a-f]{9}")


class Spoiled(NamedTuple):
    """A token, and its place in the records of a log."""

    place: str
    token: str
    path: Path


def token_of(place: str) -> str:
    """Return a token of a known form for a place; each third of it is recognised by its beginning."""
    digits = sha256(place.encode()).hexdigest()
    return "ghp" + "_" + "".join(f"Qz7{digits[at : at + 9]}" for at in (0, 9, 18))


def leaked(text: str, planted: Iterable[Spoiled]) -> set[str]:
    """Return the places whose tokens are in a text, or a third of them, as any half contains one."""
    thirds = set(_THIRD.findall(text))
    if not thirds:
        return set()
    return {spoiled.place for spoiled in planted if not thirds.isdisjoint(_THIRD.findall(spoiled.token))}


def spoil(source: Path, home: Path) -> Iterator[Spoiled]:
    """Write copies of a log below a home, so many that there is a token in each place of one of them."""
    text = source.read_text("utf-8")
    records = [json.loads(text)] if source.suffix == ".json" else list(_records(text.splitlines()))
    places = dict.fromkeys(place for record in records for place in _places(record))
    for number, together in enumerate(_shared_out(list(places))):
        path = home.joinpath(f"{source.stem} {number}", *source.parts[-3:])
        tokens = {place: token_of(f"{source.name} {place}") for place in together}
        _write(path, [_with(record, tokens) for record in records])
        yield from (Spoiled(f"{source.name}: {place}", token, path) for place, token in tokens.items())


def _shared_out(places: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield places that have tokens at once: far from each other, and those that tell what a record is alone."""
    telling = [place for place in places if _is_telling(place)]
    others = [place for place in places if not _is_telling(place)]
    yield from ([place] for place in telling)
    copies = -(-len(others) // _PLACES)
    yield from (others[number::copies] for number in range(copies))


def _is_telling(place: str) -> bool:
    return place.strip(".{}").endswith(_TELLING)


def spoil_kinds(logs: Iterable[Path], home: Path) -> Iterator[Spoiled]:
    """Write logs of two lines: the first of a log, and a record of a kind in these logs, with its type unchanged."""
    seen: set[str] = set()
    for log in logs:
        first, *_ = records = list(_records(log.read_text("utf-8", "replace").splitlines()))
        for record in records:
            if (kind := _kind(record)) not in seen:
                seen.add(kind)
                yield from _spoil_record(kind, first, record, home / f"{len(seen)}")


def _spoil_record(kind: str, first: Any, record: Any, folder: Path) -> Iterator[Spoiled]:
    places = [place for place in dict.fromkeys(_places(record)) if not _is_telling(place)]
    for number in range(_TOGETHER):
        tokens = {place: token_of(f"{kind} {place}") for place in places[number::_TOGETHER]}
        path = folder / f"{number}.jsonl"
        _write(path, [first, _with(record, tokens)])
        yield from (Spoiled(f"{kind}: {place}", token, path) for place, token in tokens.items())


def _records(lines: Iterable[str]) -> Iterator[Any]:
    for line in lines:
        with suppress(ValueError):
            yield json.loads(line)


def _write(path: Path, records: Iterable[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, records)) + "\n")


def _kind(value: Any, way: str = "") -> str:
    """Return the kind of a record: its types, wherever they are."""
    if isinstance(value, dict):
        return "".join(
            f"{way}.{key}={item}" if key in _TELLING else _kind(item, f"{way}.{key}") for key, item in value.items()
        )
    return _kind(value[0], way) if isinstance(value, list) and value else ""


def _places(value: Any, way: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{way}.{{{key}}}"
            yield from _places(item, f"{way}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from _places(item, f"{way}[]")
    elif isinstance(value, str):
        yield way


def _with(value: Any, tokens: Mapping[str, str], way: str = "") -> Any:
    """Return a value with tokens in their places."""
    if isinstance(value, dict):
        return {
            _spoiled(key, tokens.get(f"{way}.{{{key}}}")): _with(item, tokens, f"{way}.{key}")
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_with(item, tokens, f"{way}[]") for item in value]
    return _spoiled(value, tokens.get(way)) if isinstance(value, str) else value


def _spoiled(text: str, token: str | None) -> str:
    """Return a text followed by a token, or replaced by it or by many, so that whoever cuts it cuts one of them."""
    if token is None:
        return text
    return {0: f"{text} {token}", 1: token}.get(int(token[-1], 16) % 3) or "see " + ", ".join([token] * 50)
