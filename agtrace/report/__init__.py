"""The health of many sessions: which ones, what is counted over them, and what changed (`agtrace report`)."""
