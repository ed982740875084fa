"""The time that pages of `agtrace open` take: `python -m benchmarks.pages [EVENTS]`.

One session of so many events, the large sample session repeated with new ids and later times, is indexed on a machine
of its own. Each page is asked for over HTTP by a client that came by the link; the first answer of each is told beside
the median of the others.
"""

from __future__ import annotations

import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import httpx2 as httpx

from benchmarks.ground import AGTRACE, Machine
from benchmarks.table import number, table

EVENTS = 100_000
ROUNDS = 9
_SAMPLE = Path(__file__).parents[1] / "sample_sessions/claude/projects/-home-mira-projects-tidepool"
SESSION = "d41f7a52-6c0e-4b8e-9a37-2f5e81c0b944"
_IDS = re.compile(r'"(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?:msg|req|toolu)_\w+)"')
_TIME = re.compile(r'(?<="timestamp":")[^"]+')
_DAY = timedelta(hours=14)


def write(path: Path, events: int) -> None:
    """Write a log of at least so many events."""
    lines = (_SAMPLE / f"{SESSION}.jsonl").read_text(encoding="utf-8").splitlines()
    often = -(-events // (2 * len(lines)))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as log:
        for copy in range(often * 2):
            for line in lines:
                log.write(_again(line, copy) + "\n")


def _again(line: str, copy: int) -> str:
    """Return a line of the copy with this number: with ids of its own, and later."""
    if not copy:
        return line
    fresh = _IDS.sub(lambda found: found[0] if SESSION in found[0] else f'{found[0][:-5]}{copy:04x}"', line)
    return _TIME.sub(lambda found: _later(found[0], copy), fresh)


def _later(time_: str, copy: int) -> str:
    return (datetime.fromisoformat(time_) + copy * _DAY).isoformat().replace("+00:00", "Z")


def main(events: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        machine.environment  # noqa: B018  # makes the home
        write(Path(folder) / "logs" / "projects" / "-home-mira-projects-tidepool" / f"{SESSION}.jsonl", events)
        logs = [AGTRACE, "index", str(Path(folder) / "logs")]
        subprocess.run(logs, env=machine.environment, check=True, stdout=subprocess.DEVNULL)
        server = subprocess.Popen(
            [AGTRACE, "open", "--no-browser"], env=machine.environment, stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            _measure(server.stdout.readline().strip())
            began = time.perf_counter()
            server.send_signal(signal.SIGINT)
            code = server.wait(10)
            sys.stdout.write(f"\nCtrl-C: exit code {code} after {time.perf_counter() - began:.2f} s\n")
        finally:
            server.kill()


def _measure(link: str) -> None:
    address = urlsplit(link)
    with httpx.Client(base_url=f"{address.scheme}://{address.netloc}", timeout=120) as client:
        client.get(link).raise_for_status()
        page = client.get(f"/s/{SESSION[:8]}").text
        windows = int(re.findall(r'data-windows="(\d+)"', page)[0])
        last = int(re.findall(r'data-last="(\d+)"', page)[0])
        middle = windows // 2
        here = f"/s/{SESSION[:8]}"
        pages = {
            "sessions": "/",
            "the session": here,
            "the session at its end": f"{here}?at={last}",
            "a window": f"{here}/window/{middle}",
            "turns of the outline": f"{here}/outline?from=200",
            "search, best": "/found?q=database+locked",
            "search, newest": "/found?q=database+is+locked&order=newest",
            "costs by day": "/costs",
            "health and timeline": f"{here}/health",
        }
        rows = [[name, *map(_ms, _seconds(client, path, middle))] for name, path in pages.items()]
    sys.stdout.write(f"one session of {last + 1:,} events, {windows} windows\n\n")
    sys.stdout.write(table(["", "first, ms", "median, ms"], rows) + "\n")


def _seconds(client: httpx.Client, path: str, middle: int) -> tuple[float, float]:
    """Return the seconds of the first answer, and the median of the others; each window is another one."""
    took = []
    for round_ in range(ROUNDS):
        asked = path.replace(f"/window/{middle}", f"/window/{middle + 7 * round_}")
        began = time.perf_counter()
        client.get(asked).raise_for_status()
        took.append(time.perf_counter() - began)
    return took[0], statistics.median(took[1:])


def _ms(seconds: float) -> str:
    return number(1000 * seconds, 0)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS)
