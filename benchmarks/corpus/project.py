"""An invented project: files of the pool under new paths, with some of their identifiers renamed.

Renaming makes the vocabulary grow with the number of projects, as in real logs: the same words recur
everywhere, but not the names composed of them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import orjson

from benchmarks.corpus.chance import pick

_IDENTIFIER = re.compile(r"\b[A-Za-z][a-z0-9]*(?:_[A-Za-z0-9]+|[A-Z][a-z0-9]+)+")
_WORD = re.compile(r"(?<![A-Za-z])[a-z]{3,9}(?![A-Za-z])")
_SENTENCE = re.compile(r"\n[ #*]*([A-Z][a-z]+ [a-z][\w ,'()-]{30,110}\.)(?=\n)")
_FOLDERS_OF_PYTHON = ("lib", "python", "site-packages")
_RENAMED_SHARE = 0.4
_LINES_OF_A_WINDOW = (60, 100, 150, 200, 300, 500, 800)
_KEPT_WINDOWS = 6
_SEARCHED_FILES = 25

PROJECT_NAMES = (
    "amberjack",
    "bramble",
    "cinderpath",
    "dovetail",
    "elmbrook",
    "fernhollow",
    "gullwing",
    "harrow",
    "inkwell",
    "juniper",
    "kestrel",
    "larkspur",
    "millrace",
    "nightjar",
    "oxbow",
    "periwinkle",
    "quillon",
    "rookery",
    "saltmarsh",
    "thistle",
    "umbra",
    "vesper",
    "wickerwork",
    "yarrow",
    "zephyr",
)


@dataclass(frozen=True, slots=True)
class Window:
    """Lines of a file as agents read them."""

    start: int
    count: int
    total: int
    text: str
    encoded: orjson.Fragment
    """The lines as a JSON string."""
    numbered: orjson.Fragment
    """The lines with their numbers, as Claude Code shows them, as a JSON string."""


class SourceFile:
    """A file of a project. Edits change it, so that later reads differ from earlier ones."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.lines = text.split("\n")
        self._windows: dict[tuple[int, int], Window] = {}

    def window(self, rng: Random) -> Window:
        """Return some consecutive lines, prepared once."""
        count = pick(rng, _LINES_OF_A_WINDOW)
        start = int(rng.random() ** 2 * max(1, len(self.lines) - count)) // 20 * 20
        found = self._windows.get((start, count))
        if found is None:
            if len(self._windows) > _KEPT_WINDOWS:
                self._windows.clear()
            found = self._windows[start, count] = self._prepared(start, count)
        return found

    def replace(self, at: int, count: int, new: Sequence[str]) -> None:
        """Replace some lines by others."""
        self.lines[at : at + count] = new
        self._windows.clear()

    def _prepared(self, start: int, count: int) -> Window:
        lines = self.lines[start : start + count]
        text = "\n".join(lines)
        numbered = "\n".join([f"{number:6}\t{line}" for number, line in enumerate(lines, start + 1)])
        return Window(start + 1, len(lines), len(self.lines), text, encoded(text), encoded(numbered))


def encoded(text: str) -> orjson.Fragment:
    """Encode a text as a piece of JSON that can be used in several records."""
    return orjson.Fragment(orjson.dumps(text))


class Project:
    """A folder with files in which agents work, and the names and comments found in it."""

    def __init__(self, rng: Random, name: str, pool: Sequence[Path], files: int) -> None:
        self.name = name
        self.root = f"/home/mira/work/{name}"
        texts = {path: path.read_text(encoding="utf-8") for path in rng.sample(pool, min(files, len(pool)))}
        everything = "\n".join(texts.values())
        self.words = sorted(set(_WORD.findall(everything[:400_000])))
        found = sorted(set(_IDENTIFIER.findall(everything)))
        self._renamed = {old: self.coin(rng) for old in found if rng.random() < _RENAMED_SHARE}
        self.names = list(dict.fromkeys(self._renamed.get(old, old) for old in found)) or ["main"]
        rng.shuffle(self.names)
        self.files = [SourceFile(*self._own(path, text)) for path, text in texts.items()]
        self.sentences: list[str] = _SENTENCE.findall(everything[:300_000])
        self._hits: dict[str, list[str]] = {}

    def coin(self, rng: Random) -> str:
        """Return a new name, composed of words of the project."""
        words = [pick(rng, self.words) for _ in range(2 + (rng.random() < 0.4))]
        style = rng.random()
        if style < 0.55:
            return "_".join(words)
        titled = "".join([word.capitalize() for word in words])
        return titled if style < 0.8 else words[0] + titled[len(words[0]) :]

    def matching_lines(self, name: str) -> list[str]:
        """Return lines of some files with this name, as `path:line:text`; results are cached."""
        hits = self._hits.get(name)
        if hits is None:
            hits = self._hits[name] = self._search(name)
        return hits

    def _search(self, name: str) -> list[str]:
        return [
            f"{file.path}:{number}:{line[:300]}"
            for file in self.files[:_SEARCHED_FILES]
            for number, line in enumerate(file.lines[:300], 1)
            if name in line
        ]

    def _own(self, path: Path, text: str) -> tuple[str, str]:
        rename = functools.partial(_renaming, self._renamed)
        *folders, file = path.parts[-3:]
        own = (folder for folder in folders if not folder.startswith(_FOLDERS_OF_PYTHON))
        place = "/".join([*own, _IDENTIFIER.sub(rename, file)])
        return f"{self.root}/src/{place}", _IDENTIFIER.sub(rename, text)


def _renaming(renamed: dict[str, str], match: re.Match[str]) -> str:
    return renamed.get(match[0], match[0])
