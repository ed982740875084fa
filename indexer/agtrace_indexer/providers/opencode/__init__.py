"""OpenCode: its database since 1.2, its tree of small files before, and its exports (README.md).

Kilo CLI and MiMo Code are forks with the same tables under other names: `agent` describes any of the three. An export
doesn't say which of them wrote it, and is read as OpenCode's.
"""

from __future__ import annotations

import re

from agtrace_schema.patterns import later

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.logs.discovery import forms
from agtrace_indexer.providers.provider import Agent, Containers, Database, Notices, Sign, Tested, loader, of_user_data

_FORKS = ("kilo", "mimocode")
"""The folders of the forks, whose trees of files are theirs."""

_NAMED = r"(?:[^/]*[-_.])?{}(?:[-_.][^/]*)?\.(?:db|sqlite3?)"
"""The names of its databases: other channels than the usual one have `opencode-<channel>.db`."""

_SMALL_FILE = r"(?:session/[^/]+/ses_[^/]+|message/[^/]+/msg_[^/]+|part/(?:[^/]+/)?[^/]+)\.json"
"""The files of a tree that say something of sessions: not `session_diff`, whose files repeat whole changes."""


_FORMS = forms("ses_", r"(.*)/[^/]+\.db/(ses_[^/]*)", r"(.*)/storage/(ses_[^/]*)")
"""A session in the database and in the tree next to it, which 1.2 imported and left."""

_TOOLS = Tools(
    shells=frozenset({"bash", "shell"}),
    reading=frozenset({"codesearch", "glob", "grep", "list", "lsp", "todoread", "webfetch", "websearch"}),
    asking=frozenset({"plan_enter", "plan_exit", "question"}),
    questioning=frozenset({"question"}),
    starting=frozenset({"task", "subagent"}),
    servers=("agtrace_",),
    commands=("command",),
    paths=("filePath",),
    removed=("oldString",),
    added=("newString",),
    contents=("content",),
)

_NOTICES = Notices(
    api_errors=frozenset({"error"}),
    retried_errors=frozenset({"retry"}),
    interruptions=(Sign("aborted"),),
    compactions=(Sign("compaction"),),
)


def agent(
    name: str, title: str, command: str, *, folder: str, variable: str, tree: str, tested: Tested | None = None
) -> Agent:
    """Describe OpenCode or one of its forks.

    `folder` is the name of its data folder and of its database, `variable` the one that names another database,
    and `tree` a pattern for the folders above its tree of files, `storage`.
    """
    return Agent(
        name=name,
        title=title,
        parser=loader("opencode.parser"),
        tested=tested,
        home=of_user_data(f"{folder}/storage", f"{folder}/{folder}-*.db")._replace(
            database=Database(
                variable, f"the database of {title}; default {folder}.db in its data", folder, f"{folder}.db"
            ),
        ),
        forms=_FORMS,
        containers=(
            Containers(
                later(rf"(.*/{_NAMED.format(folder)})(?:-wal|-shm|-journal)?", re.DOTALL),
                loader("opencode.parser"),
                folder,
            ),
            Containers(
                later(rf"({tree}/storage(?:_[^/]*)?)(?:/{_SMALL_FILE})?", re.DOTALL),
                loader("opencode.parser:Tree"),
                "/storage",
            ),
        ),
        tools=_TOOLS,
        notices=_NOTICES,
        hidden_reasoning="encrypted",
        longest_command_ms=None,
        command=command,
        resumes=("--session",),
        keys_remembered=None,  # any row can change or be deleted
    )


OPENCODE = agent(
    "opencode", "OpenCode", "opencode", folder="opencode", variable="OPENCODE_DB",
    tree="".join((".*", *(f"(?<!/{fork})" for fork in _FORKS))),
    tested=Tested("2.0.12", "2026-11", "session_v2, session_message"),
)  # fmt: skip
"""OpenCode: its logs, tools and notifications."""

KILO = agent("kilo", "Kilo CLI", "kilo", folder="kilo", variable="KILO_DB", tree=".*/kilo")
"""Kilo CLI: its logs, tools and notifications."""

MIMO_CODE = agent("mimo_code", "MiMo Code", "mimo", folder="mimocode", variable="MIMOCODE_DB", tree=".*/mimocode")
"""MiMo Code: its logs, tools and notifications."""
