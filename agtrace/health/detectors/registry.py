"""Every detector, in the order in which they are told: failures, loops, tokens, time, how it ended."""

from __future__ import annotations

from agtrace.health.detectors import (
    context,
    context_errors,
    edits,
    ending,
    failures,
    loops,
    monologue,
    requests,
    tokens,
    waiting,
)
from agtrace.health.finding import Detector

DETECTORS: tuple[Detector, ...] = tuple(
    value
    for module in (failures, loops, monologue, context_errors, edits, requests, tokens, context, waiting, ending)
    for value in vars(module).values()
    if isinstance(value, Detector)
)
"""The rules of docs/health.md. Their names and versions stand in every finding."""
