"""Whether what we depend on has wheels: `python -m benchmarks.wheels` asks pip, which needs a package index.

For each platform and version of Python it prints which packages have none, in the versions of `requirements.lock`, of
those that agtrace needs here; nothing is installed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement

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
_LOCKED = re.compile(r"^([a-z0-9._-]+)(?:\[.*?\])?==([^ ;]+)", re.MULTILINE)
_MISSING = re.compile(r"No matching distribution found for ([A-Za-z0-9._-]+)")


def needed() -> dict[str, str]:
    """Return the packages that agtrace needs, directly or not, with the versions of the lock."""
    locked = dict(_LOCKED.findall(Path("requirements.lock").read_text("utf-8")))
    found: dict[str, str] = {}
    waiting = ["agtrace"]
    while waiting:
        for text in requires(waiting.pop()) or ():
            wanted = Requirement(text)
            name = re.sub(r"[._]", "-", wanted.name.lower())
            if (
                name in locked
                and name not in found
                and (wanted.marker is None or wanted.marker.evaluate({"extra": ""}))
            ):
                found[name] = locked[name]
                waiting.append(name)
    return found


def missing(packages: dict[str, str], platforms: tuple[str, ...], python: str) -> Iterator[str]:
    """Yield the packages that have no wheel for one of the platforms, or a universal one."""
    left = dict(packages)
    with tempfile.TemporaryDirectory() as folder:
        while left:
            command = [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--dry-run",
                "--quiet",
                "--no-deps",
                "--ignore-installed",
            ]
            command += ["--disable-pip-version-check", "--only-binary=:all:", "--target", folder]
            command += ["--python-version", python, *(f"--platform={platform}" for platform in platforms)]
            asked = [*command, *(f"{name}=={version}" for name, version in left.items())]
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return
            told = _MISSING.search(done.stderr)
            if told is None:
                raise SystemExit(done.stderr)
            del left[told[1].lower()]
            yield told[1].lower()


def main() -> None:
    """Ask, and print a line for each platform and version."""
    packages = needed()
    sys.stdout.write(f"{len(packages)} packages\n")
    for name, platforms in PLATFORMS.items():
        for python in PYTHONS:
            without = ", ".join(missing(packages, platforms, python))
            sys.stdout.write(f"{name}, Python {python}: {f'not {without}' if without else 'all'}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
