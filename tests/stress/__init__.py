"""Stress: everything at once is asked of a server whose index is being examined continuously.

`python -m tests.stress` does so in many runs over a large index, over stdio and HTTP, and with
`benchmarks.answer_sizes`; every second run switches threads thousands of times as often as usual. Nothing may end,
nothing may be called damaged, and every answer must be the one given when nothing else is asked.
"""
