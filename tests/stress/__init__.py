"""Stress: everything is asked at once of a server whose index is being examined all the time.

`python -m tests.stress` does it for many runs over a large index, over stdio and HTTP, and with
`benchmarks.answer_sizes`; every second run changes threads a thousand times as often as usual. Nothing may end, nothing
may be called damaged, and every answer must be the one that is given when nothing else is asked.
"""
