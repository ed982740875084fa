"""Running sessions for a person: as text, and as an application that follows them."""
