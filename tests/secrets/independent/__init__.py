"""Secrets and harmless texts made without knowledge of the rules, and how many of them the rules get right.

`README.md` describes the files; `python -m tests.secrets.independent` prints the rates.
"""
