"""Texts as they may be shown: on one line, in chunks; the lines in them that report failures; what commands do."""
