"""Read how long a server asks its callers to wait: ``retry-after-ms``, or ``retry-after`` in seconds or as a date."""

import email.utils
import math
import time
from collections.abc import Mapping


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the wait in seconds, 0 or more. It can be infinite, so callers must limit it.

    The finer header wins; one that cannot be read asks for nothing.
    """
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return _wait(float(milliseconds) / 1000)
        seconds = headers.get("retry-after")
        return None if seconds is None else _wait(_seconds(seconds))
    except (ValueError, TypeError):
        return None


def _wait(seconds: float) -> float | None:
    return None if math.isnan(seconds) else max(seconds, 0.0)


def _seconds(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return email.utils.parsedate_to_datetime(value).timestamp() - time.time()
