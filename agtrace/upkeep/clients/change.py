"""What `agtrace setup` would change in a client's settings, and changing it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agtrace_indexer.providers.setup import SERVER_NAME

from agtrace.upkeep.clients import json_text, settings_file, yaml_text
from agtrace.upkeep.clients.client import Client, Language, Machine
from agtrace.upkeep.clients.entries import merged
from agtrace.upkeep.clients.jsonc import parse
from agtrace.upkeep.clients.refusal import Refused
from agtrace.upkeep.clients.settings_file import SettingsFile


@dataclass(frozen=True, slots=True)
class Change:
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
        name = str(self.path)
        yield from difflib.unified_diff(
            before, after, name if self.file.content is not None else "(new)", name, "", "", lineterm=""
        )

    def make(self) -> None:
        """Write the file. Raises `Refused` and `OSError`, and has written nothing then."""
        if not self.nothing:
            settings_file.replace(self.file, self.after)


def adding(client: Client, machine: Machine, executable: str, variables: Mapping[str, str]) -> Change:
    """Return the change that adds our server, or brings its entry up to date. Raises `Refused` and `OSError`."""
    file, path = _place(client, machine)
    entry = client.entry(executable, variables)
    wanted = merged(_servers(client, file.text, path).get(SERVER_NAME), entry)
    after = _editor(client).put(file.text, path, SERVER_NAME, entry)
    return _checked(client, Change(file, after), path, wanted)


def removing(client: Client, machine: Machine) -> Change:
    """Return the change that takes our server out. Raises `Refused` and `OSError`."""
    file, path = _place(client, machine)
    return _checked(client, Change(file, _editor(client).drop(file.text, path, SERVER_NAME)), path, None)


def is_added(client: Client, machine: Machine) -> bool:
    """Whether the client's settings have our server. Raises `Refused` and `OSError`."""
    file, path = _place(client, machine)
    return SERVER_NAME in _servers(client, file.text, path)


def _place(client: Client, machine: Machine) -> tuple[SettingsFile, tuple[str, ...]]:
    """Return the file to edit and the names that lead to its servers: the file that has us, else the first there is."""
    files = [settings_file.read(path) for path in client.files(machine)]
    there = [(file, _path(client, file.text)) for file in files if file.content is not None]
    ours = (found for found in there if SERVER_NAME in _servers(client, found[0].text, found[1]))
    return next(ours, there[0] if there else (files[0], _path(client, "")))


def _path(client: Client, text: str) -> tuple[str, ...]:
    if client.language is Language.YAML:
        return client.path({})
    root = parse(text, strict=client.language is Language.JSON)
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
