"""A server of `agtrace open` for tests: the real process, and a client that came by its link."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from tests.conftest import keep_rules

AGTRACE = str(Path(sys.executable).with_name("agtrace"))
PATIENCE = 300.0


@dataclass(frozen=True, slots=True)
class Site:
    """A server that answers."""

    link: str
    """Used once, by `client`."""
    process: subprocess.Popen[str]
    environment: dict[str, str]
    """Of the process, for others on the same machine."""
    client: httpx2.Client
    """It has the cookie."""

    @property
    def base(self) -> str:
        """The address of the server."""
        return self.link.partition("/enter")[0]

    @property
    def port(self) -> int:
        """Its port."""
        return urlsplit(self.link).port or 0

    @property
    def cookie(self) -> tuple[str, str]:
        """The name and the value of the cookie."""
        return next(iter(self.client.cookies.items()))

    def stranger(self, **more: Any) -> httpx2.Client:
        """A client that doesn't have the cookie."""
        return httpx2.Client(base_url=self.base, **more)

    def page(self, path: str) -> str:
        """The text of a page, which must be there."""
        answer = self.client.get(path)
        assert answer.status_code == 200, (path, answer.status_code, answer.text[:2000])
        return answer.text


@contextmanager
def opened(home: Path, compiled_rules: Path, *arguments: str, logs: Path | None = None) -> Iterator[Site]:
    """Start `agtrace open` on a machine with this home, and these logs indexed first."""
    data = home.parent / "data"
    keep_rules(compiled_rules, data)
    environment = {**os.environ, "HOME": str(home), "AGTRACE_DATA_DIR": str(data)}
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"):
        environment.pop(name, None)
    if logs is not None:
        subprocess.run([AGTRACE, "index", str(logs)], env=environment, check=True, capture_output=True)
    process = subprocess.Popen(
        [AGTRACE, "open", "--no-browser", *arguments],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        link = process.stdout.readline().strip()
        assert link, process.stderr and process.stderr.read()
        with httpx2.Client(base_url=link.partition("/enter")[0], timeout=PATIENCE, follow_redirects=True) as client:
            client.get(link).raise_for_status()
            yield Site(link, process, environment, client)
    finally:
        process.kill()
        process.communicate()


@contextmanager
def started(site: Site, folder: Path, *arguments: str) -> Iterator[tuple[str, str]]:
    """Run `agtrace open` beside a site, with a browser that only notes its argument: the printed link, the argument."""
    visited, browser = folder / "visited", folder / "browser"
    visited.unlink(missing_ok=True)
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {visited}.part && mv {visited}.part {visited}\n')
    browser.chmod(0o755)
    environment = {**site.environment, "BROWSER": f"{browser} %s"}
    with subprocess.Popen(
        [AGTRACE, "open", *arguments],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            link = process.stdout.readline().strip()
            until(visited.exists)
            yield link, visited.read_text()
            process.send_signal(signal.SIGINT)
            assert process.wait(300) == 130
        finally:
            process.kill()


def until(found: Callable[[], Any]) -> Any:
    """What a condition gives once it is true, within some seconds."""
    end = time.monotonic() + PATIENCE
    while not (value := found()):
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)
    return value
