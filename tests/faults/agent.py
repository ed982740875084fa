"""An agent that mistreats its logs: `python -m tests.faults.agent FOLDER SEED`.

It appends pieces that end within a line or a character, truncates logs and continues them, rewrites, rotates and
deletes them, some hundred times a second, until its input ends; then every log is complete.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import select
import sys
from pathlib import Path

LOGS = 6
_TEXT = "Die Flut kommt um fünf, 潮汐 🌊, and the ebb at eleven."


def main(folder: Path, seed: int) -> None:
    """Change the logs, then leave them complete."""
    chance = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    pending: dict[Path, bytes] = {}
    for number in itertools.count():
        if select.select([sys.stdin], [], [], chance.random() / 200)[0]:
            break
        change(folder, number, chance, pending)
    complete(pending)


def change(folder: Path, number: int, chance: random.Random, pending: dict[Path, bytes]) -> None:
    """Change one of the logs in one of the ways; `pending` has what is still to be appended to each."""
    how = chance.choice((_append, _append, _append, _torn, _torn, _truncate, _anew, _rotate, _delete))
    how(folder / f"{chance.randrange(LOGS)}.jsonl", number, pending)


def complete(pending: dict[Path, bytes]) -> None:
    """Append what is still to be appended."""
    for log, rest in pending.items():
        _add(log, rest)


def line(log: Path, number: int) -> bytes:
    """Return a prompt or an answer of the session that the log's name names."""
    session = f"0badc0de-0000-4000-8000-00000000f{log.stem:0>3}"
    said = {"role": "user", "content": f"{_TEXT} ({number})"}
    if number % 2:
        text = [{"type": "text", "text": f"{number}: {_TEXT}"}]
        said = {"role": "assistant", "id": f"msg_{number}", "model": "claude-sonnet-4-5-20250929", "content": text,
                "usage": {"input_tokens": 9, "output_tokens": number}}  # fmt: skip
    record = {
        "type": said["role"], "uuid": f"0badc0de-{number:04x}-4000-8000-000000000001", "parentUuid": None,
        "sessionId": session, "cwd": "/home/mira/projects/tidepool", "version": "2.1.212", "isSidechain": False,
        "timestamp": f"2026-09-01T08:{number // 60 % 60:02}:{number % 60:02}.000Z", "message": said,
    }  # fmt: skip
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _add(log: Path, content: bytes) -> None:
    with log.open("ab", buffering=0) as file:
        file.write(content)


def _append(log: Path, number: int, pending: dict[Path, bytes]) -> None:
    _add(log, pending.pop(log, b"") + line(log, number))


def _torn(log: Path, number: int, pending: dict[Path, bytes]) -> None:
    """Append a piece that ends within a character."""
    content = pending.pop(log, b"") + line(log, number)
    cut = content.rindex("潮".encode()) + 1
    _add(log, content[:cut])
    pending[log] = content[cut:]


def _truncate(log: Path, number: int, pending: dict[Path, bytes]) -> None:
    """Remove half of the log, and append another line at once."""
    pending.pop(log, None)
    if log.exists():
        lines = log.read_bytes().splitlines(keepends=True)
        kept = b"".join(lines[: len(lines) // 2])
        os.truncate(log, len(kept))
    _append(log, number, pending)


def _anew(log: Path, number: int, pending: dict[Path, bytes]) -> None:
    """Replace the log by another file in one step."""
    pending.pop(log, None)
    beside = log.with_suffix(".new")
    beside.write_bytes(b"".join(line(log, 1000 + number + more) for more in range(3)))
    beside.replace(log)


def _rotate(log: Path, number: int, pending: dict[Path, bytes]) -> None:
    _append(log, number, pending)
    log.replace(log.with_name(f"{log.stem}-{number}.jsonl"))


def _delete(log: Path, number: int, pending: dict[Path, bytes]) -> None:
    pending.pop(log, None)
    log.unlink(missing_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
