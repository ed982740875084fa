"""Reading, running and searching with a question: the server `agtrace prune`, its pruners, and the runner.

Of what a tool gives, an agent gets the lines that its question is about, or all of it if anything goes wrong.
"""
