"""Answers for people: tables and texts for a terminal, made of the same answers that agents get."""

from agtrace.render.analysis import analysis
from agtrace.render.comparison import comparison
from agtrace.render.doctor import doctor
from agtrace.render.event import event_body, event_head
from agtrace.render.lists import matches, sessions
from agtrace.render.reasoning import reasoning
from agtrace.render.session import SessionView

__all__ = [
    "SessionView",
    "analysis",
    "comparison",
    "doctor",
    "event_body",
    "event_head",
    "matches",
    "reasoning",
    "sessions",
]
