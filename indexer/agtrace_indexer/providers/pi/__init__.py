"""Pi: `sessions/<folder>/<time>_<id>.jsonl`, a format that oh-my-pi and OpenClaw share (README.md)."""

from __future__ import annotations

import re
from typing import Any

from agtrace_schema.patterns import later

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.logs.discovery import forms
from agtrace_indexer.providers.provider import Agent, Containers, Fork, Home, Notices, Phase, Sign, loader

# Whether a turn goes on, by single records of Pi's format (Pi, oh-my-pi, OpenClaw).
# A response says why it stopped: `toolUse` before calls, `stop` or `length` at the end of the turn; what failed
# (`error`) may be tried again. OpenClaw's older logs don't say it; a response without calls then says nothing.

_AT_WORK = ("user", "toolResult")
_ENDS = ("stop", "length", "aborted")
_CALLS = ("toolCall", "tool_use")


def phase(record: dict[str, Any]) -> Phase | None:
    """Return what a record says about the turn; None if it says nothing."""
    message = record.get("message")
    if record.get("type") != "message" or not isinstance(message, dict):
        return None
    role, reason = message.get("role"), message.get("stopReason")
    if role in _AT_WORK:
        return Phase.GOES_ON
    if role != "assistant":
        return None
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    if reason == "toolUse" or any(isinstance(part, dict) and part.get("type") in _CALLS for part in parts):
        return Phase.GOES_ON
    return Phase.OVER if reason in _ENDS else None


NOTICES = Notices(
    api_errors=frozenset({"error"}),
    interruptions=(Sign("aborted"),),
    compactions=(Sign("compaction"),),
)
"""The notifications of Pi and of the agents that write its format."""

PI = Agent(
    name="pi",
    title="Pi",
    parser=loader("pi.parser"),
    home=Home("PI_CODING_AGENT_DIR", "the home of Pi's logs; default ~/.pi/agent", ".pi/agent", ("sessions",)),
    elsewhere=(Home("PI_CODING_AGENT_SESSION_DIR", "the folder of Pi's logs, if it isn't in its home", None, ("",)),),
    rewrites=True,  # once, when a log of an older format is continued
    tools=Tools(
        shells=frozenset({"bash"}),
        reading=frozenset({"find", "ls"}),
        commands=("command",),
        paths=("path", "file_path"),
        removed=("oldText",),
        added=("newText",),
        contents=("content",),
    ),
    notices=NOTICES,
    phase=phase,
    hidden_reasoning="as signatures only",
    command="pi",
    resumes=("--session",),
)
"""Pi: its logs, tools, notifications and settings."""

OH_MY_PI = Agent(
    name="oh_my_pi",
    title="oh-my-pi",
    parser=loader("pi.parser:OhMyPi"),
    home=Home("OMP_CODING_AGENT_DIR", "the home of oh-my-pi's logs; default ~/.omp/agent", ".omp/agent", ("sessions",)),
    fork=Fork("pi", later(r"[/\\]\.omp[/\\]")),
    rewrites=True,  # its first line is the title
    tools=Tools(
        shells=frozenset({"bash"}),
        reading=frozenset({"find", "ls", "lsp", "web_search"}),
        asking=frozenset({"ask"}),
        questioning=frozenset({"ask"}),
        starting=frozenset({"task"}),
        commands=("command",),
        paths=("path", "file_path"),
    ),
    notices=NOTICES,
    phase=phase,
    hidden_reasoning="as signatures only",
    command="omp",
    resumes=("--resume",),
)
"""oh-my-pi: its logs, tools, notifications and settings."""

_FORMS = forms(
    "agents",
    r"(.*)/[^/]+/openclaw-agent\.sqlite/([^/]+)",
    r"(.*)/sessions/((?![^/]*\.checkpoint\.)[^/]+)\.jsonl",
    r"(.*)/session-sqlite-import-archive/[^/.]*\.([^/]+)\.jsonl\.imported-[^/]*",
    r"(.*)/sessions/([^/]+?)\.jsonl\.deleted[.-][^/]*",
    r"(.*)/sessions/([^/]+?)(?:\.checkpoint\.[^/.]+)?\.jsonl(?:\.bak[.-][^/]*)?",
)
"""A session in the database of an agent, the files that it was or is kept in, and what was saved of a log before
(`bak`, `checkpoint`; openclaw/openclaw#43215, #45204, #92610)."""

OPENCLAW = Agent(
    name="openclaw",
    title="OpenClaw",
    parser=loader("pi.parser:OpenClaw"),
    home=Home("OPENCLAW_STATE_DIR", "the home of OpenClaw's logs; default ~/.openclaw", ".openclaw", ("agents",)),
    elsewhere=(
        *(Home("", "", folder, ("agents",)) for folder in (".clawdbot", ".moltbot")),
        Home("", "", "", (".openclaw-*/agents",)),  # of `--profile`
    ),
    fork=Fork(
        "pi",
        later(
            r"(?!.*[/\\]\.(?:pi|omp)[/\\])"
            r".*[/\\](?:agents[/\\][^/\\]+[/\\]sessions|\.?(?:openclaw|clawdbot|moltbot))[/\\]",
            re.DOTALL,
        ),
    ),
    rewrites=True,
    forms=_FORMS,
    containers=(
        Containers(
            later(r"(.*[/\\]openclaw-agent\.sqlite)(?:-wal|-shm|-journal)?", re.DOTALL),
            loader("pi.parser:OpenClaw"),
            "openclaw-agent.sqlite",
        ),
    ),
    keys_remembered=None,  # the figures of any response come again when a conversation is rewritten
    tools=Tools(
        shells=frozenset({"exec"}),
        waiting=frozenset({"process"}),
        starting=frozenset({"sessions_spawn"}),
        commands=("command",),
        paths=("path", "file_path"),
    ),
    notices=NOTICES,
    phase=phase,
    hidden_reasoning="as signatures only",
    no_messages=frozenset({"HEARTBEAT_OK", "NO_REPLY"}),
)
"""OpenClaw: its logs, tools and notifications."""
