"""Maintenance of agtrace itself: setting agents up, forgetting sessions, examining the index."""
