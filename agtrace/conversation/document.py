"""What the pages of agtrace share: templates that escape everything, styles, and hashes for the security policy."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
from agtrace_indexer.redact import redact_json
from agtrace_schema.events import Json
from agtrace_schema.patterns import later
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from agtrace.text.lines import UNSEEN, in_texts
from agtrace.times import zone

_REPORT = Path(__file__).parents[1] / "report" / "page"
_ESCAPED = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def environment(*templates: Path) -> Environment:
    """Return an environment for the templates in some folders, in which every text is escaped."""
    result = Environment(
        loader=FileSystemLoader(templates), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    result.globals["zone"] = zone
    return result


def source_hash(text: str) -> str:
    """Return the source by which a security policy names a script or a style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def style(name: str) -> str:
    """Return a style sheet of the report's page."""
    return (_REPORT / "styles" / f"{name}.css").read_text(encoding="utf-8")


def bundled(paths: Iterable[Path]) -> str:
    """Return files of JavaScript as one script, which leaves no names behind."""
    parts = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    return f'(() => {{\n"use strict";\n{parts}\n}})();'


def scripts(*names: str) -> list[Path]:
    """Return the files of some scripts of the report's page."""
    return [_REPORT / "scripts" / f"{name}.js" for name in names]


def chart_library() -> str:
    """Return Chart.js as published, without the line that names a source map, which isn't here."""
    library = (_REPORT / "chartjs" / "chart.umd.min.js").read_text(encoding="utf-8")
    return library.partition("//# sourceMappingURL")[0]


def as_script(value: Any) -> Markup:
    """Return a value as JSON that is safe in a script element: nothing in it begins or ends a tag."""
    return Markup(orjson.dumps(value).decode().translate(_ESCAPED))


# -- visible text ----------------------------------------------------------------------------------
# Texts made fit for a page: without secrets, and without characters that hide, reverse or control text.

_UNSEEN = later(f"[\x00-\x08\x0b-\x1f{UNSEEN}\u2028\u2029\ud800-\udfff]")
"""Control characters except newline and tab, changes of the writing direction, and invisible characters of no width."""


def visible(text: str) -> str:
    """Replace invisible characters, such as ESC by `␛` and a change of direction by `⟨U+202E⟩`, and CRLF by newline."""
    return _UNSEEN.sub(_symbol, text.replace("\r\n", "\n"))


def fit_for_the_page(value: Json) -> Json:
    """Make all texts of a JSON value visible, then mask secrets, in this order because people see the visible form.

    Everything that a page shows of a report goes through here.
    """
    return redact_json(in_texts(value, visible))


def _symbol(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
