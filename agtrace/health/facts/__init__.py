"""What detectors ask of a history: which programs ran, which files were read, what changed."""
