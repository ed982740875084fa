"""The attributes that may be sent: their names, and for each which values. Nothing else ever leaves.

A client chooses the text of almost every field of a message, so a name alone would allow too much: an unknown tool, for
instance, may have any name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from agtrace_schema.own_tools import TOOLS
from mcp_types.methods import SPEC_CLIENT_METHODS, SPEC_CLIENT_NOTIFICATION_METHODS
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS

from agtrace.answers.clients import CLIENTS
from agtrace.problems import Problem
from agtrace.serving.prompts import PROMPTS

OTHER = "_OTHER"
"""Stands for a method that no version of the protocol has, as in other conventions of OpenTelemetry."""

TOOL = "gen_ai.tool.name"
PROMPT = "gen_ai.prompt.name"
METHOD = "mcp.method.name"
ERROR_CODE = "agtrace.error.code"

Attributes = dict[str, str]


def _one_of(*values: str) -> Callable[[str], bool]:
    return frozenset(values).__contains__


def _like(pattern: str) -> Callable[[str], bool]:
    matches = re.compile(pattern, re.ASCII).fullmatch
    return lambda value: matches(value) is not None


def _codes() -> set[str]:
    """Return the codes of all errors."""
    found: set[str] = {Problem.code}
    kinds = [Problem]
    while kinds:
        below = kinds.pop().__subclasses__()
        found.update(kind.code for kind in below)
        kinds += below
    return found


_ALLOWED: dict[str, Callable[[str], bool]] = {
    METHOD: _one_of(*SPEC_CLIENT_METHODS, *SPEC_CLIENT_NOTIFICATION_METHODS, OTHER),
    "mcp.protocol.version": _one_of(*KNOWN_PROTOCOL_VERSIONS),
    "mcp.session.id": _like(f"(?:{'|'.join(map(re.escape, CLIENTS))})\\.[0-9a-f]{{32}}"),  # made by the HTTP transport
    "jsonrpc.request.id": _like(r"-?\d{1,18}"),  # one that is a text could be any
    "gen_ai.operation.name": _one_of("execute_tool"),
    TOOL: _one_of(*TOOLS),
    PROMPT: _one_of(*PROMPTS),
    "network.transport": _one_of("pipe", "tcp"),
    "network.protocol.name": _one_of("http"),
    "network.protocol.version": _like(r"\d(?:\.\d)?"),
    "error.type": _like(r"-?\d{1,6}|[A-Za-z_][\w.]{0,60}"),  # a code, or the name of an exception's class
    "rpc.response.status_code": _like(r"-?\d{1,6}"),
    ERROR_CODE: _one_of(*_codes()),
    "agtrace.client": _one_of(*CLIENTS),
}


def allowed(attributes: Mapping[str, Any] | None) -> Attributes:
    """Return those attributes that may be sent."""
    return {
        name: value
        for name, value in (attributes or {}).items()
        if isinstance(value, str) and name in _ALLOWED and _ALLOWED[name](value)
    }
