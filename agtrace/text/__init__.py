"""Texts as they may be shown: on one line, in chunks, and the lines in them that report failures."""
