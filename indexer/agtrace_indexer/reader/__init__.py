"""Reading one log into the index: whether it must be read, from where, as what, and into which sessions."""
