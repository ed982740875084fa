"""What is told of sessions, turns, steps and events, from the rows of the index."""
