"""How large the project may be. These numbers only go down: what comes in is paid for by what goes out.

`python -m tests.test_ceilings` prints what they are now.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterable
from pathlib import Path

from agtrace.settings.schema import keys

ROOT = Path(__file__).resolve().parents[1]
CEILINGS = {
    "lines of the product": 74_205,
    "files of the product": 353,
    "settings": 39,
    "lines of tests": 54_930,
    "words of documentation": 22_800,
    "dependencies": 23,
}


def sizes() -> dict[str, int]:
    """Return the sizes that have a ceiling."""
    product = _tracked("agtrace/*.py", "indexer/*.py", "schema/*.py", "team/*.py")
    documents = _tracked("*.md", ":!tests", ":!agtrace/report/page/chartjs")
    return {
        "lines of the product": _lines(product),
        "files of the product": len(product),
        "settings": len(keys()),
        "lines of tests": _lines(_tracked("tests/*.py")),
        "words of documentation": sum(len(path.read_text("utf-8").split()) for path in documents),
        "dependencies": len(_project()["dependencies"]),
    }


def _project() -> dict[str, list[str]]:
    project: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return project


def _tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, capture_output=True, check=True)
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).exists()]


def _lines(paths: Iterable[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in paths)


def test_nothing_grows_past_its_ceiling() -> None:
    assert {name: size for name, size in sizes().items() if size > CEILINGS[name]} == {}


def test_every_dependency_says_what_it_is_for() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    for wanted in _project()["dependencies"]:
        assert re.search(re.escape(wanted) + r'",\s+# \S', text), wanted


if __name__ == "__main__":
    for name, size in sizes().items():
        print(f"{name}: {size:,} of {CEILINGS[name]:,}")  # noqa: T201
