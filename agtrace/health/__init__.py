"""The health of a session: detectors, each a pure function from its history to findings (docs/health.md)."""
