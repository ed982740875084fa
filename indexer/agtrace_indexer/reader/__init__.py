"""Reading a log into the index: whether it must be read, from which position, by which parser, into which sessions."""
