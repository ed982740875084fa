"""Search: from a query to the matching events, opening no more blocks than needed."""
