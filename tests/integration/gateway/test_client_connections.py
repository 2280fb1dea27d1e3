"""The server: what clients send, in whatever pieces, and what becomes of the connection; sockets are real."""

import asyncio
import gc
import json
import socket
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import h11
import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st
from support.waiting import eventually
from typing_extensions import override

from gateway.exchange.app import Router
from gateway.http import Request, Server, WholeAnswer
from gateway.http.answer import connection_line, server_lines_now, write_head
from gateway.http.connection import Answering, ClientConnection

LIMIT = 1 << 20
FIRST = b"POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /echo?x=1 HTTP/1.1\r\nhost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nt: u\r\n\r\n"
)
LAST = b"GET /events HTTP/1.1\r\nhost: h\r\nX-A:  1 \r\nConnection: close\r\n\r\n"


async def echo(request: Request) -> WholeAnswer:
    body = await request.body(LIMIT, 60.0)
    told = {"method": request.method, "headers": request.headers, "body": body.decode("latin-1")}
    return WholeAnswer(200, {"content-type": "application/json"}, json.dumps(told).encode())


class Stream(Answering):
    """An exchange that sends pieces as chunks, as fast as the client takes them."""

    def __init__(self, request: Request, pieces: Iterator[bytes]) -> None:
        assert isinstance(request.client, ClientConnection)
        self._client = request.client
        self._pieces = pieces
        self._is_chunked = request.minor > 0
        self._ends = self._client.ends_after(request) or not self._is_chunked
        self.lost = asyncio.Event()

    def begin(self) -> None:
        self._client.exchange = self
        framing = connection_line(int(self._is_chunked), ends=self._ends)
        if self._is_chunked:
            framing += b"\r\ntransfer-encoding: chunked"
        self._client.write(write_head(200, b"\r\ncontent-type: text/event-stream", server_lines_now(), framing))
        self.client_ready()

    @override
    def client_ready(self) -> None:
        for piece in self._pieces:
            self._client.write(b"%x\r\n%b\r\n" % (len(piece), piece) if self._is_chunked else piece)
            if self._client.is_full:
                return
        self._client.finish(b"0\r\n\r\n" if self._is_chunked else b"", ends=self._ends)

    @override
    def client_lost(self) -> None:
        self.lost.set()

    @override
    def stop(self) -> None:
        self._client.cut()


async def events(request: Request) -> None:
    Stream(request, iter([b"one", b"two"])).begin()


@dataclass(slots=True)
class Listening:
    """A site that is listening."""

    server: Server
    address: tuple[str, int]

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self.address)

    async def wire(self, *pieces: bytes) -> bytes:
        """Send pieces; give all that comes until the connection ends."""
        reader, writer = await self.connect()
        with suppress(ConnectionError):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
        async with asyncio.timeout(20):
            heard = await reader.read()
        writer.close()
        return heard

    async def answer_another(self) -> None:
        """Answer another client, after all that has come on the connections that are open."""
        assert understood(await self.wire(LAST), 1) == [(200, b"onetwo")]

    async def until_it_stands(self, count: Callable[[], int]) -> None:
        """Wait until a number stays the same while another client is answered."""

        async def stands() -> bool:
            before = count()
            await self.answer_another()
            return count() == before

        await eventually(stands)


@asynccontextmanager
async def listening(**handlers: Callable[[Request], Awaitable[Any]]) -> AsyncIterator[Listening]:
    paths = Router()
    for name, handler in {"echo": echo, "events": events, **handlers}.items():
        paths.add("POST", f"/{name}", handler)
        paths.add("GET", f"/{name}", handler)
    server = Server(paths.serve, lambda: 10.0)
    sock = socket.create_server(("127.0.0.1", 0))
    await server.listen(sock)
    try:
        yield Listening(server, sock.getsockname())
    finally:
        await server.close(0.0)


@pytest.fixture
async def server() -> AsyncIterator[Listening]:
    async with listening() as made:
        yield made


def understood(heard: bytes, requests: int) -> list[tuple[int, bytes]]:
    """Read answers as another implementation does: status and body of each."""
    answers: list[tuple[int, bytes]] = []
    for number in range(requests):
        client = h11.Connection(h11.CLIENT)
        client.send(h11.Request(method="GET", target="/", headers=[("host", "h")]))
        client.send(h11.EndOfMessage())
        client.receive_data(heard)
        status, body = 0, b""
        while not isinstance(event := client.next_event(), h11.EndOfMessage | h11.ConnectionClosed):
            assert event is not h11.NEED_DATA, (number, heard)
            status = getattr(event, "status_code", status)
            body += getattr(event, "data", b"")
        answers.append((status, body))
        heard = client.trailing_data[0]
    assert heard == b""
    return answers


def status_of(heard: bytes) -> int:
    return int(heard.split(b" ", 2)[1])


def cut_up(data: bytes, places: Sequence[int]) -> list[bytes]:
    ends = [0, *sorted(set(places)), len(data)]
    return [data[start:end] for start, end in pairwise(ends) if start < end]


@given(st.lists(st.integers(1, len(FIRST + CHUNKED + LAST) - 1), max_size=12))
def test_requests_are_understood_in_whatever_pieces_they_come_and_answered_in_order(places: list[int]) -> None:
    async def ask() -> bytes:
        async with listening() as server:
            return await server.wire(*cut_up(FIRST + CHUNKED + LAST, places))

    first, second, third = understood(uvloop.run(ask()), 3)
    assert json.loads(first[1]) == {
        "method": "POST",
        "headers": {"host": "h", "content-length": "5"},
        "body": "hello",
    }
    assert json.loads(second[1])["body"] == "hello"
    assert third == (200, b"onetwo")


async def test_a_piece_of_an_open_answer_is_one_chunk(server: Listening) -> None:
    heard = await server.wire(LAST)
    head, _, body = heard.partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head.split(b"\r\n")
    assert body == b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"


async def test_for_http_1_0_an_open_answer_ends_with_the_connection(server: Listening) -> None:
    heard = await server.wire(b"GET /events HTTP/1.0\r\nconnection: keep-alive\r\n\r\n")
    head, _, body = heard.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert body == b"onetwo"


async def test_of_a_field_that_comes_twice_the_first_counts(server: Listening) -> None:
    heard = await server.wire(b"GET /echo HTTP/1.1\r\nhost: h\r\nX-A: 1\r\nx-a: 2\r\nConnection: close\r\n\r\n")
    ((_, body),) = understood(heard, 1)
    assert json.loads(body)["headers"]["x-a"] == "1"


@pytest.mark.parametrize(
    "said",
    [
        b"hello\r\n\r\n",
        b"GET /echo HTTP/3.7\r\n\r\n",
        b"GET /echo HTTP/2.0\r\n\r\n",
        b"GET /echo\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: -1\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 99999999999999999999999\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nhost: h\r\nx-a : 1\r\n\r\n",
        b"GET /echo HTTP/1.1\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nx-host: h\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nhost: h\r\nHost: h\r\n\r\n",
        b"POST /echo HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nhost: h\r\nx-a: 1\r\n folded\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nhost: h\r\nx-a: 1\0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
async def test_what_is_no_request_is_refused_and_the_connection_ends(server: Listening, said: bytes) -> None:
    head, _, body = (await server.wire(said)).partition(b"\r\n\r\n")
    assert status_of(head) == 400
    assert b"connection: close" in head.split(b"\r\n")
    assert json.loads(body)["error"]["code"] == "http_error"


@pytest.mark.parametrize("coding", [b"gzip", b"gzip, chunked", b"identity", b"x"])
async def test_a_transfer_coding_that_is_not_known_is_not_implemented(server: Listening, coding: bytes) -> None:
    heard = await server.wire(b"POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: " + coding + b"\r\n\r\n0\r\n\r\n")
    assert status_of(heard) == 501
    assert heard.count(b"HTTP/1.1") == 1
    assert b"\r\nconnection: close\r\n" in heard


async def test_of_http_1_0_no_host_is_required(server: Listening) -> None:
    assert status_of(await server.wire(b"GET /echo HTTP/1.0\r\n\r\n")) == 200


async def test_the_name_of_the_coding_has_no_case(server: Listening) -> None:
    said = (
        b"POST /echo HTTP/1.1\r\nhost: h\r\nTransfer-Encoding: CHUNKED\r\nconnection: close\r\n\r\n1\r\na\r\n0\r\n\r\n"
    )
    assert status_of(await server.wire(said)) == 200


@pytest.mark.parametrize(
    "said",
    [
        b"GET /echo HTTP/1.1\r\nhost: h\r\nx: " + b"a" * (1 << 20),
        b"GET /" + b"a" * (1 << 20),
        b"GET /echo HTTP/1.1\r\nhost: h\r\n" + b"x: y\r\n" * 200,
        b"GET /echo HTTP/1.1\r\nhost: h\r\nx: " + b"a" * 65_600 + b"\r\n\r\n",
        FIRST.replace(b"host: h", b"host: h\r\nx: " + b"a" * 65_600),
    ],
)
async def test_a_head_that_is_too_large_is_refused(server: Listening, said: bytes) -> None:
    assert status_of(await server.wire(said)) == 431


@pytest.mark.parametrize("rest", [b"z\r\n", b"5\r\nhelloworld\r\n", b"0\r\n" + b"t: " + b"u" * (1 << 20)])
async def test_a_body_that_is_no_http_is_refused_by_its_handler(server: Listening, rest: bytes) -> None:
    heard = await server.wire(b"POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n", rest)
    assert status_of(heard) == 400
    assert b"\r\nconnection: close\r\n" in heard


async def test_behind_an_answered_request_what_is_no_request_ends_the_connection(server: Listening) -> None:
    assert understood(await server.wire(FIRST + b"???\r\n\r\n"), 1)[0][0] == 200


async def test_another_protocol_that_is_offered_is_not_taken_up(server: Listening) -> None:
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
    without = b"GET /echo HTTP/1.1\r\nhost: h\r\n" + offer + b"\r\n"
    with_body = b"POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n" + offer + b"\r\nhello"
    answers = understood(await server.wire(without + with_body + LAST), 3)
    assert [status for status, _ in answers] == [200, 200, 200]
    assert json.loads(answers[1][1])["body"] == "hello"


async def test_a_client_that_writes_all_before_it_reads_gets_its_early_answer(server: Listening) -> None:
    head = f"POST /nowhere HTTP/1.1\r\nhost: h\r\ncontent-length: {8 * LIMIT}\r\n\r\n".encode()
    heard = await server.wire(head, *[b" " * LIMIT] * 8)
    assert status_of(heard) == 404
    assert b"\r\nconnection: close\r\n" in heard


async def test_the_answer_to_a_head_and_one_without_a_body_have_none() -> None:
    async def none(_: Request) -> WholeAnswer:
        return WholeAnswer(204, {}, b"")

    async with listening(none=none) as server:
        heard = await server.wire(
            b"HEAD /echo HTTP/1.1\r\nhost: h\r\n\r\nGET /none HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"
        )
    head, empty, rest = heard.split(b"\r\n\r\n")
    assert b"\r\ncontent-length: " in head
    assert empty.startswith(b"HTTP/1.1 204 No Content\r\n")
    assert b"content-length" not in empty
    assert rest == b""


async def test_a_field_that_cannot_be_written_is_an_error_of_the_gateway() -> None:
    async def broken(_: Request) -> WholeAnswer:
        return WholeAnswer(200, {"x": "a\r\nb: c"}, b"")

    async with listening(broken=broken) as server:
        heard = await server.wire(b"GET /broken HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
    assert status_of(heard) == 500
    assert b"b: c" not in heard


async def test_the_handler_of_a_client_that_has_left_is_cancelled_and_nothing_is_kept_of_its_request() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()
    seen: list[weakref.ref[Any]] = []

    class Watched(dict[str, str]):
        """Headers that can be watched."""

    async def forever(request: Request) -> WholeAnswer:
        request.headers = Watched(request.headers)
        seen.append(weakref.ref(request.headers))
        task = asyncio.current_task()
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            assert task is asyncio.current_task()
            ended.set()
        raise AssertionError

    async with listening(forever=forever) as server:
        _, writer = await server.connect()
        gc.disable()
        try:
            writer.write(b"GET /forever HTTP/1.1\r\nhost: h\r\n\r\n")
            await begun.wait()
            writer.transport.abort()
            await asyncio.wait_for(ended.wait(), 5)
            for _ in range(20):
                await asyncio.sleep(0)
            assert [ref() for ref in seen] == [None]
        finally:
            gc.enable()
        assert not server.server.is_busy


class Flood:
    """A handler whose exchange writes as long as the client takes it."""

    def __init__(self) -> None:
        self.written = 0
        self.ended = asyncio.Event()

    def pieces(self) -> Iterator[bytes]:
        while True:
            self.written += 65536
            yield b"x" * 65536

    async def __call__(self, request: Request) -> None:
        stream = Stream(request, self.pieces())
        self.ended = stream.lost
        stream.begin()


async def test_a_client_that_does_not_read_is_not_written_to_for_ever() -> None:
    flood = Flood()
    async with listening(flood=flood) as server:
        reader, writer = await server.connect()
        writer.write(b"GET /flood HTTP/1.1\r\nhost: h\r\n\r\n")
        await reader.read(1)
        await server.until_it_stands(lambda: flood.written)
        assert flood.written < 16 << 20
        writer.transport.abort()


async def test_a_client_that_takes_nothing_for_too_long_has_left() -> None:
    flood = Flood()
    async with listening(flood=flood) as server:
        reader, writer = await server.connect()
        writer.write(b"GET /flood HTTP/1.1\r\nhost: h\r\n\r\n")
        await reader.read(1)
        await server.until_it_stands(lambda: flood.written)
        for _ in range(119):
            server.server.look()
        await server.answer_another()
        assert not flood.ended.is_set()
        server.server.look()  # ten minutes
        await asyncio.wait_for(flood.ended.wait(), 5)
        writer.close()


async def test_who_sends_request_after_request_and_waits_for_no_answer_gets_few() -> None:
    come = asyncio.Event()
    seen: list[Request] = []

    async def later(request: Request) -> WholeAnswer:
        seen.append(request)
        await come.wait()
        return WholeAnswer(200, {}, b"")

    async with listening(later=later) as server:
        reader, writer = await server.connect()
        writer.write(b"GET /later HTTP/1.1\r\nhost: h\r\n\r\n" * 500)
        await eventually(lambda: bool(seen) and seen[0].client.ends_after(seen[0]))
        come.set()
        heard = await reader.read()
        assert heard.count(b"HTTP/1.1 200 OK") == 1
        assert b"\r\nconnection: close\r\n" in heard
        writer.close()


async def test_of_a_body_that_nobody_reads_little_is_held() -> None:
    come = asyncio.Event()
    seen: list[Request] = []

    async def later(request: Request) -> WholeAnswer:
        seen.append(request)
        await come.wait()
        return await echo(request)

    async with listening(later=later) as server:
        reader, writer = await server.connect()
        size = 900_000
        writer.write(f"POST /later HTTP/1.1\r\nhost: h\r\ncontent-length: {size}\r\n\r\n".encode() + b"x" * size)
        await eventually(lambda: bool(seen) and seen[0].held > 0)
        await server.until_it_stands(lambda: seen[0].held)
        assert seen[0].held < 600_000
        come.set()
        head = await reader.readuntil(b"\r\n\r\n")
        assert status_of(head) == 200
        writer.close()


async def test_clients_that_are_waited_for_too_long_are_left(server: Listening) -> None:
    said = [
        b"",
        b"GET /echo HT",
        b"POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nhel",
        LAST.replace(b"close", b"x"),
    ]
    clients = [await server.connect() for _ in said]
    for (_, writer), words in zip(clients, said, strict=True):
        writer.write(words)
    await clients[-1][0].readuntil(b"0\r\n\r\n")
    await server.answer_another()
    # Ten seconds for a first byte, a minute for the rest, an hour for the next request.
    for looks, left in ((2, []), (1, [0]), (9, [0, 1, 2]), (720, [0, 1, 2, 3])):
        for _ in range(looks):
            server.server.look()
        await server.answer_another()
        ended = [reader.at_eof() or reader.exception() is not None for reader, _ in clients]
        assert [number for number, has_ended in enumerate(ended) if has_ended] == left
    for _, writer in clients:
        writer.close()


async def test_a_request_that_is_answered_slowly_is_waited_for() -> None:
    begun, come = asyncio.Event(), asyncio.Event()

    async def later(_: Request) -> WholeAnswer:
        begun.set()
        await come.wait()
        return WholeAnswer(200, {}, b"")

    async with listening(later=later) as server:
        reader, writer = await server.connect()
        writer.write(b"GET /later HTTP/1.1\r\nhost: h\r\n\r\n")
        await begun.wait()
        for _ in range(10_000):
            server.server.look()
        come.set()
        assert status_of(await reader.readuntil(b"\r\n\r\n")) == 200
        writer.close()


async def test_when_the_site_closes_idle_connections_end_and_others_with_their_answer() -> None:
    begun, come = asyncio.Event(), asyncio.Event()

    async def later(_: Request) -> WholeAnswer:
        begun.set()
        await come.wait()
        return WholeAnswer(200, {}, b"late")

    async with listening(later=later) as server:
        idle, idle_writer = await server.connect()
        busy, busy_writer = await server.connect()
        busy_writer.write(b"GET /later HTTP/1.1\r\nhost: h\r\n\r\n")
        await begun.wait()
        closing = asyncio.create_task(server.server.close(5.0))
        assert await idle.read() == b""
        come.set()
        heard = await busy.read()
        await closing
        assert heard.endswith(b"late")
        assert b"\r\nconnection: close\r\n" in heard
        idle_writer.close()
        busy_writer.close()


async def test_a_site_that_closes_does_not_wait_for_ever() -> None:
    begun = asyncio.Event()

    async def never(_: Request) -> WholeAnswer:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with listening(never=never) as server:
        reader, writer = await server.connect()
        writer.write(b"GET /never HTTP/1.1\r\nhost: h\r\n\r\n")
        await begun.wait()
        await server.server.close(0.01)
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()


@given(st.data())
def test_whatever_comes_the_next_client_is_served(data: st.DataObject) -> None:
    said = bytearray(FIRST + CHUNKED)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(said) - 1))
        length = data.draw(st.integers(0, 8))
        said[place : place + length] = data.draw(st.binary(max_size=8))

    async def ask() -> None:
        async with listening() as server:
            _, writer = await server.connect()
            writer.write(bytes(said))
            await server.answer_another()
            writer.transport.abort()
            await server.answer_another()

    uvloop.run(ask())


# -- handlers that fail ----------------------------------------------------------------------------------------------


async def fail_at_once(_: Request) -> WholeAnswer:
    raise RuntimeError("a fault of the gateway")


async def test_a_handler_that_fails_is_answered_with_500(caplog: pytest.LogCaptureFixture) -> None:
    async with listening(fail=fail_at_once) as server:
        heard = await server.wire(b"GET /fail HTTP/1.1\r\nhost: h\r\n\r\n" + LAST)
    (status, body), (following, _) = understood(heard, 2)
    assert (status, json.loads(body)["error"]["code"], following) == (500, "internal_error", 200)
    assert "a fault of the gateway" in caplog.text


async def test_an_error_that_no_handler_has_caught_leaves_no_client_waiting(caplog: pytest.LogCaptureFixture) -> None:
    async def serve(request: Request) -> bool:
        raise RuntimeError("a fault of the server")

    server = Server(serve, lambda: 10.0)
    with socket.create_server(("127.0.0.1", 0)) as sock:
        await server.listen(sock)
        heard = await Listening(server, sock.getsockname()).wire(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
        await server.close(0.0)
    ((status, body),) = understood(heard, 1)
    assert (status, json.loads(body)["error"]["code"]) == (500, "internal_error")
    assert "a fault of the server" in caplog.text


async def test_for_a_descriptor_the_oldest_that_wait_go_first_and_whole_requests_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.http.server._SPARED", 0.0)
    may_answer = asyncio.Event()
    gone: list[str] = []

    async def hold(request: Request) -> WholeAnswer:
        await may_answer.wait()
        return await echo(request)

    async def ends(name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.read()
        gone.append(name)
        writer.close()

    beginnings = {
        "head": b"POST /ec",
        "body": b"POST /hold HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nhel",
        "chunks": b"POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhe",
        "whole": b"GET /hold HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n",
        "answered": FIRST,
        "unused": b"",
    }
    async with listening(hold=hold) as at:
        ending = []
        for name, beginning in beginnings.items():
            reader, writer = await at.connect()
            writer.write(beginning)
            await at.answer_another()
            ending.append(asyncio.create_task(ends(name, reader, writer)))
        at.server._limit = 8  # room is made for one
        for count in range(1, 6):
            at.server._make_room()
            await eventually(lambda count=count: len(gone) == count)
        at.server._make_room()
        may_answer.set()
        await asyncio.gather(*ending)
    assert gone == ["answered", "unused", "head", "body", "chunks", "whole"]
