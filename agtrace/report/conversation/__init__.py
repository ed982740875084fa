"""One session as a conversation to pass on: Markdown, a page that works offline, or its events as JSON lines."""
