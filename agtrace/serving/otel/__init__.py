"""OpenTelemetry: spans and figures of the server's messages for a collector of the user's, if its variables ask for it.

It follows the semantic conventions for MCP (open-telemetry/semantic-conventions-genai, docs/gen-ai/mcp.md, as of
November 2026). The SDK of mcp makes the spans; here they are completed, rid of every text of the user's, and sent.
"""
