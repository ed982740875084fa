"""Telemetry: the figures of every request that a server answered, kept on this machine, without any text of it."""
