"""Findings about what the model had set itself to do."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agtrace_schema.patterns import later

from agtrace.health.detectors.ending import ending_of
from agtrace.health.facts.actions import asks_human, command_of, only_reads
from agtrace.health.facts.changes import writes_by_shell
from agtrace.health.facts.labels import quoted
from agtrace.health.facts.todos import keeps_list, ticked_off, todos
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import Call, History
from agtrace.text.numbers import counted

_AGAIN = "(?:re-?|manually |fully |finally )?"
_TESTS = r"tests?\b(?! (?:accounts?|data|doubles?|fixtures?|helpers?|users?)\b)"
_CHECKING = later(
    "|".join(
        (
            _AGAIN + r"(?:testing|verify)\b",
            _AGAIN + _TESTS,
            _AGAIN + r"check\b(?! (?:box|constraint|list|out)| in\b(?!.*\b(?:app|browser)\b))",
            _AGAIN + r"validate\b(?! (?:(?:all|the|user) )*(?:arguments|e-?mails?|inputs?|requests?|uploads?)\b)",
            r"confirm\b(?! (?:button|dialog|modal|prompt|screen)\b)",
            r"try\b(?!\W{0,3}(?:catch|except|finally)\b)",
            r"(?:end-to-end|e2e|final|manual|regression|smoke|visual) (?:tests?|testing|checks?|verification)\b",
            r"(?:re-?)?run\b.{0,60}\b(?:tests?|suite|specs|pytest|lint\w*|type[- ]?check\w*|checks)\b(?! server)",
            r"(?:build|compile|format) (?:and|&) .{0,40}\b(?:tests?|lint|check)\b|lint\b|type-?check\b",
            r"(?:ensure|make sure)\b.{0,60}\bpass(?:es)?\b",
            r".{0,60}\b(?:testen|überprüfen|tests? laufen lassen)\W*\Z",
            r"(?:vérifier|tester|valider|(?:re)?lancer les tests|exécuter les tests)\b",
            r"(?:verificar|comprobar|probar|(?:ejecutar|correr|pasar) (?:las |los )?(?:pruebas|tests))\b",
            r".{0,60}(?:テスト|検証|動作確認)を?(?:実行|行う|する)|.{0,60}を確認(?:する)?\W*\Z",
            r"(?:运行|执行|跑).{0,20}测试|(?:测试|检查|验证|确认)(?!框|数据|用例)",
        )
    ),
    re.IGNORECASE,
)
"""Things to do that check the work: in English, German, French, Spanish, Japanese, Chinese."""


_TESTING = later(
    rf"{_AGAIN}(?:testing\b|{_TESTS})"
    r"|(?:end-to-end|e2e|final|manual|regression|smoke) (?:tests?|testing)\b"
    r"|(?:re-?)?run\b.{0,60}\b(?:tests?|suite|specs)\b",
    re.IGNORECASE,
)
"""Those of them that can't be done by reading."""

_SERVING = later(
    r"\b(?:npm|pnpm|yarn|bun)(?: run)? (?:dev|start|serve|preview)\b|\bvite\b|\bhttp\.server\b|\bserve\b", re.IGNORECASE
)
"""Commands that only start a server."""


@detector(
    "Outcome",
    "The model had the last word although a test or check on its own list was still open, and it ran nothing that "
    "could be one after it last changed that list; or it ticked off a test without having run anything that could be "
    "one since it last changed the list; starting a server doesn't count.",
)
def find_open_checks(history: History) -> Iterator[Finding]:
    """Find checks that the model had set itself and left out."""
    left = todos(history)
    checks = [what for what in left.open if _CHECKING.match(what)] if left else []
    is_left = left is not None and bool(checks) and ending_of(history).ending == "finished"
    if (
        left is not None
        and is_left
        and (len(left.open) < left.of or _changed(history))
        and not _runs_anything(history, left.event_index, None)
    ):
        yield Finding(
            severity="Warning",
            message=f"The model finished with {len(left.open)} of {left.of} items on its own list still open, "
            f"among them the check {quoted(checks[0])}",
            count=len(checks),
            events=(left.event_index,),
        )
    ticked = [one for one in ticked_off(history) if _TESTING.match(one.text)]
    ticked = [one for one in ticked if not _runs_anything(history, one.since, one.event_index)]
    if ticked:
        yield Finding(
            severity="Warning",
            message=f"The model ticked off {counted(len(ticked), 'test')} on its own list without running anything "
            f"that could be a test: {quoted(ticked[0].text)}",
            count=len(ticked),
            events=evidence([one.event_index for one in ticked]),
        )


def _changed(history: History) -> bool:
    return any(call.writes or writes_by_shell(call) for call in history.calls)


def _runs_anything(history: History, after: int, before: int | None) -> bool:
    """Whether something was run between two events that may have been a check."""
    between = (
        call for call in history.calls if call.event_index > after and (before is None or call.event_index < before)
    )
    return any(map(_may_check, between))


def _may_check(call: Call) -> bool:
    command = command_of(call)
    if command is not None:
        return not only_reads(call) and _SERVING.search(command) is None
    return not (only_reads(call) or asks_human(call) or keeps_list(call) or call.writes)
