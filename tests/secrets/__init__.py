"""The corpus of secrets and of what only looks like one, and what becomes of it in everything that agtrace says.

`secrets.jsonl` and `near_misses.jsonl` were written from the documentation of those who issue secrets, without a look
at the rules that mask them; all values are random. `python -m tests.secrets` plants them, asks, and prints what came
out.
"""
