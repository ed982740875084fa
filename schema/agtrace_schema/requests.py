"""The vocabulary of a request: the values allowed for tool arguments and command options.

Nothing here loads a model, because the command line reads it for `--help`.
"""

from __future__ import annotations

from typing import Literal

Level = Literal["summary", "turns", "steps", "full"]
"""How much detail of a session is shown."""

Section = Literal[
    "session", "stats", "children", "turns", "tools", "files", "failures", "models", "landmarks", "requests"
]
"""A part of a session that can be requested on its own."""

Mode = Literal["minimal", "standard", "verbose"]
"""How much of a long text a digest keeps."""

EventKind = Literal["human", "message", "thought", "call", "command", "edit", "output", "error", "notification"]
"""What an event is to whoever looks for it: a text that a human wrote, what the model said or thought, a tool call (of
them a command, a change of a file), what a call returned (of that an error), or a notification."""

MOST_AROUND = 20
"""The most events before and after one that are listed around it."""

Sort = Literal[
    "newest",
    "oldest",
    "failed_calls",
    "failure_run",
    "output_tokens",
    "total_tokens",
    "cost",
    "tool_calls",
    "turns",
    "duration",
    "compactions",
    "edits",
    "files",
    "user",
]
"""The order of a list of sessions: by their start, by a measure, the largest first, or by who pushed them."""

Access = Literal["read", "write"]
"""What a call did to a file."""

SessionKind = Literal["main", "subagent", "all"]
"""Which sessions: `main` are those that no other session started."""

CostBy = Literal[
    "day", "week", "month", "block", "project", "branch", "session", "model", "agent", "agent-type", "user"
]  # fmt: skip
"""The groups of what was spent; a block is five hours of one agent, an agent type that of a sub-agent."""

RequestsBy = Literal["tool", "client", "day", "hour"]
"""How recorded requests are grouped."""

RequestOutcome = Literal["ok", "error", "paginated", "chunked", "summarized", "pruned", "cut", "oversized"]
"""How recorded requests were answered."""
