"""What an artifact_ref refers to, as text: events, sessions, analyses, reports, lessons, files ..."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from agtrace_indexer.index.queries.sessions import Session
from agtrace_schema.answers import Artifact
from agtrace_schema.model import dump
from msgspec import Meta, Struct

from agtrace.problems import InvalidArtifactRef
from agtrace.sessions import events, transcript
from agtrace.sessions.query import Reference, find_event, find_session, last_event_of, parse, short_id
from agtrace.sessions.transcript import place_of, session_lines, session_stream
from agtrace.settings.limits import limits
from agtrace.shaping.replies import Body, Digest, Reply, Stream, printed
from agtrace.text.chunking import line_count
from agtrace.text.kept_texts import REFERENCE, KeptTexts
from agtrace.text.lines import name_in_sentence, named_path
from agtrace.text.next_call import Hint, call
from agtrace.text.numbers import counted
from agtrace.tools.analyze_session import first_evidence
from agtrace.tools.long_text import (
    LongText,
    TextArguments,
    asked_part,
    budget_of,
    check_asked,
    check_range,
    digest,
    lines_asked,
    part_asked,
    ranged_lines,
)
from agtrace.tools.tool import Context, Tool, opens_event, query_of

_EXAMINED_AT_ONCE = 500_000
"""The most events that a report may examine; takes a dozen seconds."""


class ReadArtifact(TextArguments):
    """Arguments of read_artifact."""

    ref: Annotated[str, Meta(max_length=300)]


def answer(context: Context, request: ReadArtifact) -> Reply:
    """Answer with everything that a reference refers to."""
    check_asked(request)
    reference = parse(request.ref)
    session = find_session(context.connection, reference.session) if reference.session else None
    return _KINDS[reference.kind](_Opening(context, request, reference, session))


class _Opening(Struct, frozen=True):
    context: Context
    wanted: ReadArtifact
    reference: Reference
    row: Session | None

    @property
    def session(self) -> Session:
        """The session that the reference names."""
        assert self.row is not None
        return self.row

    @property
    def shown_id(self) -> str:
        """The id of the session as answers show it."""
        return short_id(self.context.connection, self.session.uid)

    def read_cursor(self, cursor: str) -> tuple[int, ...]:
        """Return the position of a cursor."""
        return self.context.cursors.read(TOOL.name, self._query(), cursor)

    def make_cursor(self, *position: int) -> str:
        """Return the cursor that continues after a position."""
        return self.context.cursors.make(TOOL.name, self._query(), position)

    def _query(self) -> dict[str, Any]:
        kind, _, *rest = self.reference
        return {**query_of(self.wanted), "ref": [kind, self.row and self.row.uid, *rest]}

    def text(self, ref: str, hint: Hint, text: str = "", *, output: bool = False) -> LongText:
        """Return a text under its shortest reference."""
        written = partial(call, TOOL.name, ref=ref)
        return LongText(written, {"ref": ref}, "text", None, hint, text, output)

    def reply(self, what: str, given: LongText, data: Body | Digest | Stream | None = None) -> Reply:
        """Return the answer that holds a text."""
        fitted = data or asked_part(given, self.wanted, self.read_cursor, self.make_cursor)
        return Reply(
            summary=what + part_asked(self.wanted),
            data=fitted,
            budget=budget_of(self.wanted),
            hint=given.hint,
            reference=given.frame["ref"],
            untrusted=self.row is not None or self.reference.kind in ("report", "lessons", "why", "exec"),
        )


def _event(opening: _Opening) -> Reply:
    connection, session = opening.context.connection, opening.session
    event = find_event(connection, session, opening.reference.event_index)
    given = opening.text(
        events.reference(connection, session, event.event_index),
        opens_event(opening.shown_id, event.event_index, "shows its call or result and its place in the log"),
        transcript.body(connection, event),
        output=event.type == "ToolResult",
    )
    name = f" {name_in_sentence(event.row.name, 40)}" if event.row.name else ""
    return opening.reply(f"Event {event.event_index} of {opening.shown_id}: {event.type}{name}", given)


def _session(opening: _Opening) -> Reply:
    """Answer with the text of a session as at level full; events logged after the first chunk are not in it."""
    connection, session, wanted = opening.context.connection, opening.session, opening.wanted
    shown_id = opening.shown_id
    opened = call("get_session_details", session_id=shown_id).saying("shows its turns")
    given = opening.text(f"ax://session/{shown_id}", opened)
    what = f"The text of session {shown_id}"
    unfocused = None
    if wanted.mode or wanted.context_focus_question:
        found = session_lines(transcript.entries(connection, session, 0, last_event_of(connection, session), None))
        lines, first, check = ranged_lines(found, wanted, given.call)
        if wanted.mode:
            return opening.reply(what, given, digest(given, wanted, lines, first, check))
        assert wanted.context_focus_question is not None
        asked = lines_asked(given, wanted.context_focus_question, lines, first, max_bytes=wanted.max_bytes, check=check)
        if isinstance(asked, Digest):
            return opening.reply(what, given, asked)
        unfocused = dump(asked)
    if wanted.cursor:
        last_event, *place = opening.read_cursor(wanted.cursor)
    else:
        last_event = last_event_of(connection, session)
        place = _first_place(opening, last_event, given)
    stream = session_stream(
        connection,
        session,
        last_event=last_event,
        place=tuple(place),
        budget=budget_of(wanted),
        frame=given.frame,
        essential=given.frame,
        cursor=lambda *position: opening.make_cursor(last_event, *position),
        until=wanted.end_line,
        unfocused=unfocused,
    )
    return opening.reply(what, given, stream)


def _first_place(opening: _Opening, last_event: int, given: LongText) -> list[int]:
    """Return the position of the first requested line. Raises `InvalidRange`."""
    start, end = opening.wanted.start_line, opening.wanted.end_line
    if start is None and end is None:
        return [0, 0, 0, 0]
    first = 1 if start is None else start
    last = first if end is None else end
    to_the_end = first < 1 or last < first
    found = transcript.entries(opening.context.connection, opening.session, 0, last_event, None)
    place = place_of(found, first, 2**62 if to_the_end else last)
    if place.total is not None:
        check_range(opening.wanted, place.total, given.call)
    return [place.event, place.offset, first - 1, 0]


def _analysis(opening: _Opening) -> Reply:
    """Answer with every finding, including those that analyze_session leaves out."""
    context, session = opening.context, opening.session
    found = context.analysis(session)
    place = first_evidence(found.session_id, found.insights)
    hint = call("get_session_details", session_id=found.session_id).saying("shows its turns")
    if place is not None:
        hint = opens_event(*place, "opens the first piece of evidence")
    given = opening.text(f"ax://analysis/{found.session_id}", hint, _json(dump(found)))
    return opening.reply(f"Analysis of session {found.session_id}: {counted(len(found.insights), 'finding')}", given)


def _report(opening: _Opening) -> Reply:
    """Answer with the health of all sessions that began in a period, as Markdown. Raises `TooManyEvents`."""
    from agtrace.report.report import ReportQuery, report
    from agtrace.report.selection import Selection
    from agtrace.report.wording import markdown

    context, since = opening.context, opening.reference.since
    selection = Selection(since=context.moment("since", since))
    asked = ReportQuery(selection, context.now, context.prices, most_events=_EXAMINED_AT_ONCE)
    found = printed(report(context.connection, asked))
    worst = next((session.session_id for session in found.sessions), None)
    hint = call("list_sessions").saying("shows the newest sessions")
    if worst is not None:
        hint = call("analyze_session", session_id=worst).saying("shows what went wrong in the worst")
    given = opening.text("ax://report" + (f"/{since}" if since else ""), hint, markdown(found))
    return opening.reply(f"Health of {counted(found.figures.sessions, 'session')}", given)


def _lessons(opening: _Opening) -> Reply:
    """Answer with what keeps failing in a project, and what worked, as Markdown. Raises `TooManyEvents`."""
    from agtrace.report.lessons import lessons, text
    from agtrace.report.selection import Selection

    context, since, project = opening.context, opening.reference.since, opening.reference.project
    selection = Selection(project=project, projects=context.projects(project), since=context.moment("since", since))
    most, prices = _EXAMINED_AT_ONCE, context.prices
    found = printed(lessons(context.connection, selection, now=context.now, prices=prices, most_events=most))
    hint = call("list_sessions").saying("shows the newest sessions")
    if found.lessons:
        hint = call(TOOL.name, ref=found.lessons[0].failed).saying("opens the first failure")
    ref = "ax://lessons" + (f"/{project}" if project else "") + (f"?since={since}" if since else "")
    given = opening.text(ref, hint, text(found))
    return opening.reply(f"{counted(len(found.lessons), 'lesson')} from {found.selection}", given)


def _why(opening: _Opening) -> Reply:
    """Answer with who wrote a file that some session named. Raises `InvalidParameter` or `InvalidRange`."""
    from agtrace.report.why import text, why

    context, file, lines = opening.context, opening.reference.file, opening.reference.lines
    path = Path(file) if Path(file).exists() else Path("/", file)
    found = printed(why(context.connection, path, lines, named_only=True))
    known = [part.session for part in found.lines or ()] + [each.session for each in found.sessions or ()]
    hint: Hint = call(TOOL.name, ref="ax://health").saying("shows whether the index is complete")
    newest = next(filter(None, known), None)
    if newest is not None and newest.event is not None:
        hint = call(TOOL.name, ref=newest.event).saying("opens the call")
    place = "" if lines is None else f":{lines[0]}" + (f"-{lines[1]}" if lines[1] > lines[0] else "")
    given = opening.text(f"ax://why/{file}{place}", hint, text(found))
    sessions = len({session.id for session in known if session is not None})
    return opening.reply(f"Who wrote {named_path(file, 60)}{place}: {counted(sessions, 'session')}", given)


def _metrics(opening: _Opening) -> Reply:
    context, since = opening.context, opening.reference.since
    found = context.metrics(context.moment("since", since))
    hint = call(TOOL.name, ref="ax://health").saying("shows the status of index and server")
    given = opening.text("ax://metrics" + (f"/{since}" if since else ""), hint, _json(dump(found)))
    asked, errors = counted(found.total.requests, "request"), counted(found.total.errors, "error")
    return opening.reply(f"Metrics: {asked}, {errors}", given)


def _health(opening: _Opening) -> Reply:
    health = opening.context.health()
    total = health.index.sessions
    hint = call("list_sessions").saying("shows the newest sessions")
    given = opening.text("ax://health", hint, _json(dump(health)))
    parts = {"index": health.index.problem, "configuration": health.configuration.problem}
    troubled = " and ".join(name for name, problem in parts.items() if problem)
    wrong = f"; see the problem of {troubled}" if troubled else ""
    state = health.index.state.replace("_", " ")
    return opening.reply(f"Health: the index is {state}, {total:,} sessions{wrong}", given)


def _sql(opening: _Opening) -> Reply:
    from agtrace_indexer.index.queries.views import DESCRIPTION

    return opening.reply("The views of run_sql", opening.text("ax://sql", "Call run_sql.", DESCRIPTION))


def _exec(opening: _Opening) -> Reply:
    """Answer with an output that `agtrace prune` kept. Raises `InvalidArtifactRef` once it is gone."""
    id = opening.reference.output
    ref = f"{REFERENCE}{id}"
    kept = KeptTexts(limits().settings.kept_outputs).read(id)
    if kept is None:
        raise InvalidArtifactRef(ref, "there is no such output any more: outputs are kept for a day")
    given = opening.text(ref, "Outputs are kept for a day; repeat the command for a later one.", kept.text, output=True)
    origin = f", of which line 1 is line {kept.first_line:,} of the file" if kept.first_line > 1 else ""
    return opening.reply(f"Output {id}: {counted(line_count(kept.text), 'line')}{origin}", given)


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


_KINDS: dict[str, Callable[[_Opening], Reply]] = {
    "event": _event,
    "session": _session,
    "analysis": _analysis,
    "report": _report,
    "lessons": _lessons,
    "why": _why,
    "metrics": _metrics,
    "health": _health,
    "sql": _sql,
    "exec": _exec,
}


TOOL = Tool(
    "read_artifact",
    "Read a reference",
    "What an artifact_ref refers to, as text: event, session, analysis; ax://report/7d (last 7 days), ax://lessons, "
    "ax://health, ax://why/FILE:LINE.",
    ReadArtifact,
    (Artifact,),
    answer,
)
