"""Serving: the MCP server, its two transports, and what is known of the clients."""
