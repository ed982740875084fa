"""Keeping the index fresh while logs change."""
