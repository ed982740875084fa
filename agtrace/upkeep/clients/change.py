"""What `agtrace setup` would change in a client's settings, and changing it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agtrace_indexer.providers.setup import SERVER_NAME
from msgspec import Struct

from agtrace.upkeep.clients import json_text, settings_file, yaml_text
from agtrace.upkeep.clients.client import Client, Language, Machine
from agtrace.upkeep.clients.entries import merged
from agtrace.upkeep.clients.jsonc import parse
from agtrace.upkeep.clients.refusal import Refused
from agtrace.upkeep.clients.settings_file import SettingsFile


class Change(Struct, frozen=True):
    """A settings file, and the text that it is to have."""

    file: SettingsFile
    after: str

    @property
    def path(self) -> Path:
        """The file, as its client names it."""
        return self.file.path

    @property
    def nothing(self) -> bool:
        """Whether the file is already as it is to be."""
        return self.after == self.file.text

    def lines(self) -> Iterator[str]:
        """Yield the change as a unified diff, with three lines around it, without line ends."""
        before, after = (text.splitlines() for text in (self.file.text, self.after))
        former = "/dev/null" if self.file.content is None else str(self.path)
        yield from difflib.unified_diff(before, after, former, str(self.path), lineterm="")

    def make(self) -> None:
        """Write the file. Raises `Refused`, and has written nothing then."""
        if not self.nothing:
            with _about(self.path):
                settings_file.replace(self.file, self.after)


def adding(client: Client, machine: Machine, executable: str, variables: Mapping[str, str]) -> Change:
    """Return the change that adds our server, or brings its entry up to date. Raises `Refused`."""
    entry = client.entry(executable, variables)
    by_hand = f"To add it by hand, put this below {'.'.join(client.path({}))}: {json.dumps({SERVER_NAME: entry})}"
    file, path = _place(client, machine)
    with _about(file.path, by_hand):
        wanted = merged(_servers(client, file.text, path).get(SERVER_NAME), entry)
        after = _editor(client).put(file.text, path, SERVER_NAME, entry)
        return _checked(client, Change(file, after), path, wanted)


def removing(client: Client, machine: Machine) -> Change:
    """Return the change that takes our server out. Raises `Refused`."""
    file, path = _place(client, machine)
    with _about(file.path):
        return _checked(client, Change(file, _editor(client).drop(file.text, path, SERVER_NAME)), path, None)


def where(client: Client, machine: Machine) -> tuple[Path, bool]:
    """Return the settings file, and whether it has our server. Raises `Refused`."""
    file, path = _place(client, machine)
    return file.path, SERVER_NAME in _servers(client, file.text, path)


@contextmanager
def _about(file: Path, *more: str) -> Iterator[None]:
    """Name the file in a refusal, and what to do instead."""
    try:
        yield
    except Refused as error:
        raise Refused(f"{file}: {error}", more) from error


def _place(client: Client, machine: Machine) -> tuple[SettingsFile, tuple[str, ...]]:
    """Return the file to edit and the names that lead to its servers: the file that has us, else the first there is.

    Raises `Refused` if any of the files can't be read.
    """
    there = []
    for name in client.files(machine):
        with _about(name):
            file = settings_file.read(name)
            path = _path(client, file.text)
            there.append((file, path, SERVER_NAME in _servers(client, file.text, path)))
    best = max(there, key=lambda found: (found[2], found[0].content is not None))  # the first of equals
    return best[:2]


def _path(client: Client, text: str) -> tuple[str, ...]:
    """Return the names that lead to the servers. Raises `Refused` if the client couldn't read the text."""
    if client.language is Language.YAML:
        return client.path({})
    root = parse(text, comments=client.language is not Language.JSON, commas=client.language is Language.JSONC)
    return client.path(root.content if root is not None and root.members is not None else {})


def _editor(client: Client) -> Any:
    return yaml_text if client.language is Language.YAML else json_text


def _servers(client: Client, text: str, path: tuple[str, ...]) -> Mapping[str, Any]:
    return dict(_editor(client).servers(text, path))


def _checked(client: Client, change: Change, path: tuple[str, ...], wanted: Mapping[str, Any] | None) -> Change:
    """Return a change after reading its text again: our entry is as wanted, and all else says what it said before."""
    editor, before = _editor(client), change.file.text
    try:
        right = _servers(client, change.after, path).get(SERVER_NAME) == wanted
        right = right and editor.rest(change.after, path, SERVER_NAME) == editor.rest(before, path, SERVER_NAME)
    except Refused:
        right = False
    if not right:
        raise Refused("it is written in a way that can't be edited safely: add the entry by hand")
    return change
