"""Hours of ordinary life in one command: logs that change, a watcher, servers, clients and commands, all at once.

    python -m tests.soak --minutes 60 [--seed N] [--clients 8] [--folder FOLDER]

Three agents at work (`life.py`) write, move, compress, cut off, replace, copy and delete logs in a home made for it.
`agtrace index --watch` follows them, clients with a server each (`visitors.py`) search, page, read and analyse, and
now and then somebody runs a command (`chores.py`). `vitals.py` looks at the processes and files meanwhile, and
`remains.py` compares in the end what is indexed with what should be. A line a minute says how it goes; the last ones
give the verdict, and the exit code is 1 if anything is off.
"""
