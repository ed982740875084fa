"""Templates filled in: whole pages and their parts. Every text is escaped by the template that shows it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import ChainableUndefined, Environment

from agtrace.report.page import wording
from agtrace.report.page.document import as_script, bundled, chart_library, environment, scripts, style
from agtrace.report.web.conversation import clock, date_and_time
from agtrace.report.web.examined import FACTS
from agtrace.report.web.markdown import unmarked
from agtrace.report.wording import why_at_least
from agtrace.text.numbers import counted, percent, seconds, short

_HERE = Path(__file__).parent
_REPORT_STYLES = ("colours", "page", "session", "timeline")
_STYLES = ("frame", "lists", "conversation", "code", "narrow")
_SCRIPTS = (
    *scripts("dom", "words"), _HERE / "scripts" / "look.js", *scripts("unpack", "charts", "scale"),
    _HERE / "scripts" / "references.js", *scripts("timeline", "session"),
    *(_HERE / "scripts" / f"{name}.js" for name in (
        "fetching", "copying", "lists", "finding", "calls", "windows", "outline", "health", "live", "keys", "main")),
)  # fmt: skip
_UNITS = ((86_400 * 365, "y"), (86_400 * 30, "mo"), (86_400 * 7, "w"), (86_400, "d"), (3_600, "h"), (60, "min"))


class Pages:
    """Fills in templates. Safe to use from several threads.

    `dollars`: whether costs are shown, which mean little to those who pay by subscription.
    """

    def __init__(self, *, dollars: bool) -> None:
        self.dollars = dollars
        self._templates = _environment(dollars)

    def filled(self, template: str, **values: Any) -> str:
        """Return a template filled in with these values."""
        return self._templates.get_template(f"{template}.html").render(values)


def _environment(dollars: bool) -> Environment:
    found = environment(_HERE / "templates")
    found.undefined = ChainableUndefined  # answers leave out what isn't known
    found.filters |= {
        "short": short, "number": wording.plain, "dollars": wording.dollars, "percent": percent,
        "duration": seconds, "clock": clock, "when": date_and_time, "moment": _moment, "path": _path,
        "unmarked": unmarked,
    }  # fmt: skip
    found.globals |= {
        "counted": counted, "ago": ago, "address": address, "with_dollars": dollars, "version": static_version(),
        "why_at_least": why_at_least,
        "facts": as_script({**FACTS, "dollars": dollars}),
    }  # fmt: skip
    return found


# -- addresses and times ---------------------------------------------------------------------------


def address(path: str, given: Mapping[str, Any] | None = None, **more: Any) -> str:
    """Return an address of ours with a query: what was given, with what replaces it; empty values are left out."""
    query = {name: value for name, value in {**(given or {}), **more}.items() if value not in (None, "", False)}
    return f"{path}?{urlencode(query)}" if query else path


def _path(text: Any) -> str:
    """Return a text as a part of a path."""
    return quote(str(text), safe="")


def _moment(iso: str | None) -> int:
    """Return an ISO time as milliseconds since 1970 UTC; 0 for none."""
    return round(datetime.fromisoformat(iso).timestamp() * 1000) if iso else 0


def ago(moment: int, now: float) -> str:
    """Return how long ago a moment in milliseconds since 1970 UTC is: `now`, `5 min ago`; empty if it is unknown."""
    if not moment:
        return ""
    passed = now - moment / 1000
    return next((f"{int(passed // size)} {unit} ago" for size, unit in _UNITS if passed >= size), "now")


# -- what pages load -------------------------------------------------------------------------------


@cache
def styles() -> str:
    """Return the style sheet of all pages."""
    own = ((_HERE / "styles" / f"{name}.css").read_text(encoding="utf-8") for name in _STYLES)
    return "\n".join([*map(style, _REPORT_STYLES), *own])


@cache
def script() -> str:
    """Return the script of all pages."""
    return bundled(_SCRIPTS)


@cache
def theme_script() -> str:
    """Return the script that runs before anything is shown."""
    return (_HERE / "scripts" / "theme.js").read_text(encoding="utf-8")


@cache
def icon() -> str:
    """Return the icon."""
    return (_HERE / "styles" / "icon.svg").read_text(encoding="utf-8")


@cache
def static_version() -> str:
    """Return what changes with any of these files."""
    whole = "\0".join((styles(), script(), theme_script(), chart_library()))
    return hashlib.sha256(whole.encode()).hexdigest()[:12]
