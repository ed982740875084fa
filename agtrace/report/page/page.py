"""A report as one HTML file: it fetches nothing, and nothing but its own scripts and styles can run.

The file has a strict content security policy that names its scripts and styles by their hashes, so that no text from a
log could ever run, even if one got past the escaping.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from agtrace_schema.analysis import Report
from markupsafe import Markup
from msgspec import to_builtins

from agtrace.conversation.document import (
    as_script,
    bundled,
    chart_library,
    environment,
    fit_for_the_page,
    scripts,
    source_hash,
    style,
)
from agtrace.conversation.html import styles_within
from agtrace.report import wording
from agtrace.report.page.overview import charts, overview
from agtrace.report.page.session_data import FACTS, GROUP, ROW, Packed, pack, packed, row
from agtrace.text.numbers import counted

MOST_BYTES = 4_500_000
"""The largest size of a page without conversations; timelines are thinned out to stay below it."""

_HERE = Path(__file__).parent
_SCRIPTS = (
    "dom",
    "words",
    "unpack",
    "look",
    "charts",
    "list",
    "scale",
    "references",
    "timeline",
    "session",
    "pressing",
    "keys",
    "main",
)
_STYLES = ("colours", "page", "overview", "list", "session", "timeline", "narrow", "print")


def html(report: Report, conversations: Mapping[str, str] | None = None) -> str:
    """Return the page for a report; its texts are made visible and their secrets masked first.

    `conversations` are the markup of some sessions' conversations, by the sessions' ids.
    """
    drawn = [to_builtins(chart) for chart in charts(report)]
    shown: Any = fit_for_the_page({"overview": overview(report), "charts": orjson.loads(orjson.dumps(drawn))})
    rows = packed(fit_for_the_page([row(session) for session in report.sessions]))
    bare = _page(shown, rows, Packed([], 0, 0, 0, 0), {})
    return _page(shown, rows, pack(report.sessions, MOST_BYTES - len(bare.encode())), conversations or {})


def _page(shown: dict[str, Any], rows: str, details: Packed, conversations: Mapping[str, str]) -> str:
    styles, library, script = "\n".join(map(style, _STYLES)), chart_library(), bundled(scripts(*_SCRIPTS))
    if conversations:
        styles += styles_within(".conversation")
    facts = {
        **FACTS, "charts": shown["charts"], "columns": ROW, "group": GROUP, "dollars": shown["overview"]["dollars"],
    }  # fmt: skip
    found = environment(_HERE / "templates")
    found.filters |= {"number": wording.plain, "dollars": wording.shown_dollars}
    return found.get_template("page.html").render(
        shown["overview"],
        charts=shown["charts"],
        facts=as_script(facts),
        rows=Markup(rows),
        groups=[Markup(group) for group in details.groups],
        conversations={session: Markup(talk) for session, talk in conversations.items()},
        notes=_notes(details),
        policy=_policy([library, script], [styles]),
        style=Markup(styles),
        library=Markup(library),
        script=Markup(script),
    )


def _notes(details: Packed) -> list[str]:
    said = [
        (details.thinned, f"only the {details.most_entries} most important entries of the timeline"),
        (details.without_timeline, "no timeline; these are the healthiest"),
        (details.without_details, "no details; these are the healthiest, and `agtrace analyze` shows them"),
    ]
    return [f"To keep this file small: {counted(number, 'session')} with {what}." for number, what in said if number]


def _policy(scripts: list[str], styles: list[str]) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(source_hash, scripts))}",
            f"style-src {' '.join(map(source_hash, styles))}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )
