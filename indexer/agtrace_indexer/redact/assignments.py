r"""Values with a telling name: `DB_PASSWORD=...`, `"apiKey": "..."`, `--client-secret ...`, `<password>...`.

The grammar: a name, one of the carriers that join a name to its value, and the value. The name is read first, since
most names found say nothing (`token_count`). Texts in logs are nested in quotes: a quotation mark may follow
backslashes, a newline may be written `\n`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace_indexer.redact.checks import Value, fails, is_example, is_passphrase, is_secret
from agtrace_indexer.redact.disguises import end_of
from agtrace_indexer.redact.names import Strength, strength
from agtrace_indexer.redact.scanner import Look, Looking, compiled
from agtrace_indexer.redact.tables_in_text import in_table

_PASSWORDS = ("passw(?:or)?d", "pass(?:phrase|code|wort)", "pwd")
_SECRETS = ("secret", "token", "cred(?:entials?|s)", "[A-Za-z0-9_. -]key")
"""Patterns for the words that name most secrets; `names` decides what a name is worth."""
_WHOLE = ("pass", "(?:^|[^a-z])(?:pw|psk|pin|dsn)", "[_. -]auth", "_pat", "bearer")
"""Words that must end where they were found."""
_CAPITAL = "[a-z](?:Pw|Auth|Psk)"
"""The same, if only a capital shows where they begin."""
_IN_HEADER = "(?:pass|pw|auth|psk|dsn|pin|pat)"
_RARE = (
    "salt", "jwt", "connection_?string", "requirepass", "mnemonic", "senha", "seed[ _-]?phrase", "community",
    "(?:recovery|backup)[ _-]?codes?",
)  # fmt: skip
_FOREIGN = (
    "kennwort", r"contrase[nñ\\]", "palabra[ _-]clave", "mot[ _-]?de[ _-]?passe", "wachtwoord", "l[oö]senord",
    "has[łl]o",
    "heslo", "parol[ae]", "salasana", "jelsz[oó]", "[sş]ifre", "парол[ья]", "Парол[ья]", "ПАРОЛЬ",
    "密[码碼钥鑰]", "口令",
    "パスワード", "暗証番号", "비밀", "암호", "mật[_ ]khẩu", "كلمة المرور", "סיסמה", "पासवर्ड", "κωδικός",
    "geheimnis",
    "schl(?:ü|ue)ssel", "segredo", "secret[oa]", "clave[ _-]?(?:api|de|priv|secr)", "chave[ _-]?(?:api|de|priv|secr)",
    "cl[ée][ _-]?(?:secr|api|priv|d.api)", "секрет", "Секрет", "токен", "Токен", "令牌", "トークン",
    "シークレット",
    "秘密鍵", "토큰", "jeton",
)  # fmt: skip


def _near(shortest: int, digit: str, *, whole: bool = False) -> tuple[str, ...]:
    """Return patterns for the surroundings of a word in a name that make a closer look worthwhile.

    `shortest` is the least length of a quoted value, `digit` a pattern with a digit for an unquoted one; `whole` is
    whether the word must end where it was found.
    """

    def run(but: str, most: int) -> str:
        return rf"(?:[^a-z{but}][^{but}]{{0,{most - 1}}})?" if whole else rf"[^{but}]{{0,{most}}}"

    gap = run(r"\n:=,;(){}0-9", 24)
    rest = "" if whole else "[a-z_-]{0,12}"
    return (
        gap
        + rf"[:=,?|>-][^\n\"'`]{{0,24}}[\"'`\\]{{1,6}}[^\s\"'`\\$%{{(<,;:)][^\s\"'`\\$]{{{shortest - 1}}}",  # = "word"
        gap + r"=[^\n]{0,60}->[ \t]\\?[\"']",  # a change of it
        r"[\"'`]?[,\t;][\"A-Za-z][a-z]",  # the next column of a table
        gap + rf"[:=>|][^\n0-9,;(){{}}\"'`]{{0,30}}{digit}",  # = word
        run(r"\n:=,;(){}0-9\"'", 30) + digit,  # the same without a sign
        rest + r"(?:[ \t]+(?:is|was|to))?[ \t]{1,4}\\{0,3}[\"'`][^\s$%<{(]{4}",  # is "word"
        run(r"\n(){},;=:0-9", 24) + r"\)?[a-z._]{0,12}\([ \t]?[\"'`][^\s\"'`]{4}",  # ("word"
        r":?\\{0,3}[\"']?[)]?[ \t]{0,4}[{;][ \t]{0,4}send",  # an answer to a prompt
        run(r"\s<>", 24) + r"[^\n<>]{0,40}>(?:[^\s<]{4}|\s{0,8}<)",  # a tag
        run(r"\s<>", 24) + r"(?:</[a-z:]{1,20}>\s{0,20}<|[^\n<>]{0,20}>\s{1,20}[a-z0-9])",
        r"[ ]\{ get; ",
        gap + r"[:=][ \t(>|+-]{0,6}(?:\r?\n|\\+n)",  # a sign, and nothing after it on the line
    )


_DIGIT = r"(?:[^\s0-9,;(){}\"'`:=>|$][0-9]|[0-9][0-9.,:_%-]{0,20}[A-Za-z+/~!@#^&*])"
"""A digit in something other than a mere number, as in every machine-made secret."""
_NUMBERED = r"(?:[ _-]?[0-9]{1,3}[\])\"'`\\]{0,4}[ \t]{0,4}[:=,]|[ \t][0-9][ \t]{1,2}[^\s]{6})"
"""A number between the name and the sign, or the value."""
_NOTHING = r"[`*\"' \t|]{0,60}\\?\r?\n"
"""The rest of the line after the last column of a table."""
_LETTERS = r"[^\n:=,;(){}<> ]{0,24}[ \t]{0,4}[:=][ \t]{0,4}[^\s0-9\"'`,;(){}<>\\$%]{6}"
_CHOSEN = r"[^\n:=,;(){}0-9]{0,24}[ \t:=/(\"'`][\"'`]?[a-z]{4,10}-[a-z]{3,10}-[a-z]{3,10}-[a-z]{3}"
"""Words joined by dashes, as people choose them."""
_FOR = r"[ ](?:for|to|of|on)[ ][^\s]{12,60}[ ]is[ ][^\s0-9]{0,12}[0-9]"
"""A value after a long description of what it is for."""
_LETTERS_AT_ONCE = r"[\"'`]?[ \t]{0,4}[:=][ \t]{0,4}[^\s0-9\"'`,;(){}<>\\$%]{6}"
_SHOUTED = r"[A-Z0-9_]{0,24}=[^\s\"'`,;(){}<>\\$%]{6}"
_PROMPT = r"[^\n:]{0,80}:[ \t]{0,3}(?:\r?\n|\\n)"


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
    *(
        Head(word, near)
        for word in _PASSWORDS
        for near in (*_near(4, "[0-9]"), _NOTHING, _PROMPT, _LETTERS, _CHOSEN, _FOR)
    ),
    *(Head(word, near) for word in _SECRETS for near in (*_near(6, _DIGIT), _NUMBERED, _NOTHING)),
    *(Head(word, near) for word in _WHOLE for near in _near(4, "[0-9]", whole=True)),
    *(Head(_CAPITAL, near, any_case=False) for near in _near(4, "[0-9]", whole=True)),
    *(Head(word, _SHOUTED, any_case=False) for word in ("SECRET", "TOKEN", "CREDENTIALS?", "_KEY")),
    *(Head(word, _LETTERS_AT_ONCE) for word in ("pass", "(?:^|[^a-z])pw")),
    Head(rf"[_,;|\t\"'`]{_IN_HEADER}", r"[\"'`]?\r?\n"),
    Head(rf"[ ]{_IN_HEADER}", r"[ \t]*\|[ \t]*\r?\n"),
    *(Head(word, r"[,;|\t]\w") for word in ("(?:password|passwd|secret|token|key)", rf"[\n,;|\t]{_IN_HEADER}")),
    *(Head(word, "") for word in _RARE),
)
FOREIGN_LOOKS = tuple(Look(head, any_case=True, from_start=True) for head in _FOREIGN)

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
    f"{written} "
    for word in """
    api access secret private auth admin app bot client master account encryption signing license recovery backup unseal
    seed preshared pre-shared connection aes hmac
    """.split()  # noqa: SIM905
    for written in (word, word.upper(), word.capitalize())
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
    rf"|(?:clave|chave|cl[ée])[ _-]?(?:secreta?|secr[èe]te|api|privada|priv[ée]e|d.api|de[ _-]api)|[\w.-]{{1,80}}))"
    rf"{_CLOSED}",
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
    r"(?:(?:String::from|Some|Secret(?:Str|String)?(?:::new|::from)?|Buffer\.from|new String|bytes|str|bytes\.fromh"
    r"ex|b64decode|unhexlify|Array|\[\]byte|new SecretKeySpec)?\([ \t]{0,20}|[NbBrRuUL@](?=\\*[\"']))?"
)
_BARE = r"[^\s\"'`\\,;&|<>(){}\[\]]"
_LONGER = r"(?:(?!</[A-Za-z])[,&|(){}\[\]<>](?=[^\s\"'`\\])[^\s\"'`\\;]++)?"
"""The rest of a value that contains a sign which usually ends one."""
_QUOTED = (
    rf"(?P<quote>(?:{_QUOTE}){{1,3}})(?![\s{{(\[)}},:;|&]|\.[a-z]+\()(?P<quoted>(?:(?!(?<!\\)(?P=quote))[^\n]){{1,2000}})(?:"
    rf"(?P=quote)|(?=[\r\n])|\Z)"
)
_LOOKED_AT = 500
"""The most characters of a value without blanks that are checked: it may be a key of any length."""
_REST = later(rf"{_BARE}*+")
_ENDED = later(r"[ \t]*(?:(?:#|//|--)[^\n]*)?(?:\r?\n|\Z|\\{1,15}n|</[A-Za-z])")


_TAG_ENDS = later(r"</[A-Za-z]")
"""The end of a tag: a value before it ends there, as at the end of a text."""
_CELL_ENDS = later(r"[ \t`*\"']{0,40}(?:[|,\t;]|\r?\n)")


class _Carrier(Struct, frozen=True):
    """A way of joining a name to its value, including the value."""

    begins: str
    """The signs it may begin with, after blanks; empty: anything, after a blank."""
    pattern: str
    unless: str = ""
    """The check that recognizes values that aren't secrets, if the name alone says too little."""
    option: bool = False
    """Whether the name must be that of a command's option."""
    setter: bool = False
    """Whether the name must be that of a function that takes the value."""
    shouted: bool = False
    """Whether the name must be written like an environment variable's."""


_CARRIERS = (
    _Carrier(  # NAME = value
        ":=?+.|!-<→：{&sSFOcA\\",
        (
            rf"(?:[ \t]|\\\r?\n){{0,40}}{_TYPED}[ \t]{{0,4}}{_SIGN}{_EMPHASIS}[ \t]{{0,40}}{_EMPHASIS}{_CALLED}(?:"
            rf"{_QUOTED}|(?P<bare>{_BARE}{{3,500}}+)(?P<longer>{_LONGER}))"
        ),
    ),
    _Carrier(  # NAME: value on the next line
        ":=",
        (
            rf"[ \t]{{0,4}}(?P<sign>[:=])[ \t]{{0,4}}(?:(?:[(>|][+-]?)?[ \t]{{0,4}}{_END}{_MARGIN}[ \t]{{1,20}}|"
            rf"[(>|][+-]?[ \t]{{1,40}})"
            rf"(?:{_QUOTE})?(?P<bare>{_BARE}{{8,200}}+)"
            r"(?:(?=</[A-Za-z])|(?![^\s\"'`\\,])(?<![:,])(?![ \t]+[-+*/=.(|&?<>]))"
        ),
        "no_told",
    ),
    _Carrier(  # NAME = "value" -> "value"
        ":=",
        rf"[ \t]{{0,40}}[=:][ \t]{{0,4}}\"[^\"\n]{{0,500}}\"[ \t]{{1,4}}->[ \t]{{1,4}}{_QUOTED}",
    ),
    _Carrier("(", rf"\([ \t]{{0,4}}{_QUOTED}", "no_called", setter=True),  # .apiKey("value")
    _Carrier("", rf"[ \t]{{1,40}}{_QUOTED}", "no_passed", shouted=True),  # define NAME "value"
    _Carrier(
        "",
        (
            rf"(?:[ \t]{{1,4}}|[ \t]{{0,4}}{_END}[ \t]{{0,20}})(?P<bare>[^\s\"'`\\,;()<>|]{{6,500}})(?=[ \t]*(?:\r?"
            rf"\n|\Z))"
        ),
        "no_told",
        shouted=True,
    ),
    _Carrier(  # setProperty(NAME, "value"), get(NAME).type("value")
        ":,).;{s\\\"'",
        (
            r":?(?:\\{0,15}[\"'])?[ \t]{0,4}(?P<sign>,|\)?[ \t]{0,2}\.[A-Za-z_]{2,20}\(|\)?[;{ \t]{0,4}send(?:line|"
            r"keys)?[ \t(]{1,3}(?:--[ \t])?)"
            rf"[ \t]{{0,40}}{_QUOTED}"
        ),
        "no_passed",
    ),
    _Carrier(  # setProperty("THE_NAME", "words")
        ",\\\"'",
        r"(?:\\{0,15}[\"'])?,[ \t]{0,40}(?P<quote>\\{0,15}[\"'])(?P<quoted>[a-z-]{10,200})(?P=quote)\)",
        "no_letters",
        shouted=True,
    ),
    _Carrier(  # <NAME>value</NAME>, <x name="NAME"><value>value</value>, <th>NAME</th><td>value</td>
        "",
        (
            r"(?:[^<>\n]{0,120}>|</[A-Za-z:]{1,30}>\s{0,40}<[A-Za-z:]{1,30}>)\s{0,40}(?:<[A-Za-z:]{1,30}>\s{0,40})?"
            r"(?P<bare>[^<\s]{4,500})(?=\s{0,40}</)"
        ),
        "no_tagged",
    ),
    _Carrier(  # --NAME value
        "",
        (
            rf"(?P<sign>[ \t]{{1,4}}|=)(?:pass:)?(?P<quote>{_QUOTE})?"
            r"(?P<bare>(?(quote)(?:(?!(?P=quote))[^\n]){3,500}|[^\s\"'`\\|;&<>()\[\]{}]{4,}))"
        ),
        "no_option",
        option=True,
    ),
    _Carrier(  # the NAME for the old server is value
        "",
        (
            r"(?:[ \t]{1,40}|\\{1,7}t)(?:(?:is|ist|es|est|è|é|lautet|to|as|was|set to"
            r"|(?:was|has been|is|now) (?:changed|set|reset) to|→|->|=>|-"
            r"|(?:for|of|to|on|de|do|da|del|pour|para|für)(?:[ \t]{1,3}[A-Za-z0-9._-]{1,30}){1,4}[ \t]{0,2}"
            r"(?:is|é|è|est|=)"
            r"|(?:(?:for|of|to|on|is|de|pour|para|für|was|generated)[ \t]{1,3})(?:[A-Za-z0-9._@-]{1,30}[ \t]{1,3}){0,5}"
            r"[A-Za-z0-9._@-]{1,30}(?=:)"
            rf"|for the [a-z ]{{1,40}}(?:→|->))[ \t]{{0,4}}:?[ \t]{{1,4}}:?[ \t]{{0,2}}){_EMPHASIS}(?:{_QUOTE})?"
            rf"(?P<bare>[^\s\"'`\\,;()<>]{{8,200}})"
        ),
        "no_told",
    ),
    _Carrier(  # Please use the NAME to proceed: value on a later line
        "",
        r"[ \t][^\n:]{0,80}:[ \t]{0,3}(?:(?:\r?\n|\\n)[ \t>]{0,8}){1,3}(?P<bare>[A-Za-z0-9]{16,64})(?=\s|\\|[\"']|\Z)",
        "no_told",
    ),
    _Carrier(  # ["NAME"]=> string(16) "value"
        "=",
        rf"=>(?:\s|\\n){{0,8}}string\([0-9]{{1,4}}\)[ ]{_QUOTED}",
    ),
    _Carrier(  # NAME │ value │
        "│┃║|",
        r"[ \t]{0,60}[│┃║|][ \t]{0,60}(?P<bare>[^\s│┃║|\"'`]{8,200})(?=[ \t]*[│┃║|])",
        "no_told",
    ),
    _Carrier(  # NAME value
        "",
        rf"(?:[ \t]{{1,40}}|\\{{1,7}}t)(?:[0-9][ ])?{_EMPHASIS}(?:{_QUOTE}|\()?(?P<bare>[^\s\"'`\\,;()<>]{{8,200}})",
        "no_mixed",
    ),
    _Carrier(  # NAME: user / value
        ":",
        r":[ \t]{1,4}[A-Za-z0-9._@-]{1,40}[ \t]{1,3}/[ \t]{1,4}(?P<bare>[^\s\"'`\\,;()<>]{8,200})",
        "no_mixed",
    ),
    _Carrier(  # NAME            value
        "",
        r"(?:[ \t]{2,60}|\t)(?P<bare>[^\s\"'`\\,;()<>|]{8,200})(?=[ \t]*(?:\r?\n|\Z|[\\\"']))",
        "no_told",
    ),
)


_AT: dict[str, tuple[_Carrier, ...]] = {
    sign: tuple(carrier for carrier in _CARRIERS if sign in carrier.begins)
    for sign in sorted(set("".join(carrier.begins for carrier in _CARRIERS)))
}
"""The carriers by the signs that they may begin with."""
_BEHIND_BLANKS = tuple(carrier for carrier in _CARRIERS if not carrier.begins)
_AT_BEHIND_BLANKS = {sign: (*carriers, *_BEHIND_BLANKS) for sign, carriers in _AT.items()}
_BLANKS = frozenset(" \t\r\n\\><=")


def find(text: str, at: int, looking: Looking, pattern: re.Pattern[str] = _NAME) -> Iterator[tuple[int, int, str]]:
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
    for carrier in _carriers(text[end : end + 60]):
        found = compiled(carrier.pattern).match(text, end, end + looking.reach) if _fits(carrier, whole) else None
        where = found and _secret(level, carrier, found, tight=_is_tight(found, whole))
        if where:
            yield where[0], _whole(text, *where), level.name.lower()
    if _CELL_ENDS.match(text, end):
        yield from in_table(text, first, looking.tables)


def _whole(text: str, start: int, end: int) -> int:
    """Return the end of a value that may be longer than what was checked, or continue on the next line."""
    rest = _REST.match(text, end) if end - start >= _LOOKED_AT else None
    return end_of(text, start, rest.end() if rest else end)


def _carriers(behind: str) -> tuple[_Carrier, ...]:
    """Return the carriers that may join a name to its value, given the text after the name."""
    sign = behind.lstrip(" \t")[:1]
    if behind[:1] in _BLANKS:
        return _AT_BEHIND_BLANKS.get(sign, _BEHIND_BLANKS)
    return _AT.get(sign, ())


def find_foreign(text: str, at: int, looking: Looking) -> Iterator[tuple[int, int, str]]:
    """Do the same for names in other languages, which may contain blanks."""
    return find(text, at, looking, _FOREIGN_NAME)


def _is_part(text: str, start: int, end: int) -> bool:
    """Whether an apparent name is part of something joined by colons: an ARN, a path of namespaces."""
    return text[start - 1 : start] == ":" == text[end : end + 1] and text[end + 1 : end + 2] > " "


_NO_SETTER = later(
    r"_?(?:get|fetch|find|load|read|has|is|check|validate|verify|hash|encode|decode|parse|delete|remove|require|ask)"
)


def _fits(carrier: _Carrier, name: str) -> bool:
    """Whether a carrier may follow a name written like this."""
    if carrier.option:
        return name.startswith("-")
    if carrier.shouted:
        return "_" in name and name.isupper()
    return not carrier.setter or _NO_SETTER.match(name) is None


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


def _is_tight(found: re.Match[str], name: str) -> bool:
    """Whether a value is assigned as in a shell or in settings: an upper-case name, `=` or `:`, nothing after it."""
    if not name.isupper():
        return False
    blank = found[0][1:2] in " \t"
    return (found[0][:1] == "=" and not blank) or (
        "_" in name and found[0][:1] in "=:" and bool(_ENDED.match(found.string, found.end()))
    )


def _secret(level: Strength, carrier: _Carrier, found: re.Match[str], *, tight: bool) -> tuple[int, int] | None:
    """Return the position of a value if it is a secret."""
    groups = found.groupdict()
    kind = "quoted" if groups.get("quoted") is not None else "bare"
    start, end = found.span(kind)
    if groups.get("quote") == "`" and (" " in found[kind] or found[kind].isalpha()):  # a command, or code in prose
        return None
    behind = "" if _TAG_ENDS.match(found.string, end) else found.string[end : end + 1]
    if carrier.unless:
        said = (found.string[start:end] + behind).rstrip("\"'`\\,; \t\r\n")
        if level is Strength.PASSWORD and is_passphrase(said.rstrip(".")):
            return start, start + len(said.rstrip("."))
        checks = (carrier.unless, "no_key") if level is Strength.KEY else (carrier.unless,)
        return None if is_example(said) or any(fails(check, said) for check in checks) else (start, end)
    if groups.get("longer") and tight:
        end = found.end("longer")
    value = Value(found.string[start:end], kind == "quoted", behind, tight, _ENDED.match(found.string, end) is not None)
    return (start, end) if is_secret(level, value) else None
