"""Whether a message ends with a question that the model needs an answer to, in the most common languages.

Offers after finished work don't count, nor does text in code, in quotes or in an address. The tables below list
phrases as patterns, a line or two for each language: English, German, French, Spanish, Japanese, Chinese.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from agtrace_schema.patterns import later

from agtrace.text.failing_lines import found as failures_in

# -- own words -------------------------------------------------------------------------------------
# What a human says in words of their own: without what they quote, paste, or report of a reviewer. Not their own are
# quotations, code and lines that a program writes; what a clause with a colon introduces as somebody else's ("evaluate
# this feedback from copilot: ..."), up to the end of the quotation that follows, or else of the text; and what a
# reviewer is reported to have said. Such a clause itself says nothing about the work. The words that tell are in
# `agtrace/data/corrections.toml`, by language.

QUOTATION = later(
    r"\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”|„[^“”\n]{1,400}[“”]|«[^»\n]{1,400}»|「[^」\n]{1,400}」|『[^』\n]{1,400}』"
    r"|(?<!\w)'[^'\n]{1,400}'(?!\w)|(?<!\w)‘[^’\n]{1,400}’(?!\w)"
)
"""A quotation within a line."""

_AROUND = later(
    r"\A\s*# (?:Files mentioned by the user|In app browser):[\s\S]*?## My request for \w+:|\[[Ii]mage[^\]\n]*\]"
    r"|\S*/attachments/\S+"
)
"""What an agent puts around a request, and stands for pictures and files."""

_BLOCK = later(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|\"\"\".*?(?:\"\"\"|\Z)|`[^`\n]+`|(?:^[ \t]*>[^\n]*(?:\n|\Z))+",
    re.DOTALL | re.MULTILINE,
)
_LEFT_OUT = "…"
"""Stands for what was quoted."""

_BY_A_PROGRAM = later(
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d\b|\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b[\]: ]"
    r"|\S+@\S+[^\n]{0,80}[%$#>] |(?: {4}|\t)\s*(?![-*•\d])\S|diff --git |@@ -\d"
    r"|Traceback \(most recent call last\)|\s+(?:at|File) \S"
)
"""How lines of logs, prompts of a shell, source code, differences and stacks of calls begin."""

_SENTENCE = r"[^\n.!?;。！？；]*"
_CLAUSE = r"[^\n.!?;。！？；,:，：]{0,200}"
_BEFORE_CLAUSE = r"(?:\A|(?<=[\n.!?;。！？；,:，：]))"


def own_words(text: str) -> str:
    """Return what of a text of a human is in their own words; `…` stands for what they quoted."""
    lines = QUOTATION.sub(_LEFT_OUT, _BLOCK.sub(_LEFT_OUT, _AROUND.sub(" ", text))).splitlines()
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


# -- questions ---------------------------------------------------------------------------------------

_MOST_PIECES = 60
"""The most sentences examined, from the last one back."""


def _any_of(*phrases: str) -> str:
    """Return a pattern for any of these phrases."""
    return "(?:" + "|".join(phrases) + ")"


_NOT_SAID = later(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`|<!--.*?(?:-->|\Z)|^[ \t]*>[^\n]*$|\bhttps?://[^\s)>\]]+",
    re.DOTALL | re.MULTILINE,
)
_SENTENCE_END = later(r"(?<=[.!?…:])[*_)\"'’”]*\s+(?=\S)|(?<=[。！？；])(?=\S)|(?<=؟)\s*(?=\S)")
_LISTED = later(
    r"\s*(?:[-*•+–] |\(?(?:\d{1,2}|[A-Za-z])[.):] |\||\*\*|#|(?:option|variante?|opción) \w+\b)|\s{2,}\S", re.I
)

_ASKED = later(r"[?？؟](?:\s*[(\[（][^)\]）\n]{1,100}[)\]）])?[^\w?？؟]*$")
_ASKED_WITHOUT_MARK = later(
    r"(?:ますか|ですか|でしょうか|ませんか|ましょうか|いいか|よいか|吗|么|呢|할까요|까요|나요|습니까)\W*$"
)

_WHICH = _any_of(
    "which", "what", "whether", "how", "where", "when", "who", "your (?:choice|preference|decision|answer)",
    "the (?:name|path|url|value|key)",
)  # fmt: skip
_TO_DO = _any_of(
    "confirm", "choose", "pick", "decide", "clarify", "specify", "advise", "provide", "answer", "reply with", "approve",
    "send me", "share", "paste", "tell me",
)  # fmt: skip
_ANSWER = "(?:answer|confirm|decision|decide|approv|go-ahead|reply|choice|input|ok\\b)"
_REQUEST = later(
    _any_of(
        rf"(?:please |just |so |then |and |could you |can you )*(?:tell|let) me (?:know )?{_WHICH}\b",
        rf".{{0,80}}\bplease {_TO_DO}\b",
        rf".{{0,60}}\b(?:waiting|wait) for (?:your|you to)\b.{{0,40}}{_ANSWER}",
        rf".{{0,60}}\b(?:i|we) (?:(?:still |first )?need|can(?:'|’)?t (?:go on|continue|proceed))\b.{{0,40}}"
        rf"\b(?:from you|your {_ANSWER}|you to|without)",
        r".{0,80}\bbitte (?:bestätig|entscheid|wähl|sag|nenn|gib|teil|schick|antwort)\w*",
        r"(?:bitte )?(?:sag|sagen sie|gib|teil|teilen sie) (?:mir|mir bitte|bitte)\b.{0,20}"
        r"(?:ob|welche\w*|wie|was|wo|wann)\b",
        r".{0,40}\b(?:dites|dis)-moi (?:quel|quelle|lequel|laquelle|comment|ce que|si je|où)\b",
        r".{0,60}\b(?:merci de|veuillez|peux-tu|pouvez-vous) (?:me )?(?:confirmer|préciser|choisir|indiquer)\b",
        r".{0,40}\b(?:dime|dígame|indícame|confírmame)\b(?! si (?:quieres|necesitas))",
        r".{0,40}\bpor favor,? (?:confirma|elige|indica|dime)\b",
        r".*(?:教えて|お知らせ|ご確認|選んで|ご指示|お選び|指定して)ください|.*待ちしています",
        r".*请(?:您)?(?:告诉我|确认|选择|指定|提供|决定|回复|告知)|.*等(?:待您的|你的?(?:确认|回复|决定))",
    ),
    re.I | re.S,
)
"""Sentences without a question mark that need an answer."""

_OFFER = later(
    _any_of(
        r"(?:anything|something) else|anything (?:more|further)|any (?:other )?(?:questions|thoughts|feedback)",
        r"how (?:can|may|else can) i (?:help|assist)|(?:can|may|could) i help|need (?:any )?help\b|(?:happy|glad) to\b",
        r"what(?:'s| is| should (?:i|we)(?: \w+)?| would you like(?: me)? to (?:do|work on|tackle|see))? (?:up )?"
        r"next\b",
        r"what (?:would|do|can) you (?:like|want|need)(?: me)? to (?:do\W*$|do (?:now|today|for you)|work|tackle"
        r"|focus|look|help|explore|investigate|search|learn|know|see|understand|build)",
        r"what would you like (?:the|our) next \w+ to|want (?:either|any|one) of (?:those|these|them)\b",
        r"what are you interested in|\binterested\W*$|feel free|^\W*let me know if\b",
        r"let me know (?:if (?:you|there|anything)|how it goes|what you think)",
        r"(?:does|did) (?:that|this|it) (?:help|answer|make sense|clarify)|(?:is|was) (?:that|this) (?:helpful|clear)",
        r"make sense\W*$|(?:would you like|do you want|want|care|curious) to (?:see|know|hear|learn|try)\b",
        r"(?:would you like|want) (?:\w+ ){0,2}(?:summary|overview|walkthrough|explanation|details|breakdown|recap)\b",
        r"sonst noch|noch (?:etwas|was|fragen)\b|weitere fragen|kann ich (?:dir|ihnen)? ?(?:noch|weiter)|melde dich",
        r"hilft (?:dir|ihnen)? ?das|sag (?:einfach )?bescheid, wenn|was (?:möchtest du|soll ich) als nächstes",
        r"autre chose|d'autres questions|puis-je (?:vous|t)'? ?aider|n'hésite|faites?-(?:le )?moi (?:le )?savoir si",
        r"algo más|alguna otra|otra cosa|más preguntas|te ayudo|puedo ayudar|avísame si|no dudes",
        r"(?:他|ほか)に(?:何|も|ご|は|必要)|何か(?:ほか|他)|お気軽に|お役に立て",
        r"还有(?:什么|其他|别的|问题)|还需要|其他(?:需要|问题|帮助)|别的(?:需要|问题)|需要(?:我)?(?:帮|其他)",
    ),
    re.I,
)
"""Sentences that only offer more, or only ask whether all is well."""

_LEAVE = later(
    _any_of(
        r"\b(?:should|shall|can|may|could) i\b",
        r"\bsoll(?:en)? (?:ich|wir)\b|\b(?:kann|darf) ich\b",
        r"\b(?:dois|puis)-je\b|\best-ce que je\b",
        r"\b(?:debo|puedo)\b",
        r"ますか|でしょうか|可以吗",
    ),
    re.I,
)
"""Asking for permission: an offer only if it is about something additional."""

_PROPOSAL = later(
    _any_of(
        r"\b(?:would you like|(?:do|did) you want|want|would you prefer) me to\b|\bwould it help\b",
        r"\b(?:möchtest du|willst du|möchten sie|wollen sie), dass ich\b",
        r"\b(?:voulez|souhaitez|veux|souhaites)-(?:vous|tu) que\b|\b(?:tu veux|vous voulez) que\b",
        r"\b(?:quieres|quiere|te gustaría|le gustaría|deseas|desea) que\b",
        r"ましょうか|(?:需要|要不要|想要|希望|要)(?:我|让我)",
    ),
    re.I,
)
"""Proposing to do something: also an offer if the work is finished."""

_IN_ADDITION = later(
    _any_of(
        r"\b(?:also|as well|additionally|in addition|while i'm at it|another|further)\b|\bmore\b(?! (?:than|or less))",
        r"\btoo\b(?! (?:large|big|long|many|much|old|slow))",
        r"\b(?:auch|außerdem|zusätzlich|weitere\w*)\b|\bnoch\b(?! (?:einmal|mal|immer|nicht))",
        r"\b(?:aussi|également|en plus)\b",
        r"\b(?:también|adem[aá]s)\b|\bque (?:le )?añada\b",
        r"ついでに|併せて|あわせて|さらに|加えて|(?:テスト|ドキュメント|README)も|も(?:追加|書き|作成|更新|対応)",
        r"顺便|另外|再(?:加|补|写|添)|也(?:一起|加|补|更新|写|添|帮)|同时也|额外",
    ),
    re.I,
)

_TO_GO_ON = later(
    _any_of(
        r"\b(?:proceed|continue|go ahead|go on|move forward|apply|start|begin|implement|which)\b",
        r"\b(?:delete|drop|overwrite|force|revert|roll back|roll out|deploy|release|publish)\b",
        r"\b(?:fortfahren|weitermachen|loslegen|anfangen|umsetzen|fortfahre|weitermache|lösche?n?|welche\w*)\b",
        r"\b(?:continuer?|procéder?|procède|commence|applique|supprime|quel(?:le)?)\b",
        r"\b(?:continúe|proceda|siga|empiece|aplique|borre|elimine|continuar|cuál)\b",
        r"続行|進めて|進め|開始|削除|適用|どちら",
        r"继续|开始|执行|删除|应用|哪",
    ),
    re.I,
)
"""Words of proposals that mean the work isn't finished, whatever was done so far."""

_DONE = "(?:done|fixed|complete|finished|merged|deployed|live|in place|working|green|ready)"
_DID = _any_of(
    "added", "fixed", "updated", "implemented", "created", "renamed", "removed", "written", "refactored", "migrated",
    "moved", "changed", "replaced", "cleaned", "merged", "pushed", "committed", "deployed", "documented",
)  # fmt: skip
_FINISHED = later(
    _any_of(
        r"\b(?:done|all set|finished|completed?|successfully|changes made|works now)\b",
        rf"\b(?:is|are) (?:now )?{_DONE}\b",
        r"\bthat's it\b|\beverything (?:works|passes|is)\b|\b(?:tests|checks|now) (?:now )?pass(?:es)?\b",
        rf"\b(?:i've|i have|i) (?:\w+ )?{_DID}\b|(?:^|[\n.!] ?){_DID}\b",
        r"\b(?:fertig|erledigt|abgeschlossen|behoben|läuft (?:jetzt|wieder)|habe ich)\b",
        r"\b(?:terminée?s?|c'est fait|corrigée?)\b",
        r"\b(?:listo|hecho|terminado|corregido|ya (?:funciona|está|pasa))\b",
        r"完了|しました|できました|直りました|通りました",
        r"完成|修复了|已(?:经)?(?:修|更|添|完|实|部|改|创|删)|通过了",
    ),
    re.I,
)

_RHETORICAL = later(
    _any_of(
        r"\bwho knows\W*$|\bwho would have (?:thought|guessed)\W*$|\bwhat could (?:possibly )?go wrong\W*$",
        r"\bwhat(?:'s| is) not to like\W*$|\bhow (?:cool|neat|nice|hard|great)\b",
        r"\b(?:why not|guess what|huh|eh)\W*$",
        r"\b(?:isn|aren|doesn|wasn|weren|don)['’]t (?:it|that|they|this)\W*$",
        r"\b(?:nicht wahr|wer weiß|n'est-ce pas|quién sabe|verdad)\W*$",
        r"だろうか\W*$|不是(?:吗|嘛)\W*$|谁知道",
    ),
    re.I,
)

_GOES_WITH = later(
    r"\W*"
    + _any_of(
        r"(?:please|just|either way|otherwise|until then|as soon as|after that|waiting|thanks|thank you|yes|no|or)\b",
        r"(?:once|when) (?:you|i|we)\b|then i\b|if (?:so|not|yes|no|you)\b|in (?:that case|the meantime)\b",
        r"i(?:'d| would|'ll|'m| will| am)? (?:recommend|suggest|lean|go with|prefer|wait|hold|pause|stop|not |proceed)",
        r"i(?:'ll| will)? (?:continue|start|need|can(?:'t|not))|my (?:recommendation|suggestion|preference|vote)\b",
        r"i(?:'ll| will| won't| will not|'m not|'ve) .{0,80}\b(?:until|till|before) (?:you|i (?:hear|know|have))\b",
        r"let me know|tell me|without (?:that|it|this|your)\b|both |the (?:first|second|former|latter)\b",
        r"(?:bitte|danke|sobald|danach|dann|falls|wenn|sonst|bis dahin|ohne|meine empfehlung)\b",
        r"ich (?:empfehle|würde|warte|kann)\b",
        r"(?:merci|dès que|ensuite|sinon|j'attends)\b|si (?:oui|non|tu|vous)\b",
        r"je (?:recommande|propose|suggère|préfère|peux|attends)\b",
        r"(?:gracias|en cuanto|yo|recomiendo|sugiero|espero|dime)\b|si (?:sí|no|quieres)\b",
        r"推奨|おすすめ|お返事|ご回答|よろしく|決まり|ご指示",
        r"我(?:建议|推荐|倾向|会|等)|建议|推荐|谢谢|如果|确认后|请",
    ),
    re.I,
)
"""Sentences that can follow a question and leave it open."""


class _Piece(NamedTuple):
    """A sentence of a message."""

    text: str
    listed: bool
    """Whether it is part of a list or a table."""
    ends_line: bool


def asks_to_go_on(text: str) -> bool:
    """Whether a message ends by asking the human for something that the model needs before it can continue."""
    return question_in(text) is not None


def question_in(text: str) -> str | None:
    """Return the sentence with which a message asks for that, without code and quotes; None if it doesn't."""
    said = QUOTATION.sub("…", _NOT_SAID.sub(" ", text))
    pieces = _pieces(said)
    for looked_at, piece in enumerate(pieces):
        if looked_at >= _MOST_PIECES:
            return None
        if _is_question(piece):
            if not _is_offer(piece.text, said) and not _RHETORICAL.search(piece.text):
                return piece.text
        elif piece.listed:
            continue
        elif _REQUEST.match(piece.text) and not _OFFER.search(piece.text):
            return piece.text
        elif not _GOES_WITH.match(piece.text) and not _OFFER.search(piece.text):
            return None
    return None


def _pieces(said: str) -> Iterator[_Piece]:
    """Yield the sentences of a text, from the last one back."""
    for line in reversed(said.splitlines()):
        if any(letter.isalnum() for letter in line):
            sentences = [sentence for sentence in _SENTENCE_END.split(line) if sentence.strip()]
            listed = _LISTED.match(line) is not None
            for number, sentence in enumerate(reversed(sentences)):
                yield _Piece(sentence.strip(), listed, number == 0)


def _is_question(piece: _Piece) -> bool:
    if piece.listed and not piece.ends_line:
        return False
    return _ASKED.search(piece.text) is not None or _ASKED_WITHOUT_MARK.search(piece.text) is not None


def _is_offer(question: str, said: str) -> bool:
    """Whether a question only offers more work: it says so, or the text says that the work is finished."""
    if _OFFER.search(question):
        return True
    proposal = _PROPOSAL.search(question)
    if (proposal or _LEAVE.search(question)) and _IN_ADDITION.search(question):
        return True
    if proposal is None or _TO_GO_ON.search(question):
        return False
    return _FINISHED.search(said[: said.rfind(question)]) is not None
