"""One writer at full speed and four readers: what indexing costs those who search at the same time."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import anyio
from mcp import Client

from agtrace.index.reader import Index
from benchmarks import queries
from benchmarks.clients import Called, call, connected
from benchmarks.ground import Ground, Machine, warm
from benchmarks.queries import Query
from benchmarks.table import number, percentile, ratio, table

READERS = 4
SEED = 3
"""The seed of the corpus that is indexed at the same time."""
_PAUSE = 0.05
"""Seconds between two looks of the reader in process."""
_QUIET_LOOKS = 30
_PATIENCE = 3.0


class _Searches(NamedTuple):
    """The searches of the clients."""

    alone: list[Called]
    quiet: list[Called]
    busy: list[Called]
    seconds: float
    """The time that the writer took."""


class _Look(NamedTuple):
    """Milliseconds of the two steps in which a reader might wait for a writer."""

    check: float
    """Checking for changes, and indexing them unless another process is doing so."""
    begin: float
    """The time to the first row of a read transaction."""


def report(ground: Ground, megabytes: int) -> Iterator[str]:
    """Yield the two tables."""
    added = max(megabytes // 2, 1)
    logs = ground.corpus(added, SEED)
    warm(ground.corpus(megabytes))
    warm(logs)
    machine = ground.copy(ground.indexed(megabytes), "together")
    ground.say(f"{READERS} readers, without and with a writer")
    seen = anyio.run(_searches, machine, queries.chosen(machine.connect()), logs)
    base = percentile([called.milliseconds for called in seen.quiet], 0.95)
    yield table(
        (f"index of {megabytes} MB, over MCP, ms", "searches", "errors", "p50", "p95", "max", "p95 of quiet p95"),
        [
            _row("1 reader, no writer", seen.alone, base),
            _row(f"{READERS} readers, no writer (quiet)", seen.quiet, base),
            _row(f"{READERS} readers, 1 writer", seen.busy, base),
        ],
    )
    yield f"The writer indexed {added} MB in {seen.seconds:.1f} s alongside {READERS} readers."
    yield from (f"Error: {error}" for error in dict.fromkeys(called.error for called in seen.busy if called.error))
    machine = ground.copy(ground.indexed(megabytes), "together")
    ground.say("1 reader in process, without and with a writer")
    quiet, busy = _looks(machine, logs)
    yield table(
        ("1 reader in process, ms", "looks", "p50", "p95", "max"),
        [
            _look_row("check, no writer", [look.check for look in quiet]),
            _look_row("check, 1 writer", [look.check for look in busy]),
            _look_row("begin to read, no writer", [look.begin for look in quiet]),
            _look_row("begin to read, 1 writer", [look.begin for look in busy]),
        ],
    )


async def _searches(machine: Machine, chosen: list[Query], logs: Path) -> _Searches:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(machine)) for _ in range(READERS)]
        await _all_once(clients, chosen)
        alone = await _all_once(clients[:1], chosen)
        quiet = await _all_once(clients, chosen)
        began = time.perf_counter()
        with machine.start("index", str(logs)) as writer:
            busy = await _together(clients, chosen, lambda asked: writer.poll() is not None)
        seconds = time.perf_counter() - began
    _check(writer)
    return _Searches(alone, quiet, busy, seconds)


async def _all_once(clients: list[Client], chosen: list[Query]) -> list[Called]:
    return await _together(clients, chosen, lambda asked: asked == len(chosen))


async def _together(clients: list[Client], chosen: list[Query], ended: Callable[[int], bool]) -> list[Called]:
    """Have each client run one query after the other, each starting at a different one, until `ended` says so."""
    found: list[Called] = []

    async def ask(client: Client, first: int) -> None:
        asked = 0
        while not ended(asked):
            found.append(await call(client, chosen[(first + asked) % len(chosen)]))
            asked += 1

    async with anyio.create_task_group() as group:
        for at, client in enumerate(clients):
            group.start_soon(ask, client, at * len(chosen) // len(clients))
    return found


def _looks(machine: Machine, logs: Path) -> tuple[list[_Look], list[_Look]]:
    """Measure the waits of a reader that looks again and again, without a writer and with one."""
    index = Index(machine.settings)
    _look(index)  # loads modules, and opens the index
    quiet = [_look(index) for _ in range(_QUIET_LOOKS)]
    busy = []
    with machine.start("index", str(logs)) as writer:
        while writer.poll() is None:
            busy.append(_look(index))
            time.sleep(_PAUSE)
    _check(writer)
    return quiet, busy


def _look(index: Index) -> _Look:
    began = time.perf_counter()
    index.refresh(_PATIENCE)
    checked = time.perf_counter()
    with index.reader() as reader:
        reader.connection.execute("BEGIN")
        try:
            reader.connection.execute("SELECT max(id) FROM event").fetchone()
            return _Look(1000 * (checked - began), 1000 * (time.perf_counter() - checked))
        finally:
            reader.connection.rollback()


def _check(writer: subprocess.Popen[bytes]) -> None:
    if writer.returncode:
        raise subprocess.CalledProcessError(writer.returncode, writer.args)


def _row(name: str, searches: list[Called], base: float) -> list[str]:
    times = [called.milliseconds for called in searches]
    errors = sum(bool(called.error) for called in searches)
    spread = [number(percentile(times, share)) for share in (0.5, 0.95, 1)]
    return [name, str(len(times)), str(errors), *spread, ratio(percentile(times, 0.95), base)]


def _look_row(name: str, times: list[float]) -> list[str]:
    return [name, str(len(times)), *(number(percentile(times, share), 2) for share in (0.5, 0.95, 1))]
