"""Tokens and what they cost."""
