"""Read a moment or a period as people write it: a day, a time, or how long ago."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_AGO: Final = re.compile(r"(\d{1,6})\s*([smhdw])", re.ASCII)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
#: Examples for an error message.
EXAMPLES: Final = "2026-03-01, 2026-03-01T12:00, 7d (ago), yesterday or now"


def read_moment(text: str, now: datetime) -> datetime:
    """Read a moment; one without an offset is UTC, a day means its beginning.

    Raises
    ------
    ValueError
        It is not a moment between the years 1970, with which ids of exchanges begin, and 9999.

    Examples
    --------
    >>> noon = datetime(2026, 3, 10, 12, tzinfo=UTC)
    >>> [read_moment(text, noon).isoformat() for text in ("2026-03-01", "2h", "yesterday")]
    ['2026-03-01T00:00:00+00:00', '2026-03-10T10:00:00+00:00', '2026-03-09T00:00:00+00:00']
    """
    text = text.strip()
    if text == "now":
        return now
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if text in {"today", "yesterday"}:
        return today - timedelta(days=text == "yesterday")
    return ago(text, now) if _AGO.fullmatch(text) else read_time(text)


def read_time(text: str) -> datetime:
    """Read an ISO 8601 time, as ``read_moment`` does."""
    try:
        time = datetime.fromisoformat(text)
        time = (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError as error:
        raise ValueError(str(error)) from None
    if time < _FIRST:
        raise ValueError(text)
    return time


def ago(text: str, now: datetime) -> datetime:
    """Return the moment that was a length of time ago, such as ``7d``.

    Raises
    ------
    ValueError
        It is no length of time, or was before 1970.
    """
    span = read_span(text)
    if span > now - _FIRST:
        raise ValueError(text)
    return now - span


def read_span(text: str) -> timedelta:
    """Read a length of time such as ``7d``: a whole number of s, m, h, d or w.

    Raises
    ------
    ValueError
        It is not one.
    """
    match = _AGO.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
