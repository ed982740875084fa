"""Answers as clients read them: `McpResponse` around the payload of a tool, or `McpError`.

    McpResponse[SessionList].model_validate(result.structured_content).data.sessions

Payloads are the records that answers are made of, so that each field is described once. Any of them may be absent: what
is unknown, what `fields` left out, and in the answer about a single turn all facts about the session but its id. An
answer with `truncation` had to be made smaller, its lists may be tables: it is an `McpResponse[dict[str, Any]]`.

Our own answers aren't validated on their way out; tests validate those of every tool.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from types import NoneType, UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from agtrace_schema.answers import Budget, Chunk, ErrorBody, IndexState, Pagination, Pruning, Truncation
from agtrace_schema.model import Model

Data = TypeVar("Data")

_STRICT = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class McpResponse(BaseModel, Generic[Data]):
    """An answer: the payload of a tool in its envelope."""

    model_config = _STRICT

    summary: str = Field(max_length=100)
    success: Literal[True]
    data: Data
    pagination: Pagination | None = None
    chunk: Chunk | None = None
    index: IndexState | None = None
    untrusted: Literal[True] | None = None
    """Whether it quotes text from a log."""
    artifact_ref: str | None = None
    truncation: Truncation | None = None
    pruning: Pruning | None = None
    budget: Budget | None = None
    warning: str | None = None
    """Of an answer above 30 KB: what it takes of a context."""
    hint: str | None = None


class McpError(BaseModel):
    """What is wrong with a request that can't be answered."""

    model_config = _STRICT

    summary: str = Field(max_length=100)
    success: Literal[False]
    error: ErrorBody
    untrusted: Literal[True] | None = None
    hint: str | None = None


@cache
def wire_model(record: type[Model]) -> Any:
    """Return what pydantic makes of a record: each of its fields may be absent, and there are no others."""
    if record.__struct_config__.array_like:
        return list[Any]
    fields: dict[str, Any] = {name: (kind | None, None) for name, kind in get_type_hints(record).items()}
    return create_model(record.__name__, __config__=_STRICT, **fields)


# -- the schema that a server advertises -----------------------------------------------------------


def output_schema(payloads: Iterable[type[Model]]) -> dict[str, Any]:
    """Return the JSON schema of a tool's answers, whatever `truncation` says, and of errors.

    It has the names and types of the payload's own fields, and nothing deeper: a client pays for every byte of it. Each
    type stands alone, as there are clients that know only single ones.
    """
    types = defaultdict[str, set[str]](set)
    for name, kind in (field for payload in payloads for field in get_type_hints(payload).items()):
        types[name] |= _types(kind)
    alone = {name: [{"type": kind} for kind in sorted(kinds)] for name, kinds in types.items()}
    fields = {name: kinds[0] if len(kinds) == 1 else {"anyOf": kinds} for name, kinds in alone.items()}
    answer = _arm(McpResponse, success={"const": True}, data={"type": "object", "properties": fields})
    return {"type": "object", "anyOf": [answer, _arm(McpError, success={"const": False}, error={"type": "object"})]}


def _arm(model: type[BaseModel], **parts: dict[str, Any]) -> dict[str, Any]:
    required = [name for name, field in model.model_fields.items() if field.is_required()]
    return {"properties": parts, "required": required}


_TYPES: dict[Any, str] = {
    bool: "boolean", dict: "object", float: "number", int: "integer", list: "array", Literal: "string", tuple: "array",
}  # fmt: skip


def _types(kind: Any) -> set[str]:
    """Return the JSON types of a field, besides null; a list of objects may be a table, which is an object."""
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, UnionType):
        return set[str]().union(*(_types(arm) for arm in inner if arm is not NoneType))
    if origin in _TYPES:
        return {_TYPES[origin]} | (_types(inner[0]) & {"object"} if origin is list else set())
    if issubclass(origin, Model):
        return {"array" if origin.__struct_config__.array_like else "object"}
    return {"string"}
