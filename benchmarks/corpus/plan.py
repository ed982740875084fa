"""The plan of a corpus: the size, agent, project and time of each session."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from statistics import NormalDist

_SHARES = {"claude": 0.80, "codex": 0.14, "gemini": 0.06}
_LARGEST_OF = {"claude": 20_000_000, "codex": 20_000_000, "gemini": 4_000_000}
_SESSIONS_PER_MEGABYTE = 2
_MEGABYTES_OF_A_PROJECT = 50
_SMALLEST, _LARGEST = 2_000, 20_000_000
_MEDIAN, _SIGMA = 103_000, 1.78
"""A log-normal distribution with a mean of half a megabyte, and about three sessions of 20 MB in a gigabyte."""

FIRST_DAY = datetime(2026, 5, 4, tzinfo=UTC)
DAYS = 180
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Planned:
    """A session to write."""

    agent: str
    """claude, codex or gemini."""
    project: int
    size: int
    """Bytes."""
    start: int
    """Milliseconds since 1970 UTC."""
    language: int
    """The language of its user: 0 English, 1 Chinese, 2 Japanese."""


def planned_sessions(rng: Random, megabytes: float) -> list[Planned]:
    """Return the sessions in order of their start."""
    sizes = _sizes(max(3, round(megabytes * _SESSIONS_PER_MEGABYTE)), megabytes * 1e6)
    rng.shuffle(sizes)
    shares = project_shares(megabytes)
    agents = _agents(sizes)
    projects = rng.choices(range(len(shares)), shares, k=len(sizes))
    sessions = [
        Planned(agent, project, size, _start(rng), _language(rng))
        for agent, project, size in zip(agents, projects, sizes, strict=True)
    ]
    return sorted(sessions, key=lambda session: session.start)


def project_shares(megabytes: float) -> list[float]:
    """Return each project's share of the sessions: a few projects have most of them."""
    weights = [1 / (rank + 2) for rank in range(max(3, round(megabytes / _MEGABYTES_OF_A_PROJECT)))]
    return [weight / sum(weights) for weight in weights]


def _sizes(count: int, total: float) -> list[int]:
    """Return quantiles of the distribution, scaled to the total, so that small corpora have its shape too."""
    normal = NormalDist(0, _SIGMA)
    exact = [_MEDIAN * math.exp(normal.inv_cdf((n + 0.5) / count)) for n in range(count)]
    capped = [min(_LARGEST, max(_SMALLEST, size)) for size in exact]
    scale = total / sum(capped)
    return [round(min(_LARGEST, max(_SMALLEST, size * scale))) for size in capped]


def _agents(sizes: Sequence[int]) -> list[str]:
    """Assign each session to the agent that is furthest below its share of the bytes."""
    written = dict.fromkeys(_SHARES, 0)
    agents = []
    for size in sizes:
        able = [agent for agent in _SHARES if size <= _LARGEST_OF[agent]]
        agent = min(able, key=lambda name: (written[name] + size / 2) / _SHARES[name])
        written[agent] += size
        agents.append(agent)
    return agents


def _start(rng: Random) -> int:
    """Return a moment in the period, mostly in working hours."""
    day = rng.randrange(DAYS)
    hour = min(23.9, max(0.0, rng.gauss(13.5, 3.5)))
    return int(FIRST_DAY.timestamp() * 1000) + day * _DAY_MS + int(hour * 3_600_000)


def _language(rng: Random) -> int:
    chance = rng.random()
    return 1 if chance < 0.02 else 2 if chance < 0.03 else 0
