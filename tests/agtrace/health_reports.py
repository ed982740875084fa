"""Made-up health reports of any number of sessions, always the same ones; and a hostile report."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta
from statistics import mean, median
from typing import Any, get_args

from agtrace_schema.analysis import (
    AgentHealth,
    Change,
    ContextPoint,
    Ending,
    Evidence,
    Figures,
    Insight,
    Lens,
    Part,
    Report,
    ReportedDay,
    ReportedDetector,
    ReportedModel,
    ReportedSession,
    ReportedTool,
    ScorePart,
    SessionEnding,
    Severity,
    Timeline,
    TimelineEntry,
    TimeSpent,
)
from agtrace_schema.lessons import Lesson
from msgspec.structs import replace

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
REASONS = {
    "finished": "the model had the last word",
    "question_left": "the last message asks “Shall I also remove the old column?”",
    "error_left": "the last attempt failed, and nothing succeeded after it",
    "tool_left": "it ends with a call of Bash that never got a result",
    "interrupted": "the human interrupted the model, and nothing followed",
    "abandoned": "it ends with a request that the model never answered",
    "unknown": "the log has neither a request nor a response",
}
FOUND: tuple[tuple[str, Lens, Severity, str, str], ...] = (
    ("failed_calls", "Failures", "Critical", "{n} of 30 Bash calls failed (43 %)",
     "FAILED tests/test_queue.py::test_it_waits_between_attempts - AssertionError: assert 3 == 4"),
    ("returning_error", "Failures", "Warning", "the same error came back {n} times from 4 different actions",
     "error: Cannot find module '@/components/form' or its corresponding type declarations."),
    ("same_action_same_error", "Loops", "Warning", "the same command failed {n} times in a row: npm run build",
     "Exit code 1\nsrc/pages/settings.tsx(14,22): error TS2307: Cannot find module"),
    ("edit_churn", "Loops", "Warning", "src/queue/retry.py was changed {n} times in one turn, the same lines again",
     "-    delay = min(delay * 2, 30)\n+    delay = min(delay * 2, self.longest)"),
    ("cache_misses", "TokenUsage", "Warning", "{n} responses paid again for 412,000 tokens that were cached",
     "input_tokens 182,412, cache_read_tokens 0"),
    ("compaction_mid_task", "TokenUsage", "Info", "the context was compacted {n} times in mid-task",
     "This session is being continued from a previous conversation that ran out of context."),
    ("slow_tools", "Time", "Info", "{n} tool calls took more than 5 minutes: 21 minutes in sum",
     "docker compose build --no-cache"),
    ("left_question", "Outcome", "Info", "it ended with a question of the model", "Shall I remove the old column?"),
)  # fmt: skip
PARTS: tuple[tuple[Part, int], ...] = (
    ("corrections", 50), ("outcome", 20), ("checks", 10), ("failures", 12), ("loops", 8),
)  # fmt: skip
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def report(number: int, *, entries: int = 160, days: int = 30, seed: int = 7) -> Report:
    """Return a report of this many sessions, each with at most 6 * `entries` timeline entries and seven findings."""
    chance = random.Random(seed)
    sessions = [_session(chance, entries, days) for _ in range(number)]
    sessions.sort(key=lambda item: (item.score is None, item.score))
    return around(sessions)


def around(sessions: list[ReportedSession]) -> Report:
    """Return the report of these sessions, with figures calculated from them."""
    scores = [item.score for item in sessions if item.score is not None]
    now = _figures(sessions, scores)
    before = replace(now, mean_score=(now.mean_score or 0) - 4.2, sessions=now.sessions + 9, failed_rate=0.071)
    return Report(
        selection=f"{len(sessions)} sessions of all projects since 2026-10-21",
        figures=now,
        before=before,
        compared="30 days since 2026-10-21 with the 30 days before",
        made_at="2026-11-20T12:00:00Z",
        changes=[
            Change(
                what="mean score",
                before=before.mean_score or 0,
                now=now.mean_score or 0,
                unit="points",
                verdict="better",
            ),
            Change(what="sessions", before=before.sessions, now=now.sessions, verdict="neither"),
            Change(what="failed calls", before=0.071, now=now.failed_rate or 0, unit="share", verdict="worse"),
            Change(what="sessions with loops", before=12, now=12, verdict="same"),
        ],
        scores=[sum(min(score // 10, 9) == ten for score in scores) for ten in range(10)],
        days=_days(sessions),
        tools=_tools(sessions),
        models=_models(sessions),
        detectors=_detectors(sessions),
        deeds=[],
        lessons=[
            Lesson(
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
        ],
        undated=sum(item.start_time is None for item in sessions),
        sessions=sessions,
        versions={name: 1 for name, *_ in FOUND},
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
        "ending": SessionEnding(ending="error_left", reason=REASONS["error_left"], event_index=9),
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
        "detector": "failed_calls",
        "version": 1,
        "message": "1 of 1 Bash calls failed (100 %)",
        "count": 1,
        "evidence": [Evidence(event_index=3, ref="ax://event/0badc0de/3", quote="Exit code 1")],
    }
    return Insight(**(known | fields))


def _session(chance: random.Random, entries: int, days: int) -> ReportedSession:
    session_id = _id(chance)
    healthy = chance.random() < 0.72
    score = None if chance.random() < 0.04 else chance.randint(70, 100) if healthy else chance.randint(4, 75)
    weights = (60, 9, 2, 2, 6, 3, 1) if healthy else (16, 12, 26, 10, 12, 14, 3)
    ending = chance.choices(ENDINGS, weights)[0]
    found = [_finding(chance, session_id) for _ in range(chance.randint(0, 2) if healthy else chance.randint(2, 7))]
    found.sort(key=lambda item: ("Critical", "Warning", "Info").index(item.severity))
    agents = [_agent(chance) for _ in range(chance.randint(1, 4))] if chance.random() < 0.15 else None
    timeline, spent = _timeline(chance, chance.randint(8, entries * 2), agents or [])
    calls = sum(entry.kind == "tool" for entry in timeline.entries)
    duration = int(max(entry.end for entry in timeline.entries))
    return ReportedSession(
        session_id=session_id,
        provider=chance.choice(("claude_code", "claude_code", "codex", "gemini")),
        kind="main",
        project=chance.choice(PROJECTS),
        title=_title(chance),
        start_time=_start(chance, days),
        duration_seconds=duration,
        active_seconds=sum(filter(None, (spent.tools_seconds, spent.model_seconds))),
        ending=SessionEnding(ending=ending, reason=REASONS[ending], event_index=timeline.entries[-1].event_index),
        score=score,
        unscored="the session still grows" if score is None else None,
        parts=_parts(chance, score),
        turns=sum(entry.kind == "turn" for entry in timeline.entries),
        tool_calls=calls,
        failed_calls=sum(bool(entry.failed) for entry in timeline.entries),
        total_tokens=chance.randint(20_000, 9_000_000),
        cost_usd=round(chance.random() * 9, 4),
        cost_made="estimated",
        model=chance.choice(MODELS),
        agents=agents,
        insights=found,
        **_counted(found),
        time=spent,
        timeline=timeline,
    )


def _id(chance: random.Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))


def _title(chance: random.Random) -> str:
    return f"{chance.choice(TITLES)} #{chance.randint(1, 999)}"


def _start(chance: random.Random, days: int) -> str | None:
    start = NOW - timedelta(seconds=chance.randint(0, days * 86_400))
    return None if chance.random() < 0.01 else start.strftime("%Y-%m-%dT%H:%M:%SZ")


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


def _agent(chance: random.Random) -> AgentHealth:
    calls = chance.randint(3, 60)
    return AgentHealth(
        session_id=f"agent-{chance.getrandbits(32):08x}",
        score=chance.choice((None, 44, 71, 88, 97, 100)),
        findings=chance.randint(0, 4),
        tool_calls=calls,
        failed_calls=calls // 9,
    )


def _parts(chance: random.Random, score: int | None) -> list[ScorePart]:
    left = 100 - score if score is not None else 0
    parts = []
    for name, of in PARTS:
        lost = min(of, left if name == "loops" else chance.randint(0, left))
        left -= lost
        why = {"failures": "13 of 30 Bash calls failed", "outcome": "it ended on a failure"}.get(name, "2 findings")
        parts.append(ScorePart(part=name, lost=lost, of=of, why=why if lost else "nothing found"))
    return parts


def _timeline(chance: random.Random, steps: int, agents: list[AgentHealth]) -> tuple[Timeline, TimeSpent]:
    entries: list[TimelineEntry] = []
    context: list[ContextPoint] = []
    at, event, tokens, model, tools, human, begun, turns = 0.0, 0, 14_000, 0.0, 0.0, 0.0, 0.0, 0
    for number in range(steps):
        if number % 23 == 22:
            entries.append(_entry("turn", begun, at, event, chance.choice(TITLES)))
            pause = chance.choice((40, 300, 5_000, 40_000))
            at, human, turns = at + pause, human + pause, turns + 1
            begun = at
        thinking, running = chance.uniform(2, 25), chance.choice((0.1, 0.4, 2, 9, 60))
        entries.append(_entry("step", at, at + thinking, event + 1, None))
        at, model = at + thinking, model + thinking
        failed = chance.random() < 0.08
        entries.append(
            _entry("tool", at, at + running, event + 2, chance.choices(TOOLS, (9, 7, 5, 4, 2, 1, 1, 1))[0], failed)
        )
        if chance.random() < 0.2:
            entries.append(_entry("tool", at, at + running * 0.7, event + 3, "Read"))
        at, tools, event = at + running, tools + running, event + 4
        tokens += chance.randint(300, 4_000)
        if tokens > 170_000:
            entries.append(_entry("compaction", at, at + 20, event, None))
            tokens, at, event = 24_000, at + 20, event + 1
        if chance.random() < 0.008:
            entries.append(_entry("api_error", at, at, event, "overloaded"))
        context.append(ContextPoint(at=round(at, 1), tokens=tokens))
    entries.append(_entry("turn", begun, at, event, chance.choice(TITLES)))
    entries += [
        _entry("agent", at * 0.1 * n, at * 0.1 * n + at * 0.2, n, agent.session_id) for n, agent in enumerate(agents)
    ]
    entries.sort(key=lambda entry: entry.start)
    spent = TimeSpent(tools_seconds=int(tools), model_seconds=int(model), human_seconds=int(human))
    return Timeline(entries=entries, context=context, context_window=200_000), spent


def _entry(
    kind: Any, start: float, end: float, event: int, name: str | None, failed: bool | None = None
) -> TimelineEntry:
    return TimelineEntry(
        kind=kind, start=round(start, 2), end=round(end, 2), event_index=event, name=name, failed=failed
    )


def _figures(sessions: list[ReportedSession], scores: list[int]) -> Figures:
    calls, failed = sum(item.tool_calls for item in sessions), sum(item.failed_calls for item in sessions)
    return Figures(
        since="2026-10-21T12:00:00Z",
        until="2026-11-20T12:00:00Z",
        sessions=len(sessions),
        scored=len(scores),
        mean_score=round(mean(scores), 1) if scores else None,
        median_score=int(median(scores)) if scores else None,
        below_60=sum(score < 60 for score in scores),
        endings=Counter(item.ending.ending for item in sessions),
        tool_calls=calls,
        failed_calls=failed,
        failed_rate=round(failed / calls, 4) if calls else None,
        corrections=9,
        sessions_corrected=7,
        sessions_with_loops=sum(any(found.lens == "Loops" for found in item.insights) for item in sessions),
        total_tokens=sum(item.total_tokens or 0 for item in sessions),
        cost_usd=round(sum(item.cost_usd or 0 for item in sessions), 2),
        cost_made="estimated",
    )


def _days(sessions: list[ReportedSession]) -> list[ReportedDay]:
    days: dict[str, list[ReportedSession]] = {}
    for item in sessions:
        if item.start_time:
            days.setdefault(item.start_time[:10], []).append(item)
    return [
        ReportedDay(
            day=day,
            sessions=len(those),
            endings=Counter(item.ending.ending for item in those),
            total_tokens=sum(item.total_tokens or 0 for item in those),
            cost_usd=sum(item.cost_usd or 0 for item in those),
        )
        for day, those in sorted(days.items())
    ]


def _models(sessions: list[ReportedSession]) -> list[ReportedModel]:
    used: dict[tuple[str, str], list[ReportedSession]] = {}
    for item in sessions:
        if item.start_time and item.model:
            used.setdefault((item.start_time[:10], item.model), []).append(item)
    return [
        ReportedModel(
            day=day,
            model=model,
            total_tokens=sum(item.total_tokens or 0 for item in those),
            cost_usd=sum(item.cost_usd or 0 for item in those),
        )
        for (day, model), those in sorted(used.items())
    ]


def _tools(sessions: list[ReportedSession]) -> list[ReportedTool]:
    calls: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for entry in (entry for item in sessions if item.timeline for entry in item.timeline.entries):
        if entry.kind == "tool":
            calls[entry.name or ""] += 1
            failed[entry.name or ""] += bool(entry.failed)
    return [
        ReportedTool(tool=name, calls=n, failed=failed[name], sessions=failed[name]) for name, n in calls.most_common()
    ]


def _detectors(sessions: list[ReportedSession]) -> list[ReportedDetector]:
    found: dict[tuple[str, Lens], list[tuple[str, Severity]]] = {}
    for item in sessions:
        for one in item.insights:
            found.setdefault((one.detector, one.lens), []).append((item.session_id, one.severity))
    return [
        ReportedDetector(
            detector=detector,
            lens=lens,
            sessions=len({session_id for session_id, _ in those}),
            findings=len(those),
            critical=sum(severity == "Critical" for _, severity in those),
        )
        for (detector, lens), those in found.items()
    ]
