"""A session as a conversation: one stream of items, written for the terminal, as Markdown, HTML or JSON lines."""
