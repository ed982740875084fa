"""The vocabulary of agtrace: events, sessions, answers, errors and the tables of the index."""
