"""All detectors, in the order in which findings are listed: failures, loops, tokens, time, ending."""

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
"""The rules of docs/health.md. Every finding carries the name and version of its detector."""
