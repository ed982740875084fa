"""Search: from a query to the events that answer it, without opening more blocks than needed."""
