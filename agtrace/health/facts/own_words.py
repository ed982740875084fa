"""What a human says in words of their own: without what they quote, paste, or report of a reviewer.

Not their own are quotations, code and lines that a program writes; what a clause with a colon introduces as somebody
else's ("evaluate this feedback from copilot: ..."), up to the end of the quotation that follows, or else of the text;
and what a reviewer is reported to have said. Such a clause itself says nothing about the work. The words that tell are
in `agtrace/data/corrections.toml`, by language.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

from agtrace_schema.patterns import later

from agtrace.text.failing_lines import found as failures_in

QUOTATION = later(
    r"\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”|„[^“”\n]{1,400}[“”]|«[^»\n]{1,400}»|「[^」\n]{1,400}」|『[^』\n]{1,400}』"
    r"|(?<!\w)'[^'\n]{1,400}'(?!\w)|(?<!\w)‘[^’\n]{1,400}’(?!\w)"
)
"""A quotation within a line."""

_BLOCK = later(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|\"\"\".*?(?:\"\"\"|\Z)|`[^`\n]+`|(?:^[ \t]*>[^\n]*(?:\n|\Z))+",
    re.DOTALL | re.MULTILINE,
)
_LEFT_OUT = "…"
"""Stands for what was quoted."""

_BY_A_PROGRAM = later(
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d\b|\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b[\]: ]"
    r"|(?: {4}|\t)\s*(?![-*•\d])\S|diff --git |@@ -\d|Traceback \(most recent call last\)|\s+(?:at|File) \S"
)
"""How lines of logs, source code, differences and stacks of calls begin."""

_SENTENCE = r"[^\n.!?;。！？；]*"
_CLAUSE = r"[^\n.!?;。！？；,:，：]{0,200}"
_BEFORE_CLAUSE = r"(?:\A|(?<=[\n.!?;。！？；,:，：]))"


def own_words(text: str) -> str:
    """Return what of a text of a human is in their own words; `…` stands for what they quoted."""
    lines = QUOTATION.sub(_LEFT_OUT, _BLOCK.sub(_LEFT_OUT, text)).splitlines()
    failing = {place for place, _ in failures_in(lines)}
    said = [line for place, line in enumerate(lines) if place not in failing and not _BY_A_PROGRAM.match(line)]
    return _others().sub("", "\n".join(said)).strip(f"{_LEFT_OUT} \n")


def phrases(kind: str) -> str:
    """Return an expression for any of the phrases of a kind, in all languages."""
    data = Path(__file__).parents[2] / "data" / "corrections.toml"
    languages = tomllib.loads(data.read_text(encoding="utf-8")).values()
    return "|".join(expression for language in languages for expression in language.get(kind, ()))


@cache
def _others() -> re.Pattern[str]:
    """Return what finds another's words: those that a clause introduces, and those that a reviewer said."""
    introduced = rf"{_BEFORE_CLAUSE}{_CLAUSE}?(?<![a-z])(?:{phrases('introduces')}){_CLAUSE}(?:：|:(?!\w))"
    reported = rf"(?<![a-z])(?:{phrases('reports')})\b{_SENTENCE}"
    return re.compile(rf"{introduced}\s*(?:{_LEFT_OUT}|.*)|{reported}", re.DOTALL | re.IGNORECASE)
