r"""Values with a telling name: `DB_PASSWORD=...`, `"apiKey": "..."`, `--client-secret ...`, `<password>...`.

The grammar: a name, a sign that joins it to its value, and the value, which ends where its name's surroundings say:
what encloses the name encloses the value. The name is read first, since most names found say nothing (`token_count`).
Texts in logs are nested in quotes: a quotation mark may follow backslashes, a newline may be written `\n`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace_indexer.redact.disguises import end_of
from agtrace_indexer.redact.names import Strength, rows, strength, words
from agtrace_indexer.redact.scanner import Look, Looking, compiled
from agtrace_indexer.redact.tables_in_text import in_table
from agtrace_indexer.redact.values import Context, Sort, Span, Tier, is_jumbled, is_scrambled, sort, tier_of

LOOKS = (
    Look(
        r"(?:passw(?:or)?d|pass(?:phrase|code|wort)|pwd|secret|token|cred(?:entials?|s)|[A-Za-z0-9_. -]key"
        r"|salt|jwt|connection_?string|requirepass|mnemonic|senha|seed[ _-]?phrase|community"
        r"|(?:recovery|backup)[ _-]?codes?"
        r"|(?:pass|(?:^|[^a-z]|root|bind|ldap|user|admin|db)pw|[^a-z](?:psk|pin|dsn)|[_. -]auth|_pat|bearer)[^a-z])",
        any_case=True,
        from_start=True,
    ),
    Look("[a-z](?:Pw|Auth|Psk)[^a-z]", from_start=True),
)
"""The words that name most secrets; `names` decides what a name is worth."""
FOREIGN_LOOKS = tuple(
    Look(pattern.replace("_", "[ _-]?"), any_case=True, from_start=True) for pattern in sorted(words("foreign"))
)

# --- names

_QUOTE = r"\\{0,15}[\"'`]"
_EMPHASIS = r"(?:\*{2,3}|__|~~|</?(?:b|strong|code|em|kbd|i)>)?"
"""Markup of Markdown and HTML around a name or a value."""
_OF_NAMES = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_ESCAPED = ("n", "r", "t")
"""Letters that end a line or a column after a backslash, and belong to no name."""
_OF_NAMES_OR_BLANK = frozenset(_OF_NAMES + " ")
_FIRST_WORDS = tuple(
    f"{written} " for word in words("first words") for written in (word, word.upper(), word.capitalize())
)
"""Words that belong to a name although they are followed by a blank."""
_LONGEST_BEFORE = 80
_CLOSED = rf"((?:{_QUOTE}){{0,2}}(?:\[[0-9]{{0,4}}\]|\]?)(?:{_QUOTE})?{_EMPHASIS})"
"""What may close a name: quotes, brackets."""
_NAME = later(
    rf"(?:\W|[a-z](?=Pw|Auth|Psk))?([\w.-]{{1,80}}(?:[ ](?:phrase|codes?))?(?:[ ][0-9]{{1,2}}(?=:))?){_CLOSED}"
)
"""The rest of a name."""
_FOREIGN_NAME = later(
    r"((?:mot[ _-]de[ _-]passe|palabra[ _-]clave|mật[_ ]khẩu|كلمة المرور|секретный[ _]ключ|비밀[ _]?키|contrase\\u00f1a"
    rf"|(?:clave|chave|cl[ée])[ _-]?(?:secreta?|secr[èe]te|api|privada|priv[ée]e|d.api|de[ _-]api)"
    rf"|[一-鿿]{{2}}(?=是)|パスワード(?=は)|[\w.-]{{1,80}})){_CLOSED}",
    re.IGNORECASE,
)

# --- signs


class _Join(Struct, frozen=True):
    """A way of joining a name to its value."""

    begins: str
    """The signs it may begin with, after blanks; empty: anything, after a blank."""
    pattern: str
    """What stands between the name and the value."""
    context: Context = Context.TOLD
    takes: str = ""
    """Only a `quoted` value, one that ends its `line`, the contents of a `tag` or a `cell`; otherwise any."""
    written: str = ""
    """How the name must be written: `in a tag`, as a command's `option`, a `setter`, `shouted` as an environment's
    variable, or as something that is `no word` of prose."""


_JOINS = tuple(
    _Join(begins, pattern, Context[context.upper()], takes, written)
    for begins, context, takes, written, pattern in rows("joins.tsv")
)

_AT: dict[str, tuple[_Join, ...]] = {
    sign: tuple(join for join in _JOINS if sign in join.begins)
    for sign in sorted(set("".join(join.begins for join in _JOINS)))
}
"""The joins by the signs that they may begin with."""
_BEHIND_BLANKS = tuple(join for join in _JOINS if not join.begins)
_AT_BEHIND_BLANKS = {sign: (*joins, *_BEHIND_BLANKS) for sign, joins in _AT.items()}
_BLANKS = frozenset(" \t\r\n\\><=")
_NO_SETTER = later(
    r"_?(?:get|fetch|find|load|read|has|is|check|validate|verify|hash|encode|decode|parse|delete|remove|require|ask)"
)
_TUPLE = later(r"(?:\A|[\n;>])[ \t+-]*((?:[\w.]+,[ \t]*)+)\Z")
"""The names before one in `user, password = "a", "b"`."""
_ITEM = later(r"\\{0,15}([\"'])[^\"'\n]{0,200}\1,[ \t]*")

# --- values

_LOOKED_AT = 500
"""The most characters of a value without blanks that are checked: it may be a key of any length."""
_OPENED = later(rf"(?:{_QUOTE}){{1,3}}")
_BARE = later(r"[^\s\x1b\"'`\\,;&|<>(){}\[\]]{0,500}")
"""A value that ends at any sign of punctuation."""
_RUN = later(r"(?:[^\s\x1b\"'`\\;&,|<]++|(?!;[A-Za-z_][\w. -]*=|[&,|][A-Za-z_][\w.-]*=|</[A-Za-z])[;&,|<])*+")
"""A value that ends at a blank, a quotation mark, or another setting."""
_TO_BLANK = later(
    r"(?:[^\s\x1b\\\"'`<]++|(?!\\{0,7}[\"'`][,;)}\]]{0,3}(?:\s|\Z)|\\(?:\s|\Z)|\\{1,15}[nrt\"]|</[A-Za-z])[\\\"'`<])++"
)
"""A value alone on its line."""
_ALONE = later(r"(?:[+>#| -]|[0-9]{1,6}[→:|\t-]|\t|export |ENV )*\Z")
"""What stands before a name whose value ends with its line."""
_REST = later(r"[^\s\x1b\"'`\\,;&|<>(){}\[\]]*+")
_PHRASE = later(r"[a-z]{3,10}(?:[ ][a-z]{3,10}){3,8}(?=[ ]-|[ \t]*(?:[ \t]#[^\n]*)?(?:\r?\n|\\{1,7}n|\Z))")
"""Words up to the end of a line."""
_HINT = later(r"[<\[({][^\n]{0,200}[>\])}]")
"""A placeholder with blanks."""
_CELL = later(r"[^\n│┃║|\"'`]{8,200}?(?=[ \t]*[│┃║|])")
_ELEMENT = later(r"<!\[CDATA\[(?P<data>[^\n]{4,500}?)\]\]>|(?P<text>[^<\n]{4,500}+)(?=\s{0,40}</)")
_ENDED = later(r"[ \t]{0,200}(?:(?:#|//|--)[^\n]{0,200})?(?:\r?\n|\Z|\\{1,15}n|</[A-Za-z])")
_ENDS_LINE = later(r"\\{0,7}[\"'`)]{0,3}[ \t]*(?:\r?\n|\Z|\\{1,7}n|\\{1,7}[\"']|</[A-Za-z])")
_ENDS_VALUE = later(r"</[A-Za-z]|(?![^\s\"'`\\,])(?![ \t]+[-+*/=.(|&?<>])")
_CELL_ENDS = later(r"[ \t`*\"']{0,40}(?:[|,\t;]|\r?\n)")
_MISPAIRED = later(r"\s|[(\[{)}\],:;|&+.?](?:[\x00- ]|\\?[\"'`]|[a-z]+\()")
"""What follows a quotation mark that closes rather than opens."""
_STATEMENT = later(r"[;)](?:if|return|let|var|const|function|[A-Za-z.]{3,}\()|\)\{|=>")
_CONNECTION = later(r"=[^;&=(){}\s]{0,80}([;&])[ ]?\Z|[?]()\Z|(?:\A|[\s\"'])[\w.-]+=[\w.:@/+-]+([ \t])[ \t]*\Z")
"""The settings before that of a password in a connection string, in a query, or in a row with blanks between them."""
_LINE_BEGINS = later(r"[\n\"'`>]|\\\\n")
_OF_CODE = frozenset("=;({?")
"""Signs before a name that show it isn't set on a line of its own, whose end would be that of the value."""
_INNER = later(r"(?<=\\).|'\\\\?''|([\"'])\1(?=[^\s,;:)\]}\"'])")
"""A quotation mark within a quotation, as shells, SQL and YAML write it."""
_CALL = later(r"[\w.$]+[(\[][^\n)\]]*[\"'`]")
"""The call of something with a text, which ends a value without quotes."""
_OPENS = {")": "(", "]": "[", "}": "{"}
_ESCAPED_END = later(r"\\{1,15}[nrt]")
_HASH = later(r"[0-9a-f]*\Z")
_LONG_TOKEN = 24
_QUOTES = ("'", '"', "`")
_EMPTY = 2
_DELIMITERS = tuple(",;:.)}]+?")
"""What follows an empty text rather than a doubled quotation mark."""
_SETTING = later(r"(?:[^\s:]{1,200}[:-][0-9]{1,6}[:-])?[\w.-]+\+?=(?!=*\Z)")
"""Another setting, also behind the file and line that `grep` puts before it."""
_CLOSES = later(r"\*\*|\]\(|`|\">")
"""What closes Markdown or a tag, and so what prose says, too."""
_TOLD = later(r"(?=[^\n]*[0-9])(?=[^\n]*[A-Za-z])|[^\n]*[a-z][A-Z]")
"""What a value has that nothing but a blank joins to its name."""
_GIVEN = later(r"\s*(?:to|as)\s")
"""What joins a verb, or what becomes of a thing, to another thing: `pass to x`, `copies the secret to x`."""
_SENTENCE = later(r"`?[ ][a-z]+\s+[^\s-]+\s")
"""How a sentence goes on behind the name of an option and a word."""
_LABEL = later(r"(?:[A-Z]?[a-z]{2,}[-_ /.:]?)++(?:v?[0-9]{1,2})?\Z")
"""Readable words as the salt of a derivation."""
_OPENS_CALL = ("", *".>:@\n \t→+")
_CSS = later(r"--[a-z]")


class _Value(Struct, frozen=True):
    """What may be a value."""

    start: int
    end: int
    literal: bool = False
    """Whether it is quoted, or stands where no code is, so that it can't be an expression."""
    quoted: bool = False


def find(text: str, at: int, looking: Looking, pattern: re.Pattern[str] = _NAME) -> Iterator[Span]:
    """Yield the position of the value of a name that has a word beginning here, and its kind according to the name."""
    named = pattern.match(text, at)
    if named is None:
        return
    first, end = named.start(1), named.end()
    before = _before(text, first)
    name = before + named[1]
    level = strength(name)
    first -= len(before)
    lead = text[max(0, first - _LONGEST_BEFORE) : first]
    if not level or _is_part(text, first, end) or lead.rstrip("\"'`\\").endswith("? "):  # one of two cases
        return
    behind = text[end : end + 60]
    written = _written(name, lead, behind)
    sign = behind.lstrip(" \t")[:1]
    for join in _AT_BEHIND_BLANKS.get(sign, _BEHIND_BLANKS) if behind[:1] in _BLANKS else _AT.get(sign, ()):
        found = compiled(join.pattern).match(text, end, end + looking.reach) if join.written in written else None
        for value in _values(join, found, name, lead, closed='"' in named[2] or "'" in named[2]) if found else ():
            tier = _tier(level, join, found, name, named[2], value) if found else None
            if tier:
                rest = _REST.match(text, value.end) if value.end - value.start >= _LOOKED_AT else None
                ends = end_of(text, value.start, rest.end() if rest else value.end)
                yield Span(value.start, ends, level.name.lower(), tier)
            if tier is Tier.LIKELY:
                break
        else:
            continue
        break
    if _CELL_ENDS.match(text, end):
        yield from in_table(text, named.start(1), looking.tables)


find_foreign = partial(find, pattern=_FOREIGN_NAME)
"""The same for names in other languages, which may contain blanks."""


def _is_part(text: str, start: int, end: int) -> bool:
    """Whether an apparent name is part of something joined by colons or slashes: an ARN, a place in a file."""
    before = text[start - 1 : start]
    return (text[start - 2 : start] == "::" and text[end - 1 : end] in _QUOTES) or (
        before in (":", "/", "\\")
        and text[end : end + 1] == ":"
        and text[end + 1 : end + 2] > " "
        and (before == ":" or (text[start - 2 : start - 1].isalnum() and before == "/"))
    )


def _written(name: str, lead: str, behind: str) -> set[str]:
    """Return in which of the ways that joins may require a name is written, given the text before and after it."""
    written = {""}
    if name.startswith("-"):
        written.add("option")
    if "_" in name and name.isupper():
        written.add("shouted")
    if lead.endswith(">") or (lead.rfind("<") > lead.rfind(">") and not (lead.endswith(_QUOTES) and behind[:1] == " ")):
        written.add("in a tag")
    if behind[:1] == "(" and lead[-1:] in _OPENS_CALL and not _NO_SETTER.match(name):
        written.add("setter")
    prose = name.lower() in words("prose") or lead.endswith("`")
    if not prose or max(map(len, behind.split()), default=0) >= _LONG_TOKEN:
        written.add("no word")
    return written


def _before(text: str, at: int) -> str:
    """Return the part of a name before the word that was found."""
    if at and text[at - 1] not in _OF_NAMES_OR_BLANK:
        return ""
    said = text[max(0, at - _LONGEST_BEFORE) : at]
    rest = said.rstrip(_OF_NAMES)
    joined = said[len(rest) :]
    if rest.endswith("\\") and joined.startswith(_ESCAPED):
        return joined[1:]
    if rest.endswith(_FIRST_WORDS) and not joined.startswith("-"):
        return rest[len(rest[:-1].rstrip(_OF_NAMES)) :].lstrip("-.") + joined
    return joined


def _values(join: _Join, found: re.Match[str], name: str, lead: str, *, closed: bool) -> Iterator[_Value]:
    """Yield what may be the value behind a sign, the longest first. `closed` is whether quotes are around the name."""
    text, at = found.string, found.end()
    if join.takes == "tag" and (element := _ELEMENT.match(text, at)):
        yield _Value(*element.span("data" if element["data"] else "text"), literal=bool(element["data"]))
    if join.takes == "cell" and (cell := _CELL.match(text, at)):
        yield _Value(*cell.span())
    if join.takes in ("tag", "cell"):
        return
    tuple_of = _TUPLE.search(lead) if lead.rstrip().endswith(",") and "=" in found[0] else None
    for _ in range(tuple_of[1].count(",") if tuple_of else 0):
        item = _ITEM.match(text, at)
        if item is None:
            return
        at = item.end()
    opened = _OPENED.match(text, at)
    if opened is not None and join.takes != "line":
        end = _closing(text, opened.end(), opened[0])
        empty = len(opened[0]) == _EMPTY and text[opened.end() : opened.end() + 1] in _DELIMITERS
        if opened.end() < end and not empty:
            yield _Value(opened.end(), end, literal=opened[0][-1] != "`", quoted=True)
        return
    at = opened.end() if opened else at
    if join.takes == "quoted" or text[at : at + 1] in ("", "\\"):
        return
    if join.takes == "line":
        run = _RUN.match(text, at, at + _LOOKED_AT)
        ends = _ENDS_VALUE if join.context is Context.SETTING else _ENDS_LINE
        if run is not None and _CALL.match(text, at, run.end() + 1):
            return
        if run is not None and run[0] and run[0].rstrip("*_")[-1:] not in ":," and ends.match(text, run.end()):
            yield _Value(*run.span(), literal=is_scrambled(run[0]))
        return
    closes = _CLOSES.search(text, at, at + _LOOKED_AT) if join.context is Context.TOLD else None
    until = closes.start() if closes else len(text)
    if text[at] in "<[({" and (hint := _HINT.match(text, at)) and sort(hint[0]) is Sort.NOTHING:
        return
    if not closed and (phrase := _PHRASE.match(text, at)):
        yield _Value(*phrase.span(), literal=True)
    yield from _enclosed(join, text, at, until, name, lead, closed=closed)
    if bare := _BARE.match(text, at, until):
        yield _Value(*bare.span())


def _enclosed(join: _Join, text: str, at: int, until: int, name: str, lead: str, *, closed: bool) -> Iterator[_Value]:
    """Yield the value as far as it goes, at most `until` there, if it ends where what encloses its name does."""
    run = _RUN.match(text, at, min(until, at + _LOOKED_AT))
    assert run is not None
    end = run.end()
    line = _LINE_BEGINS.split(lead)[-1]
    connection = _CONNECTION.search(lead) if lead.endswith((";", "&", "?", " ", "\t")) else None
    shell = name.isupper() and text[at - 1] == "="
    cut = text[end : end + 1] in (*_QUOTES, "\\", ";", "&", ",", "|") and join.context is Context.SETTING
    alone = _TO_BLANK.match(text, at, at + _LOOKED_AT) if cut and not closed and _ALONE.match(line) else None
    if alone and _ENDED.match(text, alone.end()):
        end = alone.end()
    elif not closed and lead.endswith(_QUOTES) and text[end : end + 1] not in (";", "&", ",", "|"):
        end = _closing(text, at, lead[-1]) if join.context is not Context.TOLD else end
        escaped = _ESCAPED_END.search(text, at, end)
        end = escaped.start() if escaped else end
    elif connection is not None and connection[3]:
        shell = join.context is Context.SETTING
    elif connection is not None:
        end = _closing(text, at, connection[1] or "&") if connection[1] == ";" else end
        signs = (connection[1] or "&", ")" if "](" in lead else "\n")
        end = min((place for place in (text.find(sign, at, end) for sign in signs) if place >= 0), default=end)
    elif not (text[at - 1] == " " and is_scrambled(text[at:end])) and (
        _OF_CODE.intersection(line)
        or line.rstrip().endswith((",", "["))
        or (text[end : end + 1] in _QUOTES and _CALL.match(text, at, end + 1))
    ):
        return
    said = text[at:end].rstrip(",;" if shell else ".,;:!?")
    while not shell and said[-1:] in _OPENS and said.count(said[-1]) > said.count(_OPENS[said[-1]]):
        said = said[:-1]
    if said:
        yield _Value(at, at + len(said), literal=shell or is_scrambled(said))


def _closing(text: str, at: int, quote: str) -> int:
    """Return where a quotation ends: at the same mark, or with the line."""
    line = text.find("\n", at, at + 2000)
    line = min(len(text), at + 2000) if line < 0 else line
    end = text.find(quote, at, line)
    while end > at and (inner := _INNER.match(text, end)):
        end = text.find(quote, inner.end(), line)
    return line if end < 0 else end


def _tier(level: Strength, join: _Join, found: re.Match[str], name: str, named: str, value: _Value) -> Tier | None:
    """Return how surely a value is a secret, given its name, what closes the name, and what joins them."""
    text = found.string
    said = text[value.start : value.end]
    sign = (found.groupdict().get("sign") or "").strip()
    if sign.startswith((":", "：")) and _CSS.match(name):
        return None
    before = text[found.start() - len(name) - 2 : found.start() - len(name) - 1]
    if (name == "PASS" and not sign.startswith("=")) or (
        name.lower() == "pass" and said.isalpha() and before.isalpha()
    ):
        return None  # the result of a test
    in_code = '"' in named or "'" in named or (name.isupper() and "_" in name)
    if value.quoted and sign == "," and not (value.literal and in_code):  # a list of names, a variable
        return None
    if join.written == "option" and "`" in named:
        return None
    is_name = said.isidentifier() and not is_jumbled(said) and ("_" in said or said.isupper())
    if sign == "," and "]" not in named and is_name:  # one that a selector of CSS ends with is no item of a list
        return None
    if join.takes == "line" and "\n" in found[0] and sort(said) is Sort.WORD:
        return None
    if name.lower() in words("prose") and join.context is Context.TOLD and _GIVEN.match(found[0]):
        return None
    if sign.startswith("==") and text[value.start - 1] in _QUOTES and text[found.start() - 1] in _QUOTES:
        return None
    blank = join.written == "no word"
    if (blank or (join.takes == "line" and "\n" in found[0])) and _SETTING.match(said) and not is_scrambled(said):
        return None
    if blank and not value.quoted and not _TOLD.match(said) and not (said.isascii() and sort(said) is Sort.RANDOM):
        return None
    if (
        blank
        and name.lower() in words("prose")
        and (len(said) < _LONG_TOKEN or " " in said or _HASH.match(said) or sort(said) is not Sort.RANDOM)
    ):
        return None
    prose = said.endswith(".") or _SENTENCE.match(text, value.end)
    if join.written == "option" and prose and sort(said.rstrip(".")) is Sort.WORD:
        return None
    if name.lower().endswith("salt") and _LABEL.match(said):
        return None
    context = join.context
    number = said.isdecimal() and 6 <= len(said) <= 12 and context is not Context.TOLD
    if number and name.lower().endswith(tuple(words("passwords"))):
        return Tier.LIKELY
    if value.quoted:
        if text.startswith("\\(", value.end) or _MISPAIRED.match(said) or _STATEMENT.search(said):
            return None
        code = not value.literal and not is_scrambled(said)
        if context is Context.SETTING or (sign == "," and name.isupper() and "_" in name):
            context = Context.LITERAL
        return tier_of(level, said, context, literal=not code)
    ended = _ENDED.match(text, value.end)
    if context is Context.SETTING and name.isupper() and (value.literal or ("_" in name and sign in "=:" and ended)):
        context = Context.TIGHT
    behind = "" if ended else text[value.end : value.end + 1]
    return tier_of(level, said + (behind if behind in "([{" else ""), context, literal=value.literal)
