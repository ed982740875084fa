"""The queries on the index: a module for each topic, functions over a connection, frozen rows as their results."""
