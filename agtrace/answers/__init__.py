"""From a call to its answer: the desk that serves every transport and command, its log and its metrics."""
