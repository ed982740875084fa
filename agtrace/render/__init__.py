"""Answers for people: tables and texts for a terminal, made from the same answers that agents get."""
