"""Long texts in the tools: ranges of lines, digests, failures shown with the first chunk, references."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agtrace.asking import Asker, call_in, claude_log, text_of
from tests.conftest import SAMPLES, copy_index
from tests.depth import depth

ONE = "aaaaaaaa-0000-4000-8000-000000000001"
TOKEN = "ghp_" + "abcDEF0123456789ghij" * 2
NAMES = [f"tests/test_tide_{number // 50}.py::test_case_{number:04}" for number in range(3, 1_000, 17)][:59]
NAMES += ["tests/test_tide_19.py::test_last"]


def pytest_output() -> str:
    """What pytest -v prints of 1,000 cases, 60 of which fail."""
    passed = [f"tests/test_tide_{n // 50}.py::test_case_{n:04}" for n in range(1_000)]
    printed = [
        f"{name} {'FAILED' if name in NAMES else 'PASSED'}   [{n // 10:3}%]" for n, name in enumerate(passed[:-1])
    ]
    printed += [f"{NAMES[-1]} FAILED   [100%]", "=============== FAILURES ==============="]
    for name in NAMES:
        printed += [f"___ {name.split('::')[1]} ___", "", "    def test():", ">       assert tide() == 4"]
        printed += ["E       assert 3 == 4", "", f"{name.split('::')[0]}:12: AssertionError"]
    printed += [f"FAILED {name} - assert 3 == 4" for name in NAMES]
    return "\n".join([*printed, "======== 60 failed, 940 passed in 3.21s ========", ""])


HIDDEN = "\n".join(
    "FAILED tests/test_tide.py::test_ebb - assert 3 == 4" if n == 9_000 else f"line {n}" for n in range(1, 10_001)
)
ODD = "潮汐表 " * 900 + "\n🌊 e\u0301\r\n\n" + f"key {TOKEN} end\n" + "x" * 30_000 + "\n\x1b[31mred\n" * 300 + "last"
RUN, MANY, WIDE, STRANGE, SHORT, CALL, EMPTY = 2, 4, 6, 8, 10, 11, 12


@pytest.fixture(scope="module")
def asker(indexed_samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Asker:
    """An index of one session with large outputs, and of the samples."""
    folder = tmp_path_factory.mktemp("texts")
    copy_index(indexed_samples, folder / "index" / "index.sqlite3")
    log = claude_log(folder / "logs", ONE)
    log.prompt("go").call("Bash", {"command": "pytest -v"}, pytest_output(), failed=True)
    log.call("Bash", {"command": "make"}, HIDDEN)
    log.call("Read", {"file_path": "wide.txt"}, "x" * 300_000 + "\nbehind")
    log.call("Bash", {"command": "odd"}, ODD)
    log.call("Bash", {"command": "true"}, "潮" * 3_150)
    log.call("Write", {"file_path": "tide.txt", "content": "tide\n" * 4_000}, "")
    for tool in range(14):
        for _number in range(6):
            log.call(f"Tool{tool}", {"harbour": tool}, f"error: no harbour at {chr(97 + tool) * 3}", failed=True)
            log.say("again")
    log.say("潮汐\n" * 5_000)
    return Asker(folder / "index", folder / "logs", SAMPLES)


@pytest.fixture(scope="module")
def whole(asker: Asker) -> dict[int, str]:
    """The canonical text of some events."""
    return {
        index: asker.body(ONE, index, max_bytes=102_400) for index in (RUN, MANY, WIDE, STRANGE, SHORT, CALL, EMPTY)
    }


def lines(text: str, first: int, last: int) -> str:
    """These lines of a text, with their newlines."""
    pieces = [f"{line}\n" for line in text.split("\n")]
    pieces[-1] = pieces[-1][:-1]
    return "".join(pieces[first - 1 : last])


def count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def read(asker: Asker, **arguments: Any) -> str:
    """A text that read_artifact gives, its chunks joined."""
    return "".join(page["data"]["text"] for page in asker.pages("read_artifact", **arguments))


# -- ranges --------------------------------------------------------------------------------------


@settings(max_examples=depth(6, 40), deadline=None)
@given(
    st.data(),
    st.sampled_from([RUN, MANY, WIDE, STRANGE, SHORT, CALL, EMPTY]),
    st.sampled_from([2_048, 10_240, 102_400]),
)
def test_the_chunks_of_a_range_join_to_exactly_these_lines(
    asker: Asker, whole: dict[int, str], data: st.DataObject, index: int, most: int
) -> None:
    text = whole[index]
    first = data.draw(st.integers(1, count(text)))
    last = data.draw(st.integers(first, min(count(text), first + 900)))
    most = 102_400 if index == WIDE else most  # one long line
    pages = list(
        asker.pages(
            "get_event_details", session_id=ONE, event_index=index, start_line=first, end_line=last, max_bytes=most
        )
    )
    assert "".join(text_of(page["data"]["payload"]) for page in pages) == lines(text, first, last)
    chunks = [page["chunk"] for page in pages]
    assert (chunks[0]["start_line"], chunks[-1]["end_line"]) == (first, last)
    assert {(chunk["total_lines"], chunk["total_chunks"]) for chunk in chunks} == {(count(text), len(chunks))}
    assert TOKEN not in text and (index != STRANGE or "[redacted: github-token]" in text)


@pytest.mark.parametrize("index", [RUN, MANY, STRANGE])
def test_a_range_is_open_at_both_ends(asker: Asker, whole: dict[int, str], index: int) -> None:
    total = count(whole[index])
    for arguments, first, last in (({"end_line": 3}, 1, 3), ({"start_line": total - 2}, total - 2, total)):
        assert asker.body(ONE, index, **arguments) == lines(whole[index], first, last)


@pytest.mark.parametrize(
    ("first", "last", "near"),
    [(0, 5, (1, 5)), (-3, None, (1, 10_000)), (7, 6, (7, 7)), (9_999, 10_001, (9_999, 10_000)),
     (10_001, None, (10_000, 10_000)), (2**53, None, (10_000, 10_000)), (None, 0, (1, 1))],
)  # fmt: skip
@pytest.mark.parametrize("mode", [None, "minimal"])
def test_a_range_that_is_not_there_is_refused_with_the_nearest_one(
    asker: Asker, first: int | None, last: int | None, near: tuple[int, int], mode: str | None
) -> None:
    given = {"start_line": first, "end_line": last, "mode": mode}
    error = asker.anything("get_event_details", session_id=ONE, event_index=MANY, **given)
    assert error.value["error"]["code"] == "invalid_range"
    assert error.value["error"]["details"] == {"total_lines": 10_000}
    assert "10,000 lines" in error.value["error"]["message"]
    name, arguments = call_in(error.value["hint"])
    assert (arguments["start_line"], arguments["end_line"]) == near
    assert asker.ask(name, **arguments)["success"]


def test_a_digest_of_a_range_is_one_of_these_lines_alone(asker: Asker) -> None:
    value = asker.ask(
        "get_event_details", session_id=ONE, event_index=MANY, start_line=8_500, end_line=9_500, mode="minimal"
    )
    shown = value["data"]["payload"]["content"].split("\n")
    assert shown[0] == "line 8500" and "line 9500" in shown
    assert "9000: FAILED tests/test_tide.py::test_ebb - assert 3 == 4" in shown
    assert value["truncation"] == {"reason": "digest", "shown": 21, "total": 1_001, "omitted_failures": 0}


# -- digests and failures --------------------------------------------------------------------------


@pytest.mark.parametrize("index", [RUN, MANY, WIDE, STRANGE, SHORT, CALL, EMPTY])
@pytest.mark.parametrize("mode", ["minimal", "standard", "verbose"])
@pytest.mark.parametrize("most", [None, 2_048])
def test_a_digest_is_one_answer_within_its_budget(asker: Asker, index: int, mode: str, most: int | None) -> None:
    value = asker.ask("get_event_details", session_id=ONE, event_index=index, mode=mode, max_bytes=most)
    assert "chunk" not in value
    assert ("truncation" in value) == (value["hint"].find("start_line") >= 0 or value["hint"].find("mode") >= 0)
    assert asker.run(value["hint"])["success"]


@pytest.mark.parametrize("mode", [None, "minimal", "standard", "verbose"])
def test_a_test_run_tells_the_names_of_all_its_failures_in_one_answer(asker: Asker, mode: str | None) -> None:
    """60 of 1,000 cases fail; all names, the exact counts and the runner's verdict."""
    value = asker.ask("get_event_details", session_id=ONE, event_index=RUN, mode=mode)
    failures = value["data"]["failures"]
    assert (failures["failing_lines"], failures["failed_tests"]) == (121, 60)
    assert failures["verdict"] == "60 failed, 940 passed in 3.21s"
    if mode:
        assert all(name in value["data"]["payload"]["content"] for name in NAMES)
        return
    assert failures["names"] == NAMES[: len(failures["names"])]
    assert failures.get("more", {}).get("names", 0) == 60 - len(failures["names"])
    shown = asker.run(value["hint"])
    assert call_in(value["hint"])[1]["mode"] == "standard"
    assert all(name in shown["data"]["payload"]["content"] for name in NAMES)


@pytest.mark.parametrize("mode", [None, "minimal", "standard", "verbose"])
def test_a_failure_at_line_9000_of_10000_is_told_in_every_answer(asker: Asker, mode: str | None) -> None:
    value = asker.ask("get_event_details", session_id=ONE, event_index=MANY, mode=mode)
    text = "FAILED tests/test_tide.py::test_ebb - assert 3 == 4"
    if mode:
        assert f"9000: {text}" in value["data"]["payload"]["content"].split("\n")
        assert value["data"]["failures"] == {"failing_lines": 1, "failed_tests": 1}
    else:
        assert value["data"]["failures"] == {
            "failing_lines": 1, "failed_tests": 1, "names": ["tests/test_tide.py::test_ebb"],
            "lines": [{"line": 9_000, "text": text}],
        }  # fmt: skip
    around = asker.run(value["hint"])
    assert text in around["data"]["payload"]["content"].split("\n")
    assert around["chunk"]["start_line"] < 9_000 < around["chunk"]["end_line"]


@pytest.mark.thorough
@pytest.mark.parametrize("most", [2_048, 10_240])
def test_hints_lead_to_every_failure_however_small_the_answers_are(asker: Asker, most: int) -> None:
    small = asker.with_most(most)
    seen, value = "", small.ask("get_event_details", session_id=ONE, event_index=RUN)
    for _ in range(3):
        assert value["data"]["failures"]["failed_tests"] == 60
        seen += json.dumps(value["data"])
        name, arguments = call_in(value["hint"])
        if "mode" not in arguments:
            break
        value = small.ask(name, **arguments)
    pages = small.pages(name, **arguments)
    seen += "".join(text_of(page["data"]["payload"]) for page in pages)
    assert all(test in seen for test in NAMES)


def test_what_no_tool_gave_back_tells_of_no_failures(asker: Asker, tmp_path: Any) -> None:
    """A text about failures is none."""
    log = claude_log(tmp_path / "logs", ONE)
    log.prompt("error: here\n" * 3_000).call("Write", {"content": "FAILED tests/a.py::b\n" * 3_000}, "ok")
    own = Asker(tmp_path / "index", tmp_path / "logs")
    for index in (0, 1):
        for mode in (None, "minimal"):
            assert "failures" not in own.ask("get_event_details", session_id=ONE, event_index=index, mode=mode)["data"]


def test_an_output_that_fits_is_shown_without_a_summary_of_its_failures(asker: Asker) -> None:
    value = asker.ask("get_event_details", session_id=ONE, event_index=14)
    assert value["data"]["payload"]["content"] == "error: no harbour at aaa"
    assert "failures" not in value["data"] and "chunk" not in value


def test_a_text_of_less_than_a_thousand_tokens_is_no_chunk(asker: Asker) -> None:
    value = asker.ask("get_event_details", session_id=ONE, event_index=SHORT)
    assert value["data"]["payload"]["content"] == "潮" * 3_150 and "chunk" not in value


# -- read_artifact -------------------------------------------------------------------------------


def test_the_text_of_an_event_is_that_of_its_details(asker: Asker, whole: dict[int, str]) -> None:
    for index, text in whole.items():
        assert read(asker, ref=f"ax://event/{ONE}/{index}", max_bytes=102_400) == text
        assert read(asker, ref=f"ax://event/{ONE}/{index}", start_line=1, end_line=1) == lines(text, 1, 1)


@pytest.mark.thorough
def test_the_text_of_a_session_is_that_of_level_full(asker: Asker) -> None:
    pages = asker.pages("get_session_details", session_id=ONE, detail_level="full", max_bytes=102_400)
    full = "".join(page["data"]["text"] for page in pages)
    assert read(asker, ref=f"ax://session/{ONE}", max_bytes=102_400) == full


@pytest.fixture(scope="module")
def transcript(asker: Asker) -> str:
    """The whole text of the session."""
    return read(asker, ref=f"ax://session/{ONE[:8]}", max_bytes=102_400)


@settings(max_examples=depth(6, 40), deadline=None)
@given(data=st.data(), most=st.sampled_from([2_048, 10_240, 102_400]))
def test_the_chunks_of_a_range_of_a_session_join_to_exactly_these_lines(
    asker: Asker, transcript: str, data: st.DataObject, most: int
) -> None:
    total = transcript.count("\n")
    first = data.draw(st.integers(1, total))
    last = data.draw(st.integers(first, min(total, first + 700)))
    wide = next(number for number, line in enumerate(transcript.split("\n"), 1) if len(line) > 200_000)
    most = 102_400 if first <= wide <= last else most
    pages = list(
        asker.pages("read_artifact", ref=f"ax://session/{ONE}", start_line=first, end_line=last, max_bytes=most)
    )
    assert "".join(page["data"]["text"] for page in pages) == lines(transcript, first, last)
    assert (pages[0]["chunk"]["start_line"], pages[-1]["chunk"]["end_line"]) == (first, last)


def test_a_digest_of_a_session_has_the_failures_of_its_outputs(asker: Asker) -> None:
    value = asker.ask("read_artifact", ref=f"ax://session/{ONE}", mode="standard")
    assert value["data"]["failures"]["failed_tests"] == 61
    assert all(name in value["data"]["text"] for name in [*NAMES, "tests/test_tide.py::test_ebb"])
    assert value["data"]["text"].startswith("## event 0 ")
    ranged = asker.ask("read_artifact", ref=f"ax://session/{ONE}", mode="minimal", start_line=2, end_line=4)
    assert ranged["data"]["text"].startswith("go\n## event 1 ")


def test_prose_in_one_long_line_is_cut_after_sentences(tmp_path: Path) -> None:
    prose = " ".join(f"The tide of day {number} was high." for number in range(3_000))
    claude_log(tmp_path / "logs", ONE).prompt(prose)
    pages = [*Asker(tmp_path / "data", tmp_path / "logs").pages("get_event_details", session_id=ONE, event_index=0)]
    texts = [page["data"]["payload"]["text"] for page in pages]
    assert "".join(texts) == prose and len(texts) > 5 and all(text.endswith("high. ") for text in texts[:-1])


def test_an_analysis_is_read_with_every_finding(asker: Asker) -> None:
    shown = asker.ask("analyze_session", session_id=ONE, include_loops=True)
    complete = json.loads(read(asker, ref=shown["artifact_ref"], max_bytes=2_048))
    assert len(complete["insights"]) == shown["data"]["total_insights"] > len(shown["data"]["insights"])
    failed = [insight for insight in complete["insights"] if insight["detector"] == "returning_error"]
    assert len(failed) == 14
    assert complete["score"] == shown["data"]["score"]


def test_health_is_read_as_an_artifact(asker: Asker) -> None:
    health = json.loads(read(asker, ref="ax://health"))
    assert health["index"]["state"] == "ready" and health["index"]["sessions"] > 1


@pytest.mark.parametrize(
    "ref", ["", "ax://", "ax://event/aaaaaaaa", "ax://event/aaaaaaaa/x", "ax://event/aaaaaaaa/-1", "ax://turn/aaaaaaaa/1",
            "ax://session/", "ax://health/now", "https://example.org", "aaaaaaaa", "ax://event/aaaaaaaa/" + "9" * 40],
)  # fmt: skip
def test_a_reference_of_no_known_form_is_refused(asker: Asker, ref: str) -> None:
    error = asker.error("read_artifact", ref=ref)
    assert error["code"] == "invalid_artifact_ref"
    assert error["message"].startswith(f"Invalid artifact ref: {ref}")
    forms = (
        "ax://session/<id>",
        "ax://event/<session>/<index>",
        "ax://analysis/<session>",
        "ax://report",
        "ax://health",
    )
    for form in forms:
        assert form in error["message"]


def test_every_reference_is_accepted_by_every_tool_and_named_by_what_lacks_something(asker: Asker) -> None:
    for ref in (f"ax://session/{ONE[:8]}", f"ax://analysis/{ONE[:8]}", f"ax://event/{ONE[:8]}/{RUN}"):
        read_whole = asker.ask("read_artifact", ref=ref)
        assert read_whole["data"]["ref"] == ref and ("chunk" in read_whole) is ("artifact_ref" in read_whole)
        assert asker.ask("get_session_details", session_id=ref)["data"]["session_id"] == ONE
        assert asker.ask("analyze_session", session_id=ref)["data"]["session_id"] == ONE[:8]


def test_the_health_of_all_sessions_is_a_page_that_leads_to_the_worst(asker: Asker) -> None:
    value = asker.ask("read_artifact", ref="ax://report")
    assert value["untrusted"] and value["data"]["ref"] == "ax://report"
    listed = asker.ask("list_sessions", limit=50)["data"]["sessions"]
    own = [session for session in listed if session.get("kind") != "subagent" or "parent_id" not in session]
    assert value["data"]["text"].startswith(f"## {len(own)} sessions: mean score ")
    assert asker.run(value["hint"])["data"]["score"] is not None
    nothing = asker.ask("read_artifact", ref="ax://report/2100-01-01")
    assert nothing["data"]["text"].startswith("## No sessions")
    assert asker.error("read_artifact", ref="ax://report/soon")["details"]["field"] == "since"
