"""Log files: finding them, their bytes, their lines and the JSON in them. Knows no agent and no table."""
