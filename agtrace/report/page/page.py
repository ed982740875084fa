"""A report as one HTML file: nothing is fetched, nothing but its own scripts and styles can run.

A strict content security policy stands in the file: its scripts and styles are named by their hashes, so that no text
of a log could ever run, even if one escaped.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
from agtrace_schema.analysis import Report
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from agtrace.report.page import wording
from agtrace.report.page.bundle import GROUP, Packed, pack, packed
from agtrace.report.page.charts import charts
from agtrace.report.page.details import KINDS, ROW, SEVERITIES, row
from agtrace.report.page.overview import overview
from agtrace.report.page.visible_text import fit_for_the_page
from agtrace.report.wording import AGENTS
from agtrace.text.numbers import counted

MOST_BYTES = 4_500_000
"""What a page may weigh; timelines thin out before it weighs more."""

_HERE = Path(__file__).parent
_SCRIPTS = ("dom", "words", "unpack", "look", "charts", "list", "scale", "timeline", "session", "keys", "main")
_STYLES = ("colours", "page", "overview", "list", "session", "timeline", "narrow", "print")
_ESCAPED = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def html(report: Report) -> str:
    """The page that shows a report; all its texts are made visible and redacted on the way in."""
    drawn = [asdict(chart) for chart in charts(report)]
    shown: Any = fit_for_the_page({"overview": overview(report), "charts": _json_lists(drawn)})
    rows = packed(fit_for_the_page([row(session) for session in report.sessions]))
    bare = _page(shown, rows, Packed([], 0, 0, 0, 0))
    return _page(shown, rows, pack(report.sessions, MOST_BYTES - len(bare.encode())))


def _page(shown: dict[str, Any], rows: str, details: Packed) -> str:
    style, library, script = _style(), _library(), _script()
    facts = {
        "charts": shown["charts"], "columns": ROW, "severities": SEVERITIES, "kinds": KINDS, "group": GROUP,
        "endings": wording.ENDINGS, "providers": AGENTS,
    }  # fmt: skip
    return (
        _environment()
        .get_template("page.html")
        .render(
            shown["overview"],
            charts=shown["charts"],
            facts=_as_script(facts),
            rows=Markup(rows),
            groups=[Markup(group) for group in details.groups],
            notes=_notes(details),
            policy=_policy([library, script], [style]),
            style=Markup(style),
            library=Markup(library),
            script=Markup(script),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"number": wording.plain, "short": wording.short, "dollars": wording.dollars}
    return environment


def _notes(details: Packed) -> list[str]:
    """What was left out to keep the page light, as sentences."""
    said = [
        (details.thinned, f"show the {details.most_entries} entries of their timeline that say most"),
        (details.without_timeline, "are shown without a timeline, the healthiest"),
        (details.without_details, "are in the list only, the healthiest: agtrace analyze shows them"),
    ]
    return [f"To keep this file small, {counted(number, 'session')} {what}." for number, what in said if number]


def _policy(scripts: list[str], styles: list[str]) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            f"style-src {' '.join(map(_hash, styles))}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _as_script(value: Any) -> Markup:
    """A value as JSON that can stand in a script element: nothing in it begins or ends a tag."""
    return Markup(orjson.dumps(value).decode().translate(_ESCAPED))


def _json_lists(value: Any) -> Any:
    """Tuples as lists, as JSON has them."""
    return orjson.loads(orjson.dumps(value))


def _style() -> str:
    return "\n".join(_read(f"styles/{name}.css") for name in _STYLES)


def _script() -> str:
    parts = "\n".join(_read(f"scripts/{name}.js") for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();'


def _library() -> str:
    """Chart.js as its makers built it, without the line that names a file that isn't there."""
    return _read("chartjs/chart.umd.min.js").partition("//# sourceMappingURL")[0]


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
