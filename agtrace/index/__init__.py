"""The index as readers see it: kept fresh, opened to be read, and whether it can be."""
