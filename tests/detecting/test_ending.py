"""How a session ended, and whether its last message asks for something."""

from __future__ import annotations

import time

import pytest
from agtrace_schema.events import Outcome, UserKind

from agtrace.health.facts.ending import ending_of
from agtrace.health.facts.questions import question_in
from tests.detecting.histories import Telling


def _ending(told: Telling) -> str:
    return ending_of(told.history).ending


ASKS = [
    "Which database should I use, Postgres or SQLite?",
    "The table is not empty. Do you want me to drop it? (yes/no)",
    "I found two ways.\n\nWhich one do you prefer?\n\n1. Rewrite the parser.\n2. Patch the lexer.",
    "Should I go on with the migration? I'll wait for your answer.",
    "Before I go on I need to know:\n- Which region?\n- Which account?",
    "Please tell me which of the two branches is the right one.",
    "I need your confirmation before I force-push.",
    "The config uses `a?b`. Which key do you mean?",
    "I've updated the schema. Should I run the migration against production?",
    "**Shall I proceed with this plan?**",
    "Would you like me to go ahead with the rewrite?\n```sql\nDROP TABLE t;\n```",
    "What should the default timeout be?",
    "Do you want a REST or a GraphQL interface?",
    "Could you paste the output of `kubectl describe pod`?",
    "Two questions:\n1. Should the cache be per user?\n2. What TTL do you want?\n\nI'll start as soon as I know.",
    "Soll ich die alte Tabelle löschen?",
    "Bitte sag mir, welche Variante du willst.",
    "Voulez-vous que je supprime l'ancienne table ?",
    "¿Quieres que borre la tabla antigua?",
    "古いテーブルを削除してもよろしいでしょうか。",
    "どちらの方法で進めますか？",
    "你想用哪个数据库？",
    "请告诉我应该用哪个分支。",
    "هل تريد أن أتابع؟",
    "The fix is done and all tests pass. Do you want me to deploy it to production?",
]

DOES_NOT_ASK = [
    "All tests pass.",
    "Done. Anything else?",
    "All tests pass. Would you like me to also add a benchmark?",
    "Let me know if you want changes.",
    "Fixed. Let me know how it goes!",
    "All 41 tests pass. Would you like a short summary of the changes?",
    "What would you like to do next?",
    'The dialog now says "Are you sure?"',
    "The button reads „Wirklich löschen?“",
    "Why did it fail? The lock was stale. I removed it.",
    "The pattern is now `https?://.*?`",
    "It is served at https://example.com/search?q=1",
    "> Should I go on?\n\nThat was your question; the guide has the answer.",
    "It prints:\n```\nContinue? [y/N]\n```",
    "The cache was cold. Nice, isn't it?",
    "Fertig. Soll ich noch Tests schreiben?",
    "Erledigt! Kann ich sonst noch etwas tun?",
    "C'est fait. Autre chose ?",
    "Listo. ¿Algo más?",
    "修正しました。他に何かありますか？",
    "テストは通りました。ドキュメントも更新しましょうか？",
    "已完成。还有什么需要帮忙的吗？",
    "修复了。需要我顺便更新文档吗？",
]


@pytest.mark.parametrize("text", ASKS)
def test_a_message_that_needs_an_answer_asks(text: str) -> None:
    assert question_in(text)


@pytest.mark.parametrize("text", DOES_NOT_ASK)
def test_an_offer_a_quote_or_a_statement_does_not_ask(text: str) -> None:
    assert not question_in(text)


def test_a_message_of_any_signs_is_looked_at_in_no_time() -> None:
    begun = time.process_time()
    for piece in ("?(?)", "吗" + "." * 7_999, "(", "“", "`", "? "):
        question_in((piece * 8_000)[:8_000] + "a")
    assert time.process_time() - begun < 4  # quadratic would be minutes


def test_the_model_had_the_last_word_whatever_the_harness_wrote_behind_it() -> None:
    told = Telling().human().run("make").say("It builds.").usage(900).notice("system/turn_duration", "{}")
    told.inject("A hook.").inject("<command-name>/cost</command-name>", UserKind.COMMAND)
    told.inject("Earlier: ...", UserKind.COMPACTION_SUMMARY).notice("summary", "A title")
    told.say("No response requested.")
    assert _ending(told) == "finished"


@pytest.mark.parametrize("goodbye", ["exit", "/quit", " Exit\n"])
def test_who_says_goodbye_asks_for_nothing(goodbye: str) -> None:
    told = Telling("codex").human().run("make").say("It builds.").human(goodbye)
    assert _ending(told) == "finished"
    stopped = told.inject("<turn_aborted>", UserKind.INTERRUPTION).notice("turn_aborted", "interrupted")
    assert _ending(stopped) == "finished"
    assert _ending(Telling("codex").human().run("make").say("It builds.").human("exit the loop early")) == "abandoned"


def test_a_failure_that_was_mended_is_no_error_left() -> None:
    told = Telling().human().run("make", "main.c:1:1: error: unknown type name 'foo'", code=2)
    assert _ending(told.run("make").say("It builds.")) == "finished"


def test_politeness_is_not_success() -> None:
    told = Telling().human().run("make", "Exit code 2\nmain.c:1:1: error: unknown type name 'foo'", code=2)
    told.say("Sorry about that!").human("Thanks anyway.").say("You're welcome.")
    ending = ending_of(told.history)
    assert ending.ending == "error_left"
    assert "unknown type name" in ending.reason
    assert _ending(told.human().run("make").say("It builds.")) == "finished"


def test_a_search_without_a_match_is_no_failure_at_the_end() -> None:
    told = Telling().human().run("make").run("grep -r TODO src", "Exit code 1", code=1)
    assert _ending(told.say("Nothing is left to do.")) == "finished"


def test_part_of_the_last_response_that_went_well_is_no_failure_at_the_end() -> None:
    told = Telling().human().run("make a").run("make b", "Exit code 2\nerror: no b here", code=2, together=True)
    assert _ending(told.say("One of two.")) == "finished"


def test_an_error_of_the_api_at_the_end_is_an_error() -> None:
    told = Telling().human().run("make").say("Next.").notice("api_error", "API Error: 529 overloaded")
    assert _ending(told) == "error_left"
    assert _ending(told.say("There it is.")) == "finished"
    assert _ending(Telling("codex").human().notice("error", "stream disconnected")) == "error_left"


def test_a_call_without_a_result_is_left() -> None:
    told = Telling().human().call("Bash", {"command": "make"}, answered=False, outcome=Outcome.UNKNOWN)
    told.call("Read", {"file_path": "a"}, "text", together=True)
    assert _ending(told) == "tool_left"
    assert _ending(told.say("Never mind.")) == "finished"


def test_a_question_by_a_call_is_a_question() -> None:
    told = Telling().human().call("AskUserQuestion", {"questions": []}, answered=False, outcome=Outcome.UNKNOWN)
    assert _ending(told) == "question_left"


@pytest.mark.parametrize("outcome", [Outcome.REJECTED, Outcome.INTERRUPTED])
def test_a_refused_or_stopped_execution_is_an_interruption(outcome: Outcome) -> None:
    told = Telling().human().run("make", outcome=outcome)
    assert _ending(told) == "interrupted"
    assert _ending(told.say("Then not.")) == "finished"


def test_a_failure_after_which_the_human_refused_the_next_try_is_an_interruption() -> None:
    told = Telling().human().run("make", "error: no rule", code=2)
    assert _ending(told) == "error_left"
    assert _ending(told.run("make -k", "The user doesn't want to proceed", outcome=Outcome.REJECTED)) == "interrupted"
    assert _ending(told.say("I leave it as it is.")) == "error_left"


def test_what_could_not_be_stopped_as_it_had_ended_is_no_failure_at_the_end() -> None:
    told = Telling().human().run("make").call("KillShell", {"shell_id": "1"}, "No shell 1", outcome=Outcome.FAILED)
    assert _ending(told.say("It builds.")) == "finished"


def test_a_log_that_ends_within_a_call_says_which() -> None:
    told = Telling().human().call("Bash", {"command": "git commit -m ebb"}, answered=False, outcome=Outcome.UNKNOWN)
    assert ending_of(told.history).reason == "the log ends at Bash `git commit -m ebb`, without its result"


def test_a_session_ends_where_the_human_stopped_the_model() -> None:
    interruption = "[Request interrupted by user]", UserKind.INTERRUPTION
    assert _ending(Telling().human().say().inject(*interruption)) == "interrupted"
    assert _ending(Telling("codex").human().notice("turn_aborted", "interrupted")) == "interrupted"
    assert _ending(Telling("gemini").human().notice("info", "Request cancelled.")) == "interrupted"
    assert _ending(Telling().human().say().inject(*interruption).human("Do this instead.")) == "abandoned"


def test_a_request_without_an_answer_is_abandoned() -> None:
    assert _ending(Telling().human().say().human("And now?")) == "abandoned"


def test_nothing_known_is_said_to_be_unknown() -> None:
    assert _ending(Telling()) == "unknown"
    assert _ending(Telling().human().run("make")) == "unknown"
    growing = Telling().human().call("Bash", {"command": "make"}, answered=False, outcome=Outcome.UNKNOWN).history
    growing.at_work = True
    assert ending_of(growing).ending == "unknown"
