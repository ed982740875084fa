"""Write the one large sample session: a day of Claude Code 2.1.219 in the invented project tidepool.

    python sample_sessions/make_large.py

writes `claude/projects/-home-mira-projects-tidepool/<SESSION>.jsonl` beside this file, and nothing
else. The result depends only on this file: the random numbers are seeded and the clock is invented.
About 1.9 MB: 44 prompts, more than 500 tool calls, two compactions.

The needle: in the turn of prompt 22, the output of one `backfill` is a traceback that ends with `NEEDLE`.
That text stands in this one tool output and nowhere else. Prompt 25 asks for the fix.
"""

from __future__ import annotations

import json
import random
import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

SESSION = "d41f7a52-6c0e-4b8e-9a37-2f5e81c0b944"
ROOT = "/home/mira/projects/tidepool"
TARGET = Path(__file__).parent / "claude" / "projects" / "-home-mira-projects-tidepool" / f"{SESSION}.jsonl"
SEED = 20261103
START = datetime(2026, 11, 3, 8, 2, 11, tzinfo=UTC)
COMPACT_ABOVE_TOKENS = 70_000
NEEDLE = "sqlite3.OperationalError: database is locked (tidepool/ingest/writer.py:88)"

STATIONS = ["KELP-04", "HARB-11", "SKER-02", "MOLE-07", "FORD-19"]
WRITER = "tidepool/ingest/writer.py"
STORE = "tidepool/store.py"


def invented_sources(rng: random.Random) -> dict[str, list[str]]:
    """The project's files as lists of lines, so that reads, searches and edits agree with each other."""
    topics = {
        WRITER: ("bundle", "reading", "checkpoint"),
        "tidepool/ingest/reader.py": ("packet", "gauge", "checksum"),
        "tidepool/ingest/backfill.py": ("window", "gap", "station"),
        "tidepool/ingest/schedule.py": ("slot", "retry", "station"),
        STORE: ("connection", "reading", "migration"),
        "tidepool/api.py": ("request", "station", "page"),
        "tidepool/harmonics.py": ("constituent", "phase", "amplitude"),
        "tidepool/forecast.py": ("horizon", "tide", "residual"),
        "tidepool/alerts.py": ("threshold", "surge", "notice"),
        "tidepool/export.py": ("column", "reading", "archive"),
        "tidepool/cli.py": ("command", "option", "report"),
        "tests/test_writer.py": ("bundle", "reading", "checkpoint"),
        "tests/test_backfill.py": ("window", "gap", "station"),
        "tests/test_harmonics.py": ("constituent", "phase", "amplitude"),
    }
    sources = {path: _invented_module(path, nouns, rng) for path, nouns in topics.items()}
    sources[WRITER] = _with_line_88(sources[WRITER])
    sources[STORE] += _OPEN_DATABASE
    return sources


def _with_line_88(lines: list[str]) -> list[str]:
    """Put the writer's class in, so that the line that fails in the needle is line 88 of the file."""
    failing = next(place for place, line in enumerate(_WRITER_CLASS) if "executemany" in line)
    room = 87 - failing
    cut = max(n for n, line in enumerate(lines[: room - 2]) if line == "" and lines[n - 1] == "")
    stations = [f'    "{STATIONS[n % len(STATIONS)]}-{n}",' for n in range(room - cut - 2)]
    return [*lines[:cut], "GAUGES = [", *stations, "]", *_WRITER_CLASS, *lines[cut:]]


_WRITER_CLASS = [
    "",
    "",
    "class Writer:",
    '    """Writes batches of readings."""',
    "",
    "    def __init__(self, connection):",
    "        self._connection = connection",
    "",
    "    def write(self, rows):",
    '        """Write a batch in one transaction."""',
    "        with self._connection:",
    '            self._connection.executemany("INSERT INTO readings VALUES (?, ?, ?, ?)", rows)',
    "",
]
_OPEN_DATABASE = [
    "",
    "def open_database(path):",
    '    """Open the store."""',
    "    return sqlite3.connect(path)",
]


def _invented_module(path: str, nouns: tuple[str, ...], rng: random.Random) -> list[str]:
    head = [
        f'"""{nouns[0].capitalize()}s and {nouns[1]}s: see docs/{Path(path).stem}.md."""',
        "",
        "import logging",
        "import sqlite3",
    ]
    head += ["from dataclasses import dataclass", "", f'log = logging.getLogger("{Path(path).stem}")', ""]
    lines = head
    for number in range(rng.randint(9, 14)):
        lines += ["", *rng.choice(_FUNCTIONS)(rng.choice(nouns), rng.choice(nouns), number, rng)]
    return lines


def _loop_function(noun: str, other: str, number: int, rng: random.Random) -> list[str]:
    return [
        f"def collect_{noun}s_{number}(source, limit={rng.randint(2, 40) * 25}):",
        f'    """Collect at most `limit` {noun}s, newest first."""',
        "    found = []",
        "    for item in source:",
        f"        if item.{other}_id is None:",
        f'            log.warning("{noun} without {other}: %r", item)',
        "            continue",
        "        found.append(item)",
        "        if len(found) == limit:",
        "            break",
        "    return sorted(found, key=lambda item: item.taken_at, reverse=True)",
        "",
    ]


def _query_function(noun: str, other: str, number: int, rng: random.Random) -> list[str]:
    return [
        f"def count_{noun}s_by_{other}_{number}(connection, station):",
        f'    """How many {noun}s each {other} of a station has."""',
        "    rows = connection.execute(",
        f'        "SELECT {other}_id, count(*) FROM {noun}s WHERE station = ? AND level_mm > {rng.randint(0, 900)}"',
        f'        " GROUP BY {other}_id ORDER BY 2 DESC",',
        "        (station,),",
        "    )",
        "    return dict(rows)",
        "",
    ]


def _class_definition(noun: str, other: str, number: int, rng: random.Random) -> list[str]:
    return [
        "@dataclass(frozen=True)",
        f"class {noun.capitalize()}{number}:",
        f'    """One {noun} of a {other}."""',
        "",
        "    station: str",
        "    taken_at: float",
        f"    level_mm: int = {rng.randint(-400, 4200)}",
        f"    {other}_id: int | None = None",
        "",
        "    def is_plausible(self) -> bool:",
        f"        return -{rng.randint(2, 5)}00 < self.level_mm < {rng.randint(6, 9)}000",
        "",
    ]


_FUNCTIONS: list[Callable[[str, str, int, random.Random], list[str]]] = [
    _loop_function,
    _query_function,
    _class_definition,
]


class Log:
    """The session's lines as they grow: a clock, a chain of parents and the size of the context."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.now = START
        self.parent: str | None = None
        self.prompt_id = ""
        self.context = 21_000
        self.prompts: list[str] = []

    def prompt(self, text: str) -> None:
        """The user types a text; before it, a context that has grown too large is compacted."""
        if self.context > COMPACT_ABOVE_TOKENS:
            self._compact()
        self._wait(40, 400)
        self.prompt_id = self._id()
        self.prompts.append(text)
        extra = {"promptId": self.prompt_id, "origin": {"kind": "human"}, "promptSource": "typed"}
        self._chain("user", {**extra, "message": {"role": "user", "content": text}})

    def respond(self, text: str | None, calls: list[Call], thinking: str | None = None) -> None:
        """One response of the model, a line per block, then the results of its calls in the order they finish."""
        blocks: list[dict[str, Any]] = []
        if thinking:
            blocks.append({"type": "thinking", "thinking": thinking, "signature": self._token("", 64)})
        if text:
            blocks.append({"type": "text", "text": text})
        tool_ids = [self._token("toolu_01", 22) for _ in calls]
        for tool_id, call in zip(tool_ids, calls, strict=True):
            blocks.append({"type": "tool_use", "id": tool_id, "name": call.name, "input": call.arguments})
        sources = self._assistant(blocks, "tool_use" if calls else "end_turn")[len(blocks) - len(calls) :]
        finished = list(zip(tool_ids, calls, sources, strict=True))
        self.rng.shuffle(finished)
        for tool_id, call, source in finished:
            self._result(tool_id, call, source)

    def end_turn(self, seconds: int) -> None:
        """The harness notes how long the turn took."""
        self._chain("system", {"subtype": "turn_duration", "durationMs": seconds * 1000, "isMeta": False})

    def side(self, record: dict[str, Any]) -> None:
        """A line outside of the chain."""
        self._write({**record, "sessionId": SESSION})

    def _assistant(self, blocks: list[dict[str, Any]], stop_reason: str) -> list[str]:
        message = {"model": "claude-sonnet-4-5-20250929", "id": self._token("msg_01", 22), "type": "message"}
        written = sum(len(json.dumps(block)) for block in blocks) // 4
        usage = self._usage(written)
        request = self._token("req_011C", 20)
        uuids = []
        for block in blocks:
            self._wait(1, 6)
            body = {**message, "role": "assistant", "content": [block], "stop_reason": stop_reason}
            rest = {"stop_sequence": None, "usage": usage}
            uuids.append(self._chain("assistant", {"message": {**body, **rest}, "requestId": request}))
        self.context += written
        return uuids

    def _usage(self, output: int) -> dict[str, Any]:
        fresh = self.rng.randint(300, 2600)
        return {
            "input_tokens": self.rng.randint(1, 9),
            "cache_creation_input_tokens": fresh,
            "cache_read_input_tokens": self.context - fresh,
            "output_tokens": output,
            "service_tier": "standard",
            "cache_creation": {"ephemeral_5m_input_tokens": fresh, "ephemeral_1h_input_tokens": 0},
        }

    def _result(self, tool_id: str, call: Call, source: str) -> None:
        self._wait(1, 20)
        block: dict[str, Any] = {"tool_use_id": tool_id, "type": "tool_result", "content": call.output}
        if call.failed:
            block["is_error"] = True
        structured = f"Error: {call.output}" if call.failed else call.structured
        message = {"role": "user", "content": [block]}
        extra = {"promptId": self.prompt_id, "message": message, "toolUseResult": structured}
        self._chain("user", {**extra, "sourceToolAssistantUUID": source})
        self.context += len(call.output) // 4

    def _compact(self) -> None:
        self._wait(60, 90)
        before, logical = self.context, self.parent
        self.parent, self.context = None, 24_000
        metadata = {"trigger": "auto", "preTokens": before, "postTokens": self.context, "durationMs": 61_204}
        boundary = {"logicalParentUuid": logical, "subtype": "compact_boundary", "content": "Conversation compacted"}
        self._chain("system", {**boundary, "isMeta": False, "level": "info", "compactMetadata": metadata})
        done = "\n".join(f"{number}. {text}" for number, text in enumerate(self.prompts, 1))
        summary = (
            "This session is being continued from a previous conversation that ran out of context. "
            f"The summary below covers the earlier portion of the conversation.\n\nMira asked for:\n{done}"
        )
        flags = {"isVisibleInTranscriptOnly": True, "isCompactSummary": True}
        self._chain("user", {"message": {"role": "user", "content": summary}, **flags})

    def _chain(self, kind: str, fields: dict[str, Any]) -> str:
        identity = self._id()
        head = {"parentUuid": self.parent, "isSidechain": False, "type": kind}
        tail = {"userType": "external", "entrypoint": "cli", "cwd": ROOT, "sessionId": SESSION}
        stamp = self.now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self.now.microsecond // 1000:03d}Z"
        self._write({**head, **fields, "uuid": identity, "timestamp": stamp, **tail, **_VERSION})
        self.parent = identity
        return identity

    def _write(self, record: dict[str, Any]) -> None:
        self.lines.append(json.dumps(record, ensure_ascii=False, separators=(",", ":")))

    def _wait(self, least: int, most: int) -> None:
        self.now += timedelta(seconds=self.rng.randint(least, most), milliseconds=self.rng.randint(0, 999))

    def _id(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def _token(self, prefix: str, length: int) -> str:
        return prefix + "".join(self.rng.choices("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz23456789", k=length))


_VERSION = {"version": "2.1.219", "gitBranch": "wal-writer", "session_id": SESSION}


class Call:
    """A tool call and what came of it."""

    def __init__(self, name: str, arguments: dict[str, Any], output: str, structured: Any, failed: bool = False):
        self.name, self.arguments, self.output = name, arguments, output
        self.structured, self.failed = structured, failed


class Project:
    """The invented project: makes the calls, and their outputs from its files."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.files = invented_sources(rng)

    def modules(self) -> list[str]:
        """The Python files."""
        return sorted(path for path in self.files if path.endswith(".py"))

    def read(self, path: str) -> Call:
        """Read a part of a file, numbered as the tool numbers it."""
        lines = self.files[path]
        first = self.rng.randint(0, max(0, len(lines) - 50))
        part = lines[first : first + self.rng.randint(20, 50)]
        output = "\n".join(f"{number:6}→{line}" for number, line in enumerate(part, first + 1))
        file = {"filePath": f"{ROOT}/{path}", "content": "\n".join(part), "numLines": len(part)}
        place = {"startLine": first + 1, "totalLines": len(lines)}
        arguments = {"file_path": f"{ROOT}/{path}", "offset": first + 1, "limit": len(part)}
        return Call("Read", arguments, output, {"type": "text", "file": {**file, **place}})

    def grep(self, pattern: str) -> Call:
        """Search all files, as they are now."""
        hits = [
            f"{path}:{number}:{line}"
            for path, lines in self.files.items()
            for number, line in enumerate(lines, 1)
            if re.search(pattern, line)
        ]
        content = "\n".join(hits[:30])
        structured = {"mode": "content", "numFiles": 0, "filenames": [], "content": content, "numLines": len(hits[:30])}
        arguments = {"pattern": pattern, "path": ROOT, "output_mode": "content", "-n": True}
        return Call("Grep", arguments, content or "No matches found", structured)

    def glob(self, pattern: str) -> Call:
        """List files whose path begins with the pattern's fixed part."""
        names = [f"{ROOT}/{path}" for path in self.files if path.startswith(pattern.split("*")[0])]
        structured = {"filenames": names, "durationMs": 14, "numFiles": len(names), "truncated": False}
        return Call("Glob", {"pattern": pattern}, "\n".join(names), structured)

    def edit(self, path: str, old: str | None = None, new: str | None = None) -> Call:
        """Change a number in a random line, or replace a given line by given ones."""
        lines = self.files[path]
        if old is None or new is None:
            place = self.rng.choice([n for n, line in enumerate(lines) if re.search(r"\b\d+\b", line)])
            old = lines[place]
            new = re.sub(r"\b\d+\b", lambda number: str(int(number[0]) + self.rng.randint(1, 9)), old, count=1)
        place = lines.index(old)
        lines[place : place + 1] = new.split("\n")
        patch = {"oldStart": place + 1, "oldLines": 1, "newStart": place + 1, "newLines": new.count("\n") + 1}
        changed = [f"-{old}", *(f"+{line}" for line in new.split("\n"))]
        edit = {"old_string": old, "new_string": new}
        structured: dict[str, Any] = {
            "filePath": f"{ROOT}/{path}",
            "oldString": old,
            "newString": new,
            "originalFile": None,
        }
        structured |= {"structuredPatch": [{**patch, "lines": changed}], "userModified": False, "replaceAll": False}
        output = f"The file {ROOT}/{path} has been updated successfully."
        return Call("Edit", {"file_path": f"{ROOT}/{path}", **edit}, output, structured)

    def write_test(self, path: str) -> Call:
        """Create a test module."""
        nouns = tuple(self.rng.sample(["bundle", "gap", "station", "phase", "window", "surge"], 3))
        return self.write(path, _invented_module(path, nouns, self.rng)[:40])

    def write(self, path: str, lines: list[str]) -> Call:
        """Create a file."""
        self.files[path] = lines
        content = "\n".join(self.files[path]) + "\n"
        structured: dict[str, Any] = {
            "type": "create",
            "filePath": f"{ROOT}/{path}",
            "content": content,
            "structuredPatch": [],
        }
        output = f"File created successfully at: {ROOT}/{path}"
        return Call("Write", {"file_path": f"{ROOT}/{path}", "content": content}, output, structured)

    def bash(self, command: str, description: str, output: str, exit_code: int = 0) -> Call:
        """Run a command; a failure carries its exit code in the text, as the tool writes it."""
        arguments = {"command": command, "description": description}
        if exit_code:
            return Call("Bash", arguments, f"Exit code {exit_code}\n{output}", None, failed=True)
        structured = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
        return Call("Bash", arguments, output, structured)

    def pytest(self, path: str, failing: bool = False) -> Call:
        """Run one test module verbosely."""
        names = [f"test_{word}_{n}" for n, word in enumerate(self.rng.choices(_TEST_WORDS, k=self.rng.randint(9, 24)))]
        verdicts = dict.fromkeys(names, "PASSED")
        tail = [f"============ {len(names)} passed in {self.rng.uniform(0.3, 9):.2f}s ============"]
        if failing:
            bad = self.rng.choice(names)
            verdicts[bad] = "FAILED"
            got, wanted = self.rng.sample(range(100, 4000), 2)
            tail = [
                "================ FAILURES ================",
                f"____ {bad} ____",
                f"    def {bad}(store):",
                f">       assert store.level_mm('{self.rng.choice(STATIONS)}') == {wanted}",
                f"E       assert {got} == {wanted}",
                f"{path}:{self.rng.randint(20, 190)}: AssertionError",
                f"=== 1 failed, {len(names) - 1} passed in {self.rng.uniform(0.3, 9):.2f}s ===",
            ]
        lines = [f"{path}::{name} {verdict}" for name, verdict in verdicts.items()]
        return self.bash(f"pytest -v {path}", f"Run {path}", "\n".join([*lines, "", *tail]), int(failing))

    def table(self) -> Call:
        """Query the readings of a station."""
        station = self.rng.choice(STATIONS)
        rows = [
            f"{station}|2026-10-{self.rng.randint(1, 31):02d}T{self.rng.randint(0, 23):02d}:{6 * n % 60:02d}:00Z"
            f"|{self.rng.randint(-200, 4100)}|{self.rng.choice(['ok', 'ok', 'ok', 'late', 'suspect'])}"
            for n in range(self.rng.randint(12, 30))
        ]
        query = f"SELECT station, taken_at, level_mm, quality FROM readings WHERE station = '{station}' LIMIT 30"
        return self.bash(f'sqlite3 tidepool.db "{query}"', f"Look at readings of {station}", "\n".join(rows))

    def git(self) -> Call:
        """Look at the history or at what has changed."""
        if self.rng.random() < 0.5:
            subjects = self.rng.choices(_SUBJECTS, k=12)
            log = "\n".join(f"{self.rng.getrandbits(28):07x} {subject}" for subject in subjects)
            return self.bash("git log --oneline -12", "Show recent commits", log)
        changed = self.rng.sample(self.modules(), 4)
        stat = [f" {path:<30} | {self.rng.randint(2, 60):>3} {'+' * self.rng.randint(1, 20)}" for path in changed]
        return self.bash("git diff --stat", "Show what changed", "\n".join([*stat, " 4 files changed"]))

    def ruff(self) -> Call:
        """Lint; now and then it finds something."""
        if self.rng.random() < 0.7:
            return self.bash("ruff check .", "Lint", "All checks passed!")
        path = self.rng.choice(self.modules())
        finding = f"{path}:{self.rng.randint(3, 90)}:1: F401 [*] `logging` imported but unused\nFound 1 error."
        return self.bash("ruff check .", "Lint", finding, 1)

    def backfill(self, output: str, exit_code: int = 0) -> Call:
        """Load a month of one station again while the ingest service runs."""
        command = "python -m tidepool backfill --station KELP-04 --from 2026-10-01 --to 2026-10-31"
        return self.bash(command, "Backfill October for KELP-04", output, exit_code)


_TEST_WORDS = ["flood", "ebb", "slack", "neap", "spring", "surge", "datum", "gap", "late_packet", "checksum", "resume"]
_SUBJECTS = [
    "store: keep the datum with every reading",
    "reader: skip packets with a bad checksum",
    "backfill: work in windows of six hours",
    "harmonics: solve M2 and S2 together",
    "alerts: no notice for a gauge in maintenance",
    "export: write quality as a word",
    "cli: show the stations without recent readings",
    "writer: batches of 500",
]

PROMPTS = [
    "Get an overview of tidepool: what happens between a gauge's packet and a row in readings?",
    "Which functions read the readings table directly? List them with their callers.",
    "collect_* functions sort after the limit was applied. Is that on purpose? Check the tests.",
    "Write down in a test what happens to a reading without a station.",
    "The reader logs a warning per bad packet, that floods the journal. Rate-limit it.",
    "Run the whole test-suite and tell me which tests are slow.",
    "forecast.py: use the residual of the last six hours instead of twelve.",
    "Does anything still depend on level_mm being an int?",
    "Look at the readings of HARB-11, they look shifted by an hour since 25 October.",
    "Right, that was the end of summer time in the gauge's clock. Convert at the reader.",
    "Add the conversion to the backfill as well and test both.",
    "harmonics: the phase of S2 jumps at midnight UTC. Find out why.",
    "Fix it, and compare with the old phases for three stations.",
    "Clean up what ruff complains about.",
    "alerts.py: a notice should name the threshold that was exceeded.",
    "Show me the diff so far and commit in two pieces.",
    "export: add a column with the datum. Keep the order of the other columns.",
    "api.py: pages of stations are cut at 50, the UI expects 100.",
    "Which tests cover schedule.py? I want to touch the retry slots.",
    "Retry slots: double the pause after each failure, at most 15 minutes.",
    "Now prepare the October backfill: which gaps does KELP-04 have?",
    "Run the backfill for KELP-04 over October. The ingest service is running, that should be fine.",
    "Same thing again? September's retry loop, Gemini's longer timeout and October's lock file: nothing held. Why?",
    "Who opens connections, and who keeps a transaction open while it waits for the network?",
    "OK: WAL, a busy timeout, and writes that begin immediately. Do it in store.py and writer.py.",
    "Run the backfill once more with the service running, and check the journal mode on disk.",
    "Write a test with two writers in two processes, so that this never comes back.",
    "Document the decision in docs/store.md, ten lines.",
    "Compare the counts per day before and after the backfill for all stations.",
    "SKER-02 has more rows than minutes in a day. Duplicates?",
    "Make (station, taken_at) unique and migrate; keep the newest of duplicates.",
    "Test the migration with a copy of the real database.",
    "harmonics again: run the fit over the repaired October and tell me what changed.",
    "alerts: replay October, which notices would be new?",
    "cli: a `gaps` command that prints what we looked at by hand today.",
    "Give it a --json option with the same fields.",
    "The names of the options should match the other commands. Check and rename.",
    "Review today's changes as if someone else had made them.",
    "Fix the two findings that matter, leave the others.",
    "Type-check the ingest package.",
    "Update the changelog.",
    "Run everything a last time.",
    "Commit the rest, one commit per topic.",
    "Summarize the day for the team in five sentences.",
]
"""What mira types, one prompt a turn."""

RUN_BACKFILL, FIX, VERIFY, DOCUMENT = 22, 25, 26, 28
"""The prompts (counted from 1) of the thread about the lock."""


def lock_traceback() -> str:
    """What the backfill prints when the ingest service holds the write lock."""
    return "\n".join(
        [
            "backfill KELP-04: 31 days, 4 windows a day",
            "  window 2026-10-01T00:00Z ... 240 readings written",
            "  window 2026-10-01T06:00Z ... 240 readings written",
            "  window 2026-10-01T12:00Z ...",
            "Traceback (most recent call last):",
            f'  File "{ROOT}/tidepool/ingest/backfill.py", line 141, in run',
            "    writer.write(batch)",
            f'  File "{ROOT}/{WRITER}", line 88, in write',
            '    self._connection.executemany("INSERT INTO readings VALUES (?, ?, ?, ?)", rows)',
            NEEDLE,
        ]
    )


def lock_turn(project: Project, log: Log) -> None:
    """The backfill fails."""
    outcome = project.backfill(lock_traceback(), 1)
    log.respond("Starting the backfill.", [outcome], "The service keeps running, so two processes will write.")
    log.respond(None, [project.grep(r"executemany|connection\.execute"), project.read(WRITER)])
    who = project.bash("fuser -v tidepool.db", "Who has the database open", "mira  4127 F.... tidepool-ingest")
    log.respond("The write failed on a lock. Let me see who holds it.", [who, project.read(STORE)])


def fix_turn(project: Project, log: Log) -> None:
    """WAL and a busy timeout."""
    opened = "\n".join(
        [
            "    connection = sqlite3.connect(path)",
            '    connection.execute("PRAGMA journal_mode=WAL")',
            '    connection.execute("PRAGMA busy_timeout=5000")',
            "    return connection",
        ]
    )
    begun = '        with self._connection:\n            self._connection.execute("BEGIN IMMEDIATE")'
    log.respond(
        "Three changes: WAL so that readers don't block the writer, a busy timeout, and BEGIN IMMEDIATE, because a "
        "transaction that starts as a reader cannot wait when it turns into a writer.",
        [project.edit(STORE, "    return sqlite3.connect(path)", opened)],
        "The retry loop never restarted its transaction; no timeout applies to an upgrade; the lock file was stale.",
    )
    log.respond(None, [project.edit(WRITER, "        with self._connection:", begun)])
    log.respond(None, [project.pytest("tests/test_writer.py"), project.pytest("tests/test_backfill.py")])


def verify_turn(project: Project, log: Log) -> None:
    """The backfill goes through."""
    windows = [f"  window 2026-10-{day:02d}T{hour:02d}:00Z ... 240 readings" for day in (1, 2, 3) for hour in (0, 12)]
    output = "\n".join(["backfill KELP-04: 31 days, 4 windows a day", *windows, "  ...", "29760 readings, 0 failures"])
    log.respond("Once more, with the service running.", [project.backfill(output)])
    mode = project.bash('sqlite3 tidepool.db "PRAGMA journal_mode"', "Check the journal mode", "wal")
    log.respond(None, [mode, project.table()])


def document_turn(project: Project, log: Log) -> None:
    """The decision is written down."""
    lines = [
        "# Two writers, one file",
        "",
        "The ingest service and a backfill write to the same SQLite file. Since 3 November 2026 every connection",
        "uses `journal_mode=WAL` and `busy_timeout=5000`, and the writer starts with `BEGIN IMMEDIATE`.",
        "",
        "Tried before, in vain: a retry loop around the insert (14 September), `timeout=30` (22 September),",
        "a lock file (6 October).",
    ]
    log.respond("Ten lines, with what was tried before.", [project.write("docs/store.md", lines)])


STORY: dict[int, Callable[[Project, Log], None]] = {
    RUN_BACKFILL: lock_turn,
    FIX: fix_turn,
    VERIFY: verify_turn,
    DOCUMENT: document_turn,
}


def explore(project: Project) -> list[Call]:
    """Look around, several things at once."""
    paths = project.rng.sample(project.modules(), 2)
    pattern = project.rng.choice(["level_mm", "_id is None", "def count_", "connection", "is_plausible", "limit="])
    choices = [project.grep(pattern), project.glob("tidepool/**/*.py"), project.table(), project.git()]
    return [*(project.read(path) for path in paths), project.rng.choice(choices)]


def change(project: Project) -> list[Call]:
    """Change one place."""
    return [project.edit(project.rng.choice(project.modules()))]


def check(project: Project) -> list[Call]:
    """Run tests or the linter."""
    path = project.rng.choice([path for path in project.modules() if path.startswith("tests/")])
    return [project.pytest(path, failing=project.rng.random() < 0.2), project.ruff()]


def ordinary_turn(project: Project, log: Log) -> None:
    """Look around, change, check, a few times over."""
    log.respond(log.rng.choice(_OPENINGS), explore(project), log.rng.choice(_THOUGHTS))
    number = len(log.prompts)
    if number % 11 == 4:
        log.respond(None, [project.write_test(f"tests/test_story_{number}.py")])
    for _ in range(2):
        log.respond(None, change(project))
        log.respond(log.rng.choice([None, "Now the tests."]), check(project))
        log.respond(None, explore(project)[1:])


_OPENINGS = [
    "I'll look at the code first.",
    "Let me see what is there.",
    "I'll check the callers before I change anything.",
    "First the tests that cover this.",
]
_THOUGHTS = [
    "The module is small; reading it whole is cheaper than guessing.",
    "Two places could be responsible. The search will tell.",
    "Mira wants a small change, so no new abstraction.",
    None,
]
_CLOSINGS = [
    "Done. The tests of the module pass, and nothing else changed its behaviour.",
    "That's it: one place changed, one test added. I left the neighbouring code alone.",
    "Finished. One thing to decide: the default stays as it was unless you say otherwise.",
    "Here is what I found: the behaviour is on purpose, a test says so, and the comment was misleading.",
]


ANSWERS = {
    22: "The backfill stopped in the third window: the service held the write lock. Nothing is half-written: the "
    "window's transaction was rolled back. I changed nothing.",
    23: "Both processes start a transaction as readers and want to become writers. SQLite refuses at once, whatever "
    "the timeout, since waiting would never end. So neither waiting nor repeating the insert can help; beginning as a "
    "writer does, and WAL keeps readers out of the way.",
    25: "The store now opens every connection with WAL and a busy timeout of five seconds, and the writer begins with "
    "BEGIN IMMEDIATE. Tests pass.",
    26: "All 31 days went through with the service running: 29760 readings, no failure. The file is in WAL mode.",
    44: "KELP-04's October is complete. The store can be written by two processes. Gauges that kept summer time are "
    "converted. SKER-02's duplicates are gone, and a constraint keeps them away. A new `gaps` command shows what is "
    "missing.",
}
"""What is said at the end of the turns that matter; other turns end with one of `_CLOSINGS`."""


def session_lines() -> list[str]:
    """All lines of the session."""
    rng = random.Random(SEED)
    project, log = Project(rng), Log(rng)
    log.side({"type": "mode", "mode": "normal"})
    log.side({"type": "permission-mode", "permissionMode": "acceptEdits"})
    for number, text in enumerate(PROMPTS, 1):
        began = log.now
        log.prompt(text)
        STORY.get(number, ordinary_turn)(project, log)
        log.respond(ANSWERS.get(number) or rng.choice(_CLOSINGS), [])
        log.end_turn(int((log.now - began).total_seconds()))
        if number == 1:
            log.side({"type": "ai-title", "aiTitle": "October backfill and the store's locking"})
    log.side({"type": "last-prompt", "lastPrompt": PROMPTS[-1]})
    return log.lines


def main() -> None:
    """Write the file."""
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text("\n".join(session_lines()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
