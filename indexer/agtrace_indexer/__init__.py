"""Builds the index from the logs of coding agents; the only writer of the index."""
