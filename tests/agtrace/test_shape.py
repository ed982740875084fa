"""The one way out: chunks that join to the whole text, pages in sequence, answers that fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agtrace_indexer.redact import redact
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agtrace.index.trouble import Freshness
from agtrace.problems import Problem, SessionNotFound
from agtrace.settings.limits import limits
from agtrace.shaping.replies import Body, Entry, Pages, Reply, Stream
from agtrace.shaping.shape import answer, error_answer, estimated_tokens
from agtrace.text.lines import cut, one_line, without_controls
from tests.agtrace.asking import check
from tests.depth import examples

READY = Freshness("ready")
PIECES = ["a", "tide", "潮", "汐", "🌊", "e\u0301", "\n", "\n\n", "\r\n", "\r", "\t", '"', "\\", "\x00", "\x1b[31m",
          "\x7f", "\u2028", "\x85", " ", "word " * 30, "潮" * 120, "\n" * 250, "x" * 3000]  # fmt: skip
TEXTS = st.one_of(st.text(max_size=400), st.lists(st.sampled_from(PIECES), max_size=80).map("".join))
BUDGETS = st.one_of(st.integers(2_048, 12_000), st.sampled_from([2_048, 10_240, 102_400]))


def body_reply(text: str, budget: int, *, offset: int = 0, line: int = 0, chunk: int = 0) -> Reply:
    return Reply(
        summary="Event 42 of fb3cff44: Message",
        data=Body(
            text=text,
            frame={"session_id": "fb3cff44", "payload": {}},
            key="text",
            cursor=lambda *place: ",".join(map(str, place)),
            offset=offset,
            line=line,
            chunk=chunk,
        ),
        budget=budget,
        hint="get_session_details(session_id='fb3cff44') shows its session (2-10 KB).",
        reference="ax://event/fb3cff44/42",
        untrusted=True,
    )


def chunks(text: str, budget: int, freshness: Freshness = READY) -> Iterator[dict[str, Any]]:
    """The answers that hold a text, each fetched by the cursor of the one before."""
    place = {"offset": 0, "line": 0, "chunk": 0}
    while True:
        given_answer = answer(body_reply(text, budget, **place), freshness)
        check(given_answer, budget)
        yield given_answer.value
        following = given_answer.value.get("chunk", {}).get("next_cursor")
        if following is None:
            return
        place = dict(zip(place, map(int, following.split(",")), strict=True))


def joined(values: list[dict[str, Any]]) -> str:
    return "".join(value["data"]["payload"]["text"] for value in values)


# -- chunks --------------------------------------------------------------------------------------


@settings(max_examples=examples(40), deadline=None)
@given(TEXTS, BUDGETS)
@example("", 2_048)
@example("\n" * 1_000, 2_048)
@example("one\r\ntwo\r\n" * 300, 2_048)
@example("潮汐" * 3_000, 2_048)
@example("🌊" * 3_000, 2_049)
@example("\x00" * 3_000, 2_050)
@example("tide\n" * 5_000, 2_600)
@example("x" * 100_000, 10_240)
def test_the_chunks_of_any_text_join_to_the_text_and_say_which_lines_they_hold(text: str, budget: int) -> None:
    values = list(chunks(text, budget))
    assert joined(values) == text
    if "chunk" not in values[0]:
        assert len(values) == 1
        return
    before, lines = "", text.count("\n") + (not text.endswith("\n"))
    for number, value in enumerate(values):
        chunk, piece = value["chunk"], value["data"]["payload"]["text"]
        assert piece.count("\n") <= limits().chunk_lines
        assert (chunk["chunk_index"], chunk["total_chunks"], chunk["total_lines"]) == (number, len(values), lines)
        assert chunk["start_line"] == before.count("\n") + 1
        before += piece
        assert chunk["end_line"] == before.count("\n") + (not before.endswith("\n"))
        assert ("next_cursor" in chunk) == (number < len(values) - 1)


def test_a_chunk_whose_text_grows_by_redaction_is_still_a_chunk() -> None:
    """A mask can be longer than what it hides; the text must not be lost for it."""
    text = "".join(f'"station_{number:05}_token": "12345678",\n' for number in range(900))
    values = list(chunks(text, 10_240))
    assert all("payload" in value["data"] for value in values)
    assert joined(values).count("station_") == 900


# -- streams -------------------------------------------------------------------------------------

SECRET = "ghp_" + "abcDEF0123456789ghij" * 2
BODIES = st.lists(st.one_of(TEXTS, st.just(f"key {SECRET} end"), st.just("")), max_size=12)


def stream_reply(bodies: list[str], budget: int, *, at_hand: int, outcome: str, place: tuple[int, ...]) -> Reply:
    """What is left behind a place, as many entries of it as are at hand; every second event is superseded."""
    event, offset, line, chunk = place
    left = [
        Entry(2 * number, f"## event {2 * number} · {outcome}", body)
        for number, body in enumerate(bodies)
        if 2 * number >= event
    ]
    return Reply(
        summary="Session fb3cff44",
        data=Stream(
            entries=left[:at_hand],
            more=len(left) > at_hand,
            frame={"session_id": "fb3cff44", "log": "/home/mira/" + "x" * 200},
            key="text",
            cursor=lambda *position: ",".join(map(str, position)),
            essential={"session_id": "fb3cff44"},
            event=event,
            offset=offset,
            line=line,
            chunk=chunk,
        ),
        budget=budget,
        untrusted=True,
    )


def stream_chunks(bodies: list[str], budget: int, at_hand: int, outcomes: tuple[str, ...] = ("ok",)) -> list[Any]:
    """The answers that hold a stream, each fetched by the cursor of the one before."""
    place, values = (0, 0, 0, 0), []
    while True:
        outcome = outcomes[len(values) % len(outcomes)]
        given_answer = answer(stream_reply(bodies, budget, at_hand=at_hand, outcome=outcome, place=place), READY)
        check(given_answer, budget)
        values.append(given_answer.value)
        following = given_answer.value.get("chunk", {}).get("next_cursor")
        if following is None:
            return values
        place = tuple(map(int, following.split(",")))


def streamed(bodies: list[str], outcome: str = "ok") -> str:
    return "".join(f"## event {2 * number} · {outcome}\n{redact(body)}\n" for number, body in enumerate(bodies))


@settings(max_examples=examples(40), deadline=None)
@given(BODIES, BUDGETS, st.integers(1, 12))
@example([], 2_048, 1)
@example(["x" * 9_000, "", "\n" * 900, "🌊" * 900], 2_048, 1)
def test_the_chunks_of_any_stream_join_to_it(bodies: list[str], budget: int, at_hand: int) -> None:
    values = stream_chunks(bodies, budget, at_hand)
    assert "".join(value["data"]["text"] for value in values) == streamed(bodies)
    before = ""
    for number, value in enumerate(values):
        piece, chunk = value["data"]["text"], value.get("chunk")
        assert "ghp_" not in piece
        if chunk is None:
            assert len(values) == 1
            continue
        assert (chunk["chunk_index"], chunk["start_line"]) == (number, before.count("\n") + 1)
        assert piece.count("\n") <= limits().chunk_lines
        before += piece
        assert chunk["end_line"] == before.count("\n") + (not before.endswith("\n"))
        assert chunk["first_event"] <= chunk["last_event"]
        assert "total_lines" not in chunk


@settings(max_examples=examples(30), deadline=None)
@given(BODIES, st.integers(1, 12))
def test_a_heading_that_changes_meanwhile_changes_nothing_of_the_texts(bodies: list[str], at_hand: int) -> None:
    """A call that was running has an outcome at the next chunk: its text goes on where it was cut."""
    values = stream_chunks(bodies, 2_048, at_hand, ("running", "ok"))
    joined_text = "".join(value["data"]["text"] for value in values)
    assert joined_text.replace("· running\n", "· ok\n") == streamed(bodies).replace("· running\n", "· ok\n")


def test_a_chunk_with_no_room_beside_what_stands_around_it_is_shown_alone() -> None:
    around = {f"fact {number}": "x" * 50 for number in range(40)}
    stream = Stream([Entry(0, "## event 0", "tide")], False, around, "text", lambda *place: "", {"session_id": "fb"})
    assert answer(Reply("Session", stream, 2_048), READY).value["data"] == {
        "session_id": "fb",
        "text": "## event 0\ntide\n",
    }
    assert answer(Reply("Session", stream, 10_240), READY).value["data"].keys() == {*around, "text"}


# -- pages ---------------------------------------------------------------------------------------


def page_reply(items: list[dict[str, Any]], budget: int, limit: int, start: int) -> Reply:
    at_hand = items[start : start + limit]
    return Reply(
        summary=f"Found {len(items)} items",
        data=Pages(
            size=len(at_hand),
            build=lambda count: {"items": at_hand[:count]},
            cursor=lambda count: str(start + count),
            more=start + limit < len(items),
            first=start == 0,
            total=len(items),
        ),
        budget=budget,
        hint="list_sessions() shows what there is.",
        counts={"total_count": len(items)},
    )


ITEMS = st.lists(
    st.fixed_dictionaries({"label": TEXTS.map(lambda text: one_line(text, 600)), "count": st.integers(0, 10**12)}),
    max_size=60,
)


@settings(max_examples=examples(30), deadline=None)
@given(ITEMS, BUDGETS, st.integers(1, 50))
def test_pages_are_disjoint_and_complete(items: list[dict[str, Any]], budget: int, limit: int) -> None:
    found, start = [], 0
    while True:
        given_answer = answer(page_reply(items, budget, limit, start), READY)
        check(given_answer, budget)
        page, pagination = given_answer.value["data"]["items"], given_answer.value["pagination"]
        found += page
        assert pagination["total_in_page"] == len(page) <= limit
        assert pagination.get("total_count", len(page)) == len(items)
        assert pagination["has_more"] == (pagination["next_cursor"] is not None) == (len(found) < len(items))
        if pagination["next_cursor"] is None:
            break
        start = int(pagination["next_cursor"])
    assert [item["count"] for item in found] == [item["count"] for item in items]
    assert all(kept["label"] == item["label"] or kept["label"].endswith("...") for kept, item in zip(found, items))  # noqa: B905


def test_an_item_that_fits_no_page_is_shortened_and_the_answer_says_where() -> None:
    value = answer(
        page_reply([{"label": "x" * 5_000, "count": 1}, {"label": "y", "count": 2}], 2_048, 10, 0), READY
    ).value
    assert value["data"]["items"] == [{"label": "x" * 117 + "...", "count": 1}]
    assert value["truncation"] == {"reason": "bytes", "paths": ["items[0].label: 120 of 5000 chars"]}
    assert value["pagination"]["next_cursor"] == "1"


def test_an_item_with_no_room_beside_what_stands_around_it_is_shown_alone() -> None:
    around = {f"fact {number}": "x" * 50 for number in range(40)}
    pages = Pages(
        size=2,
        build=lambda count: {**around, "items": [1, 2][:count]},
        cursor=str,
        more=False,
        first=True,
        essential=lambda count: {"items": [1, 2][:count]},
    )
    value = answer(Reply("Found 2 items", pages, 2_048), READY).value
    assert value["data"] == {"items": [1]}
    assert value["pagination"]["next_cursor"] == "1"
    assert value["truncation"] == {"reason": "bytes", "shown": 1}
    assert answer(Reply("Found 2 items", pages, 10_240), READY).value["data"] == {**around, "items": [1, 2]}


# -- every answer --------------------------------------------------------------------------------


def test_counts_stay_where_nothing_else_fits() -> None:
    data = {f"key {number}": number for number in range(5_000)}
    value = answer(
        Reply("Many keys", data, 2_048, counts={"failed_calls": 45}, reference="ax://analysis/x"), READY
    ).value
    assert value["data"] == {"failed_calls": 45}
    assert value["truncation"] == {"reason": "bytes", "shown": 0}
    assert value["artifact_ref"] == "ax://analysis/x"


def test_the_users_clamp_is_below_every_budget() -> None:
    clamped = answer(body_reply("tide\n" * 5_000, 102_400), READY, 2_048)
    assert len(clamped.text.encode()) <= 2_048
    assert clamped.value["chunk"]["next_cursor"]


def test_secrets_are_masked_on_the_way_out() -> None:
    token = "ghp_" + "abcDEF0123456789ghij" * 2
    reply = Reply(f"Found {token}", {"text": token, token: 1}, 10_240, hint=f"search_event_previews(query='{token}')")
    assert token not in answer(reply, READY).text
    assert token not in error_answer(Problem(token, token, field=token)).text


@given(st.integers(0, 10**6))
def test_the_estimate_is_four_characters_a_token_and_a_fifth_more(characters: int) -> None:
    assert characters * 0.3 <= estimated_tokens(characters) < characters * 0.3 + 1.000001


def test_an_answer_says_what_it_costs() -> None:
    given_answer = answer(body_reply("tide\n" * 100, 10_240), READY)
    measured = given_answer.value["budget"]
    assert abs(measured["estimated_tokens"] - estimated_tokens(len(given_answer.text))) <= 5
    assert measured["budget_remaining"] == estimated_tokens(10_240) - measured["estimated_tokens"]


@settings(deadline=None)
@given(st.text(max_size=3_000), st.sampled_from([2_048, 10_240]))
@example("🌊" * 200, 2_048)
def test_an_error_is_as_small_as_any_answer(text: str, most: int) -> None:
    """An error quotes what was asked, which can be long."""
    given_answer = error_answer(SessionNotFound(text[:200], [text[:80]] * 3), most)
    check(given_answer, most)


# -- strings -------------------------------------------------------------------------------------


@given(st.text(max_size=300), st.integers(3, 120))
def test_one_line_is_one_line(text: str, most: int) -> None:
    line = one_line(text, most)
    assert len(line) <= most
    assert len(line.splitlines()) <= 1


def test_terminal_escapes_are_removed_whole() -> None:
    assert without_controls("\x1b[1;31mfailed\x1b[0m at \x1b[38;5;196mline 3\x07\n") == "failed at line 3\n"


@given(st.text(max_size=60), st.integers(3, 60))
def test_a_cut_text_says_so(text: str, most: int) -> None:
    short = cut(text, most)
    assert len(short) <= most
    assert short == text or (short.endswith("...") and text.startswith(short[:-3]))
