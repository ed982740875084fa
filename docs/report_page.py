"""Draws docs/report.png and docs/report-session.png: the page of `agtrace report --html` over the sample sessions.

Run it with the project's environment where Chromium is: `make picture`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
_SESSION = "d41f7a52"
_WIDTH = 1180


def main() -> None:
    """Index the samples, write the page, and photograph its beginning and one session."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.exit("docs/report_page.py needs Chromium")
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "AGTRACE_DATA_DIR": folder, "HOME": folder}
        page = Path(folder) / "report.html"
        for command in (("index", "sample_sessions"), ("report", "--html", str(page))):
            executable = Path(sys.executable).with_name("agtrace")
            subprocess.run([executable, *command], cwd=ROOT, env=environment, capture_output=True, check=True)
        with sync_playwright() as playwright:
            opened = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            for part, height, scheme, name in (
                ("", 690, "light", "report"),
                (f"#s={_SESSION}", 1060, "dark", "report-session"),
            ):
                context = opened.new_context(
                    viewport={"width": _WIDTH, "height": height}, color_scheme=scheme, reduced_motion="reduce"
                )
                tab = context.new_page()
                tab.goto(f"{page.as_uri()}{part}")
                tab.wait_for_timeout(1_000)
                tab.screenshot(path=ROOT / "docs" / f"{name}.png")
            opened.close()


if __name__ == "__main__":
    main()
