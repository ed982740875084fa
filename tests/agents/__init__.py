"""A made-up coding agent, and everything needed to have its logs read."""
