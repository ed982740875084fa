"""Related sessions: sub-agents, forks, copies and replays, and sessions that share an id."""
