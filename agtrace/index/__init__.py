"""The index as readers see it: kept fresh, opened for reading, and why it can't be used."""
