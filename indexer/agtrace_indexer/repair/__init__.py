"""Repairing a damaged index: find the damage, carry over what is intact, read the rest again."""
