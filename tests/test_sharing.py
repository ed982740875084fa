"""Sharing between threads: no object is within reach of two threads if these mustn't use it at once.

Objects in a module or a class can be reached by every thread: the one that examines the index, those that answer, the
one that indexes. So they must never change, or be documented as safe for threads.
"""

from __future__ import annotations

import ast
import enum
import importlib
import re
import sqlite3
import threading
import types
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from datetime import date, timedelta
from functools import partial
from json import JSONDecoder
from logging import Logger
from pathlib import PurePath
from typing import Any

import click
import pytest
import zstandard
from mcp.server.caching import CacheHint
from msgspec import Struct
from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo
from rich.console import Console
from textual.binding import BindingsMap

from tests.rooms import nodes
from tests.test_house import _DEFINITIONS, MODULES, Module

_NEVER_CHANGE = (
    *(type(None), bool, int, float, str, bytes, enum.Enum, PurePath, date, timedelta, re.Pattern, type),
    *(types.FunctionType, types.GenericAlias, types.UnionType, types.ModuleType, partial),
)
_FOR_THREADS = (
    threading.local,
    threading.Event,
    ContextVar,
    type(threading.Lock()),
    type(threading.RLock()),
    Logger,
)
"""Documented as safe for threads."""
_READ_ONLY = (FieldInfo, CacheHint, TypeAdapter, JSONDecoder)
"""Of libraries, which change none of them once they are made."""
_OF_THE_COMMAND_LINE = (click.Command, Console, BindingsMap)
"""A command has one thread that reads its options and prints, an application one that reads its keys."""

_MAY_BE_HELD = (*_NEVER_CHANGE, *_FOR_THREADS, *_READ_ONLY, *_OF_THE_COMMAND_LINE)
_PROMISE = "Safe to use from several threads"
"""How a class of ours is documented as safe."""

_CHANGES = {
    *("append", "add", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "remove", "reverse"),
    *("setdefault", "sort", "update"),
}
_CHANGED = {
    ("agtrace_indexer.redact", "_in_use"),  # replaced as a whole, under a lock
    ("agtrace_indexer.redact.engine", "_built"),  # once, under a lock
    ("agtrace_indexer.parallel.processes", "_RUNNING"),  # by single calls of a set's methods
}
"""What functions change all the same, with what keeps it whole."""
_ONLY_READ = {"agtrace_indexer.redact.rules.kinds"}
"""What is remembered, could be changed, and isn't."""


def _held(module: Module) -> Iterator[tuple[str, Any]]:
    """What a module and its classes hold, with its name."""
    holder = importlib.import_module(module.name)
    for name in _assigned(module.tree):
        if hasattr(holder, name):
            yield name, getattr(holder, name)
    for name, value in vars(holder).items():
        if isinstance(value, type) and value.__module__ == module.name:
            yield from ((f"{name}.{inner}", held) for inner, held in vars(value).items() if not inner.startswith("__"))


def _unsafe(value: Any, seen: set[int]) -> Iterator[str]:
    """The types of what threads may not share, in a value and in all that it holds."""
    if isinstance(value, types.BuiltinMethodType | types.MethodType):
        value = value.__self__
    if id(value) in seen or hasattr(type(value), "__get__") or type(value).__module__ in ("typing", "_abc"):
        return  # functions and properties; what `functools.cache` remembers is looked at by itself
    seen.add(id(value))
    inner: Iterable[Any] = ()
    if type(value) in (dict, types.MappingProxyType):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, tuple) or type(value) in (list, set, frozenset):
        inner = value
    elif is_dataclass(value) and not isinstance(value, type) and type(value).__dataclass_params__.frozen:  # type: ignore[attr-defined]
        inner = [getattr(value, field.name) for field in fields(value)]
    elif isinstance(value, BaseModel):
        inner = dict(value).values()
    elif isinstance(value, Struct) and value.__struct_config__.frozen:
        inner = [getattr(value, name) for name in value.__struct_fields__]
    elif not isinstance(value, _MAY_BE_HELD) and _PROMISE not in (type(value).__doc__ or ""):
        yield type(value).__qualname__
    for one in inner:
        yield from _unsafe(one, seen)


def test_no_module_holds_what_two_threads_may_not_use_at_once() -> None:
    """But for those that run when they are imported."""
    modules = [module for module in MODULES.values() if not module.name.endswith("__main__")]
    held = [(module.name, name, value) for module in modules for name, value in _held(module)]
    assert [(module, name, kind) for module, name, value in held for kind in _unsafe(value, set())] == []


def test_no_function_changes_what_its_module_holds() -> None:
    for module in MODULES.values():
        held = {(module.name, name) for name in _assigned(module.tree)}
        functions = [node for node in nodes(module.path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        names = {name for function in functions for node in ast.walk(function) for name in _changed(node)}
        assert held & {(module.name, name) for name in names} <= _CHANGED


def _assigned(tree: ast.Module) -> set[str]:
    """The names that a module itself assigns when it is imported."""
    statements = (node for outer in tree.body if not isinstance(outer, _DEFINITIONS) for node in ast.walk(outer))
    targets = (node for node in statements if isinstance(node, ast.Assign | ast.AnnAssign))
    names = (name for node in targets for target in _targets(node) for name in ast.walk(target))
    return {name.id for name in names if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _changed(node: ast.AST) -> Iterator[str]:
    """The names that a node rebinds in its module, or whose content it changes."""
    held: ast.expr | None = None
    if isinstance(node, ast.Global):
        yield from node.names
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        held = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
        held = node.func.value
    if isinstance(held, ast.Name):
        yield held.id


def test_what_is_remembered_of_a_call_is_nothing_that_its_callers_could_change() -> None:
    """`functools.cache` gives the same object to every thread."""
    found = {
        f"{module.name}.{function.name}"
        for module in MODULES.values()
        for function in nodes(module.path)
        if isinstance(function, ast.FunctionDef) and function.returns
        if any(_remembers(ast.unparse(mark)) for mark in function.decorator_list)
        and ast.unparse(function.returns).startswith(_COULD_BE_CHANGED)
    }
    assert found <= _ONLY_READ


_COULD_BE_CHANGED = ("dict", "list", "set", "bytearray", "deque", "sqlite3", "zstandard")


def _remembers(mark: str) -> bool:
    return mark.removeprefix("functools.").startswith(("cache", "lru_cache")) and "property" not in mark


@pytest.mark.parametrize(
    "held",
    [
        zstandard.ZstdDecompressor(),
        {"by name": [zstandard.ZstdCompressor()]},
        sqlite3.connect(":memory:"),
        defaultdict(int),
        zstandard.ZstdDecompressor().decompress,
        bytearray(b"1"),
    ],
    ids=lambda held: type(held).__name__,
)
def test_what_two_threads_may_not_use_at_once_is_seen_wherever_it_is_held(held: Any) -> None:
    assert list(_unsafe((held,), set()))
