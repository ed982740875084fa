"""From the logs of coding agents to the index; the only writer of the index."""
