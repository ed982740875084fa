"""The SQLite file: opening, locking and changing it."""
