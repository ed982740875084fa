r"""Values with a telling name: `DB_PASSWORD=...`, `"apiKey": "..."`, `--client-secret ...`, `<password>...`.

The grammar: a name, a sign that joins it to its value, and the value, which ends where its name's surroundings say:
what encloses the name encloses the value. The name is read first, since most names found say nothing (`token_count`).
Texts in logs are nested in quotes: a quotation mark may follow backslashes, a newline may be written `\n`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace_indexer.redact.disguises import end_of
from agtrace_indexer.redact.names import Strength, rows, strength, words
from agtrace_indexer.redact.scanner import Look, Looking, compiled
from agtrace_indexer.redact.tables_in_text import in_table
from agtrace_indexer.redact.values import Context, Sort, Span, Tier, is_jumbled, is_scrambled, is_shown, sort, tier_of

LOOKS = (
    Look(
        r"(?:passw(?:or)?d|pass(?:phrase|code|wort)|pwd|secret|token|cred(?:entials?|s)|[A-Za-z0-9_. -]key"
        r"|salt|jwt|connection_?string|requirepass|mnemonic|senha|seed[ _-]?phrase|community"
        r"|(?:recovery|backup)[ _-]?codes?"
        r"|(?:pass|(?:[^a-z]|root|bind|ldap|user|admin|db)pw|[^a-z](?:psk|pin|dsn)|[_. -]auth|_pat|bearer)[^a-z])",
        any_case=True,
        from_start=True,
    ),
    Look("[a-z](?:Pw|Auth|Psk)[^a-z]", from_start=True),
    *(Look(pattern.replace("_", "[ _-]?"), any_case=True, from_start=True) for pattern in sorted(words("foreign"))),
)
"""The words that name most secrets; `names` decides what a name is worth."""
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
_FOREIGN = (
    r"(?i:mot[ _-]de[ _-]passe|palabra[ _-]clave|mật[_ ]khẩu|كلمة المرور|секретный[ _]ключ|비밀[ _]?키|contrase\\u00f1a"
    r"|(?:clave|chave|cl[ée])[ _-]?(?:secreta?|secr[èe]te|api|privada|priv[ée]e|d.api|de[ _-]api)"
    r"|[一-鿿]{2}(?=是)|パスワード(?=は))"
)
_NAME = later(
    r"(?:\W|[a-z](?=Pw|Auth|Psk))?"
    rf"({_FOREIGN}|[\w.-]{{1,80}}(?:[ ](?:phrase|codes?))?(?:[ ][0-9]{{1,2}}(?=:))?){_CLOSED}"
)
"""The rest of a name, which may contain blanks in other languages."""

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
_ALONE = later(r"(?:[+>#| -]|[0-9]{1,6}[→:|\t-]|\t|export |ENV )*")
"""What stands before a name whose value ends with its line: the mark or number of a listing, and its indentation."""
_SIBLING = later(r"([ \t]*)[\w.-]{1,60}:([ ]+(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s{}()\[\],;]+))?[ \t]*(?:#.*)?\r?\Z")
"""A line of YAML with a single word, a text in quotes, or nothing."""
_SECTION = later(
    r"(?:\A|\n)[^\n\w\[]*(?:[0-9]+\W)?(?:\[[\w .:-]{1,60}\]|[\w.-]+[ ]=[ ](?:[/~]|[\w.-]+[:@])[^\s\"'(){}\[\],]*)"
    r"[ \t]*\r?\n(?:(?![ \t]*\r?\n)[^\n{}()]*\n)*\Z"
)
"""The lines up to here below the head of a section of settings, or a setting that no code makes."""
_PROSE = later(r"=[^\n]*[a-z] [a-z]")
_BETWEEN = ("", *" \t\r\n\"';&?\\")
"""What stands before and behind a setting of a command, a connection or a query."""
_REST = later(r"[^\s\x1b\"'`\\,;&|<>(){}\[\]]*+")
_PHRASE = later(r"[a-z]{3,10}(?:[ ][a-z]{3,10}){3,8}(?=[ ]-|[ \t]*(?:[ \t]#[^\n]*)?(?:\r?\n|\\{1,7}n|\Z))")
"""Words up to the end of a line."""
_CELL = later(r"[^\n│┃║|\"'`]{8,200}?(?=[ \t]*[│┃║|])")
_ELEMENT = later(r"<!\[CDATA\[(?P<data>[^\n]{4,500}?)\]\]>|(?P<text>[^<\n]{4,500}+)(?=\s{0,40}</)")
_ENDED = later(r"[ \t]{0,200}(?:(?:#|//|--)[^\n]{0,200})?(?:\r?\n|\Z|\\{1,15}n|</[A-Za-z])")
_ENDS_VALUE = later(r"</[A-Za-z]|(?![^\s\"'`\\,])(?![ \t]+[-+*/=.(|&?<>])")
_CELL_ENDS = later(r"[ \t`*\"']{0,40}(?:[|,\t;]|\r?\n)")
_MISPAIRED = later(r"\s|[(\[{)}\],:;|&+.?](?:[\x00- ]|\\?[\"'`]|[a-z]+\()")
"""What follows a quotation mark that closes rather than opens."""
_CONNECTION = later(r"=[^;&=(){}\s]{0,80}([;&])[ ]?\Z|[?]()\Z|(?:\A|[\s\"'])[\w.-]+=[\w.:@/+-]+([ \t])[ \t]*\Z")
"""The settings before that of a password in a connection string, in a query, or in a row with blanks between them."""
_LINE_BEGINS = later(r"[\n\"'`>]|\\\\n")
_OF_CODE = frozenset("=;({?")
"""Signs before a name that show it isn't set on a line of its own, whose end would be that of the value."""
_INNER = later(r"(?<=\\).|'\\\\?''|([\"'])\1(?=[^\s,;:)\]}\"'])")
"""A quotation mark within a quotation, as shells, SQL and YAML write it."""
_OPENS = {")": "(", "]": "[", "}": "{"}
_SHORT_TOKEN, _LONG_TOKEN = 12, 24
_QUOTES = ("'", '"', "`")
_DELIMITERS = tuple(",;:.)}]+?")
"""What follows an empty text rather than a doubled quotation mark."""
_SETTING = later(r"(?:[^\s:]{1,200}[:-][0-9]{1,6}[:-])?[\w.-]+\+?=(?!=*\Z)")
"""Another setting, also behind the file and line that `grep` puts before it."""
_TOLD = later(r"(?=[^\n]*[0-9])(?=[^\n]*[A-Za-z])|[^\n]*[a-z][A-Z]")
"""What a value has that nothing but a blank joins to its name."""
_LABEL = later(r"(?:[A-Z]?[a-z]{2,}[-_ /.:]?)++(?:v?[0-9]{1,2})?\Z")
"""Readable words as the salt of a derivation."""
_OPENS_CALL = ("", *".>:@\n \t→+")


class _Value(Struct, frozen=True):
    """What may be a value."""

    start: int
    end: int
    literal: bool = False
    """Whether it is quoted, or stands where no code is, so that it can't be an expression."""
    quoted: bool = False


def find(text: str, at: int, looking: Looking) -> Iterator[Span]:
    """Yield the position of the value of a name that has a word beginning here, and its kind according to the name."""
    match = _NAME.match(text, at)
    if match is None:
        return
    first, end = match.start(1), match.end()
    before = _before(text, first)
    name = before + match[1]
    level = strength(name)
    first -= len(before)
    lead = text[max(0, first - _LONGEST_BEFORE) : first]
    if not level or _is_part(text, first, end) or lead.endswith("[redacted: "):
        return
    behind = text[end : end + 60]
    written = _spellings(name, lead, behind)
    sign = behind.lstrip(" \t")[:1]
    joins = _AT_BEHIND_BLANKS.get(sign, _BEHIND_BLANKS) if behind[:1] in _BLANKS else _AT.get(sign, ())
    joins = tuple(join for join in joins if join.written in written)
    matches = ((join, compiled(join.pattern).match(text, end, end + looking.reach)) for join in joins)
    closed = '"' in match[2] or "'" in match[2]
    for case in (
        _Case(level, join, found, name, match[2], lead, value)
        for join, found in matches
        if found
        for value in _values(join, found, name, lead, closed=closed)
    ):
        value, tier = case.value, _tier(case)
        if tier:
            rest = _REST.match(text, value.end) if value.end - value.start >= _LOOKED_AT else None
            yield Span(value.start, end_of(text, value.start, rest.end() if rest else value.end), level.kind, tier)
        if tier is Tier.LIKELY:
            break
    if _CELL_ENDS.match(text, end):
        yield from in_table(text, match.start(1), looking.tables)


def _is_part(text: str, start: int, end: int) -> bool:
    """Whether an apparent name is part of something joined by colons or slashes: an ARN, a place in a file."""
    before = text[start - 1 : start]
    return (text[start - 2 : start] == "::" and text[end - 1 : end] in _QUOTES) or (
        before in (":", "/", "\\")
        and text[end : end + 1] == ":"
        and text[end + 1 : end + 2] > " "
        and (before == ":" or (text[start - 2 : start - 1].isalnum() and before == "/"))
    )


def _spellings(name: str, lead: str, behind: str) -> set[str]:
    """Return in which of the ways that joins may require a name is written, given the text before and after it."""
    result = {""}
    if name.startswith("-"):
        result.add("option")
    if "_" in name and name.isupper():
        result.add("shouted")
    if lead.endswith(">") or (lead.rfind("<") > lead.rfind(">") and not (lead.endswith(_QUOTES) and behind[:1] == " ")):
        result.add("in a tag")
    if behind[:1] == "(" and lead[-1:] in _OPENS_CALL and not _NO_SETTER.match(name):
        result.add("setter")
    prose = name.lower() in words("prose") or lead.endswith("`")
    if not prose or max(map(len, behind.split()), default=0) >= _LONG_TOKEN:
        result.add("no word")
    return result


def _before(text: str, at: int) -> str:
    """Return the part of a name before the word that was found."""
    if at and text[at - 1] not in _OF_NAMES_OR_BLANK:
        return ""
    said = text[max(0, at - _LONGEST_BEFORE) : at]
    rest = said.rstrip(_OF_NAMES)
    result = said[len(rest) :]
    if rest.endswith("\\") and result.startswith(_ESCAPED):
        return result[1:]
    if rest.endswith(_FIRST_WORDS) and not result.startswith("-"):
        return rest[len(rest[:-1].rstrip(_OF_NAMES)) :].lstrip("-.") + result
    return result


def _values(join: _Join, match: re.Match[str], name: str, lead: str, *, closed: bool) -> Iterator[_Value]:
    """Yield what may be the value behind a sign, the longest first. `closed` is whether quotes are around the name."""
    text, at = match.string, match.end()
    if join.takes == "tag" and (element := _ELEMENT.match(text, at)):
        yield _Value(*element.span("data" if element["data"] else "text"), literal=True)
    if join.takes == "cell" and (cell := _CELL.match(text, at)):
        yield _Value(*cell.span())
    if join.takes in ("tag", "cell"):
        return
    opened = _OPENED.match(text, at)
    if opened is not None and join.takes != "line":
        end = _closing(text, opened.end(), opened[0])
        empty = opened[0] in (2 * mark for mark in _QUOTES) and text[opened.end() : opened.end() + 1] in _DELIMITERS
        if opened.end() < end and not empty:
            shown = strength(name) is Strength.PASSWORD and name.lower() not in words("prose")  # in Markdown
            yield _Value(opened.end(), end, literal=opened[0][-1] != "`" or shown, quoted=True)
        return
    at = opened.end() if opened else at
    if join.takes == "quoted" or text[at : at + 1] in ("", "\\"):
        return
    if join.takes == "line":
        run = _RUN.match(text, at, at + _LOOKED_AT)
        ends = _ENDS_VALUE if join.context is Context.SETTING else _ENDED
        if run is not None and run[0] and run[0].rstrip("*_")[-1:] not in ":," and ends.match(text, run.end()):
            yield _Value(*run.span(), literal=is_scrambled(run[0]))
        return
    if not closed and name.lower() not in words("prose") and (phrase := _PHRASE.match(text, at)):
        yield _Value(*phrase.span(), literal=True)
    yield from _enclosed(join, text, at, name, lead, closed=closed)
    if bare := _BARE.match(text, at):
        yield _Value(*bare.span())


def _enclosed(join: _Join, text: str, at: int, name: str, lead: str, *, closed: bool) -> Iterator[_Value]:
    """Yield the value as far as it goes if it ends where what encloses its name does."""
    run = _RUN.match(text, at, at + _LOOKED_AT)
    assert run is not None
    end = run.end()
    line = _LINE_BEGINS.split(lead)[-1]
    connection = _CONNECTION.search(lead) if lead.endswith((";", "&", "?", " ", "\t")) else None
    shell = name.isupper() and text[at - 1] == "="
    cut = text[end : end + 1] in (*_QUOTES, "\\", ";", "&", ",", "|") and join.context is Context.SETTING
    alone = _TO_BLANK.match(text, at, at + _LOOKED_AT) if cut and not closed and _ALONE.fullmatch(line) else None
    if alone and _ENDED.match(text, alone.end()):
        end = alone.end()
    elif not closed and lead.endswith(_QUOTES) and text[end : end + 1] not in (";", "&", ",", "|"):
        end = _closing(text, at, lead[-1]) if join.context is not Context.TOLD else end
    elif connection is not None and connection[3]:
        shell = join.context is Context.SETTING
    elif connection is not None:
        end = _closing(text, at, connection[1] or "&") if connection[1] == ";" else end
        signs = (connection[1] or "&", ")" if "](" in lead else "\n")
        end = min((place for place in (text.find(sign, at, end) for sign in signs) if place >= 0), default=end)
    elif not (text[at - 1] == " " and is_scrambled(text[at:end])) and (
        _OF_CODE.intersection(line) or line.rstrip().endswith((",", "["))
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


def _is_set(case: _Case) -> bool:
    """Whether an unquoted value is set where only configuration or a shell does so, and code would have a variable.

    That is an element of XML, `name=value` between blanks, or the only thing on its line among lines of the same form.
    """
    found, value, text = case.found, case.value, case.found.string
    at = found.start() - len(case.name.rpartition(" ")[2])
    if found[0].startswith(">"):
        return text[at - 1 : at] == "<"
    start = text.rfind("\n", 0, at) + 1
    above = text[max(0, text.rfind("\n", 0, start - 1) + 1, start - 300) : max(0, start - 1)]
    margin = _ALONE.match(text, start, at)
    first = margin.end() if margin else start
    alone = text[first:at].strip("\"'") == "" and _ENDED.match(text, value.end) is not None
    if found[0] == "=":
        in_call = above.rstrip().endswith((",", "("))
        between = text[at - 1 : at] in _BETWEEN and text[value.end : value.end + 1] in _BETWEEN
        return (alone and not in_call and not _PROSE.search(above)) or (first < at and between)
    if not alone or "=" in found[0]:
        return alone and _SECTION.search(text, max(0, start - 600), start) is not None
    below = text[text.find("\n", value.end) + 1 or len(text) :][:300].partition("\n")[0]
    depth = len(text[start:first]) - len(text[start:first].rstrip(" \t"))
    near = [_SIBLING.match(line, first - start - depth) for line in (above, below)]
    return any(each and (len(each[1]) == depth or (len(each[1]) < depth and not each[2])) for each in near)


class _Case(Struct, frozen=True):
    """A name with what may be its value, and all that is around them."""

    level: Strength
    join: _Join
    found: re.Match[str]
    name: str
    named: str
    """What closes the name."""
    lead: str
    """What precedes it."""
    value: _Value

    @property
    def said(self) -> str:
        """The text of the value."""
        return self.found.string[self.value.start : self.value.end]

    @property
    def sign(self) -> str:
        """What joins them, if it is a sign."""
        return (self.found.groupdict().get("sign") or "").strip()

    @property
    def bare(self) -> bool:
        """Whether nothing but blanks joins them."""
        return self.join.written == "no word" or (self.join.takes == "line" and not self.found[0].strip())

    @property
    def prose(self) -> bool:
        """Whether the name is a word of prose, too."""
        return self.name.lower() in words("prose")

    def goes_on(self, pattern: str) -> bool:
        """Whether the text matches behind the value."""
        return compiled(pattern).match(self.found.string, self.value.end) is not None

    @property
    def constant(self) -> bool:
        """Whether the name is written as that of a constant or an environment's variable."""
        return self.name.isupper() and "_" in self.name


def _tier(case: _Case) -> Tier | None:
    """Return how surely a value is a secret."""
    if any(refused(case) for refused in _REFUSALS):
        return None
    level, value, said, context = case.level, case.value, case.said, case.join.context
    setting = context is Context.SETTING
    if said.isdecimal() and 6 <= len(said) <= 12 and context is not Context.TOLD and level is Strength.PASSWORD:
        return Tier.LIKELY
    if value.quoted:
        literal = setting or (case.sign == "," and case.constant)
        context = Context.LITERAL if literal else context
        return tier_of(level, said, context, literal=value.literal or is_scrambled(said))
    if level is Strength.PASSWORD and setting and _is_set(case):
        return tier_of(level, said, Context.TIGHT, literal=True)
    ended = _ENDED.match(case.found.string, value.end)
    if setting and case.name.isupper() and (value.literal or (case.constant and case.sign in "=:" and ended)):
        context = Context.TIGHT
    behind = case.found.string[value.end : value.end + 1]
    called = behind * (not ended and behind in ("(", "[", "{"))
    return tier_of(level, said + called, context, literal=value.literal or case.join.written == "option")


def _is_weak(case: _Case) -> bool:
    """Whether only a blank joins a value to its name, and it is no mixture that nothing else is."""
    if not case.bare:
        return False
    said, password = case.said, case.level is Strength.PASSWORD
    random = said.isascii() and " " not in said and sort(said) is Sort.RANDOM
    long = len(said) >= (_LONG_TOKEN if case.prose else _SHORT_TOKEN) or password
    quoted = case.value.quoted and (password or sort(said) is Sort.CHOSEN)
    told = not case.prose and (quoted or (password and _TOLD.match(said) is not None))
    return not (told or (random and long))


def _is_in_list(case: _Case) -> bool:
    """Whether a comma joins the name of a list to the next, or to a variable."""
    said, value = case.said, case.value
    if case.sign != ",":
        return False
    if value.quoted and not (value.literal and ('"' in case.named or "'" in case.named or case.constant)):
        return True
    a_name = said.isidentifier() and not is_jumbled(said) and ("_" in said or said.isupper())
    return a_name and "]" not in case.named and (said.isupper() or not case.name.isupper())


_REFUSALS: tuple[Callable[[_Case], object], ...] = (
    _is_weak,
    _is_in_list,
    # the result of a test
    lambda case: case.name == "PASS" and not case.sign.startswith("="),
    lambda case: case.name.lower() == "pass" and case.lead[-2:-1].isalpha() and case.said.replace(" ", "").isalpha(),
    # quotes enclose a name and its value together: "pw:api@93"
    lambda case: (
        case.prose and case.found[0] == ":" and case.lead.endswith(_QUOTES) and not (case.named or case.value.quoted)
    ),
    # the code between two quotations
    lambda case: case.value.quoted and (case.goes_on(r"\\\(") or _MISPAIRED.match(case.said)),
    # a sentence that goes on behind an option
    lambda case: (
        case.join.written == "option"
        and (case.said.endswith(".") or case.goes_on(r"`?[ ][a-z]+\s+[^\s-]+\s"))
        and sort(case.said.rstrip(".")) is Sort.WORD
    ),
    # a name without a value, above another setting
    lambda case: (
        (case.bare or (case.join.takes == "line" and "\n" in case.found[0]))
        and _SETTING.match(case.said)
        and not is_scrambled(case.said)
    ),
    lambda case: case.name.lower().endswith("salt") and _LABEL.match(case.said),
    lambda case: case.name.lower().endswith(tuple(words("numbers"))) and not case.said.isalnum(),
    lambda case: is_shown(case.found.string, case.value.start, case.value.end),
)
"""What shows that a value is none."""
