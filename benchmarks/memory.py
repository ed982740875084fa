"""Peak memory of a process with all its children, from /proc."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_PAUSE = 0.05
"""Seconds between two samples."""


@dataclass(frozen=True, slots=True)
class Peak:
    """Peak memory in bytes."""

    together: int
    """That of all processes together, with shared pages counted once (PSS)."""
    largest: int
    """Resident memory of the process that had most."""


def peak(process: subprocess.Popen[bytes]) -> Peak | None:
    """Watch a process until it ends; None if the system has no /proc."""
    together = largest = 0
    while process.poll() is None:
        family = list(_family(process.pid))
        together = max(together, sum(_kilobytes(pid, "smaps_rollup", "Pss:") for pid in family))
        largest = max([largest, *(_kilobytes(pid, "status", "VmHWM:") for pid in family)])
        time.sleep(_PAUSE)
    return Peak(together * 1024, largest * 1024) if largest else None


def _family(pid: int) -> Iterator[int]:
    yield pid
    try:
        for task in (_PROC / str(pid) / "task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _family(int(child))
    except OSError:
        return  # it has just ended


def _kilobytes(pid: int, file: str, name: str) -> int:
    try:
        lines = (_PROC / str(pid) / file).read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)
