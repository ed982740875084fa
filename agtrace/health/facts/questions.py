"""Whether a message ends with a question that the model needs an answer to, in the most common languages.

Offers of more don't count, nor does text in code, in quotes or in an address.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path

from agtrace_schema.patterns import later

from agtrace.text.failing_lines import failing_lines_in as failures_in

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

_LOOKED_AT, _MOST_LISTED = 2, 60
"""The last sentences that are looked at, and how many items of lists may stand among them."""

_NOT_SAID = later(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`|<!--.*?(?:-->|\Z)|^[ \t]*>[^\n]*$|\bhttps?://[^\s)>\]]+",
    re.DOTALL | re.MULTILINE,
)
_SENTENCE_END = later(r"(?<=[.!?…:])[*_)\"'’”]*\s+(?=\S)|(?<=[。！？；])(?=\S)|(?<=؟)\s*(?=\S)")
_LISTED = later(
    r"\s*(?:[-*•+–] |\(?(?:\d{1,2}|[A-Za-z])[.):] |\||\*\*|#|(?:option|variante?|opción) \w+\b)|\s{2,}\S", re.I
)

_ASKED = later(
    r"[?？؟](?:\s*[(\[（][^)\]）\n]{1,100}[)\]）])?[^\w?？؟]*$"
    r"|(?:ますか|ですか|でしょうか|ませんか|ましょうか|吗|么|呢|할까요|까요|나요|습니까)\W*$"
    r"|^(?:please |just |so |then )*(?:tell|let) me (?:know )?(?:which|what|whether|how|where|when|who)\b"
    r"|\b(?:i|we) (?:(?:still |first )?need|can(?:'|’)?t (?:go on|continue|proceed))\b.{0,40}"
    r"\b(?:from you|your |you to|without|to know:)|^bitte sag|^请(?:您)?(?:告诉我|确认|选择|指定)",
    re.I,
)
"""Sentences that need an answer, with a question mark or without one."""

_OFFER = later(
    r"(?:anything|something|nothing) else|anything (?:more|further)|any (?:other )?(?:questions|thoughts|feedback)"
    r"|how (?:can|may|else can) i (?:help|assist)|(?:can|may|could) i help|need (?:any )?help\b|(?:happy|glad) to\b"
    r"|what(?:'s| is| should (?:i|we)(?: \w+)?| would you like(?: me)? to \w+)? (?:up )?next\b|feel free"
    r"|let me know (?:if|how it goes|what you think)|\bmake sense\W*$"
    r"|\b(?:isn|aren|doesn|don)['’]t (?:it|that|they)\W*$"
    r"|\b(?:also|as well|in addition|another|further|summary|overview)\b"
    r"|sonst noch|\bnoch\b|weitere fragen|autre chose|d'autres questions|algo más|alguna otra"
    r"|(?:他|ほか)に(?:何|も)|何か(?:ほか|他)|も(?:追加|書き|更新)|还有(?:什么|其他)|其他(?:需要|问题)|顺便",
    re.I,
)
"""Sentences that only offer more, or only ask whether all is well."""


def question_in(text: str) -> str | None:
    """Return the sentence, without code and quotes, with which a message ends by asking the human for something that
    the model needs before it can continue; None if it doesn't.
    """
    said = QUOTATION.sub("…", _NOT_SAID.sub(" ", text))
    plain = 0
    for sentence, listed in islice(_sentences(said), _MOST_LISTED):
        if _ASKED.search(sentence):
            return None if _OFFER.search(sentence) else sentence
        plain += not listed
        if plain == _LOOKED_AT:
            return None
    return None


def _sentences(said: str) -> Iterator[tuple[str, bool]]:
    """Yield the sentences of a text, from the last one back, and whether each is part of a list or a table."""
    for line in reversed(said.splitlines()):
        if any(letter.isalnum() for letter in line):
            listed = _LISTED.match(line) is not None
            for sentence in reversed(_SENTENCE_END.split(line)):
                if sentence.strip():
                    yield sentence.strip(), listed
