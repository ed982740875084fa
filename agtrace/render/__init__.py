"""Answers for people: tables and texts for a terminal, made from the same answers that agents get."""

from agtrace.render.analysis import analysis
from agtrace.render.comparison import comparison
from agtrace.render.counts import counts
from agtrace.render.doctor import doctor
from agtrace.render.health import health
from agtrace.render.lists import sessions
from agtrace.render.matches import around, matches
from agtrace.render.reasoning import reasoning
from agtrace.render.repair import repaired
from agtrace.render.report import report
from agtrace.render.sections import FACTS, section, sections_head
from agtrace.render.session import SessionView
from agtrace.render.text import text_body, text_head, text_rest

__all__ = [
    "FACTS",
    "SessionView",
    "analysis",
    "around",
    "comparison",
    "counts",
    "doctor",
    "health",
    "matches",
    "reasoning",
    "repaired",
    "report",
    "section",
    "sections_head",
    "sessions",
    "text_body",
    "text_head",
    "text_rest",
]
