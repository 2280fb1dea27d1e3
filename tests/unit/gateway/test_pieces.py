"""What arrives in pieces is read in linear work, whatever the cuts: counted in bytes that are joined, or read again."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.upstreams.upstream_answers import http_chunk
from typing_extensions import override

from gateway.exchange.attempt import Attempt
from gateway.http.connection import ClientConnection
from gateway.http.head_cache import Offer, RequestCache
from gateway.http.request import Request
from gateway.pieces import Pieces
from gateway.upstreams import UpstreamFailureCode
from gateway.upstreams import connection as upstream_connection
from gateway.upstreams.answer_heads import AnswerHead, AnswerHeads
from gateway.upstreams.chunks import CompleteChunks, read_complete
from gateway.upstreams.connection import AnswerFollower, UpstreamConnection
from gateway.upstreams.fetch import CollectedAnswer

COUNT = 20_000
CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
#: The bytes of pieces: a byte each, or any number.
CUTS = st.integers(1, 4).map(lambda size: [size] * 200) | st.lists(st.integers(1, 400), min_size=1, max_size=60)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """Cut bytes into pieces of these sizes, which are repeated."""
    ends = [0]
    while ends[-1] < len(data):
        ends.append(min(ends[-1] + sizes[(len(ends) - 1) % len(sizes)], len(data)))
    return [data[begin:end] for begin, end in pairwise(ends)]


class JoinedBytes(bytes):
    """Bytes that count how many bytes are copied where they are joined with ``+``."""

    copied = 0

    @override
    def __add__(self, other: Any) -> "JoinedBytes":
        return self._counted(bytes.__add__(self, other))

    def __radd__(self, other: bytes) -> "JoinedBytes":
        return self._counted(other + bytes(self))

    @staticmethod
    def _counted(joined: bytes) -> "JoinedBytes":
        JoinedBytes.copied += len(joined)
        return JoinedBytes(joined)


class Transport(asyncio.Transport):
    """A transport on which nothing is sent."""

    @override
    def get_extra_info(self, name: str, default: Any = None) -> Any:
        class Peer:
            fileno = staticmethod(lambda: 3)
            setsockopt = staticmethod(lambda *_: None)

        return Peer

    @override
    def write(self, data: Any) -> None:
        pass

    @override
    def is_closing(self) -> bool:
        return False

    @override
    def get_write_buffer_size(self) -> int:
        return 0


def upstream() -> UpstreamConnection:
    owner: Any = SimpleNamespace(heads=AnswerHeads(), opened=lambda _: None, give_back=lambda *_: None)
    return UpstreamConnection(owner, ("h", 1, None))


class Follower(AnswerFollower):
    """Collects a body."""

    def __init__(self) -> None:
        self.body = b""
        self.has_ended = False

    @override
    def began(self, head: AnswerHead) -> None:
        pass

    @override
    def received(self, payload: bytes, chunk: bytes) -> None:
        self.body += payload

    @override
    def failed(self, code: UpstreamFailureCode) -> None:
        raise AssertionError(code)

    @override
    def broken(self, error: Exception) -> None:
        raise error

    @override
    def ended(self) -> None:
        self.has_ended = True


@given(st.lists(st.binary(max_size=100)))
def test_pieces_are_what_was_added(pieces: list[bytes]) -> None:
    added = Pieces()
    for piece in pieces:
        added.add(piece)
    assert added.whole() == b"".join(pieces)
    assert added.size == len(added.whole())
    added.clear()
    assert (added.whole(), added.size) == (b"", 0)


def attempt() -> tuple[Callable[[bytes], None], Callable[[], bytes]]:
    read = Attempt.__new__(Attempt)  # before its answer has begun it needs no more

    def body() -> bytes:
        assert read._body is not None
        return read._body.whole()

    return lambda piece: read.received(piece, b""), body


def collected() -> tuple[Callable[[bytes], None], Callable[[], bytes]]:
    read = CollectedAnswer(upstream(), limit=1 << 20)
    return lambda piece: read.received(piece, b""), read.body.whole


def request() -> tuple[Callable[[bytes], None], Callable[[], bytes]]:
    read = Request(None, "POST", "/", {}, minor=1, stays=True)  # type: ignore[arg-type]  # its client is not asked
    return read.feed, read._body.whole


@pytest.mark.parametrize("reader", [attempt, collected, request])
async def test_a_body_in_pieces_of_a_byte_is_joined_in_linear_work(
    reader: Callable[[], tuple[Callable[[bytes], None], Callable[[], bytes]]],
) -> None:
    receive, body = reader()
    JoinedBytes.copied = 0
    for _ in range(COUNT):
        receive(JoinedBytes(b"x"))
    assert body() == b"x" * COUNT
    assert JoinedBytes.copied <= 2 * COUNT


@given(st.lists(st.integers(1, 2_000), max_size=6), CUTS)
@example([15_000], [1])
@example([40_000, 1], [1])
@example([1] * 4_000, [1])
def test_chunks_are_read_in_linear_work_whatever_the_cuts(sizes: list[int], cuts: list[int]) -> None:
    answer = b"".join(http_chunk(b"x" * size) for size in sizes) + b"0\r\n\r\n"
    read = 0

    def counting(data: bytes) -> CompleteChunks:
        nonlocal read
        read += len(data)
        return read_complete(data)

    follower, connection = Follower(), upstream()
    connection.connection_made(Transport())
    connection.send(b"", b"", follower)
    connection.data_received(CHUNKED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upstream_connection, "read_complete", counting)
        for piece in cut(answer, cuts):
            connection.data_received(piece)
    assert follower.has_ended
    assert follower.body == b"x" * sum(sizes)
    # A size takes up to ten bytes, which are read again with each of them.
    assert read <= 3 * len(answer) + 60 * (len(sizes) + 1)


class Cache(RequestCache):
    """Knows a head of `HEAD` bytes, before a body of ``length`` bytes, and counts the bytes that it is offered."""

    HEAD = 100

    def __init__(self, length: int) -> None:
        self._length = length
        self.offered = 0
        self.bodies: list[int] = []

    @override
    def take(self, client: ClientConnection, data: bytes, arrived_ns: int) -> Offer | int:
        self.offered += len(data)
        missing = self.HEAD + self._length - len(data)
        if missing > 0:
            return missing
        self.bodies.append(len(data))
        return Offer.TAKEN

    @override
    def remember(self, data: bytes, request: Request) -> None:
        pass


async def test_a_request_with_a_known_head_that_drips_is_offered_twice() -> None:
    cache = Cache(length=COUNT)
    owner: Any = SimpleNamespace(cache=cache, draining=False, first_byte=lambda: 10.0, opened=lambda _: None)
    connection = ClientConnection(owner)
    connection.connection_made(Transport())
    connection.data_received(b"x" * Cache.HEAD)
    for _ in range(COUNT):
        connection.data_received(b"x")
    assert cache.bodies == [Cache.HEAD + COUNT]
    assert cache.offered <= 2 * (Cache.HEAD + COUNT)
