"""The words of agtrace: events, sessions, answers, errors and the tables of the index."""
