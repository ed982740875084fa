"""What a session did: commits, pull requests, test runs and the like, read from commands and what they printed.

`attempts.py` says what a command sets out to do, `recognition.py` what of it came about; a text that only mentions
something is neither. The tables of programs are in `programs.py` and `git.py`.
"""
