"""Serving: the MCP server, its two transports, and how a process ends."""
