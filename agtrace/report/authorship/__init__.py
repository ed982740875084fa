"""Which session wrote a line of a file: by its edits, replayed, and by the commits that sessions made."""
