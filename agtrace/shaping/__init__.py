"""Shaping: the one way out, by which every answer is redacted, fitted to its budget and continued."""
