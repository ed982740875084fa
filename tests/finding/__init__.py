"""How well what is asked for is found, measured on real logs: `python -m tests.finding.landmarks`."""
