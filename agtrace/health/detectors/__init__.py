"""The detectors: a module for each family, and `registry.py`, which lists them all."""
