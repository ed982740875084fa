"""What `make e2e` installs: exact versions with hashes, from the registry that npm is configured for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

LOCKS = sorted((Path(__file__).parent / "npm").glob("*/package-lock.json"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.parent.name)
def test_a_lock_of_the_clients_has_a_hash_for_every_package_and_no_address(lock: Path) -> None:
    packages = json.loads(lock.read_text())["packages"]
    del packages[""]
    for name, package in packages.items():
        assert package["integrity"].startswith("sha512-"), name
        assert "resolved" not in package, name


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.parent.name)
def test_the_clients_are_asked_for_by_exact_versions_which_are_those_of_the_lock(lock: Path) -> None:
    asked = json.loads((lock.parent / "package.json").read_text())
    packages = json.loads(lock.read_text())["packages"]
    for kind in ("dependencies", "optionalDependencies"):
        assert packages[""].get(kind, {}) == asked.get(kind, {})
        for name, version in asked.get(kind, {}).items():
            assert packages[f"node_modules/{name}"]["version"] == version
