"""Reading on all cores: processes that each read a portion into a small index, and the one that merges these."""
