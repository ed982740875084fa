"""Errors in requests: each exception knows its error code and writes its own message.

Trouble in the user's logs is data, never an exception. The codes are those of the answer contract.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from agtrace_schema.answers import ErrorCode

    from agtrace.text.next_call import Hint

_LONGEST_ID = 80
_LONGEST_GIVEN = 200
_LONGEST_PATH = 100
_CURSOR_TROUBLE = {
    "malformed": "invalid cursor format: not a cursor of this index",
    "expired": "this cursor has expired",
    "mismatch": "this cursor belongs to another tool or query",
}


class SettingError(Exception):
    """An environment variable or file holds a value that can't be used; the message says what is expected."""


class NotStarted(Exception):
    """A program that the user named can't be started, for the reason that the system gives."""

    def __init__(self, program: str, why: OSError) -> None:
        super().__init__(f"can't run {program}: {why.strerror or why}")
        self.exit_code = 127 if isinstance(why, FileNotFoundError) else 126
        """As a shell would end."""


class NotInstalled(Exception):
    """The service that keeps the index fresh can't be installed or removed, for the reason given."""


class Problem(Exception):
    """A request that can't be answered. The message says what to do next."""

    code: ErrorCode = "internal_error"
    retryable = False
    untrusted = False
    """Whether it quotes text from a log, such as session ids."""

    def __init__(self, message: str, hint: Hint | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message, self.hint, self.details = message, hint, details


class InvalidParameter(Problem):
    """An argument is unknown, of the wrong type or out of range."""

    code = "invalid_parameter"

    def __init__(
        self, field: str, message: str, allowed: Sequence[Any] | str | None = None, nearest: Any = None
    ) -> None:
        details = {"field": field, "allowed": allowed, "nearest": nearest}
        super().__init__(message, **{name: value for name, value in details.items() if value is not None})


class UnknownArgument(InvalidParameter):
    """A tool has no argument of this name. Says which of its own is meant: by its name elsewhere, or one like it."""

    def __init__(self, field: str, known: Sequence[str], elsewhere: Mapping[str, str]) -> None:
        """`elsewhere` has for names of arguments what they are called elsewhere, in lower case."""
        import difflib  # only if needed

        from agtrace.text.lines import repeated

        meant = [name for name in known if field.lower() in elsewhere.get(name, "").split()]
        nearest = (meant or difflib.get_close_matches(field, known, 1))[:1]
        asks = f"; did you mean {nearest[0]}? This" if nearest else "; this"
        message = f"unknown argument {repeated(field, 60)!r}{asks} tool takes {', '.join(known)}"
        super().__init__(field, message, known, *nearest)


class UnknownProject(InvalidParameter):
    """The request names no known project, or more than one."""

    untrusted = True

    def __init__(self, trouble: str, known: Sequence[str], *, as_what: str = "") -> None:
        """`known` are names to choose from, and `as_what` says which ones they are, as `nearest: `."""
        from agtrace.text.lines import named_path

        among = f"; {as_what}{', '.join(named_path(path, _LONGEST_PATH) for path in known)}" if known else ""
        super().__init__("project", f"{trouble}{among}", list(known))


class TooManyEvents(InvalidParameter):
    """A report on more events than can be examined while a client waits."""

    def __init__(self, sessions: int) -> None:
        super().__init__("ref", f"{sessions:,} sessions are too many to examine at once")
        self.hint = "Shorten the period, as in ax://report/7d, or run `agtrace report` in a terminal."


class InvalidCursor(Problem):
    """A cursor that was tampered with, has expired, or belongs to another query."""

    code = "invalid_cursor"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{_CURSOR_TROUBLE[reason]}; repeat the query without a cursor to start again", None, reason=reason
        )
        self.hint = "Call the same tool with the same arguments, leaving out cursor."


class SessionNotFound(Problem):
    """No session has this id or prefix."""

    code = "session_not_found"

    def __init__(self, session_id: str, nearest: Iterable[str] = ()) -> None:
        from agtrace.text.lines import name_in_sentence  # importers of the settings alone don't need it
        from agtrace.text.next_call import call

        near = list(nearest)
        also = f"; nearest: {', '.join(name_in_sentence(id, _LONGEST_ID) for id in near)}" if near else ""
        given = name_in_sentence(session_id, _LONGEST_GIVEN)
        super().__init__(f"Session not found: {given}{also}", None, session_id=session_id, nearest=near)
        self.hint = call("list_sessions").saying("shows the ids of the newest sessions")
        self.untrusted = bool(near)


class AmbiguousSessionPrefix(Problem):
    """Several session ids begin with this prefix."""

    code = "ambiguous_session_prefix"
    untrusted = True

    def __init__(self, prefix: str, matches: list[str], total: int) -> None:
        super().__init__(
            f"Session ID prefix {prefix!r} matches {total} sessions. Provide more characters.",
            None,
            prefix=prefix,
            matches=matches,
            total=total,
        )
        self.hint = "Repeat the call with one of details.matches."


class InvalidEventIndex(Problem):
    """The session has no event with this index."""

    code = "invalid_event_index"
    untrusted = True

    def __init__(self, session_id: str, requested: int, maximum: int) -> None:
        from agtrace.text.next_call import call

        super().__init__(
            f"Event index {requested} out of bounds for session {session_id} (max: {maximum})",
            None,
            session_id=session_id,
            requested_index=requested,
            max_index=maximum,
        )
        last = call("get_event_details", session_id=session_id, event_index=maximum)
        self.hint = last.saying("is the last event")


class InvalidRange(Problem):
    """The text or session has no such turn or span of lines."""

    code = "invalid_range"


class InvalidArtifactRef(Problem):
    """A reference of an unknown form, or to something that is gone."""

    code = "invalid_artifact_ref"

    def __init__(self, reference: str, trouble: str = "") -> None:
        from agtrace.text.lines import repeated  # it loads the redaction rules
        from agtrace.text.next_call import call

        given = repeated(reference, 200)
        forms = (
            "use ax://session/<id>, ax://event/<session>/<index>, ax://analysis/<session>, ax://report, "
            "ax://report/<since>, ax://lessons, ax://why/<file>:<line>, ax://metrics/<since>, ax://exec/<id> (outputs, "
            "kept for a day), ax://sql or ax://health"
        )
        super().__init__(
            f"Invalid artifact ref: {given}; {trouble or forms}",
            call("list_sessions").saying("shows the ids of the newest sessions"),
            ref=given,
        )


class TelemetryUnavailable(Problem):
    """The file with the figures of requests can't be read."""

    retryable = True

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} can't be read; you can delete it, and the next request creates a new one")


class SearchTimeout(Problem):
    """A search exceeded its time limit."""

    code = "search_timeout"
    retryable = True

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The search was stopped after {seconds:.0f} s; narrow it and try again", None, seconds=seconds
        )
        self.hint = "Add session_id, project or since to the query."


class IndexUnavailable(Problem):
    """The index is missing, locked or damaged."""

    hint: str | None
    code = "index_unavailable"
    retryable = True


class InternalError(Problem):
    """A defect in agtrace; the log has the details under the id of the request."""

    code = "internal_error"

    def __init__(self, request_id: str) -> None:
        super().__init__(
            f"agtrace failed on this request; its log on stderr has the details under {request_id}",
            None,
            request_id=request_id,
        )
