"""The arguments of the pruning server's tools: strict models, which are the input schemas of the tools as well."""

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
from pydantic.json_schema import GenerateJsonSchema

from agtrace.text.lines import repeated

_LONGEST_NAME = 60


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("no NUL character is allowed")
    return text


_NoNul = AfterValidator(_without_nul)
_FilePath = Annotated[str, StringConstraints(min_length=1, max_length=4_096), _NoNul]
_Command = Annotated[str, StringConstraints(min_length=1, max_length=100_000), _NoNul]
_Pattern = Annotated[str, StringConstraints(min_length=1, max_length=4_096), _NoNul]
_Name = Annotated[str, StringConstraints(pattern="^[^=]+$"), _NoNul]
_Value = Annotated[str, _NoNul]
_Line = Annotated[int, Field(ge=1)]
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
    radius: Annotated[int, Field(ge=0, le=500)] = 20

    @model_validator(mode="after")
    def _one_range(self) -> ReadArguments:
        if self.around_line is not None and (self.start_line or self.end_line):
            raise ValueError("give start_line and end_line, or around_line, not both")
        if self.around_line is None and "radius" in self.model_fields_set:
            raise ValueError("radius needs around_line")
        if self.end_line is not None and (self.start_line or 1) > self.end_line:
            raise ValueError("end_line is before start_line")
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
        tuple[_FilePath, ...],
        Field(strict=False, min_length=1, max_length=1_000),
        BeforeValidator(lambda given: [given] if isinstance(given, str) else given),
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
            raise ValueError("give either pattern or patterns")
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


class InvalidArguments(Exception):
    """Arguments that don't fit a tool, with all errors."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("; ".join(error.message for error in errors))
        self.errors = tuple(errors)


def parse(model: type[Model], given: Mapping[str, Any]) -> Model:
    """Read the arguments of a call. Raises `InvalidArguments`."""
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)
        found = []
        for detail in details:
            names = [repeated(str(part), _LONGEST_NAME) for part in detail["loc"]] or ["arguments"]
            found.append(FieldError(names[0], f"{'.'.join(names)}: {detail['msg']}"))
        raise InvalidArguments(found) from None


class _Schema(GenerateJsonSchema):
    """Writes schemas without titles, and without null where an argument may be left out."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> dict[str, Any]:
        return (
            self.generate_inner(schema["schema"]) if schema.get("default") is None else super().default_schema(schema)
        )


def input_schema(model: type[Arguments]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments."""
    schema = model.model_json_schema(schema_generator=_Schema)
    return {name: value for name, value in schema.items() if name not in ("title", "description")}
