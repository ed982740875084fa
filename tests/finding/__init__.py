"""Whether the right session and the right event are found, measured on real logs."""
