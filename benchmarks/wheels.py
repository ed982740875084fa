"""Whether what we depend on has wheels: `python -m benchmarks.wheels` asks pip, which needs a package index; minutes.

For each platform and version of Python it prints which packages have none, in the versions of `requirements.lock`, of
those that agtrace needs there; nothing is installed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, requires
from itertools import product
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = {
    "Linux x86-64": ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    "Linux ARM": ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    "musl x86-64": ("musllinux_1_2_x86_64", "musllinux_1_1_x86_64"),
    "musl ARM": ("musllinux_1_2_aarch64", "musllinux_1_1_aarch64"),
    "macOS x86-64": ("macosx_13_0_x86_64", "macosx_11_0_x86_64", "macosx_10_12_x86_64", "macosx_13_0_universal2"),
    "macOS ARM": ("macosx_14_0_arm64", "macosx_11_0_arm64", "macosx_14_0_universal2"),
    "Windows x86-64": ("win_amd64",),
    "Windows ARM": ("win_arm64",),
}
_SYSTEMS = {
    "Windows": ("win32", "nt", "Windows", "AMD64", "ARM64"),
    "macOS": ("darwin", "posix", "Darwin", "x86_64", "arm64"),
}
_LINUX = ("linux", "posix", "Linux", "x86_64", "aarch64")
_AT_ONCE = 4
_LOCKED = re.compile(r"^([a-z0-9._-]+)(?:\[.*?\])?==([^ ;]+)", re.MULTILINE)
_MISSING = re.compile(r"No matching distribution found for ([A-Za-z0-9._-]+)")


def needed(platform: str, python: str) -> dict[str, str]:
    """Return the packages that agtrace needs there, directly or not, with the versions of the lock."""
    system, name, title, *machines = _SYSTEMS.get(platform.split()[0], _LINUX)
    there = {"sys_platform": system, "os_name": name, "platform_system": title, "python_version": python}
    there["platform_machine"] = machines[platform.endswith("ARM")]
    locked = dict(_LOCKED.findall(Path("requirements.lock").read_text("utf-8")))
    waiting, seen = [Requirement("agtrace")], set[str]()
    while waiting:
        asked = waiting.pop()
        if str(asked) in seen:
            continue
        seen.add(str(asked))
        try:
            told = [Requirement(text) for text in requires(asked.name) or ()]
        except PackageNotFoundError:  # what only another system needs isn't here
            continue
        for one in told:
            extras = ("", *asked.extras)
            if one.marker is None or any(one.marker.evaluate({**there, "extra": extra}) for extra in extras):
                waiting.append(one)
    names = {canonicalize_name(Requirement(text).name) for text in seen}
    return {name: version for name, version in locked.items() if name in names}


def missing(packages: dict[str, str], platforms: tuple[str, ...], python: str) -> Iterator[str]:
    """Yield the packages that have no wheel for one of the platforms, or a universal one."""
    left = dict(packages)
    options = "install --dry-run --quiet --no-deps --ignore-installed --disable-pip-version-check --only-binary=:all:"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", *options.split(), "--target", folder, "--python-version", python]
        command += [f"--platform={platform}" for platform in platforms]
        while left:
            asked = [*command, *(f"{name}=={version}" for name, version in left.items())]
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return
            told = _MISSING.search(done.stderr)
            if told is None:
                raise SystemExit(done.stderr)
            del left[told[1].lower()]
            yield told[1].lower()


def _line(place: tuple[str, str]) -> str:
    platform, python = place
    packages = needed(platform, python)
    without = ", ".join(missing(packages, PLATFORMS[platform], python))
    return f"{platform}, Python {python}: {f'not {without}' if without else 'all'} of {len(packages)}\n"


def main() -> None:
    """Ask, and print a line for each platform and version."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for line in pool.map(_line, product(PLATFORMS, PYTHONS)):
            sys.stdout.write(line)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
