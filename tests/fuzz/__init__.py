"""Fuzzing: logs and requests that went through mutation, and the laws that hold for whatever comes of it."""
