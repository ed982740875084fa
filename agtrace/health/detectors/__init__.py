"""The detectors: a module for a family of them, and `registry.py`, which lists all."""
