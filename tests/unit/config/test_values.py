"""Durations, sizes, addresses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.config import Address, format_duration, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("5m", 300),
        ("1.5h", 5400),
        ("1d", 86400),
        ("2w", 1209600),
        ("500ms", 0.5),
        ("45", 45),
        (2.5, 2.5),
        ("0", 0),
    ],
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "d", "1y", "-3s", "1d12h", "soon", "1e9", "99999999d", True, None, "nan", float("inf"), "²s"]
)
def test_no_durations(text):
    with pytest.raises(ValueError, match="must be"):
        parse_duration(text)


@given(st.integers(0, 10**9))
def test_a_duration_is_written_as_it_is_read(seconds):
    assert parse_duration(format_duration(float(seconds))) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"), [(86400, "1d"), (604800, "7d"), (5400, "90m"), (3600, "1h"), (61, "61s"), (0.5, "0.5s")]
)
def test_format_duration(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4GiB", 4 * 2**30),
        ("512MiB", 2**29),
        ("10MB", 10**7),
        ("64k", 64000),
        ("64KiB", 65536),
        ("1_000_000", 10**6),
        ("1.5KiB", 1536),
        (7, 7),
        ("12 B", 12),
    ],
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "-1", "4XB", "1e9", "9999999999TiB", "1" * 5000, True, 1.5, None])
def test_no_sizes(text):
    with pytest.raises(ValueError, match="must be"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "host", "port", "loopback"),
    [
        ("127.0.0.1:4000", "127.0.0.1", 4000, True),
        ("127.8.0.1:1", "127.8.0.1", 1, True),
        ("[::1]:4000", "::1", 4000, True),
        ("localhost:0", "localhost", 0, True),
        (":4000", "", 4000, False),
        ("*:4000", "", 4000, False),
        ("0.0.0.0:80", "0.0.0.0", 80, False),
        ("[::]:80", "::", 80, False),
        ("gateway.internal:80", "gateway.internal", 80, False),
    ],
)
def test_addresses(text, host, port, loopback):
    address = Address.model_validate(text)
    assert (address.host, address.port, address.is_loopback) == (host, port, loopback)


@pytest.mark.parametrize(
    "text", ["", "4000", "localhost", "::1:4000", "h:65536", "h:-1", "h:x", "h: 80", "a b:80", "http://h:80", "[::1:80"]
)
def test_no_addresses(text):
    with pytest.raises(ValueError):
        Address.model_validate(text)


def test_an_address_is_written_as_it_is_read():
    for text in ("127.0.0.1:4000", "[::1]:4000", ":4000"):
        assert str(Address.model_validate(text)) == text
