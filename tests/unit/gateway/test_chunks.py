"""Chunks of an answer are read as they arrive, and nothing unusual is taken for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.upstreams.upstream_answers import http_chunk

from gateway.upstreams.chunks import read_complete, read_size

PAYLOADS = st.lists(st.binary(min_size=1, max_size=40), max_size=5)


@given(PAYLOADS, st.integers(0, 300), st.booleans())
def test_complete_chunks_are_read_and_the_rest_is_left(payloads: list[bytes], length: int, ends: bool) -> None:
    whole = b"".join(map(http_chunk, payloads)) + (b"0\r\n\r\n" if ends else b"")
    data = whole[:length]
    chunks = read_complete(data)
    assert b"".join(payloads).startswith(chunks.payload)
    again = read_complete(data[chunks.end :])
    assert (again.payload, again.end) == (b"", 0) or chunks.is_last
    assert chunks.is_last == (ends and len(data) == len(whole))
    if data == whole:
        assert chunks.payload == b"".join(payloads)


@pytest.mark.parametrize(
    "data", [b"zz\r\n", b"3;x=y\r\nabc\r\n", b"+3\r\nabc\r\n", b"1_0\r\n", b" 3\r\nabc\r\n", b"\r\n", b"3\r\nabcd\r\n",
             b"0\r\nx: y\r\n\r\n", b"0000000003\r\nabc\r\n", b"12345678\r\n", b"-1\r\n"],
)  # fmt: skip
def test_what_is_not_usual_is_refused_where_it_begins(data: bytes) -> None:
    with pytest.raises(ValueError, match="chunk"):
        read_complete(data)
    chunks = read_complete(b"2\r\nok\r\n" + data)
    assert (chunks.payload, chunks.end, chunks.is_last) == (b"ok", 7, False)


def test_sizes_are_hexadecimal_digits_alone() -> None:
    assert [read_size(word) for word in (b"0", b"fF", b"00a", b"1234567")] == [0, 255, 10, 0x1234567]
    assert [read_size(word) for word in (b"", b"0x1", b"1 ", b"g", b"12345678")] == [None] * 5
