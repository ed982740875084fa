"""Who refused a call: the human, or a rule, a hook or a sandbox."""

from __future__ import annotations

import re

from agtrace_schema.events import Outcome
from agtrace_schema.patterns import later

from agtrace.health.history import Call
from agtrace.sessions.said import human_words

_BY_THE_HUMAN = later(
    r"\b(?:the )?(?:user|human) (?:doesn't want|does not want|did not allow|didn't allow|rejected|declined|denied"
    r"|refused|cancell?ed|aborted)"
    r"|\b(?:rejected|declined|denied|refused|cancell?ed|aborted) by (?:the )?(?:user|human)\b(?! approval)",
    re.IGNORECASE,
)
"""How agents write that the human refused a call, and not a rule or a sandbox."""
_LOOKED_AT = 400


def refused_by_human(call: Call) -> bool:
    """Whether the human refused a call, with words or without."""
    if call.outcome is not Outcome.REJECTED:
        return False
    return _BY_THE_HUMAN.search(call.result[:_LOOKED_AT]) is not None or human_words(call.result) is not None


def denied_by_rule(call: Call) -> bool:
    """Whether a rule, a hook or a sandbox refused a call, or nobody was there to permit it."""
    return call.outcome is Outcome.REJECTED and not refused_by_human(call)
