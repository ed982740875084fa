"""From a call to its answer: the service that serves every transport and command, its log and its metrics."""
