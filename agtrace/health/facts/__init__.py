"""Facts that detectors derive from a history: programs run, files read, lines changed."""
