"""Hours of ordinary use in one command: changing logs, a watcher, servers, clients and commands, all at once.

    python -m tests.soak --minutes 60 [--seed N] [--clients 8] [--folder FOLDER]

Three agents at work (`life.py`) write, move, compress, truncate, replace, copy and delete logs in a home made for it.
`agtrace index --watch` follows them, clients with a server each (`visitors.py`) search, page, read and analyse, and
now and then a command is run (`chores.py`). `vitals.py` samples the processes and files meanwhile, and `remains.py`
compares what is indexed with what should be in the end. A line per minute reports progress; the last ones are the
verdict, and the exit code is 1 if anything is wrong.
"""
