"""Sessions, turns, steps and events as answers describe them, read from the rows of the index."""
