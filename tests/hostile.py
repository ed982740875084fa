"""Inputs that must not do harm: files that look like logs and are empty, endless, broken, or not files at all.

Every function builds one input in a folder and returns it with what an indexer should make of it.
The symlink loop, the directory and the socket are named like logs, as a crawler would find them.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

SESSION = "0badc0de-0000-4000-8000-00000000{:04x}"
MEGABYTE = 1_000_000


class Hostile(NamedTuple):
    """An input, and what should become of it."""

    path: Path
    expected: str


def good(folder: Path) -> Hostile:
    """Write a small healthy Claude Code log, which the others mustn't affect."""
    return Hostile(_write(folder / "good.jsonl", _joined(_claude_lines(1))), "one session: a prompt and an answer")


def empty(folder: Path) -> Hostile:
    """Write an empty file."""
    return Hostile(_write(folder / "empty.jsonl", b""), "no session, nothing to report")


def binary(folder: Path) -> Hostile:
    """Write every byte value, with NULs and newlines, and nothing like JSON."""
    content = b"\x7fELF" + bytes(range(256)) * 64
    return Hostile(_write(folder / "binary.jsonl", content), "not a log: reported as unrecognized, not parsed")


def fifo(folder: Path) -> Hostile:
    """Make a named pipe without a writer: opening it for reading would wait forever."""
    path = folder / "fifo.jsonl"
    os.mkfifo(path)
    return Hostile(path, "passed over without being opened")


def unclosed_line(folder: Path, megabytes: int = 1) -> Hostile:
    """Write one line of `megabytes` MB that starts like a Claude Code record and never ends."""
    path = folder / "unclosed.jsonl"
    start = _claude_lines(2)[0].removesuffix(b'"}}') + b" "
    with path.open("wb") as file:
        file.write(start)
        for _ in range(megabytes):
            file.write(b"x" * MEGABYTE)
    return Hostile(path, "an oversized line: bounded memory, one event with its head")


def invalid_utf8(folder: Path) -> Hostile:
    """Write a good Claude Code log in which one string has bytes that aren't UTF-8."""
    prompt, answer = _claude_lines(3)
    content = _joined([prompt.replace(b"ebb", b"e\xff\xfe\xc3b"), answer])
    return Hostile(_write(folder / "invalid-utf8.jsonl", content), "one session, U+FFFD for the bad bytes")


def symlink_loop(folder: Path) -> Hostile:
    """Make a directory with a log and a link to the directory: a crawler that follows links never ends."""
    path = folder / "loop"
    path.mkdir()
    _write(path / "inside.jsonl", _joined(_claude_lines(4)))
    (path / "again").symlink_to(".", target_is_directory=True)
    return Hostile(path, "the log inside is found once")


def self_link(folder: Path) -> Hostile:
    """Make a link to itself: opening it fails with ELOOP."""
    path = folder / "self-link.jsonl"
    path.symlink_to(path.name)
    return Hostile(path, "passed over, or reported as unreadable")


def truncated_zst(folder: Path) -> Hostile:
    """Write a good Codex rollout, compressed, without the last third.

    Note that `zstandard`'s stream reader ends such a file without an error.
    """
    name = f"rollout-2026-09-01T08-00-00-{SESSION.format(5)}.jsonl.zst"
    whole = zstandard.ZstdCompressor().compress(_joined(_codex_lines()))
    return Hostile(_write(folder / name, whole[: len(whole) * 2 // 3]), "what decompresses, marked as incomplete")


def unreadable(folder: Path) -> Hostile:
    """Write a good log without permissions. Root can still read it: check `os.access` before expecting an error."""
    path = _write(folder / "unreadable.jsonl", _joined(_claude_lines(6)))
    path.chmod(0)
    return Hostile(path, "reported as unreadable (by root: one session)")


def directory(folder: Path) -> Hostile:
    """Make a directory whose name ends like a log's."""
    path = folder / "x.jsonl"
    path.mkdir()
    return Hostile(path, "not opened as a file")


def unix_socket(folder: Path) -> Hostile:
    """Make a socket file: opening it fails with ENXIO."""
    path = folder / "socket.jsonl"
    # Not bind(): that would limit the length of the path to 107 bytes, and pytest's folders are deep.
    os.mknod(path, stat.S_IFSOCK | 0o600)
    return Hostile(path, "passed over without being opened")


BUILDERS: dict[str, Callable[[Path], Hostile]] = {
    "good": good,
    "empty": empty,
    "binary": binary,
    "fifo": fifo,
    "invalid_utf8": invalid_utf8,
    "symlink_loop": symlink_loop,
    "self_link": self_link,
    "truncated_zst": truncated_zst,
    "unreadable": unreadable,
    "directory": directory,
    "unix_socket": unix_socket,
}
"""All except `unclosed_line`, which also takes a size."""


def build_all(folder: Path, megabytes: int) -> dict[str, Path]:
    """Build every input in an existing folder; the long line gets `megabytes` MB."""
    paths = {name: build(folder).path for name, build in BUILDERS.items()}
    return paths | {"unclosed_line": unclosed_line(folder, megabytes).path}


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _joined(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()


def _claude_lines(number: int) -> list[bytes]:
    """Return a prompt and its answer; every number is another session. The prompt's text ends the first line."""
    prompt, answer = (f"0badc0de-{number:04x}-4000-8000-00000000000{n}" for n in (1, 2))
    envelope = {
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/mira/projects/tidepool",
        "sessionId": SESSION.format(number),
        "version": "2.1.212",
        "gitBranch": "main",
    }
    message = {
        "id": f"msg_hostile{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": [{"type": "text", "text": "Two tides a day: flood and ebb."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 9, "output_tokens": 11},
    }
    records: list[dict[str, Any]] = [
        {
            "parentUuid": None,
            **envelope,
            "type": "user",
            "uuid": prompt,
            "timestamp": "2026-09-01T08:00:00.000Z",
            "message": {"role": "user", "content": "When does the tide ebb?"},
        },
        {
            "parentUuid": prompt,
            **envelope,
            "type": "assistant",
            "uuid": answer,
            "timestamp": "2026-09-01T08:00:04.000Z",
            "requestId": f"req_hostile{number}",
            "message": message,
        },
    ]
    return [_line(record) for record in records]


@cache
def _codex_lines() -> tuple[bytes, ...]:
    """Return a rollout of 500 answers whose texts hardly compress, so that the file has several zstd blocks."""
    meta = {"id": SESSION.format(5), "timestamp": "2026-09-01T08:00:00.000Z", "cwd": "/home/mira/projects/tidepool"}
    source = {"originator": "codex_cli_rs", "cli_version": "0.137.0", "source": "cli", "model_provider": "openai"}
    payloads: list[tuple[str, dict[str, Any]]] = [
        ("session_meta", {**meta, **source}),
        ("event_msg", {"type": "user_message", "message": "List the checksums.", "images": []}),
    ]
    payloads += [("response_item", _codex_answer(number)) for number in range(500)]
    return tuple(
        _line({"timestamp": "2026-09-01T08:00:01.000Z", "type": kind, "payload": payload}) for kind, payload in payloads
    )


def _codex_answer(number: int) -> dict[str, Any]:
    digests = (hashlib.sha256(f"{number}.{part}".encode()).hexdigest() for part in range(8))
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": " ".join(digests)}]}
