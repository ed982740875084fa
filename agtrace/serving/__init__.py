"""Serving: the MCP server, its two transports, and the limits of known clients."""
