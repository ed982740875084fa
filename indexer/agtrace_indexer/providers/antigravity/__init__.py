"""Antigravity: `brain/<conversation>/.system_generated/logs/transcript_full.jsonl` (README.md)."""

from __future__ import annotations

from agtrace_schema.patterns import later

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.logs.discovery import forms
from agtrace_indexer.providers.provider import Agent, Home, Notices, loader

ANTIGRAVITY = Agent(
    name="antigravity",
    title="Antigravity",
    parser=loader("antigravity.parser"),
    home=Home("", "", ".gemini", tuple(f"antigravity{of}/brain" for of in ("-cli", "", "-ide"))),
    forms=forms(  # the second has cut what is long
        "transcript",
        r"(.*/\.system_generated/logs)/(transcript)_full\.jsonl",
        r"(.*/\.system_generated/logs)/(transcript)\.jsonl",
    ),
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
