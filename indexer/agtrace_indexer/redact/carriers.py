r"""Carriers of secrets that have no form of their own: a header, a command, a statement, a URL.

They are data, in `carriers.tsv`, in order of precedence: the kind in the mask, how it is found (below), where it begins
(for a command: the tool), a first look for Hyperscan, a pattern that is matched where it begins, and the least sort of
value that is masked (by default one word). The group `secret` is masked, unless `names.strength` says that the name in
the group `name` is not a secret's. Values with a name are read in `grammar.py`.

Texts in logs are nested in quotes: a quotation mark may follow backslashes, a newline may be written `\n`.
"""

from __future__ import annotations

from msgspec import Struct

from agtrace_indexer.redact.names import pieces, rows
from agtrace_indexer.redact.scanner import Look
from agtrace_indexer.redact.values import Sort


class Carrier(Struct, frozen=True):
    """One way of carrying a secret."""

    kind: str
    """The kind in the mask."""
    look: Look
    pattern: str
    least: Sort = Sort.NOTHING
    """The least sort of value that is a secret; NOTHING: anything."""
    begins: str = ""
    """The pattern of its beginning, if that isn't its first look."""
    login: bool = False
    """Whether the value must be the base64 of a user and a password."""


def _carrier(kind: str, how: str, begins: str, look: str, pattern: str, least: str = "word") -> Carrier:
    """Return the carrier of a line.

    How it is found: by its look as `text` or as `exact` text, or as an option of a `tool`, whose look is the tool
    itself if it has none, and stands anywhere unless the option has an everyday name and is only looked for `within`.
    """
    if how in ("tool", "within"):
        of = pieces("carriers.tsv")
        pattern = f"(?i:{begins}){of['⟨end⟩']}{of['⟨on⟩']}{pattern}{of['⟨argument⟩']}"
        begins += r"[ \t\\]"
        look = f"{begins}{of['⟨words⟩']}{look}" if how == "within" else look or begins
    login, floor = least == "login", Sort.NOTHING if least in ("anything", "login") else Sort[least.upper()]
    return Carrier(kind, Look(look, any_case=how != "exact"), pattern, floor, begins, login)


ALL = tuple(_carrier(*row) for row in rows("carriers.tsv"))
"""All carriers, in order of precedence for naming what several find."""
