"""Masking of secrets, by their known forms and by what names them.

`forms.tsv` lists tokens that are known by how they look, `carriers.py` how others are carried, `names.py` what names
say of their values, `checks.py` which values are no secrets. `scanner.py` finds in one pass where something may be, and
`engine.py` looks closely there. A user's file, `redaction.json` beside the index, adds rules and allows texts.

All of a process uses the same rules: `use` takes those of a folder, and looks whether they changed. Nothing is compiled
before the first text is looked at: a run without changes never does.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import AbstractContextManager
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agtrace_schema.events import Json

    from agtrace_indexer.redact.engine import Redactor

OWN_FILE = "redaction.json"
"""The name of the user's file."""

_RULES = (
    "forms.tsv",
    "field_pairs.py",
    "carriers.py",
    "checks.py",
    "disguises.py",
    "fields.py",
    "assignments.py",
    "names.py",
    "rules.py",
    "tables.py",
)
"""The files whose change changes what is masked."""

COMPILED_FILE = "redaction.compiled"
"""The name of the file that keeps what Hyperscan made of the built-in rules, for the next process."""

ENGINE = 2
"""Raised when the same rules would now mask something else."""

LARGEST_FILE = 1024 * 1024


class UnusableRules(Exception):
    """A user's file of rules that can't be used; the text names it and says why."""

    def __init__(self, path: Path, trouble: str) -> None:
        super().__init__(f"the redaction rules {path} can't be used: {trouble}")


class _InUse(NamedTuple):
    """The rules of this process."""

    stamp: tuple[str, int, int, int] | None
    """Of the file that they are from; None where there is none."""
    data: bytes
    """What stands in it."""
    redactor: Redactor | None
    """None until the first text is looked at."""
    folder: Path | None = None
    """Where what is compiled may be kept."""


_lock = Lock()
_in_use = _InUse(None, b"", None)


def use(folder: Path) -> None:
    """Use the rules of the file in a folder from now on, if they changed.

    Raises `UnusableRules` for a file that can't be used: the rules before it then stay in use.
    """
    global _in_use
    path = folder / OWN_FILE
    with _lock:
        stamp = _stamp(path)
        if stamp == _in_use.stamp:
            _in_use = _in_use._replace(folder=folder)
            return
        data = b"" if stamp is None else _read(path)
        redactor = _made(data, path, folder) if data != _in_use.data else _in_use.redactor
        _in_use = _InUse(stamp, data, redactor, folder)


def digest() -> str:
    """Tells one set of rules from another: the built-in ones, and behind a colon the user's."""
    rules = b"".join(files(__name__).joinpath(name).read_bytes() for name in _RULES)
    return f"{sha256(str(ENGINE).encode() + rules).hexdigest()[:32]}:{_own_digest()}"


def same_own_rules(other: str) -> bool:
    """Whether a digest was made with the same rules of the user's as those in use."""
    return other.rpartition(":")[2] == _own_digest()


def _own_digest() -> str:
    return sha256(_in_use.data).hexdigest()[:32]


def redact(text: str) -> str:
    """Mask every secret in a text as `[redacted: <kind>]`; a masked text stays as it is."""
    return _redactor().redact(text)


def looked_at(texts: Iterable[str]) -> AbstractContextManager[None]:
    """Look at many texts in one pass, for the time of a `with`: `redact` then knows at once those that hold nothing.

    One pass over a hundred texts takes a third of the time of as many passes.
    """
    return _redactor().looked_at(texts)


def suspicious(text: str) -> bool:
    """Whether a rule may apply to a text, or to any piece of it."""
    return _redactor().suspicious(text)


def redact_json(value: Json) -> Json:
    """Mask the secrets in the keys and leaves of a JSON value, and whole texts under a secret's name."""
    from agtrace_indexer.redact import fields

    return fields.redact_json(_redactor(), value)


def names_secret(key: str) -> bool:
    """Whether a text may be masked for the name of its key alone; a very long key always may."""
    from agtrace_indexer.redact import fields

    return fields.names_secret(key)


def _redactor() -> Redactor:
    global _in_use
    redactor = _in_use.redactor
    if redactor is None:
        with _lock:
            redactor = _in_use.redactor or _made(_in_use.data, Path(OWN_FILE), _in_use.folder)
            _in_use = _in_use._replace(redactor=redactor)
    return redactor


def _made(data: bytes, path: Path, folder: Path | None) -> Redactor:
    """Compile the rules, or take what was compiled before. Raises `UnusableRules`."""
    from agtrace_indexer.redact.engine import Redactor
    from agtrace_indexer.redact.rules import RuleError, read_own

    try:
        return Redactor(read_own(data), folder and folder / COMPILED_FILE)
    except RuleError as error:
        raise UnusableRules(path, str(error)) from None


def _stamp(path: Path) -> tuple[str, int, int, int] | None:
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):  # a folder that is none is no trouble of the rules
        return None
    except OSError as error:
        raise UnusableRules(path, error.strerror or str(error)) from None
    return str(path), found.st_mtime_ns, found.st_size, found.st_ino


def _read(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # never wait for a pipe
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(LARGEST_FILE + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError as error:
        raise UnusableRules(path, error.strerror or str(error)) from None
    if not data.strip() or len(data) > LARGEST_FILE:
        raise UnusableRules(path, f"it must be a file of 1 to {LARGEST_FILE:,} bytes")
    return data
