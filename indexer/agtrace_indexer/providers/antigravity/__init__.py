"""Antigravity: `brain/<conversation>/.system_generated/logs/transcript_full.jsonl` (README.md)."""

from __future__ import annotations

from agtrace_schema.patterns import later

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.logs.discovery import Forms
from agtrace_indexer.providers.provider import Agent, Home, Notices, loader

_FULL, _CUT = "transcript_full.jsonl", "transcript.jsonl"
_IN_LOGS = later(r"[/\\]\.system_generated[/\\]logs\Z")


def _log_of(folder: str, name: str) -> tuple[str, str] | None:
    """Return the same for a transcript and the one next to it in which nothing is cut."""
    return (folder, _CUT) if name in (_FULL, _CUT) and _IN_LOGS.search(folder) else None


def _rank(path: str) -> tuple[bool, ...]:
    return (path.endswith(_CUT),)


ANTIGRAVITY = Agent(
    name="antigravity",
    title="Antigravity",
    parser=loader("antigravity.parser"),
    home=Home("", "", ".gemini", tuple(f"antigravity{of}/brain" for of in ("-cli", "", "-ide"))),
    forms=Forms("transcript", _log_of, _rank),
    tools=Tools(
        shells=frozenset({"run_command"}),
        editing=frozenset({"multi_replace_file_content", "replace_file_content"}),
        reading=frozenset({"codebase_search", "find_by_name", "list_dir", "read_url_content", "search_web"}),
        waiting=frozenset({"command_status"}),
        starting=frozenset({"invoke_subagent"}),
        commands=("CommandLine",),
        paths=("AbsolutePath", "TargetFile"),
        removed=("TargetContent",),
        added=("ReplacementContent",),
        contents=("CodeContent",),
    ),
    notices=Notices(retried_errors=frozenset({"error_message"})),
    output_header=later(
        r"\ACreated At: [^\n]{1,40}\nCompleted At: [^\n]{1,40}\s{1,40}"
        r"(?:The command (?:completed successfully\.|failed with exit code: -?[0-9]{1,9})\s{1,40}"
        r"(?:Output:|Stdout:)\s{0,40})?"
    ),
    command="agy",
    resumes=("--conversation",),
)
"""Antigravity: its logs, tools, notifications and settings."""
