"""Texts as they are meant to be read: without invisible characters, and with encodings decoded.

A token may be split by zero-width characters or colours, or its text may be encoded as in JSON, HTML or URLs.
The rules then look at a view of the text, and whatever they find there is masked in the text itself.
"""

from __future__ import annotations

import base64
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from agtrace_schema.patterns import later

from agtrace_indexer.redact.scanner import Look, compiled

_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff\x00-\x08\x0e-\x1f\x7f-\x9f\u2400"
)
_INVISIBLE_CODES = (
    r"(?:00[aA][dD]|034[fF]|061[cC]|180[bBcCdDeEfF]|200[b-fB-F]|202[a-eA-E]|206[0-9a-fA-F]"
    r"|[fF][eE]0[0-9a-fA-F]|[fF][eE][fF]{2}"
    r"|00(?:0[0-8eEfF]|1[0-9a-fA-F]|7[fF]|[89][0-9a-fA-F]))"
)
_ESCAPE = r"(?:[\x1b\u241b]|\\{1,8}(?:u001[bB]|x1[bB]|033|e(?=\[)))"
_SEQUENCE = r"(?:\[[0-9;:?]{0,30}[A-Za-z]|\][0-9]{1,3};[^\x07\x1b\\]{0,300}(?:\x07|\x1b\\|\\{1,8}u0007)?|[()][0-9A-B])"
_ENTITY = {
    "quot": '"', "apos": "'", "amp": "&", "lt": "<", "gt": ">", "colon": ":", "equals": "=", "shy": "", "nbsp": " ",
}  # fmt: skip

_DISGUISED = (
    r"(?=[\x00-\x08\x0e-\x1f\x7f-\U0010ffff\\%&+\[])"  # five times as fast as without
    rf"(?:(?P<nothing>(?:{_ESCAPE}{_SEQUENCE}|\x9b[0-9;:?]{{0,30}}[A-Za-z]|\[[0-9]{{1,3}}(?:;[0-9]{{1,3}}){{0,8}}m"
    rf"|[{_INVISIBLE}]"
    rf"|\\{{1,8}}u{_INVISIBLE_CODES}|%(?:E2%80%8[B-F]|C2%AD|EF%BB%BF|E2%81%A0)|&(?:shy|ZeroWidthSpace|#820[3-7]"
    rf"|#x200[bB-D]|#173|#xad);)+)"
    r"|\\{1,8}u(?P<unicode>(?!00[01]|[dD][89a-fA-F])[0-9A-Fa-f]{4})|\\{1,8}x(?P<byte>[2-7][0-9A-Fa-f])"
    r"|(?P<blank>[\u00a0\u2000-\u200a\u202f\u205f\u3000]|(?<=%[2-7][0-9A-Fa-f])\++|\+(?=[A-Za-z0-9._*+-]{0,60}%[2-7]))"
    r"|%(?:25){0,3}(?P<url>[2-7][0-9A-Fa-f])|&#(?P<decimal>[0-9]{2,3});|&#[xX](?P<hex>[2-7][0-9A-Fa-f]);"
    r"|&(?P<entity>quot|apos|amp|lt|gt|colon|equals|nbsp);|\\{1,8}(?P<slash>/))"
)

LOOKS = tuple(
    Look(pattern, sparse=True)
    for pattern in (
        r"[\x00-\x08\x0e-\x1f\x7f]",
        r"\\(?:u[0-9a-fA-F]{4}|x[1-7]|033|e\[|/)",
        r"\[[0-9]{1,3}(?:;[0-9]{1,3})*m",
        r"%(?:25)*[2-7][0-9A-Fa-f]",
        r"%(?:E2|C2|EF)",
        r"&(?:#|quot;|apos;|amp;|lt;|gt;|colon;|equals;|nbsp;|shy;|Zero)",
        f"[{_INVISIBLE}\u00a0\u2000-\u200a\u202f\u205f\u3000]".replace("\x00-\x08\x0e-\x1f\x7f-", "\x80-"),
    )
)
"""First looks: one of them finds something near every disguise."""


class View:
    """A text as it is meant to be read, with the origin of every part in the actual text."""

    def __init__(self, text: str, near: Iterable[int]) -> None:
        """`near` has a position near each disguise, as found by `LOOKS`."""
        parts, pieces, at, end = [], [], 0, 0
        for found in (each for stretch in _stretches(near) for each in compiled(_DISGUISED).finditer(text, *stretch)):
            decoded = _decoded(found)
            if found.start() > end:
                pieces.append((at, end, found.start(), True))
                parts.append(text[end : found.start()])
                at += found.start() - end
            if decoded:
                pieces.append((at, found.start(), found.end(), False))
                parts.append(decoded)
                at += len(decoded)
            end = found.end()
        if end < len(text):
            pieces.append((at, end, len(text), True))
            parts.append(text[end:])
        self.text = "".join(parts)
        self._pieces = pieces  # (start in the view, start and end in the text, whether it is verbatim)
        self._starts = [at for at, *_ in pieces]

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return the stretch of the text that a stretch of the view comes from."""
        first, began, _, whole = self._pieces[bisect_right(self._starts, start) - 1]
        last, at, ended, verbatim = self._pieces[bisect_right(self._starts, end - 1) - 1]
        return began + (start - first) * whole, at + end - last if verbatim else ended


_BEFORE, _BEHIND = 100, 500
"""Characters before and after a position within which a whole disguise lies."""


def _stretches(near: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield stretches of a text that contain all disguises near these positions."""
    start = end = 0
    for place in sorted(near):
        if place - _BEFORE > end:
            if end:
                yield start, end
            start = place - _BEFORE
        end = place + _BEHIND
    if end:
        yield start, end


_BLANKS = "\u00a0\u202f\u3000"


def _decoded(match: re.Match[str]) -> str:
    kind = match.lastgroup or ""
    if kind in ("unicode", "byte", "url", "hex"):
        said = chr(int(match[kind], 16))
        return " " if said in _BLANKS else said
    if kind == "decimal":
        return chr(int(match[kind])) if 32 <= int(match[kind]) < 127 else ""
    if kind == "entity":
        return _ENTITY.get(match[kind], "")
    return " " if kind == "blank" else match[kind] if kind == "slash" else ""


# --- tokens over several lines

_CUT = 16
"""The least length of a secret that may continue on the next line."""
_WIDTH, _LEAD = 60, 200
"""The least length of a line that a terminal may have wrapped, and the most characters looked at before a secret."""
_REST = later(
    r"(?=[^\s]{0,200}[0-9])(?=[^\s]{0,200}[a-z])(?=[^\s]{0,200}[A-Z])[A-Za-z0-9_+/-]{16,}+={0,2}+"
    r"(?:\.[A-Za-z0-9_-]{16,}+)*+(?=[ \t]*(?:\r?\n|\Z))"
)
"""The rest of a token, on a line of nothing else: no `NAME=value`."""
_JOINED = later(
    r"(?:(?:\\(?:\r?\n| )|(?:\\{3}|\\{6}|\\{12})n)[ \t]{0,20}[A-Za-z0-9_+/=.~-]{6,}+"
    r"|(?P<quote>\\{0,15}[\"'])[ \t]{0,4}\+[ \t]{0,4}(?P=quote)[^\"'\\\s]{6,200}+)++"
)
"""The rest of a token that is joined by a backslash or a plus."""
_GAP = later(r"[ \t]{2,20}")
_NEXT_LINE = later(r"\r?\n(?P<mark>[+>-]?)(?P<indent>[ \t]{0,20})")


def end_of(text: str, start: int, end: int) -> int:
    """Return the end of a secret that may continue: joined to more of it, or on the next line."""
    if end - start < _CUT:
        return end
    looked_at = max(0, start - _LEAD)
    line = max(text.rfind("\n", looked_at, start) + 1, looked_at)
    lead = text[line:start]
    wide = end - line >= _WIDTH
    while True:
        match = _JOINED.match(text, end)
        at = _where_it_goes_on(text, end, lead, wide=wide) if match is None else None
        rest = match if at is None else _REST.match(text, at)
        if rest is None:
            return end
        end = rest.end()


def _where_it_goes_on(text: str, end: int, lead: str, *, wide: bool) -> int | None:
    """Return where the rest of a token would begin that a terminal has wrapped, or that is folded as in YAML.

    A wide line may have been wrapped. A folded text has nothing but blanks before each of its lines, and all the same.
    """
    if gap := _GAP.match(text, end):
        return gap.end()
    following = _NEXT_LINE.match(text, end)
    if following is None:
        return None
    mark = lead[:1] if lead[:1] in "+>-" else ""  # of a difference, or a quotation
    indent = lead[len(mark) :]
    folded = indent.isspace() and following["indent"] == indent
    return following.end() if following["mark"] == mark and (wide or folded) else None


# --- base64

_RUN = later(r"[A-Za-z0-9+/_-]{16,}(?:(?:\r?\n|\\{1,7}n|\\{1,7}r\\{1,7}n)[ \t]{0,20}[A-Za-z0-9+/_-]{4,}+)*+={0,2}")
_BREAK = later(r"(?:\r?\n|\\{1,7}n|\\{1,7}r\\{1,7}n)[ \t]{0,20}")
MOST = 4 * 1024 * 1024
"""The longest run, in characters, that is decoded; a longer one that a first look found is masked unread."""


_LITERALS = (
    "PRIVATE KEY", "password", "Password", "PASSWORD", "passwd", "secret", "SECRET", "token", "TOKEN", "api_key",
    "API_KEY", "apiKey", "ApiKey", "auth" "auths" "Bearer ", "ghp_", "gho_", "ghs_", "ghu_", "ghr_",
    "github_pat_",
    "glpat-", "sk-ant-", "sk-proj-", "sk_live_", "sk_test_", "AKIA", "ASIA", "AIza", "xoxb-", "xoxp-", "npm_", "pypi-",
    "hf_", "://", "eyJhbGci",
)  # fmt: skip
"""Beginnings of secrets, and texts that precede secrets, to look for in base64."""


def base64_looks() -> list[Look]:
    """Return first looks for base64 that contains a secret, for every alignment of its sign within three bytes."""
    signs = sorted({_encoded(literal.encode(), shift) for literal in _LITERALS for shift in range(3)})
    return [Look(re.escape(sign)) for sign in signs]


def _encoded(literal: bytes, shift: int) -> str:
    """Return the base64 letters that depend only on the literal, if `shift` bytes precede it."""
    packed = base64.b64encode(bytes(shift) + literal).decode()
    return packed[(0, 2, 3)[shift] : 8 * (shift + len(literal)) // 6]


def runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the position of every run of base64."""
    return (match.span() for match in _RUN.finditer(text))


def meanings(run: str) -> Iterator[str]:
    """Yield the possible meanings of a run of base64, decoded from its first, second, third and fourth letter."""
    packed = _BREAK.sub("", run).rstrip("=").replace("-", "+").replace("_", "/")
    return (_unpacked(packed[skipped:]) for skipped in range(4))


def _unpacked(packed: str) -> str:
    whole = packed[: len(packed) - (len(packed) % 4 == 1)]
    return base64.b64decode(whole + "=" * (-len(whole) % 4)).decode("utf-8", "replace")
