"""Masking of secrets, recognized by their forms or by the names that go with them.

`forms.tsv` lists tokens with a known form, `carriers.tsv` the commands, headers and statements that carry others.
Where a name announces a value (`names.py`), `grammar.py` reads how the two are joined, and `values.py` judges the
value, for all carriers alike. `scanner.py` finds in one pass where a secret may
be, and `engine.py` looks closely there. A user's file, `redaction.json` next to the index, adds rules and allows texts.

A whole process uses the same rules: `use` loads those of a folder if they have changed. Nothing is compiled
before the first text is looked at, so a run without changes compiles nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import cache
from hashlib import blake2b, sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agtrace_schema.events import Json

    from agtrace_indexer.redact.engine import Redactor

OWN_FILE = "redaction.json"
"""The name of the user's file."""

COMPILED_FILE = "redaction.compiled"
"""The name of the file that keeps Hyperscan's compilation of the built-in rules for the next process."""

ENGINE = 10
"""To be raised when the same rules would mask something else."""

KEY_FILE = "redaction.key"
"""The name of the file with the key of fingerprints, which tell secrets apart without telling what they are."""

LARGEST_FILE = 1024 * 1024
_KEY_BYTES = 32


class UnusableRules(Exception):
    """A user's file of rules can't be used; the message names it and says why."""

    def __init__(self, path: Path, trouble: str) -> None:
        super().__init__(f"the redaction rules {path} can't be used: {trouble}")


class _InUse(NamedTuple):
    """The rules that this process uses."""

    stamp: tuple[str, int, int, int] | None
    """The stamp of their file; None if there is none."""
    data: bytes
    """The contents of that file."""
    redactor: Redactor | None
    """None until the first text is looked at."""
    folder: Path | None = None
    """The folder in which the compiled rules may be kept."""


_lock = Lock()
_in_use = _InUse(None, b"", None)


def use(folder: Path) -> None:
    """Use the rules in a folder's file from now on, if they have changed.

    Raise `UnusableRules` for a file that can't be used; the previous rules then stay in use.
    """
    global _in_use
    path = folder / OWN_FILE
    with _lock:
        stamp = _stamp(path)
        if stamp == _in_use.stamp:
            _in_use = _in_use._replace(folder=folder)
            return
        data = b"" if stamp is None else _read(path)
        redactor = _compile_rules(data, path, folder) if data != _in_use.data else _in_use.redactor
        _in_use = _InUse(stamp, data, redactor, folder)


def keep_compiled() -> None:
    """Compile the rules in use and keep them for other processes, unless a process has kept some already."""
    folder = _in_use.folder
    if folder is not None and not (folder / COMPILED_FILE).exists():
        _redactor()


def digest() -> str:
    """Return a digest of the rules in use: of the built-in ones, and after a colon of the user's."""
    return f"{_built_in_digest()}:{_own_digest()}"


def same_own_rules(other: str) -> bool:
    """Whether a digest was made with the user's rules that are in use."""
    return other.rpartition(":")[2] == _own_digest()


_FOLDER = Path(__file__).parent
_HOW = ("__init__.py", "engine.py", "scanner.py")
"""The files that don't say what is masked: any change of the others counts as a change of the rules."""


@cache
def _built_in_digest() -> str:
    rules = (path.read_bytes() for path in sorted(_FOLDER.glob("*.*")) if path.name not in _HOW)
    return sha256(str(ENGINE).encode() + b"".join(rules)).hexdigest()[:32]


def _own_digest() -> str:
    return sha256(_in_use.data).hexdigest()[:32]


def redact(text: str) -> str:
    """Mask every secret in a text as `[redacted: <kind>]`; a masked text stays unchanged."""
    return _redactor().redact(text)


def fingerprint(secret: str) -> str:
    """Return what tells a secret from others, 16 hexadecimal digits that only who has the key can check a guess by."""
    return blake2b(secret.encode("utf-8", "surrogatepass"), digest_size=8, key=_key(_in_use.folder)).hexdigest()


@cache
def _key(folder: Path | None) -> bytes:
    with suppress(OSError):
        return load_key(folder / KEY_FILE) if folder else b""
    return os.urandom(_KEY_BYTES)  # none can be kept there


def masks(secret: str, kind: str) -> bool:
    """Whether a whole text that is likely a secret, of this kind, is to be masked."""
    return _redactor().masks(secret, kind)


def decide(folder: Path, decisions: Mapping[str, str]) -> None:
    """Keep in a folder's file which secrets, by fingerprint, are to be shown (`allow`) or masked (`mask`), and use it.

    Raise `UnusableRules` for a file that can't be used, `OSError` if it can't be written.
    """
    import orjson

    use(folder)
    path = (folder / OWN_FILE).resolve()
    given = orjson.loads(_in_use.data or b"{}")
    with NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", delete=False) as file:
        made = {**given, "decisions": {**given.get("decisions", {}), **decisions}}
        file.write(orjson.dumps(made, option=orjson.OPT_INDENT_2))
    os.replace(file.name, path)
    use(folder)


def looked_at(texts: Iterable[str]) -> AbstractContextManager[bool]:
    """Look at many texts in one pass; within this context, `redact` then skips those without anything to mask.

    One pass over a hundred texts takes a third of the time of a hundred passes.
    """
    return _redactor().looked_at(texts)


def suspicious(text: str) -> bool:
    """Whether a rule may apply to a text, or to any part of it."""
    return _redactor().suspicious(text)


def redact_json(value: Json) -> Json:
    """Mask the secrets in the keys and leaves of a JSON value, and whole texts under the name of a secret."""
    from agtrace_indexer.redact import fields

    return fields.redact_json(_redactor(), value)


def names_secret(key: str) -> bool:
    """Whether a text may be masked because of its key's name alone; always true for a very long key."""
    from agtrace_indexer.redact import fields

    return fields.names_secret(key)


def _redactor() -> Redactor:
    global _in_use
    redactor = _in_use.redactor
    if redactor is None:
        with _lock:
            redactor = _in_use.redactor or _compile_rules(_in_use.data, Path(OWN_FILE), _in_use.folder)
            _in_use = _in_use._replace(redactor=redactor)
    return redactor


def _compile_rules(data: bytes, path: Path, folder: Path | None) -> Redactor:
    """Compile the rules, or load them as compiled before. Raise `UnusableRules`."""
    from agtrace_indexer.redact.engine import Redactor
    from agtrace_indexer.redact.rules import RuleError, read_own

    try:
        return Redactor(read_own(data), folder and folder / COMPILED_FILE, fingerprint)
    except RuleError as error:
        raise UnusableRules(path, str(error)) from None


def _stamp(path: Path) -> tuple[str, int, int, int] | None:
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):  # a folder that isn't one is not the rules' fault
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


def load_key(path: Path) -> bytes:
    """Read the key in a file; make one first unless there is one that only its owner can read.

    Raises `OSError` if none can be made.
    """
    key, is_private = _key_in(path)
    if key is not None and is_private:
        return key
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", delete=False) as file:
        file.write(os.urandom(_KEY_BYTES))
    fresh = Path(file.name)
    try:
        with suppress(OSError):  # another process has put one there, or it is damaged, or there are no hard links
            os.link(fresh, path)
        now_there, is_private = _key_in(path)
        if now_there is None or (not is_private and _key_in(fresh)[1]):  # some file systems have no permissions
            fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return path.read_bytes()


def _key_in(path: Path) -> tuple[bytes | None, bool]:
    """Return the key in a file, and whether only its owner can read it.

    It is None if there is no file, or one that is damaged, a link or a pipe.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None, False
    with open(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        key = file.read(_KEY_BYTES + 1) if stat.S_ISREG(mode) else b""
    return key if len(key) == _KEY_BYTES else None, os.name == "nt" or not mode & 0o077
