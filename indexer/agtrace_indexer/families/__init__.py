"""Sessions that belong together: sub-agents, forks, copies and replays, and those that share an id."""
