"""From a call to its answer: the desk that every transport and command asks, what it logs and measures."""
