"""The plan of the house, counted: `python -m tests.rooms`.

A room is a module or a package directly below one of the packages; an arrow is an import from one room to
another, anywhere in a module. A circle is a set of rooms that import each other.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {
    "agtrace_schema": ROOT / "schema" / "agtrace_schema",
    "agtrace_indexer": ROOT / "indexer" / "agtrace_indexer",
    "agtrace_team": ROOT / "team" / "agtrace_team",
    "agtrace": ROOT / "agtrace",
}
"""In the direction of the arrow: a package may import itself and those before it."""

_FACES = {"__init__", "__main__"}
_SQL = re.compile(
    r"\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|PRAGMA|WITH\s+\w+.*\bAS\s*\(|ATTACH|VACUUM)\b\s"
)

Arrows = Mapping[str, Mapping[str, list[str]]]
"""Room -> room that it imports -> the modules that do, as `from -> to`."""


def main() -> None:
    """Print the figures."""
    for package in ("agtrace_indexer", "agtrace"):
        found = arrows(package)
        number = sum(len(to) for to in found.values())
        circle = " -> ".join(circle_in(found)) or "none"
        _print(f"{package}: {len(rooms(package))} rooms, {number} arrows, a circle of rooms: {circle}")
    outside = sorted({name for name, _ in sql() if not name.startswith(KEEPERS_OF_SQL + OF_OTHER_PROGRAMS)})
    _print(f"modules with SQL outside {' and '.join(KEEPERS_OF_SQL)}: {len(outside)}")
    asking = sorted({name for name in asks() if not name.startswith(KEEPERS_OF_SQL + OF_OTHER_PROGRAMS[:1])})
    _print(f"modules that execute statements outside these: {len(asking)}")
    _print(f"except clauses in agtrace/commands: {excepts(SOURCES['agtrace'] / 'commands')}")
    _print(f"lines of Python in the packages: {lines():,}")


KEEPERS_OF_SQL = (
    "agtrace_indexer.families",
    "agtrace_indexer.forget",
    "agtrace_indexer.index",
    "agtrace_indexer.run.rebuild",
    "agtrace_schema",
    "agtrace_team",
    "agtrace.answers.telemetry.store",
)
"""The places of SQL: writing and querying the index, rebuilding it, the definitions of its tables, the database of a
team; and telemetry, which is a file of its own."""

OF_OTHER_PROGRAMS = ("agtrace_indexer.logs.foreign_database", "agtrace_indexer.providers.")
"""The places of SQL for agents' databases, which are queried only through the first of these."""


def rooms(package: str) -> set[str]:
    """Return the rooms of a package, without its `__init__`."""
    return {
        path.stem
        for path in SOURCES[package].iterdir()
        if (path.is_dir() and any(path.glob("*.py"))) or (path.suffix == ".py" and path.stem not in _FACES)
    }


@cache
def parsed(path: Path) -> ast.Module:
    """Return a module, parsed once in a process."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a module."""
    return tuple(ast.walk(parsed(path)))


def modules(package: str) -> dict[str, Path]:
    """Return the modules of a package by their full names."""
    folder = SOURCES[package]
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def arrows(package: str) -> Arrows:
    """Return the imports between rooms, with the modules they are in."""
    known = modules(package)
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, path in known.items():
        for imported in sorted(_imported(path, known)):
            here, there = _room(name), _room(imported)
            if here and there and here != there:
                found[here][there].append(f"{name} -> {imported}")
    return found


def _imported(path: Path, known: Mapping[str, Path]) -> set[str]:
    names: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            wholes = (f"{node.module}.{alias.name}" for alias in node.names)
            names.update(whole if whole in known else node.module for whole in wholes)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return names & known.keys()


def _room(module: str) -> str:
    """Return the room of a module; empty for the `__init__` of its package."""
    room = module.partition(".")[2].partition(".")[0]
    return "" if room in _FACES else room


def circle_in(found: Arrows) -> list[str]:
    """Return a circle of rooms, with its first room at both ends; empty if there is none."""
    try:
        TopologicalSorter({room: set(to) for room, to in found.items()}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def sql() -> Iterator[tuple[str, str]]:
    """Yield (module, text) for each text in the code that is SQL; docstrings don't count."""
    for package in SOURCES:
        for name, path in modules(package).items():
            said = {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}
            for node in nodes(path):
                text = node.value if isinstance(node, ast.Constant) else None
                if isinstance(text, str) and id(node) not in said and _SQL.match(text):
                    yield name, text


def asks() -> Iterator[str]:
    """Yield the module of each call that executes a statement."""
    for package in SOURCES:
        for name, path in modules(package).items():
            for node in nodes(path):
                if isinstance(node, ast.Attribute) and node.attr in ("execute", "executemany", "executescript"):
                    yield name


def excepts(folder: Path) -> int:
    """Return the number of `except` clauses in the modules of a folder."""
    return sum(isinstance(node, ast.ExceptHandler) for path in folder.rglob("*.py") for node in nodes(path))


def lines() -> int:
    """Return the lines of Python in the packages."""
    return sum(
        len(path.read_text("utf-8").splitlines()) for folder in SOURCES.values() for path in folder.rglob("*.py")
    )


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
