"""`agtrace run`, with another server: `python run_with.py PROVIDER SERVER... -- COMMAND...`; it is asked more often."""

from __future__ import annotations

import sys

from agtrace.commands.prune import carry_out
from agtrace.pruning.agents import AGENTS
from agtrace.pruning.runner import Health, Plan
from agtrace.pruning.states import RunLog
from agtrace.serving.interruption import end_at_interrupt

if __name__ == "__main__":
    end_at_interrupt()
    provider, *words = sys.argv[1:]
    at = words.index("--")
    carry_out(Plan(AGENTS[provider], words[at + 1 :], True, RunLog.usual(), words[:at], Health(0.05, 0.3)))
