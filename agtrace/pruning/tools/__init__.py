"""The tools of the pruning server: the function `run` of each gives an `Output` or raises `ToolFailed`."""
