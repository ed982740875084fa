"""Reading: from the rows of the index to what is told of sessions, turns, steps and events."""
