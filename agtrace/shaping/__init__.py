"""Shaping: the one way out, where every answer is redacted, fitted to its budget and made continuable."""
