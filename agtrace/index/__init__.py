"""The index as readers see it: kept fresh, opened for reading, and checked for damage."""
