"""The arguments that tools share, and how arguments are read. The record of a tool, next to it, is its input schema.

Unknown arguments are refused. Errors become `InvalidParameter`, which names the field, the allowed
values and the nearest valid one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Annotated, Any, TypeVar

from agtrace_indexer.providers.registry import AGENTS, named
from agtrace_schema.events import Provider
from agtrace_schema.fields import Field, Unfit, fields
from agtrace_schema.model import Record
from agtrace_schema.patterns import later
from msgspec import Meta

from agtrace.problems import InvalidParameter, UnknownArgument
from agtrace.settings.limits import Limits, limits
from agtrace.settings.model import LARGEST_PAGE, USUAL_PAGE
from agtrace.text.lines import repeated
from agtrace.text.numbers import counted

_LARGEST = 2**53
_LENGTHS = ("minLength", "maxLength")
_BOUNDS = (("minimum", 0), ("minimum", 1), ("maximum", _LARGEST))

DEFAULT_LIMIT = USUAL_PAGE
"""Stands for the page size of the settings in force, which `parse` puts in its place."""

Limit = Annotated[int, Meta(ge=1, le=LARGEST_PAGE)]
"""The settings say what the largest one is (`max_page_size`)."""
Cursor = str | None
"""The `next_cursor` of an answer, which goes on where that one ended."""
AnotherId = Annotated[str, Meta(min_length=1, max_length=200)]
"""The id of a session, or its beginning, where other tools have described that."""
SessionId = Annotated[AnotherId, Meta(description="ID or prefix.")]
_HEXADECIMAL = later("[0-9A-Fa-f]+")


ANY = "any"
"""As a commit or pull request: whichever a session made."""


def _as_hash(given: str) -> str:
    """Lower-case a hash. Anything else stays as typed: a secret in it couldn't be recognized once changed."""
    return given.lower() if _HEXADECIMAL.fullmatch(given) or given.lower() == ANY else given


AnyProject = Annotated[str, Meta(min_length=1, max_length=500)] | None
"""The name, folder or hash of a project, where other tools have described that."""
ProjectName = Annotated[AnyProject, Meta(description="Name, folder or hash.")]


def _as_pull_request(given: str) -> str:
    """Read `any`, `104`, `#104`, or the address of a pull request or of a page below it."""
    if given.strip().lower() == ANY:
        return ANY
    found = _PULL_REQUEST.fullmatch(given.strip())
    if found is None:
        raise Unfit("give the number or the URL of a pull request, or any")
    return found["number"] or found["address"]


_PULL_REQUEST = later(r"#?(?P<number>\d{1,9})|(?P<address>https?://\S+?/(?:pull|merge_requests)/\d{1,9})(?:[/?#]\S*)?")

Hash = Annotated[str, Meta(min_length=3, max_length=200, extra={"check": _as_hash})]
"""The hash of a commit, or its beginning."""

PullRequest = Annotated[str, Meta(max_length=500, extra={"check": _as_pull_request})]
"""The number or the address of a pull request."""

Until = Annotated[str, Meta(max_length=60)] | None
Time = Annotated[Until, Meta(description="ISO 8601, 30m, 12h, 7d, today, yesterday.")]
Text = Annotated[str, Meta(min_length=1, max_length=200)]
"""Part of a text to look for."""


def listed(given: Any) -> Any:
    """Read a comma-separated string as a list."""
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else given
    if isinstance(names, list) and not any(names):
        raise Unfit("name at least one")
    return [name for name in names if name != ""] if isinstance(names, list) else names


def known_agent(given: str) -> Provider:
    """Return the agent that is meant by a name; refuse one whose logs agtrace doesn't read."""
    agent = named(given)
    if agent is None:
        raise Unfit("no agent has this name", AGENTS)
    return agent


Agent = Annotated[Provider, Meta(max_length=60, extra={"check": known_agent})]
"""The name of an agent whose logs agtrace reads. The schema doesn't list them: there are many, and every byte of it is
paid for by each connection. A wrong name is answered with all of them."""

FocusQuestion = Annotated[str, Meta(min_length=1, max_length=2_000)] | None
"""What the lines of a long text that are wanted are about; `shaping/focusing.py` finds them."""

Fields = Annotated[list[str] | None, Meta(extra={"read": listed})]
"""The fields to keep in an answer; read by `projection`."""


def turn_number(given: Any) -> Any:
    """Read `turn-3`, as level summary names it, as 3."""
    return given.removeprefix("turn-") if isinstance(given, str) else given


TurnIndex = Annotated[int, Meta(ge=0, le=_LARGEST, extra={"read": turn_number})] | None


class Arguments(Record):
    """The arguments of one tool."""


Wanted = TypeVar("Wanted", bound=Arguments)


def parse(tool: type[Wanted], given: Mapping[str, Any]) -> Wanted:
    """Read the arguments of a call. Raises `InvalidParameter` for the first invalid one."""
    known, given = fields(tool), _under_present_names(tool, given)
    stray = next((name for name in given if name not in known), None)
    if stray is not None:
        raise UnknownArgument(str(stray), _offered(tool), _MEANT)
    values: dict[str, Any] = {}
    for name, field in known.items():
        if name in given:
            values[name] = _read(field, given[name])
        elif field.is_required:
            raise InvalidParameter(name, f"{name} is missing", _offered(tool))
    if "limit" not in known:
        return tool(**values)
    if "limit" in given and values["limit"] > limits().settings.max_page_size:
        raise _too_large_a_limit()
    return tool(**{"limit": limits().page_size, **values})


def _under_present_names(tool: type[Arguments], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read `project_hash`, as `project` was called before it took names."""
    if "project_hash" not in given or "project" not in fields(tool):
        return given
    rest = {name: value for name, value in given.items() if name != "project_hash"}
    return {"project": given["project_hash"], **rest}


def _read(field: Field, given: Any) -> Any:
    try:
        return field.read(given, strict=False)
    except Unfit as error:
        raise _unfit(field, given, error) from None


def _too_large_a_limit() -> InvalidParameter:
    most = limits().settings.max_page_size
    return InvalidParameter("limit", f"limit exceeds maximum of {most}", f"1 to {most}", most)


def told(wanted: Arguments, *, with_defaults: bool = True, only: Collection[str] | None = None) -> dict[str, Any]:
    """Return the arguments that were given, as JSON has them; of the others, `with_defaults` those with a default."""
    found: dict[str, Any] = {}
    for name, field in fields(type(wanted)).items():
        value = getattr(wanted, name)
        if value is None or (value == field.default and not with_defaults) or (only is not None and name not in only):
            continue
        found[name] = value.value if isinstance(value, Enum) else value
    return found


def input_schema(tool: type[Arguments], held: Limits | None = None) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, without what a model doesn't need to read.

    Bounds that no sensible value reaches are left out, though values beyond them are still refused. `held` has the page
    sizes, by default those of the settings without any change.
    """
    held = held or limits()
    properties = {name: _lean(fields(tool)[name]) for name in _offered(tool)}
    if "limit" in properties:
        properties["limit"] |= {"default": held.tool.page_size or held.settings.default_page_size}
        properties["limit"] |= {"maximum": held.settings.max_page_size}
    required = [name for name in properties if fields(tool)[name].is_required]
    lean: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return lean | ({"required": required} if required else {})


def _offered(tool: type[Arguments]) -> list[str]:
    """Return the arguments that the schema of a tool names."""
    return [name for name, field in fields(tool).items() if not field.extra.get("hidden")]


def _lean(field: Field) -> dict[str, Any]:
    """Return one parameter, with its default unless that is null or false."""
    schema = field.schema | ({} if field.is_required or not field.default else {"default": field.default})
    unread = (*_BOUNDS, *((name, schema.get(name)) for name in _LENGTHS))
    return {name: schema[name] for name in sorted(schema) if (name, schema[name]) not in unread}


def _unfit(field: Field, given: Any, error: Unfit) -> InvalidParameter:
    schema = field.schema | ({"maximum": limits().settings.max_page_size} if field.name == "limit" else {})
    from agtrace.settings.faults import allowed  # only if something is wrong

    choices = error.choices or schema.get("enum") or schema.get("items", {}).get("enum")
    if choices:
        items = listed(given) if schema.get("type") == "array" and not error.why else given
        wrong = next((one for one in items if one not in choices), given) if isinstance(items, list) else given
        return _wrong_choice(field.name, wrong, choices)
    bound = _bound_passed(schema, given)
    if field.name == "limit" and bound == "maximum":
        return _too_large_a_limit()
    bounds = {name: schema[name] for name in ("type", "minimum", "maximum", "maxLength", "pattern") if name in schema}
    text = ", ".join(f"{name} {value}" for name, value in bounds.items())
    got = "other values" if isinstance(given, list) and schema["type"] == "array" else _shown(given)
    why = error.why or f"expected {allowed(schema)}, got {got}"
    return InvalidParameter(field.name, f"{field.name}: {why}", text or None, schema.get(bound))


def _shown(given: Any) -> str:
    """Return what was given, for a sentence."""
    if isinstance(given, str):
        return f"a text of {counted(len(given), 'character')}"
    if isinstance(given, dict | list):
        return "an object" if isinstance(given, dict) else "a list"
    if isinstance(given, int) and abs(given) > _LARGEST:
        return "a number that is far too large"
    return json.dumps(given)


def _bound_passed(schema: Mapping[str, Any], given: Any) -> str:
    """Return the bound that a number passes: `minimum` or `maximum`; an empty text if there is none."""
    if not isinstance(given, int):
        return ""
    low, high = schema.get("minimum", given), schema.get("maximum", given)
    return "maximum" if given > high else "minimum" if given < low else ""


_MEANT: dict[str, tuple[str, ...]] = {
    "access_type": ("access",),
    "after": ("since",),
    "agent": ("provider",),
    "before": ("until",),
    "by": ("group_by",),
    "context": ("around",),
    "count": ("limit",),
    "detail": ("detail_level",),
    "event": ("event_index",),
    "event_id": ("event_index",),
    "event_type": ("kind",),
    "cwd": ("project",),
    "file": ("path",),
    "file_path": ("path",),
    "folder": ("project",),
    "from": ("since",),
    "id": ("session_id", "ref"),
    "index": ("event_index", "turn_index"),
    "level": ("detail_level",),
    "max_results": ("limit",),
    "mode": ("detail_level",),
    "order_by": ("sort", "order"),
    "order": ("sort",),
    "outcome": ("failed", "has_failures"),
    "pattern": ("query",),
    "project_hash": ("project",),
    "project_name": ("project",),
    "repo": ("project",),
    "repository": ("project",),
    "query_text": ("query",),
    "role": ("kind",),
    "search": ("query",),
    "session": ("session_id", "id1"),
    "sort": ("order",),
    "sort_by": ("sort", "order"),
    "text": ("query",),
    "to": ("until",),
    "tool_name": ("tool",),
    "turn": ("turn_index",),
    "type": ("kind",),
    "uri": ("ref",),
}
"""Names that arguments have elsewhere -> their names here; the first one that the tool has is meant."""

_JSON_TYPES = {dict: "object", list: "array", bool: "boolean", int: "number", float: "number", type(None): "null"}


def _wrong_choice(field: str, given: Any, allowed: list[str]) -> InvalidParameter:
    given = given if isinstance(given, str) else _JSON_TYPES[type(given)]  # an integer may be too long to print
    folded = {choice.lower(): choice for choice in allowed}
    import difflib  # only if needed

    close = difflib.get_close_matches(given.lower(), list(folded), 1, cutoff=0.4)
    nearest = folded[close[0]] if close else None
    also = f"; did you mean {nearest}?" if nearest else ""
    message = f"{field}: {repeated(given, 60)!r} is not one of {', '.join(allowed)}{also}"
    return InvalidParameter(field, message, allowed, nearest)
