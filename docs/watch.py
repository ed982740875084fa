"""Draws docs/watch.svg: `agtrace watch` itself, over some of the sample sessions, as if they were going on.

Run it with the project's environment: `make picture`.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agtrace.answers.activity_poller import ActivityPoller
from agtrace.commands.watch import _Source
from agtrace.render.tui import WatchApp
from agtrace.sessions.prices import load as load_prices
from agtrace.settings import load

ROOT = Path(__file__).resolve().parents[1]
_SAMPLES = ROOT / "sample_sessions"
_SHOWN = {
    ".claude/projects/-home-mira-projects-tidepool/e97a4b06-73c8-4f52-8d1e-b06c5a2f91d4.jsonl": 41,
    ".claude/projects/-home-mira-projects-tidepool/d41f7a52-6c0e-4b8e-9a37-2f5e81c0b944.jsonl": 190,
    ".codex/sessions/2026/10/27/rollout-2026-10-27T09-50-12-01a17cc4-7420-7c0b-b9e9-9a2193707011.jsonl": 12,
    ".codex/sessions/2026/10/06/rollout-2026-10-06T13-31-44-01a11132-cb80-755b-8f0b-6f22348b7f75.jsonl": 780,
    ".gemini/tmp/lanternfish/chats/session-2026-11-10T08-30-338b9da1.jsonl": 5,
}
"""Logs, and how many seconds ago they got their last lines."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_SIZE = (110, 24)
_SECONDS = 60


def main() -> None:
    """Run the application in a home of its own and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ |= {"HOME": folder, "AGTRACE_DATA_DIR": str(home / "data")}
        now = datetime.now(UTC)
        for name, ago in _SHOWN.items():
            _move(_SAMPLES / name.removeprefix("."), home / name, now - timedelta(seconds=ago))
        picture = asyncio.run(_picture(now.timestamp()))
    fonts = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # they would be fetched from elsewhere
    unique = re.compile(r"terminal-\d+")
    picture = unique.sub("watch", fonts.sub("", picture))
    (ROOT / "docs" / "watch.svg").write_text(picture.replace("WatchApp", "agtrace watch"), encoding="utf-8")


def _move(sample: Path, place: Path, last: datetime) -> None:
    """Copy a log with its times moved, so that its last line has this one."""
    text = sample.read_text("utf-8")
    by = last - max(map(datetime.fromisoformat, _TIME.findall(text)))
    place.parent.mkdir(parents=True, exist_ok=True)
    moved = _TIME.sub(lambda time: (datetime.fromisoformat(time[0]) + by).isoformat().replace("+00:00", "Z"), text)
    place.write_text(moved, "utf-8")


async def _picture(now: float) -> str:
    poller = ActivityPoller(load(), load_prices(None), within=3600, clock=lambda: now)
    app = WatchApp(_Source(poller))
    async with app.run_test(size=_SIZE) as pilot:
        end = time.monotonic() + _SECONDS
        while len(app.screen.query("OptionList").first().options) < len(_SHOWN) and time.monotonic() < end:  # type: ignore[attr-defined]
            await pilot.pause(0.05)
        await pilot.press("down")
        await pilot.pause()
        picture = app.export_screenshot()
        app.exit()
    poller.close()
    return picture


if __name__ == "__main__":
    main()
