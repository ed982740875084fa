"""What recording costs an answer: `python -m benchmarks.telemetry [FOLDER OF LOGS] [ROUNDS]`.

The same requests are answered with recording on and off, in turns, in one process; a request's cost is the difference
of the medians of its own times. Then 100,000 requests are recorded and asked for. The logs are the real ones beside the
project, where they are, else the samples.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agtrace.answers.log import silent
from agtrace.answers.service import Service
from agtrace.answers.telemetry.recorder import Origin, Recorder, request_of
from agtrace.answers.telemetry.store import Request, append
from agtrace.settings.limits import limits_for
from agtrace.settings.model import Settings, Telemetry
from benchmarks.__main__ import LOGS
from benchmarks.ground import AGTRACE, Machine
from benchmarks.table import number, table

ROUNDS = 40
SAMPLES = Path(__file__).resolve().parents[1] / "sample_sessions"
MANY = 100_000
_WHO = Origin("claude-code", "2.1.0", "2025-11-25", "stdio", "one-connection")
_ON, _OFF = "recorded", "not recorded"


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    logs = Path(arguments[0]) if arguments else LOGS if LOGS.exists() else SAMPLES
    rounds = int(arguments[1]) if len(arguments) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        subprocess.run([AGTRACE, "index", str(logs)], env=machine.environment, check=True, stdout=subprocess.DEVNULL)
        sys.stdout.write("\n".join((*_costs(machine.settings, rounds), "", *_many(machine))) + "\n")


def _costs(settings: Settings, rounds: int) -> Iterator[str]:
    """Yield the table of answers with and without recording."""
    off = replace(settings, telemetry=Telemetry(enabled=False))
    recorder = Recorder(settings.telemetry_file)
    asked = {_ON: Service(settings, log=silent, recorder=recorder), _OFF: Service(off, log=silent, recorder=recorder)}
    rows, costs, medians = [], [], []
    for tool, given in _questions(asked[_OFF]):
        times: dict[str, list[float]] = {_ON: [], _OFF: []}
        for turn in range(2 * rounds):
            way = (_ON, _OFF)[turn % 2]
            began = time.perf_counter()
            answer = asked[way].ask(tool, given, _WHO)
            times[way].append(1000 * (time.perf_counter() - began))
            assert not answer.is_error, answer.text
        with_it, without = statistics.median(times[_ON]), statistics.median(times[_OFF])
        medians.append(without)
        costs.append(with_it - without)
        rows.append([tool, number(without, 3), number(with_it, 3), f"{1000 * (with_it - without):+.0f} us"])
    recorder.close(5)
    yield table([f"{2 * rounds} answers each, ms", "off", "on", "cost"], rows)
    made = _record_time(settings)
    share = made / 1000 / statistics.median(medians)
    yield f"recording by itself: {made:.1f} us of the request's thread, {share:.2%} of the median answer"


def _questions(answers: Service) -> list[tuple[str, Mapping[str, Any]]]:
    """Return what is asked, of the newest session."""
    newest = answers.ask("list_sessions", {"limit": 1}).value["data"]["sessions"][0]["id"]
    return [
        ("list_sessions", {}),
        ("get_session_details", {"session_id": newest}),
        ("get_event_details", {"session_id": newest, "event_index": 1}),
        ("search_event_previews", {"query": "tests failed"}),
        ("run_sql", {"sql": "SELECT tool, count(*) FROM tool_calls GROUP BY 1"}),
    ]


def _record_time(settings: Settings, times: int = 2_000) -> float:
    """Return the microseconds that the record of an answer takes to be made and handed over."""
    elsewhere = settings.telemetry_file.with_name("other.sqlite3")
    recorder, held = Recorder(elsewhere, most=10 * times), limits_for(settings, "list_sessions", "one")
    given = Service(settings, log=silent).ask("list_sessions", {})
    began = time.perf_counter()
    for _ in range(times):
        recorder.record(request_of("list_sessions", {}, given, _WHO, held, at=time.time(), ms=1.0, id="0123456789ab"))
    return 1_000_000 * (time.perf_counter() - began) / times


def _many(machine: Machine) -> Iterator[str]:
    """Yield what 100,000 requests take on disk, and the time that a command takes to sum them up."""
    path = machine.settings.telemetry_file
    path.unlink(missing_ok=True)
    for first in range(0, MANY, 1_000):
        append(path, [_one(place) for place in range(first, first + 1_000)])
    yield f"{MANY:,} requests: {path.stat().st_size / 1_000_000:.1f} MB"
    times = []
    for _ in range(5):
        began = time.perf_counter()
        said = subprocess.run([AGTRACE, "metrics", "--json"], env=machine.environment, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
        assert json.loads(said.stdout)["total"]["requests"] == MANY
    began = time.perf_counter()
    subprocess.run([AGTRACE, "metrics", "--help"], env=machine.environment, check=True, capture_output=True)
    start = time.perf_counter() - began
    yield f"agtrace metrics over all of it: {statistics.median(times):.2f} s, of which {start:.2f} s to start"


def _one(place: int) -> Request:
    now = round(1000 * time.time())
    return Request(
        at=now - 20 * place, tool=("list_sessions", "search_event_previews", "get_event_details")[place % 3],
        request_id=f"{place:012x}", client="claude-code", client_version="2.1.0", protocol="2025-11-25",
        transport="stdio", outcome="ok", ms=20.0 + place % 97, tokens=900 + place % 2_000,
        asked_bytes=3_000 + place % 7_000, bytes=3_000 + place % 7_000, items=10, attempt=1, paginated=True,
        chunked=False, summarized=False, pruned=False, cut=False, index_state="ready", connection=f"{place // 50:012x}",
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
