"""A scripted OpenAI-compatible upstream on raw sockets: it does what real servers only do when nobody looks.

In a test:     async with scripted_upstream() as up: ... up.url, up.script, up.requests
As a process:  with upstream_process(log=path) as (url, child): ...
By hand:       PYTHONPATH=tests python -m support.upstreams.scripted_upstream --port 0
Which answers there are is in `upstream_answers`; what they are made of, in `upstream_wire`.
"""

import argparse
import asyncio
import os
import signal
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import assert_never, cast

import msgspec
import uvloop
from support.servers.child_processes import Child, child_process, die_with_parent, say
from support.upstreams.upstream_answers import by_model
from support.upstreams.upstream_wire import Act, Message, Outcome, Request, RequestParser, Sleep, Step, Steps
from support.waiting import PATIENCE
from typing_extensions import override

Script = Callable[[Request], Steps]

#: long enough for a reader on the same machine to wake up and read, short enough for a thousand events
FLUSH_PAUSE = 0.001


class ScriptedUpstream:
    """The server; `script` may be exchanged at any time and is asked once per request."""

    def __init__(self, script: Script = by_model, *, keep: bool = True, log: Path | None = None) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.received = 0
        self.accepted = 0
        self.connections: set[_Connection] = set()
        self.hanging = 0
        self.failures: list[Exception] = []
        self.port = 0
        self._keep = keep
        self._released = asyncio.Event()
        self._changed = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._tls: ssl.SSLContext | None = None
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644) if log else None

    @property
    def url(self) -> str:
        """Base URL, as clients of OpenAI want it."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/v1"

    async def start(self, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        """Listen; after `stop`, again on the same port unless another is given."""
        self._tls = tls or self._tls
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self), "127.0.0.1", port or self.port, backlog=4096, ssl=self._tls
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and reset every connection: new ones are refused from here on."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in list(self.connections):
            connection.reset()
        await self.until(lambda up: not up.connections)
        await asyncio.sleep(0)  # cancelled answers end

    async def close(self) -> None:
        """Stop, and end the log."""
        await self.stop()
        if self._log is not None:
            os.close(self._log)
            self._log = None

    def release(self) -> None:
        """Let every answer that hangs go on; those that hang later will wait for the next call."""
        self._released.set()
        self._released = asyncio.Event()

    async def until(self, condition: Callable[["ScriptedUpstream"], bool], timeout_s: float = PATIENCE) -> None:
        """Wait for something to become true of this server, such as `lambda up: up.hanging == 1`."""
        async with asyncio.timeout(timeout_s):
            while not condition(self):
                self._changed.clear()
                await self._changed.wait()

    def take(self, message: Message, connection: int, nth: int) -> Request:
        """Number a request and keep it."""
        request = Request(
            number=self.received,
            connection=connection,
            nth=nth,
            method=message.method,
            path=message.path,
            headers=message.headers,
            body=message.body,
        )
        self.received += 1
        if self._keep:
            self.requests.append(request)
        self._changed.set()
        return request

    def settle(self, request: Request, outcome: Outcome) -> None:
        """Note how an answer ended; a line of the log is written only now, so that it can be believed."""
        request.outcome = outcome
        if self._log is not None:
            line = {"id": request.id, "outcome": outcome.value, "path": request.path, "model": request.model}
            os.write(self._log, msgspec.json.encode(line | {"at": time.time()}) + b"\n")
        self._changed.set()

    async def hang(self) -> None:
        """Wait for `release`, and be seen waiting."""
        self.hanging += 1
        self._changed.set()
        try:
            await self._released.wait()
        finally:
            self.hanging -= 1
            self._changed.set()

    def joined(self, connection: "_Connection") -> int:
        """Number a new connection."""
        self.connections.add(connection)
        self.accepted += 1
        self._changed.set()
        return self.accepted - 1

    def left(self, connection: "_Connection") -> None:
        """Forget a connection."""
        self.connections.discard(connection)
        self._changed.set()


class _Connection(asyncio.Protocol):
    """One client: requests are answered in order; plain answers without a task, since load tests are made of them."""

    def __init__(self, up: ScriptedUpstream) -> None:
        self._up = up
        self._parser = RequestParser()
        self._waiting: list[Request] = []
        self._current: Request | None = None
        self._playing: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self._drained.set()
        self._seen = 0

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        # Any unsent byte pauses, its departure resumes: "sent in full" then means handed to the kernel.
        # (TLS transports call an empty buffer full when the limit is 0.)
        encrypted = transport.get_extra_info("sslcontext") is not None
        self._transport.set_write_buffer_limits(high=int(encrypted), low=0)
        self._number = self._up.joined(self)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._playing is not None:
            self._playing.cancel()
        if self._current is not None:
            self._finish(Outcome.CLIENT_GONE)
        self._up.left(self)

    @override
    def data_received(self, data: bytes) -> None:
        try:
            for message in self._parser.feed(data):
                self._waiting.append(self._up.take(message, self._number, self._seen))
                self._seen += 1
        except ValueError:
            self.reset()
            return
        if self._parser.wants_continue:
            self._parser.wants_continue = False
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._next()

    @override
    def pause_writing(self) -> None:
        self._drained.clear()

    @override
    def resume_writing(self) -> None:
        self._drained.set()
        if self._current is not None and self._playing is None:
            self._finish(Outcome.SENT)
            self._next()

    def reset(self) -> None:
        """End with RST instead of FIN."""
        sock: socket.socket | None = self._transport.get_extra_info("socket")
        if sock is not None:
            with suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def _next(self) -> None:
        while self._waiting and self._current is None and not self._transport.is_closing():
            self._current = self._waiting.pop(0)
            try:
                steps = self._up.script(self._current)
            except Exception as failure:  # noqa: BLE001 - a test's own script; told when the upstream ends
                self._up.failures.append(failure)
                steps = [Act.RESET]
            if isinstance(steps, list) and len(steps) == 1 and isinstance(steps[0], bytes):
                self._transport.write(steps[0])
                if self._drained.is_set():
                    self._finish(Outcome.SENT)
            else:
                self._playing = asyncio.get_running_loop().create_task(self._play(steps))

    async def _play(self, steps: Steps) -> None:
        outcome = Outcome.SENT
        for step in steps:
            ended = await self._act(step)
            if ended is not None:
                outcome = ended
                break
        if outcome is Outcome.SENT:
            await self._drained.wait()
        self._playing = None
        self._finish(outcome)
        self._next()

    async def _act(self, step: Step) -> Outcome | None:
        """Play one step; give an outcome when it ended the connection."""
        match step:
            case bytes():
                self._transport.write(step)
                await self._drained.wait()
            case Sleep(seconds):
                await asyncio.sleep(seconds)
            case Act.FLUSH:
                await self._drained.wait()
                await asyncio.sleep(FLUSH_PAUSE)
            case Act.HANG:
                await self._up.hang()
            case Act.CLOSE:
                await self._drained.wait()
                self._transport.close()
                return Outcome.CLOSED
            case Act.RESET:
                self.reset()
                return Outcome.RESET
            case _:
                assert_never(step)
        return None

    def _finish(self, outcome: Outcome) -> None:
        assert self._current is not None
        self._up.settle(self._current, outcome)
        self._current = None


@asynccontextmanager
async def scripted_upstream(
    script: Script = by_model,
    *,
    port: int = 0,
    tls: ssl.SSLContext | None = None,
    keep: bool = True,
    log: Path | None = None,
) -> AsyncIterator[ScriptedUpstream]:
    """Run an upstream in this loop until the block ends; `keep` False forgets requests once answered."""
    up = ScriptedUpstream(script, keep=keep, log=log)
    await up.start(port, tls=tls)
    try:
        yield up
    finally:
        await up.close()
    if up.failures:
        raise ExceptionGroup("the script raised", up.failures)


@contextmanager
def upstream_process(*, log: Path | None = None, port: int = 0) -> Iterator[tuple[str, Child]]:
    """Run an upstream in a process of its own until the block ends; give its URL."""
    arguments = [
        "-m",
        "support.upstreams.scripted_upstream",
        "--tied",
        "--port",
        str(port),
        *(["--log", str(log)] if log else []),
    ]
    with child_process(arguments) as child:
        yield child.hello["url"], child


def read_log(log: Path) -> list[dict[str, str]]:
    """Give what the process recorded: per request its `id` and `outcome` (`sent` = in full), `path`, `model`, `at`."""
    return [msgspec.json.decode(line) for line in log.read_bytes().splitlines()]


async def _serve(port: int, log: Path | None) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    up = ScriptedUpstream(keep=False, log=log)
    await up.start(port)
    say(port=up.port, url=up.url)
    await stopped.wait()
    await up.close()


def main() -> None:
    """Serve until SIGTERM; the port is printed as one line of JSON."""
    parser = argparse.ArgumentParser(description="Scripted OpenAI-compatible upstream; models name its answers.")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--log", type=Path, help="append a JSON line for every request once its answer ended")
    parser.add_argument("--tied", action="store_true", help="end when standard input ends")
    options = parser.parse_args()
    if options.tied:
        die_with_parent()
    uvloop.run(_serve(options.port, options.log))


if __name__ == "__main__":
    main()
