"""Overview: the projects, most recently active first."""

from __future__ import annotations

from agtrace_schema.answers import ProjectItem, ProjectList
from agtrace_schema.model import dump_all

from agtrace.sessions import projects
from agtrace.sessions.usage import Snapshot, snapshot_now
from agtrace.settings.limits import limits
from agtrace.shaping.replies import Pages, Reply, of_rows
from agtrace.text.next_call import Hint, call
from agtrace.text.numbers import counted
from agtrace.tools.arguments import DEFAULT_LIMIT, Arguments, Cursor, Fields, Limit
from agtrace.tools.tool import Context, Tool, query_of, unless_behind


class GetProjectInfo(Arguments):
    """Arguments of get_project_info."""

    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor = None
    fields: Fields = None


def answer(context: Context, request: GetProjectInfo) -> Reply:
    """Answer with the projects, most recently active first."""
    query = query_of(request)
    behind, snapshot = None, snapshot_now(context.connection)
    if request.cursor is not None:
        last, row, newest_session, newest_event = context.cursors.read(TOOL.name, query, request.cursor)
        behind, snapshot = (last, row), Snapshot(newest_session, newest_event)
    items, places, total, more = projects.list_projects(
        context.connection, request.limit, snapshot=snapshot, behind=behind, prices=context.prices
    )
    hint: Hint = "Run `agtrace doctor` to see which logs were found."
    if items:
        hint = call("list_sessions", project=items[0].name).saying("lists a project's sessions")
    return Reply(
        summary=unless_behind(f"Found {counted(total, 'project')}", total, context),
        data=Pages(
            size=len(items),
            build=lambda count: {"projects": dump_all(items[:count])},
            cursor=lambda count: context.cursors.make(TOOL.name, query, (*places[count - 1], *snapshot)),
            more=more,
            first=behind is None,
            total=total,
        ),
        budget=limits().list_bytes(request.limit),
        hint=hint,
        untrusted=bool(items),
        counts={"total_projects": total},
        only=of_rows(request.fields, ProjectItem, "projects"),
    )


TOOL = Tool(
    "get_project_info",
    "List projects",
    "The projects: repositories with all their folders, sessions and last activity; other tools take "
    "their names as project.",
    GetProjectInfo,
    (ProjectList,),
    answer,
)
