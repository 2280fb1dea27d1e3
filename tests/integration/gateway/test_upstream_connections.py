"""How connections to deployments are made, kept, watched and let go, with either implementation and on either loop."""

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from support.servers.certificates import make_authority
from support.servers.ports import free_port
from support.upstreams.scripted_upstream import scripted_upstream
from support.upstreams.upstream_answers import in_turn
from support.upstreams.upstream_requests import IMPLEMENTATIONS, Asking, asking
from support.upstreams.upstream_wire import CLOSE, FLUSH, HANG, RESET, Request, Step, Steps
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio", "uvloop"])

OK = b"HTTP/1.1 200 OK\r\n"
HELLO = OK + b"content-length: 5\r\n\r\nhello"
MIB = 1 << 20


@pytest.fixture(params=IMPLEMENTATIONS)
def implementation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
async def unheard_failures() -> AsyncIterator[None]:
    """Nothing may fail where nobody hears of it."""
    failures: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    yield
    assert failures == []


# -- kept connections ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [RESET, CLOSE])
async def test_a_kept_connection_that_ends_before_any_byte_is_replaced(implementation: str, end: Step) -> None:
    def script(request: Request) -> Steps:
        return [end] if request.nth else [HELLO]

    async with scripted_upstream(script) as up, asking(implementation, up.url) as client:
        for _ in range(3):
            assert (await client.ask()).body == b"hello"
    assert [request.nth for request in up.requests] == [0, 1, 0, 1, 0]


async def test_a_request_that_has_heard_something_is_not_sent_again() -> None:
    """The reference sends it again."""

    def script(request: Request) -> Steps:
        return [b"HTTP/1.1 2", FLUSH, CLOSE] if request.nth else [HELLO]

    async with scripted_upstream(script) as up, asking("own", up.url) as client:
        assert (await client.ask()).body == b"hello"
        assert (await client.ask()).failure == "upstream_reset"
    assert len(up.requests) == 2


async def test_a_connection_that_was_closed_while_it_rested_is_not_used(implementation: str) -> None:
    async with scripted_upstream(lambda _: [HELLO, FLUSH, CLOSE]) as up, asking(implementation, up.url) as client:
        for _ in range(3):
            assert (await client.ask()).body == b"hello"
            await up.until(lambda up: not up.connections)
    assert [request.nth for request in up.requests] == [0, 0, 0]


async def test_a_connection_that_spoke_while_it_rested_is_not_used() -> None:
    """The reference gives the next request what was said before it was sent."""
    script = in_turn(lambda _: [HELLO, FLUSH, b"junk"], lambda _: [HELLO])
    async with scripted_upstream(script) as up, asking("own", up.url) as client:
        assert (await client.ask()).body == b"hello"
        await up.until(lambda up: not up.connections)
        assert (await client.ask()).body == b"hello"


@pytest.mark.parametrize(("hint", "nth"), [("timeout=1", 0), ("timeout=0, max=5", 0), ("timeout=60", 1), ("max=9", 1)])
async def test_a_connection_is_kept_no_longer_than_its_server_says(hint: str, nth: int) -> None:
    answer = OK + f"keep-alive: {hint}\r\ncontent-length: 0\r\n\r\n".encode()
    async with scripted_upstream(lambda _: [answer]) as up, asking("own", up.url) as client:
        await client.ask()
        await client.ask()
    assert up.requests[1].nth == nth


async def test_the_connection_used_last_is_used_next() -> None:
    """The reference uses the one that has rested longest."""

    def script(request: Request) -> Steps:
        return [HANG, HELLO] if request.number < 2 else [HELLO]

    async with scripted_upstream(script) as up, asking("own", up.url) as client:
        first = asyncio.create_task(client.ask())
        await up.until(lambda up: up.hanging == 1)
        second = asyncio.create_task(client.ask())
        await up.until(lambda up: up.hanging == 2)
        up.release()
        await asyncio.gather(first, second)
        for _ in range(3):
            await client.ask()
    assert len({request.connection for request in up.requests[2:]}) == 1
    assert up.accepted == 2


async def test_closing_ends_every_connection_and_what_still_waits() -> None:
    def script(request: Request) -> Steps:
        return [HANG] if request.number else [HELLO]

    async with scripted_upstream(script) as up:
        async with asking("own", up.url) as client:
            await client.ask()
            waiting = asyncio.create_task(client.ask())
            await up.until(lambda up: up.hanging == 1)
        assert (await waiting).failure == "upstream_cut"
        await up.until(lambda up: not up.connections)


# -- letting go ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "steps", [[HANG], [b"HTTP/1.1 200", FLUSH, HANG], [HELLO[:-2], FLUSH, HANG]], ids=["silent", "in-head", "in-body"]
)
async def test_a_request_that_is_cancelled_ends_its_connection(implementation: str, steps: list[Step]) -> None:
    async with scripted_upstream(lambda _: steps) as up, asking(implementation, up.url) as client:
        waiting = asyncio.create_task(client.ask())
        await up.until(lambda up: up.hanging == 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await up.until(lambda up: not up.connections)


async def test_an_answer_that_is_closed_in_its_middle_ends_its_connection(implementation: str) -> None:
    async with scripted_upstream(lambda _: [HELLO[:-2], HANG]) as up, asking(implementation, up.url) as client:
        answer = await client.upstream.send(client.request())
        assert await answer.read() == b"hel"
        answer.close()
        await up.until(lambda up: not up.connections)
        answer.close()


async def test_after_thousands_of_requests_given_up_at_any_moment_nothing_is_left() -> None:
    chance = random.Random(7)
    answers: list[list[Step]] = [
        [HELLO],
        [HELLO[:-2], FLUSH, b"lo"],
        [HELLO, FLUSH, CLOSE],
        [RESET],
        [b"HTTP/1", CLOSE],
    ]

    async def many(client: Asking, count: int) -> None:
        for _ in range(count):
            with suppress(TimeoutError):
                async with asyncio.timeout(chance.choice([0, 0.0005, 0.002, 5])):
                    await client.ask()

    async with scripted_upstream(lambda _: [HELLO], keep=False) as up:
        async with asking("own", up.url) as client:
            await client.ask()  # the loop opens what it needs once
        await up.until(lambda up: not up.connections)
        before = len(list(Path("/proc/self/fd").iterdir()))
        up.script = lambda _: chance.choice(answers)
        async with asking("own", up.url) as client:
            await asyncio.gather(*(many(client, 100) for _ in range(20)))
            assert up.received > 500
            assert len(up.connections) <= 20
        await up.until(lambda up: not up.connections)
        # Transports close their sockets a turn of the event loop later.
        await eventually(lambda: len(list(Path("/proc/self/fd").iterdir())) <= before)
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


# -- backpressure ----------------------------------------------------------------------------------------------------


async def test_an_answer_that_is_not_read_is_not_taken(implementation: str) -> None:
    size, sent = 64 * MIB, 0

    def script(_: Request) -> Steps:
        nonlocal sent
        yield OK + b"content-length: %d\r\n\r\n" % size
        for _ in range(size // MIB):
            yield b"x" * MIB
            sent += 1

    async with scripted_upstream(script, keep=False) as up, asking(implementation, up.url) as client:
        answer = await client.upstream.send(client.request())
        stood_still, before = 0, -1
        while stood_still < 20:  # what the kernel holds is on its way
            stood_still, before = (stood_still + 1 if sent == before else 0), sent
            await asyncio.sleep(0.005)
        assert sent < 24  # the kernel's buffers and ours
        length = 0
        while piece := await answer.read():
            assert len(piece) <= MIB
            length += len(piece)
        answer.close()
        assert length == size
        assert (await client.ask(client.request(body=b"again"))).status == 200
        assert up.accepted == 1


@asynccontextmanager
async def hasty_server(answer: bytes) -> AsyncIterator[str]:
    """Answer as soon as the head has come, take no more, and close."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_an_answer_is_heard_while_the_request_is_still_being_written(implementation: str) -> None:
    answer = b"HTTP/1.1 413 Too Large\r\ncontent-length: 5\r\n\r\nlarge"
    async with hasty_server(answer) as url, asking(implementation, url) as client:
        told = await client.ask(client.request(body=bytes(16 * MIB)))
    assert (told.status, told.body) == (413, b"large")


async def test_a_connection_whose_request_was_not_written_whole_is_not_kept() -> None:
    accepted, ended = 0, asyncio.Semaphore(0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal accepted
        accepted += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HELLO)
        with suppress(ConnectionError):
            await reader.read(-1)  # as fast as this loop can, which is not fast enough
        writer.close()
        ended.release()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        async with asking("own", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1") as client:
            assert (await client.ask(client.request(body=bytes(16 * MIB)))).body == b"hello"
            assert (await client.ask()).body == b"hello"
        for _ in range(2):
            await ended.acquire()
    assert accepted == 2


# -- connecting ------------------------------------------------------------------------------------------------------


async def test_a_deployment_that_is_not_there_is_told_at_once(implementation: str) -> None:
    for url, code in (
        (f"http://127.0.0.1:{free_port()}", "upstream_connect"),
        ("http://unknown.invalid", "upstream_dns"),
    ):
        async with asking(implementation, url) as client:
            assert (await client.ask()).failure == code


async def test_a_name_is_tried_at_each_of_its_addresses(implementation: str) -> None:
    async with scripted_upstream(lambda _: [HELLO]) as up, asking(implementation, up.url) as client:
        named = Asking(client.upstream, up.url.replace("127.0.0.1", "localhost"))
        told = await asyncio.gather(*(named.ask() for _ in range(5)))
    assert [one.body for one in told] == [b"hello"] * 5


async def test_an_ipv6_address_stands_in_brackets(implementation: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(HELLO)
        writer.close()

    heads: list[bytes] = []
    async with await asyncio.start_server(serve, "::1", 0) as server:
        authority = f"[::1]:{server.sockets[0].getsockname()[1]}"
        async with asking(implementation, f"http://{authority}") as client:
            assert (await client.ask()).body == b"hello"
    assert f"host: {authority}\r\n".encode() in heads[0].lower()


async def test_connecting_ends_in_time(implementation: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # which never says what TLS begins with
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        async with asking(implementation, url) as client:
            assert (await client.ask(client.request(connect_timeout=0.05))).failure == "upstream_connect_timeout"


# -- TLS -------------------------------------------------------------------------------------------------------------


async def ask_over_tls(client: Asking, ca_file: Path | None) -> str | bytes | None:
    told = await client.ask(client.request(ca_file=ca_file, body=b"x" * 300_000))
    return told.failure or told.body


async def test_tls_is_spoken_with_whom_the_file_trusts_and_connections_are_kept_apart(
    implementation: str, tmp_path: Path
) -> None:
    ours, other = make_authority(tmp_path, "ours"), make_authority(tmp_path, "other")
    tls = ours.serving("good", "IP:127.0.0.1,DNS:localhost")
    async with scripted_upstream(lambda _: [HELLO], tls=tls) as up, asking(implementation, up.url) as client:
        assert await ask_over_tls(client, ours.ca_file) == b"hello"
        assert await ask_over_tls(client, other.ca_file) == "upstream_tls"
        assert await ask_over_tls(client, None) == "upstream_tls"
        assert await ask_over_tls(client, tmp_path / "missing.pem") == "upstream_tls"
        assert await ask_over_tls(client, ours.ca_file) == b"hello"
        named = Asking(client.upstream, up.url.replace("127.0.0.1", "localhost"))
        assert await ask_over_tls(named, ours.ca_file) == b"hello"
        elsewhere = Asking(client.upstream, up.url.replace("127.0.0.1", "127.0.0.2"))
        assert await ask_over_tls(elsewhere, ours.ca_file) == "upstream_connect"
    assert [request.nth for request in up.requests] == [0, 1, 0]


async def test_another_host_s_certificate_is_not_accepted(implementation: str, tmp_path: Path) -> None:
    ours = make_authority(tmp_path, "ours")
    tls = ours.serving("misnamed", "DNS:models.example,IP:127.0.0.2")
    async with scripted_upstream(lambda _: [HELLO], tls=tls) as up, asking(implementation, up.url) as client:
        assert await ask_over_tls(client, ours.ca_file) == "upstream_tls"
        assert not up.requests


async def test_a_server_without_tls_is_refused(implementation: str) -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with asking(implementation, url) as client:
            assert (await client.ask()).failure == "upstream_tls"


async def test_a_file_that_has_changed_holds_for_the_next_request(implementation: str, tmp_path: Path) -> None:
    ours, other = make_authority(tmp_path, "ours"), make_authority(tmp_path, "other")
    tls = ours.serving("good", "IP:127.0.0.1")
    trusted = tmp_path / "trusted.pem"
    async with scripted_upstream(lambda _: [HELLO], tls=tls) as up, asking(implementation, up.url) as client:
        for file, came in ((ours.ca_file, b"hello"), (other.ca_file, "upstream_tls"), (ours.ca_file, b"hello")):
            file.rename(trusted)
            assert await ask_over_tls(client, trusted) == came
            trusted.rename(file)
