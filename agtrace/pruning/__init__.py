"""The pruning server: an agent reads, runs and searches, and gets only what its question is about."""
