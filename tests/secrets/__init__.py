"""The corpus of secrets and near-misses, and what happens to them in everything that agtrace says.

`secrets.jsonl` and `near_misses.jsonl` were written from the issuers' documentation, without looking at the rules that
mask them; all values are random. `python -m tests.secrets` plants them, asks, and prints what leaked.
"""
