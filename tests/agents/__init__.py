"""A coding agent that nobody has written, and what it takes to have its logs read."""
