"""agtrace: one local index over the logs of coding agents, and answers from it."""

__version__ = "0.1.0"
