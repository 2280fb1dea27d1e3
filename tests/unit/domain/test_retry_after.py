"""The wait that a server asks for, in each of its spellings."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from auditor.domain.retry_after import read_retry_after


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after-ms": "nan"}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_a_wait_is_read_or_absent(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after(headers) == seconds


def test_a_date_is_a_wait_too() -> None:
    asked = read_retry_after({"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)})
    assert asked is not None
    assert 55 < asked <= 60
