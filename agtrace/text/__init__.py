"""Texts as they may be shown: on a line, in chunks, and their lines that say what failed."""
