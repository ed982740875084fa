"""Engines that can search for many patterns at once: `python -m benchmarks.engines [--logs FOLDER] [--seconds N]`.

Each engine searches the same texts for the first patterns of the redaction: those for forms of tokens and for names.
The texts are those of the logs below a folder (by default `../shared/logs`), unmasked, in random order. Each engine
processes as many of them as it can in some seconds of processor time, one by one, and also joined to buffers of 64 KB
unless it stops at the first match; `finds` is the number of these texts in which it finds something, relative to
Hyperscan.

google-re2 and ahocorasick-rs are not dependencies: if they are missing, their rows are left out, and a line says so.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, TypeAlias

from agtrace_indexer.redact.grammar import LOOKS
from agtrace_indexer.redact.rules import forms
from agtrace_indexer.redact.scanner import Look, Scanner

from benchmarks.masking import by_agent, joined, log_folder, texts
from benchmarks.table import number, ratio, table

SECONDS = 3.0
_MOST = 20_000_000
"""The most characters of texts."""
_IMPORTS = 3
_MEMORY = 1 << 30
"""Bytes that RE2 may use; with fewer it gives up on long texts and finds nothing in them."""
_LITERAL = re.compile(
    r"\[(?:\\.|[^\]])*\]|\((?:\\.|[^()])*\)[?*]?|\\.|\{[0-9,]*\}|.[?*]|(?P<literal>[\w /:-]{2,}(?![?*{]))"
)
_TOGETHER = 32
"""Patterns in a gate: 22 MB/s; with 8 it is 17 MB/s, with 128 it is 5 MB/s."""
_SHORTEST = 3
"""The fewest characters of a literal worth searching for."""

Search: TypeAlias = Callable[[str], object]
"""A function of a text whose result is true if one of the patterns is in it."""


class Engine(NamedTuple):
    """A way to search for many patterns."""

    name: str
    module: str
    compile: Callable[[Sequence[Look]], Search]
    tells: str
    """What it reports about a text."""
    all: bool = False
    """Whether it reports every pattern rather than stopping at the first."""


def _hyperscan(looks: Sequence[Look]) -> Search:
    return Scanner(looks).hits


def _re2_set(looks: Sequence[Look]) -> Search:
    re2 = import_module("re2")
    options = re2.Options()
    options.max_mem, options.log_errors = _MEMORY, False
    patterns = re2.Set.SearchSet(options)
    for look in looks:
        patterns.Add(_python(look))
    patterns.Compile()
    return lambda text: patterns.Match(text)


def _literals(looks: Sequence[Look]) -> Search:
    """Search for the longest literal of each pattern, ignoring case; patterns without a literal are left out."""
    found = {max(_literals_of(look.pattern), key=len, default="").lower() for look in looks}
    automaton = import_module("ahocorasick_rs").AhoCorasick([each for each in found if len(each) >= _SHORTEST])
    return lambda text: automaton.find_matches_as_indexes(text.lower())


def _literals_of(pattern: str) -> Iterator[str]:
    return (found["literal"] for found in _LITERAL.finditer(pattern) if found["literal"])


def _re(looks: Sequence[Look]) -> Search:
    return re.compile(_any_of(looks)).search


def _re_in_turn(looks: Sequence[Look]) -> Search:
    patterns = [re.compile(_python(look)) for look in looks]
    return lambda text: [pattern for pattern in patterns if pattern.search(text)]


def _regex(looks: Sequence[Look]) -> Search:
    search: Search = import_module("regex").compile(_any_of(looks)).search
    return search


def _rust(looks: Sequence[Look]) -> Search:
    """Use a validator of strings as a gate."""
    core = import_module("pydantic_core")
    schema = core.core_schema.str_schema(pattern=_any_of(looks), regex_engine="rust-regex", strict=True)
    search: Search = core.SchemaValidator(schema).isinstance_python
    return search


def _rust_in_parts(looks: Sequence[Look]) -> Search:
    """Use several such gates, as one large gate is slow."""
    gates = [_rust(looks[at : at + _TOGETHER]) for at in range(0, len(looks), _TOGETHER)]
    return lambda text: any(gate(text) for gate in gates)


def _any_of(looks: Sequence[Look]) -> str:
    return "|".join(_python(look) for look in looks)


def _python(look: Look) -> str:
    return f"(?i:{look.pattern})" if look.any_case else f"(?:{look.pattern})"


ENGINES = (
    Engine("hyperscan", "hyperscan", _hyperscan, "which, where", all=True),
    Engine("google-re2, a set", "re2", _re2_set, "which", all=True),
    Engine("ahocorasick-rs, literals alone", "ahocorasick_rs", _literals, "which, where", all=True),
    Engine("pydantic-core, gates of 32 patterns", "pydantic_core", _rust_in_parts, "whether"),
    Engine("pydantic-core, one alternation", "pydantic_core", _rust, "whether"),
    Engine("regex, one alternation", "regex", _regex, "the first"),
    Engine("re, one alternation", "re", _re, "the first"),
    Engine("re, every pattern in turn", "re", _re_in_turn, "which, where", all=True),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    given = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory() as made:
        found = texts(by_agent(log_folder(given.logs, Path(made))), _MOST)
    looks = [*(form.look for form in forms()), *LOOKS]
    sys.stdout.write(
        f"{len(looks)} patterns, {len(found):,} texts of {sum(map(len, found)) / 1e6:,.1f} million characters\n\n"
    )
    head = ["engine", "MB/s, texts", "of re", "joined", "finds", "compile ms", "import ms", "tells"]
    there = [engine for engine in ENGINES if find_spec(engine.module)]
    sys.stdout.write(table(head, list(_rows(there, looks, found, given.seconds))) + "\n")
    for engine in ENGINES:
        if engine not in there:
            sys.stdout.write(f"\n{engine.name}: left out, {engine.module} isn't installed\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description=__doc__)
    parser.add_argument("--logs", type=Path, help="a folder of logs")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="seconds for each engine, one by one and joined")
    return parser


def _rows(
    engines: Sequence[Engine], looks: Sequence[Look], texts: Sequence[str], seconds: float
) -> Iterator[list[str]]:
    buffers = joined(texts)
    reference = [bool(found) for found in map(Scanner(looks).hits, texts)]
    measured = {engine: _measured(engine, looks, texts, buffers, seconds) for engine in engines}
    plain = next(speed.texts for engine, speed in measured.items() if engine.compile is _re)
    for engine, speed in measured.items():
        yield [
            engine.name,
            number(speed.texts),
            ratio(speed.texts, plain),
            number(speed.joined),
            ratio(sum(speed.found), sum(reference[: len(speed.found)])),
            number(1000 * speed.compiling, 0),
            number(_import_ms(engine.module)),
            engine.tells,
        ]


class _Speed(NamedTuple):
    compiling: float
    """Seconds."""
    texts: float
    """MB/s."""
    joined: float | None
    """MB/s for joined buffers; None if not measured."""
    found: list[bool]
    """Whether something was found in each of the first texts."""


def _measured(
    engine: Engine, looks: Sequence[Look], texts: Sequence[str], buffers: Sequence[str], seconds: float
) -> _Speed:
    began = time.process_time()
    search = engine.compile(looks)
    compiling = time.process_time() - began
    rate, found = _rate(search, texts, seconds)
    return _Speed(compiling, rate, _rate(search, buffers, seconds)[0] if engine.all else None, found)


def _rate(search: Search, texts: Sequence[str], seconds: float) -> tuple[float, list[bool]]:
    """Search the texts again and again until the time is up; return MB/s and what was found in the first round."""
    found: list[bool] = []
    size, rounds = 0, 0
    began = now = time.process_time()
    while now - began < seconds:
        for text in texts:
            there = bool(search(text))
            size += len(text)
            if not rounds:
                found.append(there)
            now = time.process_time()
            if now - began >= seconds:
                break
        rounds += 1
    return size / 1e6 / (now - began), found


def _import_ms(module: str) -> float:
    """Return the milliseconds that the import takes in a new process; the median."""
    code = f"import time; began = time.perf_counter(); import {module}; print(time.perf_counter() - began)"
    return 1000 * statistics.median(
        float(subprocess.check_output([sys.executable, "-c", code], text=True)) for _ in range(_IMPORTS)
    )


if __name__ == "__main__":
    main()
