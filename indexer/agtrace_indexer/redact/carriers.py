r"""Carriers of secrets that have no form of their own: a header, a command, a statement, a URL.

They are data, in `carriers.tsv`, in order of precedence: the kind in the mask, how it is found (below), where it begins
(for a command: the tool), a first look for Hyperscan, a pattern that is matched where it begins, and the least sort of
value that is masked (by default one word). The group `secret` is masked, unless `names.strength` says that the name in
the group `name` is not a secret's. Values with a name are read in `grammar.py`.

Texts in logs are nested in quotes: a quotation mark may follow backslashes, a newline may be written `\n`.
"""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

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


_QUOTE = r"\\{0,15}[\"'`]"
_PIECES = {
    "quote": _QUOTE,
    # what may come between a name and the sign: closing quotes and brackets
    "closed": rf"(?:{_QUOTE}){{0,2}}[\])]{{0,2}}(?:{_QUOTE})?",
    "argument": rf"(?:\*{{2,3}})?(?P<quote>{_QUOTE})?"
    rf"(?P<secret>(?(quote)(?:(?!(?P=quote))[^\n]){{3,500}}|(?!-)[^\s\"'`\\|;&<>()\[\]{{}}]{{4,}}))",
    # from a command to one of its arguments, even across continued lines
    "on": r"(?:[^\n|;&]|\\\r?\n){0,400}?(?:[ \t]|\\\r?\n[ \t]{0,20})",
    "words": r"(?:[^\n|;&]|\\\r?\n)*",
    "end": r"(?![A-Za-z0-9_./-])",
    "token": r"[A-Za-z0-9._~+/=:|-]",
    # what listings, diffs and quotations put between the lines of a key
    "gap": r"(?:[\s>|+#*,;→\"'`-]|[0-9]{1,5}(?=[→:|\t ])|(?<=\n)[^\s:]{1,200}:[0-9]{1,6}:|\\{1,15}[nrt\"])",
    "segment": r"[A-Za-z0-9_-]{8,}+(?:(?:\r?\n|\\{1,7}n)[ \t]{1,20}[A-Za-z0-9_-]{16,}+){0,8}",
}
_PIECE = re.compile("⟨([a-z]+)⟩")


def _carrier(kind: str, how: str, begins: str, look: str, pattern: str, least: str = "word") -> Carrier:
    """Return the carrier of a line.

    How it is found: by its look as `text` or as `exact` text, or as an option of a `tool`, whose look is the tool
    itself if it has none, and stands anywhere unless the option has an everyday name and is only looked for `within`.
    """
    if how in ("tool", "within"):
        pattern = f"(?i:{begins})⟨end⟩⟨on⟩{pattern}⟨argument⟩"
        begins += r"[ \t\\]"
        look = f"{begins}⟨words⟩{look}" if how == "within" else look or begins
    login, floor = least == "login", Sort.NOTHING if least in ("anything", "login") else Sort[least.upper()]
    begins, look, pattern = (_PIECE.sub(lambda piece: _PIECES[piece[1]], each) for each in (begins, look, pattern))
    return Carrier(kind, Look(look, any_case=how != "exact"), pattern, floor, begins, login)


ALL = tuple(
    _carrier(*line.split("\t")) for line in Path(__file__).with_name("carriers.tsv").read_text("utf-8").splitlines()
)
"""All carriers, in order of precedence for naming what several find."""
