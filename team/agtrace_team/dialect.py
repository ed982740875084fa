"""The questions of `agtrace_indexer.index.questions` as PostgreSQL takes them.

They are written in the SQL that SQLite and PostgreSQL share, but for a few things that have no common spelling: those
are respelled here. What PostgreSQL merely lacks (`instr`, `json_each`, `group_concat`, sums of conditions) its schema
brings along (`tables.py`), so that it needs no respelling.
"""

from __future__ import annotations

import re
from functools import lru_cache

from agtrace_schema.patterns import later

_LITERAL_OR_NAME = later(r"'(?:[^']|'')*'|(?<!:):(\w+)|\?|%")
_ORDER = later(r"\bORDER BY\b")
_NEVER_NULL = later(
    r"\s*(?:\w+\.)?(?:id|t0|t1|ts|event_index|step_index|number|uid|first_index|path)(?: DESC| ASC)?\s*$|\s*coalesce\("
)
"""Terms of an order that are never null: for them nothing is said about nulls, so that indexes serve them."""

_RESPELLED: tuple[tuple[re.Pattern[str], str], ...] = (
    (later(r"\b(?:INDEXED BY \w+|NOT INDEXED)\b"), ""),
    (later(r"\bCROSS JOIN\b"), "JOIN"),
    (later(r"\btext IN \(SELECT value FROM json_each\("), "text IN (SELECT value FROM json_texts("),
    (later(r"\bchar\((\d+)\)"), r"chr(\1)"),
    (later(r"\bIS NOT (?!NULL\b|DISTINCT\b)"), "IS DISTINCT FROM "),
    (later(r"\bIS (?!NOT\b|NULL\b|DISTINCT\b)"), "IS NOT DISTINCT FROM "),
)


@lru_cache(maxsize=1000)
def respelled(sql: str) -> str:
    """Return a statement as PostgreSQL takes it, with psycopg's placeholders: `%(name)s` for `:name`, `%s` for `?`."""
    for pattern, other in _RESPELLED:
        sql = pattern.sub(other, sql)
    return _LITERAL_OR_NAME.sub(_placeholder, _with_nulls_in_order(sql))


def _placeholder(found: re.Match[str]) -> str:
    text = found[0]
    if found[1]:
        return f"%({found[1]})s"
    if text == "?":
        return "%s"
    return text.replace("%", "%%")


def _with_nulls_in_order(sql: str) -> str:
    """Say of each order where nulls stand: in SQLite they are smaller than everything, in PostgreSQL larger."""
    parts, at = [], 0
    for found in _ORDER.finditer(sql):
        end = _end_of_order(sql, found.end())
        parts += [sql[at : found.end()], ",".join(map(_term, _split(sql[found.end() : end])))]
        at = end
    return "".join([*parts, sql[at:]])


def _term(term: str) -> str:
    if _NEVER_NULL.match(term):
        return term
    return f"{term.rstrip()} NULLS {'LAST' if term.rstrip().endswith(' DESC') else 'FIRST'} "


def _end_of_order(sql: str, start: int) -> int:
    """Return where an order ends: at a limit, at the end of the subquery, or with the statement."""
    depth = 0
    for at in range(start, len(sql)):
        if sql[at] == "(":
            depth += 1
        elif sql[at] == ")":
            depth -= 1
            if depth < 0:
                return at
        elif depth == 0 and sql.startswith("LIMIT", at):
            return at
    return len(sql)


def _split(terms: str) -> list[str]:
    """Split at the commas that aren't inside parentheses."""
    found, depth, begin = [], 0, 0
    for at, character in enumerate(terms):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            found.append(terms[begin:at])
            begin = at + 1
    return [*found, terms[begin:]]
