"""Peak memory of a process with all its children, from /proc; `python -m benchmarks.memory`: that of a server."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


_ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("list_sessions", {"limit": 20}),
    *(
        ("search_event_previews", {"query": query, "order": order})
        for query in ("error", "database locked", "import os", "timeout in test", "migration")
        for order in ("best", "newest")
    ),
    ("search_event_previews", {"query": "def [a-z]+_test", "regex": True, "order": "newest"}),
    ("get_project_info", {}),
    ("count_events", {"group_by": "model"}),
)


def main() -> None:
    """Ask a server over stdio, with the index of AGTRACE_DATA_DIR, and print what it takes after each answer.

    `Rss` counts the pages of the index that are mapped, which the system gives up when others need them and which all
    servers share; `Anonymous` is what is its own.
    """
    command = [str(Path(sys.executable).with_name("agtrace")), "mcp"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdin is not None and server.stdout is not None
        hello: dict[str, Any] = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "memory", "version": "1"},
        }
        calls = [("tools/call", {"name": name, "arguments": given}) for name, given in _ASKED]
        for number, (method, params) in enumerate((("initialize", hello), *calls)):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
            while json.loads(server.stdout.readline()).get("id") != number:
                pass
            rss, own = (_kilobytes(server.pid, "smaps_rollup", f"{name}:") // 1024 for name in ("Rss", "Anonymous"))
            sys.stdout.write(f"{params.get('name', method)}: {rss} MB, of which {own} MB are its own\n")
        server.kill()


if __name__ == "__main__":
    main()
