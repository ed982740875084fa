"""Long tests take turns: a run of the whole suite has one of five parts of them, so that five days in a row cover all.

`long_tests.txt` lists them with the seconds of processor time that they take: a function, or a whole file if what its
tests share takes long. AGTRACE_THOROUGH=1 runs all of them, AGTRACE_PART=1 ... 5 a certain part; files and tests that
are named on the command line always run. `python -m tests.long_tests` runs everything, which takes a quarter of an
hour, and writes the list anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import cache
from pathlib import Path

import pytest

from tests.depth import THOROUGH

LIST = Path(__file__).with_suffix(".txt")
PARTS = 5
LONG, SHARED = 0.8, 0.3
"""Seconds from which a function is long; and the share of its time in fixtures from which a file is long as a whole."""
_PART, _TIMES = "AGTRACE_PART", "AGTRACE_TIMES"
_CHOSEN = pytest.StashKey[str | None]()
_FOLDER = os.environ.get(_TIMES)


def choose_part(config: pytest.Config) -> None:
    """Decide on the part, in the process that starts the workers: they inherit it. What tests start doesn't."""
    is_worker = hasattr(config, "workerinput")
    if not is_worker:
        whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not (config.option.keyword or THOROUGH)
        if not whole:
            os.environ.pop(_PART, None)
        elif _PART not in os.environ:
            os.environ[_PART] = str(date.today().toordinal() % PARTS + 1)
    config.stash[_CHOSEN] = os.environ.get(_PART)
    if is_worker or not config.getoption("numprocesses", None):
        for name in (_PART, _TIMES, "AGTRACE_THOROUGH"):
            os.environ.pop(name, None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long tests of the other parts."""
    chosen = config.stash[_CHOSEN]
    if chosen is None:
        return
    others = [item for item in items if part_of(item.nodeid) not in (None, int(chosen))]
    if others:
        left_out = set(others)
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=others)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which part was run."""
    if chosen := config.stash[_CHOSEN]:
        terminalreporter.write_line(
            f"Long tests: part {chosen} of {PARTS}, which follows the date; all: AGTRACE_THOROUGH=1 make test"
        )


def part_of(test: str) -> int | None:
    """Return the part, from 1 on, in which a test is run; None if it is run always."""
    file, function = test.partition("::")[0], test.partition("[")[0]
    parts = _parts()
    return parts.get(file) or parts.get(function)


@cache
def _parts() -> Mapping[str, int]:
    """Distribute the long tests: the longest first, each to the part that has taken least."""
    taken = dict.fromkeys(range(1, PARTS + 1), 0.0)
    parts: dict[str, int] = {}
    for seconds, test in listed():
        part = min(taken, key=lambda part: (taken[part], part))
        taken[part] += seconds
        parts[test] = part
    return parts


def listed() -> list[tuple[float, str]]:
    """Return the long tests with their seconds, the longest first."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return sorted(((float(line.split()[0]), line.split()[1]) for line in lines), key=lambda one: (-one[0], one[1]))


# -- measuring -------------------------------------------------------------------------------------


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Measure a test, with its fixtures."""
    before = _processor_time()
    yield
    _note("test", item.nodeid, before)


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
    """Measure what the tests of a file share."""
    before = _processor_time()
    yield
    if fixturedef.scope == "module":
        _note("shared", fixturedef.baseid, before)


def _processor_time() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _note(kind: str, what: str, before: float) -> None:
    if _FOLDER:
        with (Path(_FOLDER) / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps([kind, what, _processor_time() - before]) + "\n")


def measured(folder: Path) -> list[tuple[float, str]]:
    """Return the long tests by what was measured."""
    functions: dict[str, float] = defaultdict(float)
    files: dict[str, float] = defaultdict(float)
    shared: dict[str, float] = defaultdict(float)
    for path in folder.glob("*.jsonl"):
        for kind, what, seconds in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if kind == "shared":
                shared[what] += seconds
            else:
                files[what.partition("::")[0]] += seconds
                functions[what.partition("[")[0]] += seconds
    whole = {file for file, seconds in shared.items() if seconds >= LONG and seconds >= SHARED * files[file]}
    return [
        *((files[file], file) for file in whole),
        *(
            (seconds, name)
            for name, seconds in functions.items()
            if seconds >= LONG and name.partition("::")[0] not in whole
        ),
    ]


def _write(tests: Iterable[tuple[float, str]]) -> None:
    LIST.write_text(
        "".join(f"{seconds:.1f} {test}\n" for seconds, test in sorted(tests, key=lambda one: one[1])), "utf-8"
    )


def main() -> int:
    """Run everything, and write the list; return what pytest returned."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "AGTRACE_THOROUGH": "1", _TIMES: folder}
        done = subprocess.run([sys.executable, "-m", "pytest", "-n", "auto"], env=environment, check=False)
        _write(measured(Path(folder)))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
