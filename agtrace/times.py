"""Times in requests: ISO 8601, some time ago, days, weeks and months by name; times in answers."""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from agtrace_schema.patterns import later

from agtrace.problems import InvalidParameter
from agtrace.text.lines import repeated

_AGO = later(r"^(\d{1,6})\s*(m|h|d|w|mo|y)$")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_MONTHS = {"mo": 1, "y": 12}
_MONTH = later(r"^(\d{4})-(\d{2})$")
_WEEK = later(r"\d{4}-?W\d{2}")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NAMES_OF_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_SHORTEST_NAME = 3
_ALLOWED = (
    "ISO 8601 (2026-11-03, 2026-11-03T10:00:00Z, 2026-W45), 2026-11, 30m, 12h, 7d, 2w, 3mo, today, yesterday, monday, "
    "july, this or last week, month or year"
)


class Period(NamedTuple):
    """From a moment to another, both included, in milliseconds since 1970 UTC; None leaves an end open."""

    since: int | None
    until: int | None


def period(since: str | None, until: str | None, now: datetime) -> Period:
    """Return the period that `since` and `until` name, as `moment` reads them.

    Raises `InvalidParameter` as `moment` does, and if the period ends before it begins.
    """
    first = None if since is None else moment("since", since, now)
    last = None if until is None else moment("until", until, now, end=True)
    if first is not None and last is not None and first > last:
        given = f"{repeated(until or '', 40)!r} is before since, {repeated(since or '', 40)!r}"
        raise InvalidParameter("until", f"until: {given}", "a time not before since")
    return Period(first, last)


def moment(field: str, text: str, now: datetime, *, end: bool = False) -> int:
    """Return a time as milliseconds since 1970 UTC; days, and times without a zone, are in the zone of `now`.

    That is the machine's zone, or the one in TZ, for a `now` without a zone.

    A day, week, month or year means its first moment, or with `end` its last; likewise a time without a fraction, since
    answers show times to the second. A weekday or a month without a year is the latest one that has begun. Raises
    `InvalidParameter`, naming the field and the allowed forms.
    """
    given = " ".join(text.split())
    try:
        times = _span(given.lower(), now) or _iso_span(given, now.tzinfo)
        first, behind = (round(time.timestamp() * 1000) for time in times)
    except (ValueError, OverflowError, OSError):
        raise InvalidParameter(field, f"{field}: expected {_ALLOWED}, got {repeated(given, 60)!r}", _ALLOWED) from None
    return behind - 1 if end and behind > first else first


def _span(words: str, now: datetime) -> tuple[datetime, datetime] | None:
    """Return the beginning of what these words mean, and what comes after it; the same twice for a moment.

    None for anything else. Raises `ValueError` or `OverflowError` for what isn't in the calendar.
    """
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    day = timedelta(days=1)
    if ago := _AGO.match(words):
        return (_ago(int(ago[1]), ago[2], now),) * 2
    if words in ("today", "yesterday"):
        first = today - day * (words == "yesterday")
        return first, first + day
    if words in _WEEKDAYS:
        first = today - day * ((today.weekday() - _WEEKDAYS.index(words)) % 7)
        return first, first + day
    if month := _MONTH.match(words):
        return _months(datetime(int(month[1]), int(month[2]), 1, tzinfo=now.tzinfo), 1)
    named = [name for name in _NAMES_OF_MONTHS if len(words) >= _SHORTEST_NAME and name.startswith(words)]
    if len(named) == 1:
        number = _NAMES_OF_MONTHS.index(named[0]) + 1
        return _months(datetime(now.year - (number > now.month), number, 1, tzinfo=now.tzinfo), 1)
    return _this_or_last(words, today)


def _this_or_last(words: str, today: datetime) -> tuple[datetime, datetime] | None:
    """Return the span of this or the last week, month or year."""
    which, _, unit = words.partition(" ")
    back = {"this": 0, "last": 1}.get(which)
    if back is None:
        return None
    if unit == "week":
        first = today - timedelta(days=today.weekday() + 7 * back)
        return first, first + timedelta(days=7)
    if unit == "month":
        return _months(_months_earlier(today.replace(day=1), back), 1)
    if unit == "year":
        return _months(today.replace(year=today.year - back, month=1, day=1), 12)
    return None


def _months(first: datetime, count: int) -> tuple[datetime, datetime]:
    return first, _months_earlier(first, -count)


def _ago(number: int, unit: str, now: datetime) -> datetime:
    if unit in _MONTHS:
        return _months_earlier(now, number * _MONTHS[unit])
    return datetime.fromtimestamp((now.astimezone(UTC) - timedelta(**{_UNITS[unit]: number})).timestamp(), now.tzinfo)


def _months_earlier(time: datetime, months: int) -> datetime:
    """Return the same day so many months earlier, or the last day of that month if it is shorter."""
    year, month = divmod(time.year * 12 + time.month - 1 - months, 12)
    return time.replace(year=year, month=month + 1, day=min(time.day, monthrange(year, month + 1)[1]))


def _iso_span(given: str, zone: tzinfo | None) -> tuple[datetime, datetime]:
    """Return the span of an ISO 8601 week, day or second, or a moment. Raises `ValueError` or `OverflowError`."""
    parsed = datetime.fromisoformat(given)
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=zone)
    if len(given) <= len("2026-11-03"):
        return parsed, parsed + timedelta(days=7 if _WEEK.fullmatch(given) else 1)
    return parsed, parsed if parsed.microsecond else parsed + timedelta(seconds=1)


def iso(milliseconds: int | None) -> str | None:
    """Format a time as ISO 8601 in UTC, to the second, with a four-digit year; None and 0 mean unknown."""
    if not milliseconds:
        return None
    try:
        return datetime.fromtimestamp(milliseconds // 1000, UTC).replace(tzinfo=None).isoformat() + "Z"
    except (OverflowError, ValueError, OSError):
        return None


def local(milliseconds: int | None) -> str:
    """Format a time as ISO 8601 in the machine's zone, to the second, without the zone; empty if it is unknown."""
    try:
        return datetime.fromtimestamp(milliseconds // 1000).isoformat() if milliseconds else ""
    except (OverflowError, ValueError, OSError):
        return ""


def when(time: str | None, *, with_zone: bool = False) -> str:
    """Format an ISO time as people read it in the machine's zone, to the minute; empty for none."""
    if time is None:
        return ""
    try:
        there = datetime.fromisoformat(time).astimezone()
    except (OverflowError, ValueError):  # a clock so wrong that the local time is out of the calendar
        there = datetime.fromisoformat(time)
    return there.isoformat(" ", "minutes")[:16] + (f" {there.tzname()}" if with_zone else "")


def zone(milliseconds: int | None = None) -> str:
    """Return the name of the machine's zone (`UTC`, `CET`) at a time, by default now."""
    try:
        at = datetime.now() if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000)
        return at.astimezone().tzname() or "local time"
    except (OverflowError, ValueError, OSError):
        return zone()
