"""`agtrace open` over HTTP: who may ask, which page answers, and what is sent while a session runs."""
