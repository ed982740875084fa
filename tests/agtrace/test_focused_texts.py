"""A question to a long text is answered with the lines it is about; the gaps between them are named and open."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.redact import redact
from msgspec.structs import replace

from agtrace.answers.service import Service
from agtrace.answers.telemetry.store import Request
from agtrace.settings.model import Pruner, ToolSettings
from agtrace.shaping import focusing
from agtrace.text.kept_texts import KeptTexts
from tests.agtrace.asking import Asker, ClaudeLog, call_in, claude_log, query, text_of
from tests.agtrace.terminal import agtrace_here, index_here
from tests.depth import depth

SESSION = "fb3cff44-13ae-41a6-a6df-f287e0552835"
QUESTION = "Which warning tells that the scheduler's connection pool was exhausted?"
WARNING = "warning: connection pool of the scheduler exhausted after 30 s, retrying with backoff"
LATER = "note: the exhausted connection pool of the scheduler is back after 45 s"
ERRORS = [f"error[E0308]: mismatched types in gauge_{line}: expected u32, found String" for line in (3000, 9000, 15000)]
TOKEN = "ghp_" + "1x9KqTz7Rw4mVb2NcY8sLd3Ph6Jf5Ga0Ue" + "Qo"
RESULT = 2
"""The event with the output of the first call."""

QUESTIONS = (
    "Which test fails, and with which assertion?",
    "Where is the configuration file read?",
    "Keep the lines that decide which timeout is used",
    "Why was the connection refused?",
    "哪个测试失败了？",
    "?",
)
GAP = re.compile(r"\((\d+) lines left out: (\d+)-(\d+)\)")


def build_log(size: int = depth(1_200_000, 2_000_000)) -> list[str]:
    """The lines of a build log of so many bytes, with three errors and a warning far from both ends."""
    chance, parts = random.Random(1), ["auth", "billing", "storage", "gauges", "render", "parser", "network", "cache"]
    lines: list[str] = []
    left = size
    while left > 0:
        one, other = chance.choice(parts), chance.choice(parts)
        line = f"[{len(lines):05}] Compiling {one}_{chance.randint(0, 999)} (/build/crates/{one}/src/{other}.rs)"
        lines.append(line)
        left -= len(line) + 1
    if len(lines) > 16_000:
        for place, error in zip((3000, 9000, 15000), ERRORS, strict=True):
            lines[place] = error
        lines[12_000], lines[12_006] = WARNING, LATER
    return lines


@pytest.fixture(scope="module")
def log() -> list[str]:
    return build_log()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, log: list[str]) -> Asker:
    """An index of a session with a build log of 2 MB, a short output and a second turn."""
    folder = tmp_path_factory.mktemp("built")
    session(folder, log)
    return Asker(folder / "data", folder)


def session(folder: Path, log: list[str]) -> ClaudeLog:
    written = claude_log(folder, SESSION).prompt("Build it.")
    written.call("Bash", {"command": "make"}, "\n".join(log), failed=True).say("Three crates don't compile.")
    return written.prompt("Again.").call("Bash", {"command": "make lint"}, "\n".join(log[:150])).say("That is well.")


def gaps(text: str) -> list[tuple[int, int]]:
    """The stretches of lines that a text names as left out."""
    found = [tuple(map(int, match.groups())) for line in text.split("\n") if (match := GAP.fullmatch(line))]
    assert all(count == last - first + 1 for count, first, last in found)
    return [(first, last) for _, first, last in found]


def shown_text(value: dict[str, Any]) -> str:
    data = value["data"]
    return data["text"] if "text" in data else text_of(data["payload"])


def filled(text: str, first: int, opened: Callable[[int, int], str]) -> str:
    """A focused text with what opening each gap gave in the gap's place."""
    lines, number = [], first
    for line in text.split("\n"):
        gap = GAP.fullmatch(line)
        if gap and int(gap[2]) == number:
            lines += opened(number, int(gap[3])).removesuffix("\n").split("\n")
            number = int(gap[3]) + 1
        else:
            lines.append(line)
            number += 1
    return "\n".join(lines)


def opener(asker: Asker, name: str, **arguments: Any) -> Callable[[int, int], str]:
    """Open lines as hints say, chunk by chunk."""

    def opened(first: int, last: int) -> str:
        span = {"start_line": first, "end_line": last, "max_bytes": 102_400}
        return "".join(shown_text(page) for page in asker.pages(name, **arguments, **span))

    return opened


# -- a build log of 2 MB ----------------------------------------------------------------------------


@pytest.mark.thorough
def test_two_megabytes_answer_a_question_in_two_to_four_kilobytes(built: Asker, log: list[str]) -> None:
    given = built.anything("get_event_details", session_id=SESSION, event_index=RESULT, context_focus_question=QUESTION)
    assert 2_048 <= len(given.text.encode()) <= 4_096
    lines = shown_text(given.value).split("\n")
    assert {WARNING, *ERRORS} <= set(lines)
    kept = [line for line in lines if not GAP.fullmatch(line)]
    told = {"attempted": True, "applied": True, "fallback": False}
    assert given.value["pruning"] == told | {"kept_lines": len(kept), "total_lines": len(log)}
    assert given.value["truncation"]["reason"] == "focus" and given.value["truncation"]["omitted_failures"] == 0
    assert given.value["data"]["failures"]["failing_lines"] == len(ERRORS)
    assert "chunk" not in given.value


def test_the_numbers_of_the_gaps_and_the_kept_lines_make_up_the_whole_log(built: Asker, log: list[str]) -> None:
    value = built.ask("get_event_details", session_id=SESSION, event_index=RESULT, context_focus_question=QUESTION)
    whole = filled(shown_text(value), 1, lambda first, last: "\n".join(log[first - 1 : last]))
    assert whole == "\n".join(log)
    first, last = min(gaps(shown_text(value)), key=lambda gap: gap[1] - gap[0])
    opened = built.ask(
        "get_event_details", session_id=SESSION, event_index=RESULT, start_line=first, end_line=last, max_bytes=102_400
    )
    lines = shown_text(opened).removesuffix("\n").split("\n")
    assert lines == log[first - 1 : last][:200]


@pytest.mark.parametrize("most", [2_048, 3_000, 20_000, 102_400])
def test_max_bytes_is_what_the_answer_may_take(built: Asker, most: int) -> None:
    arguments = {"session_id": SESSION, "event_index": RESULT, "context_focus_question": QUESTION, "max_bytes": most}
    given = built.anything("get_event_details", **arguments)
    assert len(given.text.encode()) <= most
    lost = len(set(ERRORS) - set(shown_text(given.value).split("\n")))
    assert given.value["truncation"]["omitted_failures"] == lost and not (lost and most > 2_048)
    assert given.value["pruning"]["applied"]


def test_within_a_span_of_lines_numbers_are_those_of_the_text(built: Asker, log: list[str]) -> None:
    span = {"start_line": 11_000, "end_line": 13_000}
    arguments = {"session_id": SESSION, "event_index": RESULT, "context_focus_question": QUESTION}
    value = built.ask("get_event_details", **arguments, **span)
    assert value["pruning"]["total_lines"] == 2_001
    assert WARNING in shown_text(value) and not set(ERRORS) & set(shown_text(value).split("\n"))
    whole = filled(shown_text(value), 11_000, lambda first, last: "\n".join(log[first - 1 : last]))
    assert whole == "\n".join(log[10_999:13_000])
    assert built.error("get_event_details", **arguments, start_line=99_999)["code"] == "invalid_range"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_artifact", {"ref": f"ax://event/{SESSION}/{RESULT}"}),
        ("read_artifact", {"ref": f"ax://session/{SESSION}"}),
        ("get_session_details", {"session_id": SESSION, "detail_level": "full"}),
    ],
)
def test_an_artifact_and_a_session_answer_as_an_event_does(built: Asker, name: str, arguments: dict[str, Any]) -> None:
    given = built.anything(name, **arguments, context_focus_question=QUESTION)
    assert len(given.text.encode()) <= 4_096 and given.value["pruning"]["applied"]
    assert {WARNING, *ERRORS} <= set(shown_text(given.value).split("\n"))
    opened, lines = call_in(given.value["hint"])
    assert opened == "read_artifact"
    assert (lines["start_line"], lines["end_line"]) == gaps(shown_text(given.value))[0]


@pytest.mark.thorough
def test_the_lines_of_a_turn_have_the_numbers_of_the_session(built: Asker) -> None:
    arguments = {"session_id": SESSION, "detail_level": "full", "turn_index": 1}
    value = built.ask("get_session_details", **arguments, context_focus_question="Which gauges are compiled?")
    assert value["pruning"]["applied"]
    opened = opener(built, "read_artifact", ref=f"ax://session/{SESSION}")
    first = call_in(value["hint"])[1]["start_line"]
    whole = filled(shown_text(value), first, opened)
    assert gaps(shown_text(value))[0][0] == first, "the heading of the request comes first and is left out"
    assert whole + "\n" == "".join(shown_text(page) for page in built.pages("get_session_details", **arguments))


def test_level_steps_quotes_what_the_question_is_about(built: Asker) -> None:
    arguments = {"session_id": SESSION, "detail_level": "steps"}
    value = built.ask("get_session_details", **arguments, context_focus_question=QUESTION)
    content = value["data"]["turns"][0]["steps"][0]["tools"][0]["result"]["content"]
    assert {WARNING, *ERRORS} <= set(content.split("\n")) and len(content) <= 500
    plain = built.ask("get_session_details", **arguments)
    assert WARNING not in plain["data"]["turns"][0]["steps"][0]["tools"][0]["result"]["content"]
    assert "pruning" not in plain and value["pruning"]["applied"]
    name, opened = call_in(value["hint"])
    assert (name, opened["event_index"]) == ("get_event_details", RESULT)
    assert (opened["start_line"], opened["end_line"]) == gaps(content)[0]


@pytest.mark.thorough
def test_telemetry_notes_that_an_answer_was_focused_and_not_the_question(built: Asker) -> None:
    noted: list[Request] = []

    class Notes:
        def record(self, request: Request) -> None:
            noted.append(request)

    answers = Service(built.settings, observers=[Notes()], log=lambda _: None)
    for question in (QUESTION, "zzqx?"):
        asked = {"session_id": SESSION, "event_index": RESULT, "context_focus_question": question}
        answers.ask("get_event_details", asked)
    assert [request.pruned for request in noted] == [True, False]
    assert "scheduler" not in repr(noted) and "zzqx" not in repr(noted)


# -- where there is nothing to leave out -----------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "question", "summary"),
    [
        ("A short text.", QUESTION, "saves too little"),
        ("\n".join(build_log(20_000)[:200]), "zzqx?", "no telling words"),
        (
            "--- a/tide.py\n+++ b/tide.py\n@@ -1,99 +1,99 @@\n" + "-gauge = 1\n+gauge = 2\n" * 400,
            "Which gauge?",
            "diff",
        ),
        ("gauge " * 9_000, "Which gauge?", "its lines are too long"),
    ],
    ids=["short", "foreign words", "diff", "one line"],
)
def test_the_ordinary_answer_says_why_it_is_that(tmp_path: Path, text: str, question: str, summary: str) -> None:
    claude_log(tmp_path, SESSION).prompt("Go.").call("Bash", {"command": "make"}, text)
    asker = Asker(tmp_path / "data", tmp_path)
    arguments = {"session_id": SESSION, "event_index": RESULT}
    value = asker.ask("get_event_details", **arguments, context_focus_question=question)
    pruning = value.pop("pruning")
    assert not pruning["applied"] and pruning["attempted"] and pruning["reason"] == "not_prunable"
    assert pruning["summary"] in (summary, "no telling words")
    plain = asker.ask("get_event_details", **arguments)
    assert shown_text(plain).startswith(shown_text(value)[:1_000])
    if "chunk" in value:
        following = asker.ask("get_event_details", **arguments, cursor=value["chunk"]["next_cursor"])
        assert following["chunk"]["chunk_index"] == 1


@pytest.mark.thorough
def test_a_text_of_more_than_four_megabytes_has_its_first_chunk(tmp_path: Path) -> None:
    claude_log(tmp_path, SESSION).prompt("Go.").call(
        "Bash", {"command": "make"}, f"a gauge of {'tides' * 40}\n" * 20_500
    )
    asker = Asker(tmp_path / "data", tmp_path)
    for name, arguments in (
        ("get_event_details", {"session_id": SESSION, "event_index": RESULT}),
        ("get_session_details", {"session_id": SESSION, "detail_level": "full"}),
        ("read_artifact", {"ref": f"ax://session/{SESSION}"}),
    ):
        value = asker.ask(name, **arguments, context_focus_question="Which gauge?")
        assert value["pruning"] == {
            "attempted": False, "applied": False, "fallback": False, "reason": "input_too_large",
            "summary": "more than 4,194,304 characters",
        }  # fmt: skip
        assert value["chunk"]["chunk_index"] == 0


@pytest.mark.parametrize("off", [{"enabled": False}, {"endpoint": "none"}])
def test_settings_that_switch_pruning_off_hold_for_traces_too(built: Asker, off: dict[str, Any]) -> None:
    settings = replace(built.settings, pruner=Pruner(**off))
    for arguments in (
        {"detail_level": "full"},
        {"detail_level": "steps"},
    ):
        asked = {"session_id": SESSION, **arguments, "context_focus_question": QUESTION}
        value = Service(settings).ask("get_session_details", asked).value
        told = {"attempted": False, "applied": False, "fallback": False, "reason": "disabled_or_unconfigured"}
        assert value["pruning"] == told


def test_a_tool_without_protection_prunes_nothing(built: Asker) -> None:
    tools = {"get_event_details": ToolSettings(enabled=False)}
    answers = Service(replace(built.settings, tools=tools))
    asked = {"session_id": SESSION, "event_index": RESULT, "context_focus_question": QUESTION}
    assert answers.ask("get_event_details", asked).value["pruning"]["reason"] == "disabled_or_unconfigured"
    ref = f"ax://event/{SESSION}/{RESULT}"
    assert answers.ask("read_artifact", {"ref": ref, "context_focus_question": QUESTION}).value["pruning"]["applied"]


def test_a_service_that_the_settings_name_is_never_asked_about_traces(built: Asker) -> None:
    """Nothing listens there: asking would fail."""
    settings = replace(built.settings, pruner=Pruner(endpoint="http://127.0.0.1:9/prune"))
    asked = {"session_id": SESSION, "event_index": RESULT, "context_focus_question": QUESTION}
    assert Service(settings).ask("get_event_details", asked).value["pruning"]["applied"]


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"cursor": "x"}, "leave out cursor"), ({"mode": "minimal"}, "leave out mode"),
        ({"around": 3}, "leave out context_focus_question"),
        ({"context_focus_question": ""}, "should have at least 1 character"),
        ({"context_focus_question": "x" * 2_001}, "should have at most 2000 characters"),
    ],
)  # fmt: skip
def test_what_a_question_cannot_be_combined_with_is_named(built: Asker, more: dict[str, Any], named: str) -> None:
    arguments = {"session_id": SESSION, "event_index": RESULT, "context_focus_question": QUESTION, **more}
    error = built.error("get_event_details", **arguments)
    assert error["code"] == "invalid_parameter" and named in error["message"]


# -- failures, secrets, scripts ---------------------------------------------------------------------


@pytest.mark.thorough
def test_every_failing_line_is_in_or_counted(tmp_path: Path) -> None:
    def answered(failing: int) -> dict[str, Any]:
        folder = tmp_path / str(failing)
        lines = build_log(1_600_000)
        for number in range(failing):
            lines[number * 3 + 100] = f"FAILED tests/test_tide.py::test_{number:04} - assert 3 == {number}"
        claude_log(folder, SESSION).prompt("Go.").call("Bash", {"command": "make"}, "\n".join(lines))
        asked = {"session_id": SESSION, "event_index": RESULT, "context_focus_question": QUESTION}
        return Asker(folder / "data", folder).ask("get_event_details", **asked)

    few, many = answered(50), answered(1_000)
    assert shown_text(few).count("FAILED tests/") == 50 and few["truncation"]["omitted_failures"] == 0
    shown = shown_text(many).count("FAILED tests/")
    assert shown > 50 and many["truncation"]["omitted_failures"] == 1_003 - shown - shown_text(many).count("error[")
    assert many["data"]["failures"]["failed_tests"] == 1_000
    assert call_in(many["hint"])[1]["mode"] == "standard"


@pytest.mark.thorough
def test_secrets_are_masked_before_lines_are_chosen_and_cut(tmp_path: Path) -> None:
    lines = build_log(1_500_000)
    lines[5_000] = f"pushing the image of the harbour with the token {TOKEN}"
    claude_log(tmp_path, SESSION).prompt("Go.").call("Bash", {"command": "make"}, "\n".join(lines))
    asker = Asker(tmp_path / "data", tmp_path)
    for name, arguments in (
        ("get_event_details", {"session_id": SESSION, "event_index": RESULT}),
        ("get_session_details", {"session_id": SESSION, "detail_level": "full"}),
        ("get_session_details", {"session_id": SESSION, "detail_level": "steps"}),
        ("read_artifact", {"ref": f"ax://session/{SESSION}"}),
    ):
        question = f"Which token {TOKEN} pushed the image of the harbour?"
        given = asker.anything(name, **arguments, context_focus_question=question)
        assert "pushing the image of the harbour" in given.text and TOKEN[:12] not in given.text


def test_a_question_in_a_script_without_spaces_finds_its_line_within_the_bytes(tmp_path: Path) -> None:
    chance = random.Random(2)
    lines = ["".join(chance.choices("山川草木花鳥風月日星雲雨雪空海", k=30)) for _ in range(8_000)]
    lines[4_321] = "警告：tide_pool 连接池已耗尽，正在重试"
    claude_log(tmp_path, SESSION).prompt("Go.").call("Bash", {"command": "make"}, "\n".join(lines))
    asker = Asker(tmp_path / "data", tmp_path)
    for most in (2_048, None):
        asked = {"session_id": SESSION, "event_index": RESULT, "context_focus_question": "tide_pool 什么时候耗尽？"}
        value = asker.ask("get_event_details", **asked, **({"max_bytes": most} if most else {}))
        assert value["pruning"]["applied"] and lines[4_321] in shown_text(value)
        assert filled(shown_text(value), 1, lambda first, last: "\n".join(lines[first - 1 : last])) == "\n".join(lines)


# -- real logs -------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_within_its_bytes_every_long_event_answers_with_kept_lines_and_gaps_that_are_its_text(
    everything: Asker,
) -> None:
    applied = 0
    long = "SELECT s.uid, e.event_index FROM event e JOIN session s ON s.id = e.session_id WHERE e.length > 6000"
    for place, (uid, index) in enumerate(query(everything, f"{long} ORDER BY 1, 2")[:: depth(3, 1)]):
        asked = {"session_id": uid, "event_index": index}
        question = QUESTIONS[place % len(QUESTIONS)]
        most = (None, None, 2_048, 5_000)[place % 4]
        more = {} if most is None else {"max_bytes": most}
        value = everything.ask("get_event_details", **asked, context_focus_question=question, **more)
        assert "pruning" in value
        if not value["pruning"]["applied"]:
            continue
        applied += 1
        if place % 10 or "paths" in value["truncation"]:
            continue
        text = shown_text(value)
        opened = opener(everything, "get_event_details", **asked)
        assert filled(text, 1, opened) == opened(1, value["pruning"]["total_lines"]).removesuffix("\n")
    assert applied > 15


@pytest.mark.thorough
def test_a_text_that_takes_too_long_is_given_as_without_a_question(
    built: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(focusing, "_SECONDS", 0.0)
    asked = {"session_id": SESSION, "event_index": RESULT, "context_focus_question": QUESTION}
    value = built.ask("get_event_details", **asked)
    assert value["pruning"] == {
        "attempted": True, "applied": False, "fallback": True, "error": "timeout",
        "summary": "the text takes too long",
    }  # fmt: skip
    assert "chunk" in value


# -- outputs that `agtrace prune` kept -------------------------------------------------------------


def test_a_kept_output_is_read_by_its_reference_like_any_text(built: Asker, log: list[str]) -> None:
    id = KeptTexts(built.settings.kept_outputs).keep(redact("\n".join(log[:16_000])))
    ref = f"ax://exec/{id}"
    value = built.ask("read_artifact", ref=ref, context_focus_question=QUESTION)
    assert {WARNING, *ERRORS} <= set(shown_text(value).split("\n")) and value["untrusted"]
    assert value["artifact_ref"] == ref and value["summary"] == f"Output {id}: 16,000 lines"
    first, last = gaps(shown_text(value))[0]
    opened = built.ask("read_artifact", ref=ref, start_line=first, end_line=last)
    assert shown_text(opened).startswith(log[first - 1])
    assert built.ask("read_artifact", ref=ref)["chunk"]["total_lines"] == 16_000
    assert ERRORS[0] in shown_text(built.ask("read_artifact", ref=ref, mode="minimal"))


@pytest.mark.parametrize("id", ["0123456789abcdef", "../../index", "0123", "0123456789ABCDEF"])
def test_an_output_that_is_gone_or_unknown_is_an_unknown_reference(built: Asker, id: str) -> None:
    error = built.error("read_artifact", ref=f"ax://exec/{id}")
    assert error["code"] == "invalid_artifact_ref" and "kept for a day" in error["message"]


# -- the command line ------------------------------------------------------------------------------


@pytest.fixture
def at_hand(tmp_path: Path, log: list[str]) -> None:
    """The same session in the index that commands use, with less than its first half of the log."""
    session(tmp_path / "logs", [*log[:1_500], *log[11_900:12_100], *ERRORS])
    index_here(tmp_path / "logs")


@pytest.mark.usefixtures("at_hand")
def test_commands_print_the_lines_of_a_question_and_the_command_that_opens_a_gap() -> None:
    for arguments in (("show", f"{SESSION}:{RESULT}"), ("show", f"ax://event/{SESSION}/{RESULT}"), ("show", SESSION)):
        said = agtrace_here(*arguments, "--focus", QUESTION)
        assert said.code == 0, said
        lines = said.out.split("\n")
        assert {WARNING, *ERRORS} <= set(lines) and len(lines) < 80
        assert re.search(r"of 1,[78]\d\d lines: those that the question is about", said.out)
        first, last = gaps(said.out)[0]
        assert f"--lines {first if first == last else f'{first}:{last}'}" in said.out
    said = agtrace_here("show", SESSION, "--level", "steps", "--focus", QUESTION)
    assert WARNING in said.out and said.code == 0
    as_json = agtrace_here("show", f"{SESSION}:{RESULT}", "--focus", QUESTION, "--json").json()
    assert as_json["pruning"]["applied"]


@pytest.mark.usefixtures("at_hand")
def test_a_command_says_why_a_text_is_whole_and_goes_on_to_its_end() -> None:
    said = agtrace_here("show", f"{SESSION}:{RESULT}", "--focus", "zzqx?")
    assert "not reduced to what the question is about: its words don't tell the lines apart" in said.out
    assert said.out.count("Compiling") > 1_600
    for arguments in (["--level", "turns"], ["--sections", "failures"]):
        assert agtrace_here("show", SESSION, "--focus", QUESTION, *arguments).code != 0
    assert agtrace_here("show", f"{SESSION}:{RESULT}", "--focus", "").code == 2
