"""The arguments of the pruning server's tools: strict models, and what is said of arguments that don't fit them.

Unknown arguments are refused, and no value is taken for one of another type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

from agtrace_schema.requests import Mode
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from agtrace.problems import InvalidParameter, UnknownArgument
from agtrace.text.lines import repeated

LARGEST_LINE = 2**53
"""The largest number of a line that JSON carries safely."""
USUAL_RADIUS = 20
"""The lines before and after `around_line`."""

_LONGEST_PATH = 4_096
_LONGEST_COMMAND = 100_000
"""Linux takes less than 131,072 bytes as one argument of a program."""
_LONGEST_PATTERN = 4_096
_LONGEST_NAME = 60


def _without_nul(given: str) -> str:
    """Refuse a NUL character, which the operating system can't take."""
    if "\0" in given:
        raise PydanticCustomError("nul", "no NUL character is allowed")
    return given


def _short_enough(given: str) -> str:
    if len(given.encode(errors="replace")) > _LONGEST_COMMAND:
        raise PydanticCustomError("bytes", f"a command has at most {_LONGEST_COMMAND:,} bytes")
    return given


def _several(given: Any) -> Any:
    return [given] if isinstance(given, str) else given


def _one_line(given: str) -> str:
    if "\n" in given:
        raise PydanticCustomError("line", "a pattern is looked for in single lines, so it can't contain a line end")
    return given


def _variable_name(given: str) -> str:
    if not given or "=" in given:
        raise PydanticCustomError("variable", "the name of a variable is not empty and has no =")
    return given


_FilePath = Annotated[str, StringConstraints(min_length=1, max_length=_LONGEST_PATH), AfterValidator(_without_nul)]
_Command = Annotated[
    str,
    StringConstraints(min_length=1, max_length=_LONGEST_COMMAND),
    AfterValidator(_without_nul),
    AfterValidator(_short_enough),
]
_Pattern = Annotated[
    str,
    StringConstraints(min_length=1, max_length=_LONGEST_PATTERN),
    AfterValidator(_without_nul),
    AfterValidator(_one_line),
]
_Name = Annotated[str, AfterValidator(_without_nul), AfterValidator(_variable_name)]
_Value = Annotated[str, AfterValidator(_without_nul)]
_Line = Annotated[int, Field(ge=1, le=LARGEST_LINE)]
_Milliseconds = Annotated[int, Field(ge=100, le=600_000)]


class Arguments(BaseModel):
    """The arguments that all tools have."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    context_focus_question: Annotated[str, StringConstraints(min_length=1, max_length=2_000)] | None = Field(
        None,
        description="A full sentence that names what to keep; each gap gives the numbers of the lines left out.",
    )
    mode: Mode | None = Field(None, description="How much is shown: 5,000, 40,000 (usual) or 200,000 characters.")


class ReadArguments(Arguments):
    """The arguments of `read`: a file, and which of its lines."""

    file_path: _FilePath = Field(description="Absolute, or relative to the server's folder.")
    start_line: _Line | None = Field(None, description="From 1.")
    end_line: _Line | None = None
    around_line: _Line | None = Field(None, description="With radius, instead of start_line and end_line.")
    radius: Annotated[int, Field(ge=0, le=500)] = USUAL_RADIUS

    @model_validator(mode="after")
    def _one_range(self) -> ReadArguments:
        if self.around_line is not None and (self.start_line or self.end_line):
            raise PydanticCustomError("range", "give start_line and end_line, or around_line, not both")
        if self.around_line is None and "radius" in self.model_fields_set:
            raise PydanticCustomError("range", "radius needs around_line")
        if self.end_line is not None and (self.start_line or 1) > self.end_line:
            raise PydanticCustomError("range", "end_line is before start_line")
        return self

    @property
    def lines(self) -> tuple[int, int | None] | None:
        """The first and the last line (None: that of the file); None for the whole file."""
        if self.around_line is not None:
            return max(self.around_line - self.radius, 1), self.around_line + self.radius
        if self.start_line is None and self.end_line is None:
            return None
        return self.start_line or 1, self.end_line


class BashArguments(Arguments):
    """The arguments of `bash`: a command, where and for how long it runs."""

    command: _Command
    cwd: _FilePath | None = Field(None, description="A folder; by default the server's.")
    env: dict[_Name, _Value] = Field(default_factory=dict, description="Variables besides those of the server.")
    timeout_ms: _Milliseconds = 120_000
    allow_nonzero_exit: bool = Field(False, description="Whether a nonzero exit is an ordinary result, not an error.")


class GrepArguments(Arguments):
    """The arguments of `grep`: what is looked for, where, and how much of it is shown."""

    pattern: _Pattern | None = Field(None, description="A regular expression, for single lines.")
    patterns: Annotated[tuple[_Pattern, ...], Field(strict=False, min_length=1, max_length=50)] | None = Field(
        None, description="Any of these, instead of pattern."
    )
    paths: Annotated[
        tuple[_FilePath, ...], BeforeValidator(_several), Field(strict=False, min_length=1, max_length=1_000)
    ] = Field(
        (".",), description="Files and folders, which are searched with hidden and ignored files, but without .git."
    )
    cwd: _FilePath | None = Field(None, description="A folder; by default the server's.")
    context_lines: Annotated[int, Field(ge=0, le=50)] = 0
    max_matches: Annotated[int, Field(ge=1, le=1_000)] = 200
    max_bytes: Annotated[int, Field(ge=1_024, le=262_144)] = 262_144
    timeout_ms: _Milliseconds = 30_000

    @model_validator(mode="after")
    def _some_pattern(self) -> GrepArguments:
        if (self.pattern is None) == (self.patterns is None):
            raise PydanticCustomError("pattern", "give either pattern or patterns")
        return self

    @property
    def wanted(self) -> tuple[str, ...]:
        """All patterns."""
        return self.patterns if self.pattern is None else (self.pattern,)  # type: ignore[return-value]


Model = TypeVar("Model", bound=Arguments)


class FieldError(NamedTuple):
    """What is wrong with one argument."""

    field: str
    """Its name; `arguments` if it is about several of them."""
    message: str


class InvalidArguments(InvalidParameter):
    """Arguments that don't fit a tool, with all errors."""

    def __init__(self, errors: Sequence[FieldError], allowed: Sequence[str]) -> None:
        super().__init__(errors[0].field, "; ".join(error.message for error in errors), allowed)
        self.errors = tuple(errors)


def parse(model: type[Model], given: Mapping[str, Any]) -> Model:
    """Read the arguments of a call. Raises `InvalidArguments`, which says what is wrong with each."""
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        known = list(input_schema(model)["properties"])
        details = error.errors(include_url=False, include_context=False)
        details.sort(key=lambda detail: detail["type"] != "extra_forbidden")
        errors = list(dict.fromkeys(_told(detail, known) for detail in details))
        raise InvalidArguments(errors, known) from None


def input_schema(model: type[Arguments]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, without titles and without null as a value."""
    schema = model.model_json_schema()
    shared = list(Arguments.model_fields)
    order = [*(name for name in schema["properties"] if name not in shared), *shared]
    properties = {name: _lean(schema["properties"][name]) for name in order}
    required = {"required": schema["required"]} if schema.get("required") else {}
    return {"type": "object", "properties": properties, "additionalProperties": False} | required


def _lean(part: Mapping[str, Any]) -> dict[str, Any]:
    options = [option for option in part.get("anyOf", ()) if option.get("type") != "null"]
    whole = {**part, **(options[0] if options else {})}
    unread = {"title", "anyOf"} | (set() if whole.get("default") is not None else {"default"})
    return {name: value for name, value in whole.items() if name not in unread and value != LARGEST_LINE}


def _told(detail: ErrorDetails, known: Sequence[str]) -> FieldError:
    place = detail["loc"]
    field = repeated(str(place[0]), _LONGEST_NAME) if place else "arguments"
    if detail["type"] == "extra_forbidden" and len(place) == 1:
        return FieldError(field, UnknownArgument(str(place[0]), known, _MEANT).message)
    if detail["type"] == "missing":
        return FieldError(field, f"{field} is missing")
    inner = [repeated(str(part), _LONGEST_NAME) for part in place[1:] if part != "[key]"]
    message = detail["msg"].replace("a valid tuple", "a list")
    return FieldError(field, f"{'.'.join([field, *inner])}: {message}")


_MEANT: Mapping[str, tuple[str, ...]] = {
    "around": ("around_line", "context_lines"),
    "cmd": ("command",),
    "context": ("radius", "context_lines"),
    "directory": ("cwd",),
    "environment": ("env",),
    "file": ("file_path", "paths"),
    "focus": ("context_focus_question",),
    "folder": ("cwd",),
    "from": ("start_line",),
    "head_limit": ("max_matches",),
    "limit": ("end_line", "max_matches"),
    "line": ("around_line",),
    "offset": ("start_line",),
    "path": ("file_path", "paths"),
    "query": ("pattern",),
    "question": ("context_focus_question",),
    "regex": ("pattern",),
    "script": ("command",),
    "timeout": ("timeout_ms",),
    "to": ("end_line",),
    "workdir": ("cwd",),
}
"""Names that arguments have elsewhere -> their names here; the first one that the tool has is meant."""
