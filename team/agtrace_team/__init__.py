"""The index of a team, on PostgreSQL: the same questions over the sessions that its people share."""
