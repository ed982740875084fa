"""What the pages of agtrace share: templates that escape everything, styles, and hashes for the security policy."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_HERE = Path(__file__).parent


def environment(templates: Path) -> Environment:
    """Return an environment for the templates in a folder, in which every text is escaped."""
    return Environment(
        loader=FileSystemLoader(templates), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip


def source_hash(text: str) -> str:
    """Return the source by which a security policy names a script or a style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def style(name: str) -> str:
    """Return a style sheet of the report's page."""
    return (_HERE / "styles" / f"{name}.css").read_text(encoding="utf-8")
