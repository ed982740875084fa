"""Reading on all cores: processes that each read a portion, and the merging of what they read."""
