"""Times in requests: ISO 8601, some minutes, hours, days or weeks ago, today, yesterday; times in answers."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from agtrace.problems import InvalidParameter
from agtrace.text.lines import repeated

_AGO = re.compile(r"^(\d{1,6})\s*(m|h|d|w)$")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DAY_MS = 24 * 3600 * 1000
_ALLOWED = "ISO 8601 (2026-11-03, 2026-11-03T10:00:00Z), 30m, 12h, 7d, 2w, today or yesterday"


def moment(field: str, text: str, now: datetime, *, end: bool = False) -> int:
    """Return a time as milliseconds since 1970 UTC; a time without a zone is in UTC.

    A day without a time means its first moment, or with `end` its last; likewise a time without a fraction, since
    answers show times to the second. Raises `InvalidParameter`, naming the field and the allowed forms.
    """
    given = text.strip()
    ago = _AGO.match(given.lower())
    try:
        if ago:
            return _ms(now - timedelta(**{_UNITS[ago[2]]: int(ago[1])}))
        if given.lower() in ("today", "yesterday"):
            day = now.replace(hour=0, minute=0, second=0, microsecond=0)
            return _day(day - timedelta(days=given.lower() == "yesterday"), end)
        parsed = datetime.fromisoformat(given)
        if parsed.tzinfo is None:
            parsed = parsed.replace(tzinfo=UTC)
        if len(given) <= len("2026-11-03"):
            return _day(parsed, end)
        return _ms(parsed) + (999 if end and not parsed.microsecond else 0)
    except (ValueError, OverflowError):
        raise InvalidParameter(field, f"{field}: expected {_ALLOWED}, got {repeated(given, 60)!r}", _ALLOWED) from None


def _day(first: datetime, end: bool) -> int:
    return _ms(first) + _DAY_MS - 1 if end else _ms(first)


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def iso(milliseconds: int | None) -> str | None:
    """Format a time as ISO 8601 in UTC, to the second, with a four-digit year; None and 0 mean unknown."""
    if not milliseconds:
        return None
    try:
        return datetime.fromtimestamp(milliseconds // 1000, UTC).replace(tzinfo=None).isoformat() + "Z"
    except (OverflowError, ValueError, OSError):
        return None
