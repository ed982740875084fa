"""`agtrace open`: the pages that a browser shows of the sessions, and the server on loopback that answers it."""
