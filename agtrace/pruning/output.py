"""What the tools give: a text of bounded size with its figures, or the reason why there is none."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from agtrace.text.lines import named_path

if TYPE_CHECKING:
    from agtrace.text.kept_texts import KeptTexts

MOST_CAPTURED = 2_097_152
"""The most bytes of an output that are kept: the first and the last half of them."""

_LONGEST_PATH = 200


class ToolContext(NamedTuple):
    """What a tool works with."""

    cwd: Path
    environment: Mapping[str, str]
    """What commands get."""
    kept: KeptTexts


class Truncation(NamedTuple):
    """How much of an output was kept."""

    kept_bytes: int
    total_bytes: int | None
    """None if a search was ended early, so that nobody knows."""


class Output(Struct, frozen=True):
    """What a tool gives."""

    text: str
    """Of `bash` stdout; then, if there is any, a line `[stderr]` and stderr."""
    stdout_bytes: int
    """The bytes produced, also those not kept."""
    stderr_bytes: int
    exit_code: int | None
    """Of `bash` and `grep` (1: nothing was found); None for `read`."""
    duration_ms: float
    first_line: int = 1
    """The number of the first line of `text` in its source."""
    truncated: Truncation | None = None
    """What the tool itself left out."""
    inside: str = ""
    """The line with which a private key begins that the text begins within."""


class ToolFailed(Exception):
    """A tool couldn't do what it was asked.

    `error_code` is ENOENT, EACCES, EISDIR or another name of the system's, or one of not_regular, binary, out_of_range,
    timeout, nonzero_exit, bad_pattern, spawn_failed. `message` is a sentence for the model. `output` is what there was
    until then, `timeout_ms` is there for timeouts only.
    """

    def __init__(
        self,
        error_code: str,
        message: str,
        *,
        exit_code: int | None = None,
        timeout_ms: int | None = None,
        output: Output | None = None,
    ) -> None:
        super().__init__(message)
        self.error_code, self.message = error_code, message
        self.exit_code, self.timeout_ms, self.output = exit_code, timeout_ms, output


def failed_on(path: str | Path, error: OSError) -> ToolFailed:
    """Return what to say of an error of the system's with a file or folder."""
    code = errno.errorcode.get(error.errno or 0, "EIO")
    return ToolFailed(code, f"{path_text(path)}: {_MEANINGS.get(code) or error.strerror or 'it failed'} ({code}).")


_MEANINGS: Mapping[str, str] = {
    "ENOENT": "there is no such file or folder",
    "EACCES": "this may not be read",
    "EPERM": "this may not be read",
    "ENOTDIR": "a part of this path is not a folder",
    "EISDIR": "this is a folder",
    "ELOOP": "this link leads in a circle",
    "ENAMETOOLONG": "this path is too long",
}


def path_text(path: str | Path) -> str:
    """Return a path as messages show it."""
    return named_path(str(path), _LONGEST_PATH)


def expanded(path: str, environment: Mapping[str, str]) -> str:
    """Return a path with `~` and `~name` expanded."""
    home = environment.get("HOME")
    if home and (path == "~" or path.startswith("~/")):
        return home + path[1:]
    return os.path.expanduser(path)


def working_folder(given: str | None, context: ToolContext) -> Path:
    """Return the folder that a command works in. Raises `ToolFailed` if it isn't one."""
    path = context.cwd if given is None else context.cwd / expanded(given, context.environment)
    try:
        os.stat(os.path.join(path, "."))
    except OSError as error:
        raise failed_on(path, error) from None
    return path


class KeptOutput(NamedTuple):
    """What is kept of an output."""

    text: str
    size: int
    """In bytes, without the line that stands for a gap."""


class Capture:
    """The first and the last bytes of an output of any length, in bounded memory."""

    def __init__(self, most: int = MOST_CAPTURED) -> None:
        self._half = most // 2
        self._head, self._tail = bytearray(), bytearray()
        self.total = 0
        """The bytes that have been produced."""

    def add(self, piece: bytes) -> bool:
        """Take the next piece. Always returns True: more is wanted."""
        self.total += len(piece)
        room = self._half - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        self._tail += piece
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]
        return True

    def skip(self, size: int) -> None:
        """Count bytes between the two halves that nobody has read."""
        self.total += size

    def kept(self, most: int = MOST_CAPTURED) -> KeptOutput:
        """Return the text, at most so many bytes of it and what was to be kept at first, with a line for the gap."""
        whole = self._head + self._tail if self.total == len(self._head) + len(self._tail) else None
        if whole is not None and self.total <= most:
            return KeptOutput(whole.decode("utf-8", "replace"), self.total)
        half = min(most // 2, self._half)
        head = _to_line_end(bytes(self._head[:half]))
        tail = _from_line_start(bytes((whole or self._tail)[-half:] if half else b""))
        size = len(head) + len(tail)
        gap = f"... ({self.total - size:,} bytes left out; the lines below are counted without them) ...\n"
        first = head.decode("utf-8", "replace")
        if first and not first.endswith("\n"):
            first += "\n"
        return KeptOutput(first + gap + tail.decode("utf-8", "replace"), size)


def _to_line_end(piece: bytes) -> bytes:
    """Cut a piece behind its last line end; within a very long line, behind its last whole character."""
    end = piece.rfind(b"\n") + 1
    if end > len(piece) // 2:
        return piece[:end]
    start = len(piece)
    while start > max(len(piece) - 4, 0) and piece[start - 1] & 0xC0 == 0x80:
        start -= 1
    if start and piece[start - 1] >= 0xC0:
        start -= 1
    cut = piece[start:].decode("utf-8", "ignore")
    return piece if cut else piece[:start]


def _from_line_start(piece: bytes) -> bytes:
    """Cut a piece before its first whole line; within a very long line, before its first whole character."""
    start = piece.find(b"\n") + 1
    if 0 < start < len(piece) // 2:
        return piece[start:]
    start = 0
    while start < min(4, len(piece)) and piece[start] & 0xC0 == 0x80:
        start += 1
    return piece[start:]


class JoinedOutput(NamedTuple):
    """Stdout and stderr as one text."""

    text: str
    truncated: Truncation | None


def join_captures(output: Capture, errors: Capture) -> JoinedOutput:
    """Join two captures to one text of at most `MOST_CAPTURED` bytes; of these a quarter is stderr's if it needs it."""
    for_errors = min(errors.total, max(MOST_CAPTURED // 4, MOST_CAPTURED - output.total))
    out, err = output.kept(MOST_CAPTURED - for_errors), errors.kept(for_errors)
    text = out.text
    if errors.total:
        text += ("\n" if text and not text.endswith("\n") else "") + "[stderr]\n" + err.text
    kept, total = out.size + err.size, output.total + errors.total
    return JoinedOutput(text, Truncation(kept, total) if kept < total else None)


_INHERITED = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "LANG", "LANGUAGE", "TERM", "COLORTERM", "NO_COLOR",
    "FORCE_COLOR", "TZ", "TMPDIR", "TMP", "TEMP", "EDITOR", "VISUAL", "PAGER", "LS_COLORS", "DISPLAY",
    "WAYLAND_DISPLAY", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "CI", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH",
    "PYTHONHASHSEED", "NODE_ENV", "NODE_PATH", "NVM_DIR", "NVM_BIN", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME",
    "JAVA_HOME", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "MAKEFLAGS", "SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT",
    "USERPROFILE", "APPDATA", "LOCALAPPDATA",
})  # fmt: skip
"""The variables that a command gets, besides those of the locale (`LC_`) and of folders (`XDG_`)."""


def inherited(environment: Mapping[str, str], others: Sequence[str] = ()) -> dict[str, str]:
    """Return what a command gets of an environment: the usual variables, and those that the user names."""
    names = _INHERITED.union(others)
    return {name: value for name, value in environment.items() if name in names or name.startswith(("LC_", "XDG_"))}
