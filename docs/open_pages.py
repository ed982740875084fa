"""Draws docs/open-*.png: pages of `agtrace open` over the sample sessions.

Run it with the project's environment where Chromium is: `make picture`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
AGTRACE = Path(sys.executable).with_name("agtrace")
_SESSION = "d41f7a52"


class Picture(NamedTuple):
    """A picture: the page, its size and look, and what is done on it first."""

    name: str
    path: str
    width: int
    height: int
    scheme: str
    prepare: Callable[[Any], object]


def _search(page: Any) -> None:
    page.keyboard.press("/")
    page.keyboard.type("database is locked")
    page.locator("#find-results .hit mark").first.wait_for()


def _unfold(page: Any) -> None:
    page.locator(".entry.chosen, .chosen .anchor").first.wait_for(state="attached")
    page.keyboard.press("Enter")


def _health(page: Any) -> None:
    page.keyboard.press("h")
    page.locator("#health .timeline .mark").first.wait_for()


PICTURES = (
    Picture("open-sessions", "/", 1280, 760, "light", lambda page: None),
    Picture("open-search", "/", 1280, 760, "light", _search),
    Picture("open-session", f"/s/{_SESSION}?at=853#e852", 1280, 860, "light", _unfold),
    Picture("open-health", f"/s/{_SESSION}", 1280, 1010, "dark", _health),
)


def main() -> None:
    """Index the samples, open them, and photograph some pages."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.exit("docs/open_pages.py needs Chromium")
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "AGTRACE_DATA_DIR": folder, "HOME": folder}
        subprocess.run(
            [AGTRACE, "index", "sample_sessions"], cwd=ROOT, env=environment, capture_output=True, check=True
        )
        server = subprocess.Popen(
            [AGTRACE, "open", "--no-browser"], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            _draw(browser, server.stdout.readline().strip())
        finally:
            server.terminate()
            server.wait()


def _draw(browser: str, link: str) -> None:
    base = link.partition("/enter")[0]
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        first = opened.new_context()
        page = first.new_page()
        page.goto(link)  # it works once; the others have its cookie
        page.wait_for_url(f"{base}/work")
        for picture in PICTURES:
            context = opened.new_context(
                viewport={"width": picture.width, "height": picture.height}, color_scheme=picture.scheme,
                reduced_motion="reduce", storage_state=first.storage_state(),
            )  # fmt: skip
            page = context.new_page()
            page.goto(base + picture.path)
            page.wait_for_timeout(1_500)
            picture.prepare(page)
            page.wait_for_timeout(1_000)
            page.screenshot(path=ROOT / "docs" / f"{picture.name}.png")
            context.close()
        opened.close()


if __name__ == "__main__":
    main()
