"""Fuzzing: mutated logs and requests, and the laws that hold for every result."""
