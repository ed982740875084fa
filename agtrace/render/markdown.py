"""Markdown of a log, set for a terminal: nothing in it is HTML, an image or a link of the terminal's."""

from __future__ import annotations

from typing import ClassVar

from rich.console import JustifyMethod
from rich.markdown import Heading, Markdown

from agtrace.report.conversation.as_markdown import harmless


class _Heading(Heading):
    """A heading at the left margin, like everything else."""

    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class _Markdown(Markdown):
    """Markdown with such headings."""

    elements: ClassVar = {**Markdown.elements, "heading_open": _Heading}


def as_markdown(text: str) -> Markdown:
    """Return a text without control characters as Markdown to print; links are followed by their addresses."""
    return _Markdown(harmless(text), code_theme="ansi_dark", hyperlinks=False)
