r"""Values with a telling name: `DB_PASSWORD=...`, `"apiKey": "..."`, `--client-secret ...`, `<password>...`.

The grammar: a name, a sign that joins it to its value, and the value. The name is read first, since most names found
say nothing (`token_count`). Texts in logs are nested in quotes: a quotation mark may follow backslashes, a newline may
be written `\n`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace_indexer.redact.disguises import end_of
from agtrace_indexer.redact.names import Strength, strength, words
from agtrace_indexer.redact.scanner import Look, Looking, compiled
from agtrace_indexer.redact.tables_in_text import in_table
from agtrace_indexer.redact.values import Context, Sort, Span, Tier, sort, tier_of

_WORDS = "(?:passw(?:or)?d|pass(?:phrase|code|wort)|pwd|secret|token|cred(?:entials?|s)|[A-Za-z0-9_. -]key)"
"""The words that name most secrets; `names` decides what a name is worth."""
_WHOLE = "(?:pass|(?:^|[^a-z])(?:pw|psk|pin|dsn)|[_. -]auth|_pat|bearer)"
"""Words that must end where they were found."""
_CAPITAL = "[a-z](?:Pw|Auth|Psk)"
"""The same, if only a capital shows where they begin."""
_IN_HEADER = "(?:pass|pw|auth|psk|dsn|pin|pat)"
_RARE = (
    "(?:salt|jwt|connection_?string|requirepass|mnemonic|senha|seed[ _-]?phrase|community"
    "|(?:recovery|backup)[ _-]?codes?)"
)


def _near(*, whole: bool) -> tuple[str, ...]:
    """Return patterns for what may follow a word in a name, each of which makes a closer look worthwhile.

    `whole` is whether the word must end where it was found.
    """

    def run(but: str, most: int) -> str:
        return rf"(?:[^a-z{but}][^{but}]{{0,{most - 1}}})?" if whole else rf"[^{but}]{{0,{most}}}"

    gap = run(r"\n:=,;(){}0-9", 24)
    return (
        rf"{gap}[:=,?|>-][^\n\"'`]{{0,24}}[\"'`\\]{{1,6}}[^\s\"'`\\][^\n\"'`]{{3}}",  # = "word"
        rf"{gap}=[^\n]{{0,60}}->[ \t]\\?[\"']",  # a change of it
        rf"{gap}[:=>|][^\n0-9,;(){{}}\"'`]{{0,30}}{_DIGIT}",  # = word
        run(r"\n:=,;(){}0-9\"'", 30) + _DIGIT,  # the same without a sign
        ("" if whole else r"[a-z_-]{0,12}")
        + r"(?:[ \t]+(?:is|was|to))?[ \t]{1,4}\\{0,3}[\"'`][^\s<{(]{4}",  # is "word"
        run(r"\n(){},;=:0-9", 24) + r"\)?[a-z._]{0,12}\([ \t]?[\"'`][^\s\"'`]{4}",  # ("word"
        r":?\\{0,3}[\"']?[)]?[ \t]{0,4}[{;][ \t]{0,4}send",  # an answer to a prompt
        run(r"\s<>", 24) + r"[^\n<>]{0,40}>(?:[^\s<]{4}|\s{0,8}<)",  # a tag
        run(r"\s<>", 24) + r"(?:</[a-z:]{1,20}>\s{0,20}<|[^\n<>]{0,20}>\s{1,20}[a-z0-9])",
        ("" if whole else "[a-z_]{0,12}")
        + r"[ ]\{ get; |[\"'`]?[,\t;][\"A-Za-z][a-z]",  # a property, the next column of a table
        rf"{gap}[:=][ \t(>|+-]{{0,6}}\\?(?:\r?\n|\\+n)",  # a sign, and nothing after it on the line
    )


_DIGIT = r"(?:[^\s0-9,;(){}\"'`:=>|$][0-9]|[0-9][0-9.,:_%-]{0,20}[A-Za-z+/~!@#^&*])"
"""A digit in something other than a mere number, as in nearly every machine-made secret."""
_OTHERS = (
    r"(?:[ _-]?[0-9]{1,3}[\])\"'`\\]{0,4}[ \t]{0,4}[:=,]|[ \t][0-9][ \t]{1,2}[^\s]{6})",  # a number beside the name
    r"[`*\"' \t|]{0,60}\\?\r?\n",  # the last column of a table
    r"[^\n:=,;(){}<> ]{0,24}[ \t]{0,4}[:=]\*{0,3}[ \t]{0,4}[^\s0-9\"'`\\][^\s\"'`\\]{5}",
)
_OF_PASSWORDS = (
    r"[^\n:]{0,80}:[ \t]{0,3}(?:\r?\n|\\n)",
    r"[^\n:=,;(){}0-9]{0,24}[ \t:=/(\"'`][\"'`]?[a-z]{4,10}-[a-z]{3,10}-[a-z]{3,10}-[a-z]{3}",
    r"[ ](?:for|to|of|on)[ ][^\s]{12,60}[ ]is[ ][^\s0-9]{0,12}[0-9]",
    r"[ ](?:is|was|to|es|est|ist|lautet)[ :]{1,3}[^\s]{8}",
)


class Head(Struct, frozen=True):
    """A word in a name, and the surroundings that make a closer look worthwhile."""

    word: str
    near: str
    any_case: bool = True

    @property
    def look(self) -> Look:
        """The first look; `starts` finds where the word begins, as reporting that would make the scanner slow."""
        return Look(self.word + self.near, any_case=self.any_case)

    def starts(self, text: str, end: int) -> Iterator[int]:
        """Yield where the word may begin, given the end of a first look."""
        flags = re.IGNORECASE if self.any_case else 0
        near = compiled(self.near, flags)
        for found in deque(compiled(self.word, flags).finditer(text, max(0, end - _REACH), end), _MOST_STARTS):
            if near.match(text, found.end(), end):
                yield found.start()


_REACH, _MOST_STARTS = 160, 4
"""The number of characters that a first look may cover, or more, and how many words in them are tried."""
HEADS = (
    *(Head(_WORDS, f"(?:{near})") for near in (*_near(whole=False), *_OTHERS)),
    *(Head("(?:passw(?:or)?d|pass(?:phrase|code|wort)|pwd)", near) for near in _OF_PASSWORDS),
    *(Head(_WHOLE, f"(?:{near})") for near in _near(whole=True)),
    *(Head(_CAPITAL, f"(?:{near})", any_case=False) for near in _near(whole=True)),
    Head("(?:pass|(?:^|[^a-z])pw)", r"[\"'`]?[ \t]{0,4}[:=][ \t]{0,4}[^\s0-9\"'`,;(){}<>\\$%]{6}"),
    Head(rf"[_,;|\t\"'`]{_IN_HEADER}", r"[\"'`]?\r?\n"),
    Head(rf"[ ]{_IN_HEADER}", r"[ \t]*\|[ \t]*\r?\n"),
    *(Head(word, r"[,;|\t]\w") for word in ("(?:password|passwd|secret|token|key)", rf"[\n,;|\t]{_IN_HEADER}")),
    Head(_RARE, ""),
)
FOREIGN_LOOKS = tuple(
    Look(pattern.replace("_", "[ _-]?"), any_case=True, from_start=True) for pattern in sorted(words("foreign"))
)

# --- pieces

_QUOTE = r"\\{0,15}[\"'`]"
_EMPHASIS = r"(?:\*{2,3}|__|~~|</?(?:b|strong|code|em|kbd|i)>)?"
"""Markup of Markdown and HTML around a name or a value."""
_END = r"(?:\r?\n|\\{1,15}r?\\{0,15}n)"
"""A line end, possibly escaped as within quotes."""
_MARGIN = r"(?:[+>#|-]{1,2}[ \t]|[ \t]{0,8}[0-9]{1,6}[→:|\t-]|[^\s:]{1,200}[:-][0-9]{1,6}[:-])?"
"""What diffs, listings and quotations put before a line."""
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
    rf"|[一-鿿]{{2}}(?=是)|[\w.-]{{1,80}})){_CLOSED}",
    re.IGNORECASE,
)
_TYPED = (
    r"(?:[ \t]{0,3}:?[ \t]{0,3}(?:\{ ?get; (?:set|init); \}|(?:Final|Optional)\[str\]|str \| None|str|string|String"
    r"|&(?:'static )?str|Secret(?:Str|String)|(?:const )?char ?\*|\[UInt8\](?=[ ])|As String)(?![A-Za-z0-9]))?"
)
_SIGN = (
    r"(?P<sign>[:?+.|!]{0,2}={1,3}>?|->|<-|→|::|是|è:|"
    r"(?:\|\||\?\?)(?=[ \t]{0,4}\\*[\"'`])|[:：](?:[ \t]!!?(?:str|binary))?)"
)
"""Signs of assignment in shells, settings, programs and Makefiles."""
_CALLED = (
    r"(?:(?:String::from|Some|Secret(?:Str|String)?(?:::new|::from)?|Buffer\.from|new String|bytes|str|bytes\.fromhex"
    r"|b64decode|unhexlify|Array|\[\]byte|new SecretKeySpec|Fernet|os\.(?:environ\.get|getenv)|getenv|env|config"
    r"|ENV\.fetch)?\([ \t]{0,20}(?:(?<=(?:env|get|fig|tch)\()\\{0,15}[\"'][A-Za-z0-9_.]{2,60}\\{0,15}[\"'],[ \t]{0,4})?"
    r"|[NbBrRuUL@](?=\\*[\"']))?"
)
"""What may be called with the value, also to read a variable that the value stands in for."""
_BARE = r"[^\s\x1b\"'`\\,;&|<>(){}\[\]]"
_LONGER = (
    r"(?:(?![;&,|][A-Za-z_][\w. -]*=|</[A-Za-z])[^\s\x1b\\]){0,200}?"
    r"(?=\\{0,7}[\"'`]{0,3}[,;]?(?:[ \t]*(?:\r?\n|\Z|\\{1,7}n)|[ \t]+[A-Za-z_][\w.-]*=|</[A-Za-z]))"
)
"""The rest of a value up to the end of its line, with the signs that end other values."""
_QUOTED = (
    rf"(?P<quote>(?:{_QUOTE}){{1,3}})(?!\s|(?<=[\"'`][\"'`])[,;:.)}}\]+?]"
    rf"|[(\[{{)}}\],:;|&+.?](?:[\x00- ]|\\?[\"'`]|[a-z]+\())"
    rf"(?P<quoted>(?:(?!(?<!\\)(?P=quote))[^\n]){{1,2000}})(?:(?P=quote)|(?=[\r\n])|\Z)"
)
_LOOKED_AT = 500
"""The most characters of a value without blanks that are checked: it may be a key of any length."""
_REST = later(rf"{_BARE}*+")
_ENDED = later(r"[ \t]*(?:(?:#|//|--)[^\n]*)?(?:\r?\n|\Z|\\{1,15}n|</[A-Za-z])")
_CELL_ENDS = later(r"[ \t`*\"']{0,40}(?:[|,\t;]|\r?\n)")


class _Join(Struct, frozen=True):
    """A way of joining a name to its value, including the value."""

    begins: str
    """The signs it may begin with, after blanks; empty: anything, after a blank."""
    pattern: str
    context: Context = Context.TOLD
    written: str = ""
    """How the name must be written: as a command's `option`, a `setter`, `shouted` as an environment's variable, or as
    something that is no `word` of prose."""


_JOINS = (
    _Join(  # NAME = value
        ":=?+.|!-<→：{&sSFOcA\\是",
        rf"(?:[ \t]|\\\r?\n){{0,40}}{_TYPED}[ \t]{{0,4}}{_SIGN}{_EMPHASIS}(?:[ \t]|\\\r?\n){{0,40}}{_EMPHASIS}"
        rf"{_CALLED}(?:"
        rf"{_QUOTED}|(?=[^\s\"'`\\])(?P<bare>{_BARE}{{0,500}}+)(?P<longer>{_LONGER})?)",
        Context.SETTING,
    ),
    _Join(  # NAME: value on the next line
        ":=",
        rf"[ \t]{{0,4}}(?P<sign>[:=])[ \t]{{0,4}}(?:(?:[(>|][+-]?)?[ \t]{{0,4}}{_END}{_MARGIN}[ \t]{{1,20}}|"
        rf"[(>|][+-]?[ \t]{{1,40}})(?:{_QUOTE})?(?P<bare>{_BARE}{{8,200}}+)"
        r"(?:(?=</[A-Za-z])|(?![^\s\"'`\\,])(?<![:,])(?![ \t]+[-+*/=.(|&?<>]))",
        Context.SETTING,
    ),
    _Join(  # NAME = "value" -> "value"
        ":=", rf"[ \t]{{0,40}}[=:][ \t]{{0,4}}\"[^\"\n]{{0,500}}\"[ \t]{{1,4}}->[ \t]{{1,4}}{_QUOTED}", Context.LITERAL
    ),
    _Join("(", rf"\([ \t]{{0,4}}[b]?{_QUOTED}", Context.TOLD, "setter"),  # .apiKey("value")
    _Join(  # setProperty(NAME, "value"), get(NAME).type("value")
        ":,).;{s\\\"'",
        r":?(?:\\{0,15}[\"'])?[ \t]{0,4}(?P<sign>,|\)?[ \t]{0,2}\.[A-Za-z_]{2,20}\(|\)?[;{ \t]{0,4}send(?:line|"
        rf"keys)?[ \t(]{{1,3}}(?:--[ \t])?)[ \t]{{0,40}}{_QUOTED}",
    ),
    _Join(  # <NAME>value</NAME>, <x name="NAME"><value>value</value>, <th>NAME</th><td>value</td>
        "",
        r"(?:[^<>\n]{0,120}>|</[A-Za-z:]{1,30}>\s{0,40}<[A-Za-z:]{1,30}>)\s{0,40}(?:<[A-Za-z:]{1,30}>\s{0,40})?"
        r"(?:<!\[CDATA\[(?P<quoted>[^\n]{4,500}?)(?=\]\]>)|(?P<bare>[^<\s]{4,500})(?=\s{0,40}</))",
        Context.SETTING,
    ),
    _Join(  # --NAME value
        "",
        rf"(?P<sign>[ \t]{{1,4}}|=)(?:pass:)?(?P<quote>{_QUOTE})?"
        r"(?P<bare>(?(quote)(?:(?!(?P=quote))[^\n]){3,500}|[^\s\"'`\\|;&<>()\[\]{}]{4,}))",
        Context.TIGHT,
        "option",
    ),
    _Join("", rf"[ \t]{{1,40}}{_QUOTED}", Context.LITERAL, "shouted"),  # define NAME "value"
    _Join(
        "",
        rf"(?:[ \t]{{1,4}}|[ \t]{{0,4}}{_END}[ \t]{{0,20}})(?P<bare>[^\s\"'`\\,;()<>|]{{6,500}})(?=[ \t]*(?:\r?\n|\Z))",
        Context.TOLD,
        "shouted",
    ),
    _Join(  # the NAME for the old server is value
        "",
        r"(?:[ \t]{1,40}|\\{1,7}t)(?:(?:is|ist|es|est|è|é|lautet|to|as|was|set to"
        r"|(?:was|has been|is|now) (?:changed|set|reset) to|→|->|=>|-"
        r"|(?:for|of|to|on|de|do|da|del|pour|para|für)(?:[ \t]{1,3}[A-Za-z0-9._-]{1,30}){1,4}[ \t]{0,2}(?:is|é|è|est|=)"
        r"|(?:(?:for|of|to|on|is|de|pour|para|für|was|generated)[ \t]{1,3})(?:[A-Za-z0-9._@-]{1,30}[ \t]{1,3}){0,5}"
        r"[A-Za-z0-9._@-]{1,30}(?=:)"
        rf"|for the [a-z ]{{1,40}}(?:→|->))[ \t]{{0,4}}:?[ \t]{{1,4}}:?[ \t]{{0,2}}){_EMPHASIS}(?:{_QUOTE})?"
        rf"(?P<bare>[^\s\"'`\\,;()<>]{{8,200}})",
    ),
    _Join(  # Please use the NAME to proceed: value on a later line
        "",
        r"[ \t][^\n:]{0,80}:[ \t]{0,3}(?:(?:\r?\n|\\n)[ \t>]{0,8}){1,3}(?P<bare>[A-Za-z0-9]{16,64})(?=\s|\\|[\"']|\Z)",
    ),
    _Join(  # ["NAME"]=> string(16) "value"
        "=", rf"=>(?:\s|\\n){{0,8}}string\([0-9]{{1,4}}\)[ ]{_QUOTED}", Context.LITERAL
    ),
    _Join(  # NAME │ value │
        "│┃║|", r"[ \t]{0,60}[│┃║|][ \t]{0,60}(?P<bare>[^\s│┃║|\"'`]{8,200})(?=[ \t]*[│┃║|])"
    ),
    _Join(  # NAME value
        "",
        rf"(?:[ \t]{{1,60}}|\\{{1,7}}t)(?:[0-9][ ])?{_EMPHASIS}(?:{_QUOTE}|\()?(?P<bare>[^\s\"'`\\,;()<>|]{{8,200}})",
        Context.TOLD,
        "no word",
    ),
    _Join(  # NAME: user / value
        ":", r":[ \t]{1,4}[A-Za-z0-9._@-]{1,40}[ \t]{1,3}/[ \t]{1,4}(?P<bare>[^\s\"'`\\,;()<>]{8,200})"
    ),
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


def find(text: str, at: int, looking: Looking, pattern: re.Pattern[str] = _NAME) -> Iterator[Span]:
    """Yield the position of the value of a name that has a word beginning here, and its kind according to the name."""
    name = pattern.match(text, at)
    if name is None:
        return
    first, end = name.start(1), name.end()
    before = _before(text, first)
    whole = before + name[1]
    level = strength(whole)
    if not level or _is_part(text, first - len(before), end):
        return
    for join in _joins(text[end : end + 60]):
        if not _fits(join, whole):
            continue
        found = compiled(join.pattern).match(text, end, end + looking.reach)
        if found is None:
            continue
        said_before = text[max(0, first - len(before) - _LONGEST_BEFORE) : first]
        start, stop, tier = _secret(level, join, found, whole, said_before)
        if tier:
            yield Span(start, _whole(text, start, stop), level.name.lower(), tier)
        if tier is Tier.LIKELY:
            break
    if _CELL_ENDS.match(text, end):
        yield from in_table(text, first, looking.tables)


def find_foreign(text: str, at: int, looking: Looking) -> Iterator[Span]:
    """Do the same for names in other languages, which may contain blanks."""
    return find(text, at, looking, _FOREIGN_NAME)


def _whole(text: str, start: int, end: int) -> int:
    """Return the end of a value that may be longer than what was checked, or continue on the next line."""
    rest = _REST.match(text, end) if end - start >= _LOOKED_AT else None
    return end_of(text, start, rest.end() if rest else end)


def _joins(behind: str) -> tuple[_Join, ...]:
    """Return what may join a name to its value, given the text after the name."""
    sign = behind.lstrip(" \t")[:1]
    if behind[:1] in _BLANKS:
        return _AT_BEHIND_BLANKS.get(sign, _BEHIND_BLANKS)
    return _AT.get(sign, ())


def _is_part(text: str, start: int, end: int) -> bool:
    """Whether an apparent name is part of something joined by colons or slashes: an ARN, a place in a file."""
    before = text[start - 1 : start]
    return (
        before in (":", "/", "\\")
        and text[end : end + 1] == ":"
        and text[end + 1 : end + 2] > " "
        and (before == ":" or (text[start - 2 : start - 1].isalnum() and before == "/"))
    )


def _fits(join: _Join, name: str) -> bool:
    """Whether a name is written as the join requires it."""
    match join.written:
        case "option":
            return name.startswith("-")
        case "shouted":
            return "_" in name and name.isupper()
        case "setter":
            return _NO_SETTER.match(name) is None
    return True


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
        return rest.split()[-1] + " " + joined
    return joined


_STATEMENT = later(r"[;)](?:if|return|let|var|const|function|[A-Za-z.]+\()|\)\{|=>")
_CONNECTION = later(r"=[^;=(){}\s]{1,60};[ ]?\Z")
"""The settings before that of a password in a database's connection string."""
_LINE_BEGINS = later(r"[\n\"'`>]|\\\\n")
_OF_CODE = frozenset("=;({,?")
"""Signs before a name that show it isn't set on a line of its own, whose end would be that of the value."""
_HASH = later(r"[0-9a-f]*\Z")
_LONG_TOKEN = 24


def _is_token(text: str) -> bool:
    """Whether a text is a machine's token, and no hash of a commit, so that even a word of prose names it."""
    return len(text) >= _LONG_TOKEN and not _HASH.match(text) and sort(text) is Sort.RANDOM


_CSS = later(r"--[a-z]")


def _secret(level: Strength, join: _Join, found: re.Match[str], name: str, before: str) -> tuple[int, int, Tier | None]:
    """Return the position of a value and whether it is a secret, given its name and the text before that."""
    groups = found.groupdict()
    quoted = groups.get("quoted") is not None
    start, end = found.span("quoted" if quoted else "bare")
    sign = (groups.get("sign") or "").strip()
    if sign.startswith((":", "：")) and (name == "PASS" or _CSS.match(name)):  # the result of a test, a variable of CSS
        return start, end, None
    said = found.string[start:end]
    prose = groups.get("quote") == "`" and (" " in said or said.isalpha()) and sort(said) < Sort.PHRASE
    if prose or (groups.get("quote") == "`" and _STATEMENT.search(said)):  # code, or code in prose
        return start, end, None
    context = join.context
    if join.written == "no word" and name.lower() in words("prose") and not _is_token(said):
        return start, end, None
    if quoted and (context is Context.SETTING or (sign == "," and name.isupper() and "_" in name)):
        context = Context.LITERAL
    elif "longer" in groups:
        ended = groups["longer"] is not None or _ENDED.match(found.string, end)
        tight = name.isupper() and (
            (found[0][:1] == "=" and found[0][1:2] not in " \t") or ("_" in name and sign in "=:" and ended)
        )
        context = Context.TIGHT if tight else context
        whole = said + (groups["longer"] or "")
        close = found[0][:1] == "=" and found[0][1:2] not in " \t"
        alone = len(whole) > len(said) and (
            not _OF_CODE.intersection(_LINE_BEGINS.split(before)[-1]) or _CONNECTION.search(before)
        )
        if alone and tier_of(level, whole, context, literal=tight and close) is Tier.LIKELY:
            return start, found.end("longer"), Tier.LIKELY
    behind = "" if quoted or _ENDED.match(found.string, end) else found.string[end : end + 1]
    literal = quoted or groups.get("quote") is not None
    return start, end, tier_of(level, said + (behind if behind in "([{" else ""), context, literal=literal)
