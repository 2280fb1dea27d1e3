"""Read a moment or a period as people write it: a day, a time, or how long ago."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_AGO: Final = re.compile(r"(\d{1,6})\s*([smhdw])", re.ASCII)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
#: Examples for an error message.
EXAMPLES: Final = "2026-03-01, 2026-03-01T12:00, 7d (ago), yesterday or now"


def read_moment(text: str, now: datetime) -> datetime:
    """Read a moment; one without an offset is UTC, a day means its beginning.

    Raises
    ------
    ValueError
        It is not a moment between the years 1 and 9999.

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
    try:
        if _AGO.fullmatch(text):
            return now - read_span(text)
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError as error:
        raise ValueError(str(error)) from None


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
