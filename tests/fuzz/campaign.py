"""A long run: many batches on all cores, each with a seed of its own, so that it can be stopped and resumed.

The folder of a run has `progress.jsonl` (a line for each finished batch) and `found` (a mutant for each finding).
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from random import Random

from tests.fuzz.conversation import converse
from tests.fuzz.judging import Finding, judge
from tests.fuzz.mutants import Mutant, mutant
from tests.fuzz.sources import authored, real
from tests.fuzz.ways import NAMES

LOGS, REQUESTS = 100, 500
"""The number of logs or requests in a batch."""

ASKED = 8
"""Questions about each batch of logs."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A piece of a run."""

    kind: str
    """logs or requests"""
    seed: str
    size: int

    @property
    def name(self) -> str:
        """Its unique name."""
        return f"{self.kind}/{self.seed}/{self.size}"


def batches(seed: str, logs: int, requests: int) -> Iterator[Batch]:
    """Yield all pieces of a run."""
    for kind, total, size in (("logs", logs, LOGS), ("requests", requests, REQUESTS)):
        for start in range(0, total, size):
            yield Batch(kind, f"{seed}/{start}", min(size, total - start))


def carry_out(batch: Batch, folder: Path) -> Counter[str]:
    """Run a batch, writing findings below the folder; return how often each law was broken."""
    random = Random(batch.name)
    if batch.kind == "requests":
        replies = converse(random, batch.size)
        return Counter(_note(folder, batch, reply.law, reply.what, reply.frame, "request") for reply in replies)
    sources = authored() + real()
    mutants = [mutant(sources, random) for _ in range(batch.size)]
    way = random.choice((*NAMES, None))
    found = judge(mutants, random, [way] if way else [], ASKED)
    return Counter(_note_log(folder, batch, finding, mutants) for finding in found)


def _note_log(folder: Path, batch: Batch, finding: Finding, mutants: list[Mutant]) -> str:
    made = finding.mutant
    if made is None:
        return _note(folder, batch, finding.law, f"{finding.what}\n\nin a batch of {len(mutants)} logs", b"", "batch")
    what = f"{finding.what}\n\n{made.path}\n{made.steps}"
    return _note(folder, batch, finding.law, what, made.data, Path(made.path).name[-80:].replace("\n", "_"))


def _note(folder: Path, batch: Batch, law: str, what: str, data: bytes, name: str) -> str:
    """Record a finding: what is wrong, and the mutant."""
    mark = sha256(f"{batch.name}{what}".encode("utf-8", "replace") + data).hexdigest()[:12]
    place = folder / "found" / law.replace(" ", "_").replace(":", "") / mark
    place.mkdir(parents=True, exist_ok=True)
    (place / "why").write_text(f"{law}: {what}\n\nbatch {batch.name}\n", encoding="utf-8", errors="replace")
    if data:
        (place / name).write_bytes(data)
    return law


def run(wanted: list[Batch], folder: Path, processes: int, say: Callable[[str], None]) -> Counter[str]:
    """Carry out unfinished batches; return how often each law was broken in all batches."""
    folder.mkdir(parents=True, exist_ok=True)
    journal = folder / "progress.jsonl"
    done = {line["batch"]: line["found"] for line in _read(journal)}
    left = (batch for batch in wanted if batch.name not in done)
    broken = sum((Counter(done.get(batch.name, {})) for batch in wanted), Counter[str]())
    count, started = sum(batch.size for batch in wanted if batch.name in done), time.monotonic()
    total, before = sum(batch.size for batch in wanted), count
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool, journal.open("a") as notes:
        running = {pool.submit(carry_out, batch, folder): batch for batch in islice(left, processes)}
        while running:
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                batch, found = running.pop(future), future.result()
                notes.write(json.dumps({"batch": batch.name, "found": found}) + "\n")
                notes.flush()
                broken, count = broken + found, count + batch.size
                each = 1000 * (time.monotonic() - started) / (count - before)
                say(f"{count:,} of {total:,} ({batch.kind}), {each:.1f} ms each, broken laws: {dict(broken) or 'none'}")
                running.update({pool.submit(carry_out, batch, folder): batch for batch in islice(left, 1)})
    return broken


def _read(journal: Path) -> Iterator[dict[str, object]]:
    if journal.exists():
        yield from map(json.loads, journal.read_text().splitlines())


def cores() -> int:
    """Return the number of processors that may be used."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
