"""Running the tools of the pruning server, and finding the processes that they leave."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from agtrace.pruning.arguments import parse
from agtrace.pruning.output import Output, ToolContext, ToolFailed
from agtrace.pruning.tools import TOOLS
from agtrace.text.kept_texts import KeptTexts
from tests.pruning.driving import SECONDS

needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found in /proc")


def run(tool: str, folder: Path, environment: Mapping[str, str] | None = None, **arguments: Any) -> Output:
    """Run a tool in a folder with some arguments. Raises `ToolFailed`."""
    return anyio.run(call, tool, folder, environment, arguments)


async def call(tool: str, folder: Path, environment: Mapping[str, str] | None, arguments: Mapping[str, Any]) -> Output:
    """Run a tool within an event loop."""
    context = ToolContext(
        folder, dict(os.environ) if environment is None else environment, KeptTexts(folder / "outputs")
    )
    return await TOOLS[tool].run(parse(TOOLS[tool].arguments, arguments), context)


def failure(tool: str, folder: Path, environment: Mapping[str, str] | None = None, **arguments: Any) -> ToolFailed:
    """Run a tool that fails, and return how."""
    with pytest.raises(ToolFailed) as failed:
        run(tool, folder, environment, **arguments)
    return failed.value


def marked(mark: str) -> list[int]:
    """Return the processes that live and have a variable MARK of this value."""
    wanted = f"MARK={mark}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (path / "environ").read_bytes().split(b"\0") and _lives(path):
                found.append(int(path.name))
        except OSError:
            pass  # it has just ended
    return found


def _lives(path: Path) -> bool:
    return (path / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"


async def appear(number: int, mark: str) -> None:
    """Wait within an event loop until at least so many processes with this mark live. Raises `TimeoutError`."""
    with anyio.fail_after(SECONDS):
        while len(marked(mark)) < number:
            await anyio.sleep(0.01)


def children(process: int | None = None) -> list[int]:
    """Return the child processes of a process, by default this one, also those that have ended, unless waited for."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rpartition(")")[2].split()[1]) == (process or os.getpid()):
                found.append(int(path.parent.name))
        except OSError:
            pass  # it has just ended
    return found
