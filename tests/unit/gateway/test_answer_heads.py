"""Heads of usual answers: one that is recognised whole is read as one that is read line by line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.upstreams.answer_heads import KEPT, AnswerHead, AnswerHeads

LINES = [
    b"content-type: application/json", b"Content-Type: text/event-stream; charset=utf-8", b"content-length: 12",
    b"Content-Length: 557", b"content-length: ", b"content-length: 12345678", b"content-length: 1x", b"x-strength: 7",
    b"transfer-encoding: chunked", b"keep-alive: timeout=5", b"connection: keep-alive", b"connection: close",
    b"date: today", b"openai-version: 2", b"content-encoding: gzip", b"set-cookie: a=b", b"bad line",
]  # fmt: skip
HEADS = st.builds(
    lambda first, lines: b"\r\n".join([first, *lines]) + b"\r\n\r\n",
    st.sampled_from([b"HTTP/1.1 200 OK", b"HTTP/1.1 400 Bad Request", b"HTTP/1.1 500 Sorry"]),
    st.lists(st.sampled_from(LINES), max_size=6),
)


@given(st.lists(HEADS, max_size=12))
def test_what_was_read_before_changes_nothing(heads: list[bytes]) -> None:
    reader = AnswerHeads()
    for head in heads * 3:
        assert reader.read(head + b"body") == AnswerHeads().read(head + b"body")


@pytest.mark.parametrize("name", [b"content-length", b"Content-Length"])
def test_a_head_that_comes_again_may_say_another_length(name: bytes) -> None:
    reader = AnswerHeads()
    for length in (b"2", b"2", b"3000", b"2", b"0"):
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n%b: %b\r\n\r\n" % (name, length)
        known = AnswerHead(200, b"\r\ncontent-type: application/json", int(length), len(head), KEPT, is_stream=False)
        assert reader.read(head + b"{}") == known


@pytest.mark.parametrize(
    "lines",
    [
        b"content-length: ", b"content-length: 2\r\ncontent-length: 2",
        b"content-length: \r\ntransfer-encoding: chunked",
        b"transfer-encoding: chunked\r\ncontent-length: ", b"content-length: 2\r\ntransfer-encoding: chunked",
        b"content-length: \r\ncontent-length: 2", b"content-length: -2", b"content-length: 123456789",
    ],
)  # fmt: skip
def test_a_length_that_readers_may_understand_otherwise_is_not_usual(lines: bytes) -> None:
    reader = AnswerHeads()
    for _ in range(3):
        assert reader.read(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n%b\r\n\r\n{}" % lines) is None


def test_heads_with_ids_of_their_own_are_not_kept() -> None:
    reader = AnswerHeads()
    for number in range(1000):
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nx-id: %d\r\ncontent-length: 2\r\n\r\n" % number
        assert reader.read(head) is not None
    assert not reader._whole


def test_few_heads_are_kept() -> None:
    reader = AnswerHeads()
    for number in range(40):
        for other in range(40):
            head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\na: %d\r\nb: %d\r\ncontent-length: 2\r\n\r\n"
            reader.read(head % (number, other))
    assert 0 < len(reader._whole) <= 512
