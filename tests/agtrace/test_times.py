"""Times in requests."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agtrace.problems import InvalidParameter
from agtrace.times import moment, period

NOW = datetime(2026, 11, 21, 13, 45, 30, tzinfo=UTC)


def at(text: str, *, end: bool = False) -> str:
    """A time as it is understood, as ISO 8601 in UTC."""
    return datetime.fromtimestamp(moment("since", text, NOW, end=end) / 1000, UTC).isoformat(timespec="milliseconds")[
        :23
    ]


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("2026-11-03", "2026-11-03T00:00:00.000"),
        ("2026-11-03T10:00:00Z", "2026-11-03T10:00:00.000"),
        ("2026-11-03T10:00:00+02:00", "2026-11-03T08:00:00.000"),
        ("2026-11-03T10:00", "2026-11-03T10:00:00.000"),
        ("2026-11-03 10:00:00.250", "2026-11-03T10:00:00.250"),
        ("30m", "2026-11-21T13:15:30.000"),
        ("7d", "2026-11-14T13:45:30.000"),
        (" 7 D ", "2026-11-14T13:45:30.000"),
        ("today", "2026-11-21T00:00:00.000"),
        ("Yesterday", "2026-11-20T00:00:00.000"),
        ("3mo", "2026-08-21T13:45:30.000"),
        ("1y", "2025-11-21T13:45:30.000"),
        ("monday", "2026-11-16T00:00:00.000"),
        ("2026-07", "2026-07-01T00:00:00.000"),
        ("this  week", "2026-11-16T00:00:00.000"),
        ("last week", "2026-11-09T00:00:00.000"),
        ("last month", "2026-10-01T00:00:00.000"),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59.000"),
    ],
)
def test_a_time_is_iso_8601_or_an_age_or_a_day(text: str, beginning: str) -> None:
    assert at(text) == beginning


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("2026-11-03", "2026-11-03T23:59:59.999"),
        ("2026-W15", "2026-04-12T23:59:59.999"),
        ("2026-W15-1", "2026-04-06T23:59:59.999"),
        ("yesterday", "2026-11-20T23:59:59.999"),
        ("today", "2026-11-21T23:59:59.999"),
        ("2026-11-03T10:00:00Z", "2026-11-03T10:00:00.999"),
        ("7d", "2026-11-14T13:45:30.000"),
        ("monday", "2026-11-16T23:59:59.999"),
        ("2026-02", "2026-02-28T23:59:59.999"),
        ("last week", "2026-11-15T23:59:59.999"),
        ("last month", "2026-10-31T23:59:59.999"),
    ],
)
def test_until_a_day_includes_the_day(text: str, end: str) -> None:
    assert at(text, end=True) == end


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("today", "2026-10-25T23:00", "2026-10-26T22:59:59.999"),
        ("yesterday", "2026-10-24T22:00", "2026-10-25T22:59:59.999"),
        ("last week", "2026-10-18T22:00", "2026-10-25T22:59:59.999"),
        ("2026-07", "2026-06-30T22:00", "2026-07-31T21:59:59.999"),
        ("2026-03-29", "2026-03-28T23:00", "2026-03-29T21:59:59.999"),
        ("2026-11-03T10:00", "2026-11-03T09:00", "2026-11-03T09:00:00.999"),
        ("2026-11-03T10:00Z", "2026-11-03T10:00", "2026-11-03T10:00:00.999"),
        ("2d", "2026-10-24T11:30", "2026-10-24T11:30"),
    ],
)
def test_days_and_times_without_a_zone_are_local_whenever_the_clock_changes(
    berlin: None, text: str, first: str, last: str
) -> None:
    now = datetime(2026, 10, 26, 12, 30)
    assert [moment("since", text, now, end=end) for end in (False, True)] == [
        round(datetime.fromisoformat(f"{time}+00:00").timestamp() * 1000) for time in (first, last)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "7x",
        "-7d",
        "next week",
        "2026-13",
        "99999y",
        "july 3",
        "2026-13-01",
        "1234567w",
        "999999w",
        "7d7d",
        "2026-11-03T25:00",
        "\x00",
    ],
)
def test_what_is_no_time_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        moment("until", text, NOW)
    assert refused.value.details["field"] == "until"
    assert "7d" in refused.value.message and "ISO 8601" in refused.value.message


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_refused(text: str) -> None:
    try:
        assert isinstance(moment("since", text, NOW), int)
    except InvalidParameter as refused:
        assert refused.details["field"] == "since"


@pytest.mark.parametrize(("since", "until"), [("1d", "7d"), ("2026-11-03", "2026-11-02"), ("today", "yesterday")])
def test_a_period_that_ends_before_it_begins_is_refused(since: str, until: str) -> None:
    with pytest.raises(InvalidParameter, match="is before since") as refused:
        period(since, until, NOW)
    assert refused.value.details["field"] == "until"
