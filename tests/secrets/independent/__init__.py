"""Secrets and harmless texts by somebody who hadn't seen the rules, and how many of them the rules tell apart.

`README.md` says what is in the files; `python -m tests.secrets.independent` prints the rates.
"""
