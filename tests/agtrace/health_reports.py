"""Made-up health reports of any number of sessions, always the same ones."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from agtrace_schema.analysis import (
    AgentHealth,
    Change,
    ContextPoint,
    Ending,
    Evidence,
    Insight,
    Lens,
    Part,
    Report,
    ReportedSession,
    ReportedTool,
    ScorePart,
    SessionEnding,
    Severity,
    Timeline,
    TimelineEntry,
    TimeSpent,
)
from agtrace_schema.reports import Lesson
from msgspec.structs import replace

from agtrace.report.figures import Tally, days, detectors, figures, histogram, models
from agtrace.sessions.usage import Usage

TITLES = (
    "Fix the flaky retry test in the payment queue",
    "Why does the importer read every file twice? Find out, and write a test that fails first",
    "Move the settings page to the new form components",
    "Upgrade pydantic and get the suite green again",
    "Add pagination to GET /orders and document the cursor",
    "Review the migration before we run it on production",
    "The nightly export is 40 minutes slower than last week",
    "Write a changelog for 2.4 from the merged pull requests",
    "Größere Umbauten: die Übersetzungen aus der Datenbank laden",
    "Make the search box keep its focus when results arrive",
)
PROJECTS = ("/home/ada/shop", "/home/ada/shop-frontend", "/home/ada/infra", "/home/ada/notes", "9f3b1c22")
MODELS = ("claude-opus-4-5", "claude-sonnet-4-5", "gpt-5.1-codex", "gemini-3-pro")
TOOLS = ("Bash", "Read", "Edit", "Grep", "Write", "Task", "WebFetch", "mcp__github__create_pull_request")
ENDINGS: tuple[Ending, ...] = get_args(Ending)
FOUND: tuple[tuple[str, Lens, Severity, str, str], ...] = (
    ("refused_again", "Failures", "Critical", "{n} of 30 Bash calls failed (43 %)",
     "FAILED tests/test_queue.py::test_it_waits_between_attempts - AssertionError: assert 3 == 4"),
    ("returning_error", "Failures", "Warning", "the same error came back {n} times from 4 different actions",
     "error: Cannot find module '@/components/form' or its corresponding type declarations."),
    ("returning_error", "Loops", "Warning", "the same command failed {n} times in a row: npm run build",
     "Exit code 1\nsrc/pages/settings.tsx(14,22): error TS2307: Cannot find module"),
    ("redone", "Loops", "Warning", "src/queue/retry.py was changed {n} times in one turn, the same lines again",
     "-    delay = min(delay * 2, 30)\n+    delay = min(delay * 2, self.longest)"),
    ("stopped", "TokenUsage", "Warning", "{n} responses paid again for 412,000 tokens that were cached",
     "input_tokens 182,412, cache_read_tokens 0"),
    ("review_problems", "TokenUsage", "Info", "the context was compacted {n} times in mid-task",
     "This session is being continued from a previous conversation that ran out of context."),
    ("slow_tools", "Time", "Info", "{n} tool calls took more than 5 minutes: 21 minutes in sum",
     "docker compose build --no-cache"),
    ("left_question", "Outcome", "Info", "it ended with a question of the model", "Shall I remove the old column?"),
)  # fmt: skip
PARTS: tuple[tuple[Part, int], ...] = (
    ("corrections", 60), ("outcome", 20), ("checks", 10), ("failures", 10),
)  # fmt: skip
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def report(number: int, *, entries: int = 160, days: int = 30, seed: int = 7) -> Report:
    """Return a report of this many sessions, each with at most 6 * `entries` timeline entries and seven findings."""
    chance = random.Random(seed)
    sessions = [_session(chance, entries, days) for _ in range(number)]
    return around(sorted(sessions, key=lambda item: (item.score is None, item.score)))


def around(sessions: list[ReportedSession]) -> Report:
    """Return the report of these sessions, with figures calculated from them."""
    tallies = [_tally(item) for item in sessions]
    now = figures(tallies, None, None)
    calls = Counter(
        (entry.name, bool(entry.failed))
        for item in sessions
        for entry in (item.timeline.entries if item.timeline else ())
        if entry.kind == "tool"
    )
    return Report(
        selection=f"{len(sessions)} sessions of all projects since 2026-10-21",
        figures=now,
        before=replace(now, mean_score=71.0, sessions=9),
        compared="30 days since 2026-10-21 with the 30 days before",
        made_at="2026-11-20T12:00:00Z",
        changes=[
            Change(what="mean score", before=71, now=75, unit="points", verdict="better"),
            Change(what="sessions", before=9, now=len(sessions), verdict="neither"),
            Change(what="failed calls", before=0.07, now=0.08, unit="share", verdict="worse"),
            Change(what="sessions with loops", before=12, now=12, verdict="same"),
        ],
        scores=histogram(tallies),
        days=days(tallies),
        tools=[
            ReportedTool(
                tool=name or "", calls=calls[name, True] + calls[name, False], failed=calls[name, True], sessions=1
            )
            for name in dict.fromkeys(name for name, _ in calls)
        ],
        models=models(tallies),
        detectors=detectors(item.insights for item in sessions),
        deeds=[],
        lessons=[LESSON],
        undated=sum(item.start_time is None for item in sessions),
        sessions=sessions,
        versions={name: 1 for name, *_ in FOUND},
    )


LESSON = Lesson(
    what="npm test",
    error="Cannot find module 'left-pad'",
    times=5,
    sessions=3,
    overcome=4,
    seconds=720,
    tokens=120_000,
    tried="npm test",
    how="before",
    worked="npm ci",
    failed="ax://event/00000001/4",
    succeeded="ax://event/00000001/9",
    last="2026-11-18T09:00:00Z",
    advice="Before `npm test`, run `npm ci`: otherwise it fails with “Cannot find module 'left-pad'”.",
)


def _tally(item: ReportedSession) -> Tally:
    used = Usage(responses=1, tokens={"output_tokens": item.total_tokens or 0}, dollars=item.cost_usd or 0, priced=1)
    return Tally(
        started_at=int(datetime.fromisoformat(item.start_time).timestamp() * 1000) if item.start_time else 0,
        score=item.score,
        ending=item.ending.ending,
        tool_calls=item.tool_calls,
        failed_calls=item.failed_calls,
        corrections=0,
        loops=any(found.lens == "Loops" for found in item.insights),
        usage=replace(used, models={item.model: used} if item.model else {}),
    )


def session(**fields: Any) -> ReportedSession:
    """Return a session with one failed call and one finding, except for the given fields."""
    known: dict[str, Any] = {
        "session_id": "0badc0de-0000-4000-8000-000000000001",
        "provider": "claude_code",
        "kind": "main",
        "project": "/home/ada/shop",
        "title": "A session",
        "start_time": "2026-11-19T09:00:00Z",
        "duration_seconds": 600,
        "ending": SessionEnding(ending="error_left", reason="the last attempt failed", event_index=9),
        "score": 31,
        "parts": [ScorePart(part="outcome", lost=20, of=20, why="error left")],
        "turns": 1,
        "tool_calls": 1,
        "failed_calls": 1,
        "total_tokens": 1200,
        "model": "claude-opus-4-5",
        "insights": [insight()],
        "timeline": Timeline(
            entries=[
                TimelineEntry(kind="turn", start=0, end=600, event_index=0, name="Do it"),
                TimelineEntry(kind="tool", start=2, end=30, event_index=3, name="Bash", failed=True),
            ],
            context=[ContextPoint(at=1, tokens=1000), ContextPoint(at=500, tokens=9000)],
            context_window=200_000,
        ),
    }
    known |= fields
    return ReportedSession(**(_counted(known["insights"]) | known))


def _counted(found: list[Insight]) -> dict[str, Any]:
    """Return the fields of a session about its findings, all of which are shown."""
    return {
        "total_insights": len(found),
        "detectors": Counter(item.detector for item in found),
        "severities": Counter(item.severity for item in found),
    }


def insight(**fields: Any) -> Insight:
    """Return a finding with one piece of evidence, except for the given fields."""
    known: dict[str, Any] = {
        "severity": "Critical",
        "lens": "Failures",
        "detector": "refused_again",
        "version": 1,
        "message": "1 of 1 Bash calls failed (100 %)",
        "count": 1,
        "evidence": [Evidence(event_index=3, ref="ax://event/0badc0de/3", quote="Exit code 1")],
    }
    return Insight(**(known | fields))


def _session(chance: random.Random, entries: int, days: int) -> ReportedSession:
    session_id = str(uuid.UUID(int=chance.getrandbits(128), version=4))
    score = None if chance.random() < 0.04 else chance.randint(4, 100)
    ending = chance.choice(ENDINGS)
    found = [_finding(chance, session_id) for _ in range(chance.randint(0, 7))]
    found.sort(key=lambda item: ("Critical", "Warning", "Info").index(item.severity))
    agents = [
        AgentHealth(session_id=f"agent-{number}", score=44, findings=1, tool_calls=30, failed_calls=3)
        for number in range(chance.choice((0, 0, 0, 3)))
    ]
    timeline = _timeline(chance, chance.randint(8, entries * 2), agents)
    start = NOW - timedelta(seconds=chance.randint(0, days * 86_400))
    left = 100 - (100 if score is None else score)
    return ReportedSession(
        session_id=session_id,
        provider=chance.choice(("claude_code", "claude_code", "codex", "gemini")),
        kind="main",
        project=chance.choice(PROJECTS),
        title=f"{chance.choice(TITLES)} #{chance.randint(1, 999)}",
        start_time=None if chance.random() < 0.01 else start.strftime("%Y-%m-%dT%H:%M:%SZ"),
        duration_seconds=int(max(entry.end for entry in timeline.entries)),
        active_seconds=600,
        ending=SessionEnding(ending=ending, reason=f"so it is: {ending}", event_index=timeline.entries[-1].event_index),
        score=score,
        unscored="the session still grows" if score is None else None,
        parts=[
            ScorePart(part=name, lost=min(of, left), of=of, why=f"{name}: 13 of 30" if left else "nothing found")
            for name, of in PARTS
        ],
        turns=sum(entry.kind == "turn" for entry in timeline.entries),
        tool_calls=sum(entry.kind == "tool" for entry in timeline.entries),
        failed_calls=sum(bool(entry.failed) for entry in timeline.entries),
        total_tokens=chance.randint(20_000, 9_000_000),
        cost_usd=round(chance.random() * 9, 4),
        cost_made="estimated",
        model=chance.choice(MODELS),
        agents=agents or None,
        insights=found,
        **_counted(found),
        time=TimeSpent(tools_seconds=200, model_seconds=400, human_seconds=60),
        timeline=timeline,
    )


def _finding(chance: random.Random, session_id: str) -> Insight:
    detector, lens, severity, message, quote = chance.choice(FOUND)
    events = sorted(chance.sample(range(900), chance.randint(1, 4)))
    return Insight(
        turn_index=chance.randint(0, 5),
        severity=severity,
        lens=lens,
        detector=detector,
        version=1,
        message=message.format(n=chance.randint(3, 19)),
        count=chance.randint(3, 19),
        evidence=[
            Evidence(event_index=event, ref=f"ax://event/{session_id}/{event}", quote=f"{quote} ({event})")
            for event in events
        ],
    )


def _timeline(chance: random.Random, steps: int, agents: list[AgentHealth]) -> Timeline:
    """Return steps that each call a tool; a turn ends every 23 steps, and a compaction every 60."""
    entries: list[TimelineEntry] = []
    context: list[ContextPoint] = []
    at = begun = 0.0
    for number in range(steps):
        event = number * 4
        if number % 23 == 22 or number == steps - 1:
            entries.append(_entry("turn", begun, at, event, chance.choice(TITLES)))
            begun = at = at + chance.choice((40, 300, 5_000, 40_000))
        thought, ran = at + chance.uniform(2, 25), chance.choice((0.1, 0.4, 2, 9, 60))
        entries.append(_entry("step", at, thought, event + 1))
        at = thought + ran
        entries.append(_entry("tool", thought, at, event + 2, chance.choice(TOOLS), failed=chance.random() < 0.08))
        if number % 60 == 59:
            entries.append(_entry("compaction", at, at, event + 3))
            entries.append(_entry("api_error", at, at, event + 3, "overloaded"))
        context.append(ContextPoint(at=round(at, 1), tokens=14_000 + number % 60 * 2_000))
    entries += [_entry("agent", at * 0.1, at * 0.3, number, agent.session_id) for number, agent in enumerate(agents)]
    entries.sort(key=lambda entry: entry.start)
    return Timeline(entries=entries, context=context, context_window=200_000)


def _entry(
    kind: Any, start: float, end: float, event: int, name: str | None = None, failed: bool | None = None
) -> TimelineEntry:
    return TimelineEntry(
        kind=kind, start=round(start, 2), end=round(end, 2), event_index=event, name=name, failed=failed
    )
