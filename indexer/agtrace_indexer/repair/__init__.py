"""What to do about a damaged index: find the damage, carry over what is whole, read the rest again."""
