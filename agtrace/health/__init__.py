"""What is wrong in a session: detectors, each a pure function from what happened to findings (docs/health.md)."""
