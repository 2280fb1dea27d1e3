"""Streams of requests whose heads are remembered are those of parsed ones: to clients, deployments, records and counts.

Both gateways get the same streams, cut into chunks and packets at the same places. In the middle of some of them
something happens, when the client has got all that comes before it.
"""

import asyncio
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from openai import AsyncOpenAI
from support.servers.both_relays import SECRETS, Way, way
from support.upstreams.upstream_answers import http_chunk
from support.upstreams.upstream_wire import CLOSE, FLUSH, HANG, RESET, Outcome, Request, Step

from auditor.config import Config
from gateway.routing.table import RoutingTable

SETTINGS: dict[str, Any] = {
    "gateway": {"retries": 0},
    "deployments": [
        {"name": "a", "base_url": "UP", "api_key": "sk-upstream"},
        {"name": "b", "base_url": "UP", "model": "real", "concurrency": 2, "stream_usage": False},
        *({"name": name, "base_url": "UP", "timeouts": {name: 0.3}} for name in ("first_token", "idle", "total")),
    ],
    "routes": [
        {"model": "m", "deployments": ["a"], "capture": "full"},
        {"model": "n", "deployments": ["a"], "fallbacks": ["alias"], "capture": "full"},
        {"model": "alias", "deployments": ["b"], "capture": "full"},
        {"model": "hashed", "deployments": ["a"], "capture": "hashed"},
        {"model": "unsampled", "deployments": ["a"], "capture": "full", "sample": 0.0},
        *({"model": name, "deployments": [name], "capture": "full"} for name in ("first_token", "idle", "total")),
    ],
}
MODELS = ("m", "n", "alias", "hashed", "unsampled")
DONE = b"data: [DONE]\n\n"
OK = b"HTTP/1.1 200 OK\r\n"
TYPE = b"content-type: text/event-stream\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n"


# -- what deployments stream -------------------------------------------------------------------------------------------


def said(payload: Any, name: str = "") -> bytes:
    event = f"event: {name}\n" if name else ""
    return f"{event}data: {json.dumps(payload, separators=(',', ':'))}\n\n".encode()


def texts(*pieces: str, **more: Any) -> list[bytes]:
    """Give events of text, each with a number of its own, by which it is recognised."""
    return [
        said({"n": n, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}], **more})
        for n, text in enumerate(pieces)
    ]


USUAL = texts("Which", " of", ' "two"\n', " é")
STOP = said({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
USAGE = {"usage": {"prompt_tokens": 3, "completion_tokens": 4}}
NULL = {"usage": None}
WITH_NULLS = [*texts("Which", " of", **NULL), STOP[:-3] + b',"usage":null}\n\n', said({"choices": [], **USAGE}), DONE]
SECRET = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
ERROR = said({"error": {"message": "overloaded", "code": 500}})
DELTAS = [
    said({"type": "response.output_text.delta", "n": n, "delta": "x"}, "response.output_text.delta") for n in range(4)
]
RESPONSE = {"status": "completed", "error": None, "usage": {"input_tokens": 3, "output_tokens": 4}}


def last_response(kind: str, **more: Any) -> bytes:
    return said({"type": f"response.{kind}", "response": {**RESPONSE, "status": kind, **more}}, f"response.{kind}")


STREAMS: dict[str, list[bytes]] = {
    "usual": [*USUAL, STOP, said({"choices": [], **USAGE}), DONE],
    "nulls": WITH_NULLS,
    "no usage": [*USUAL, STOP, DONE],
    "usage with choices": [*USUAL, STOP[:-3] + b"," + json.dumps(USAGE)[1:].encode() + b"\n\n", DONE],
    "usage everywhere": [*texts("a", "b", **USAGE), STOP, DONE],
    "padded": [*texts("a", "b", "c", obfuscation="x7Yz"), STOP, DONE],
    "CRLF": [event.replace(b"\n", b"\r\n") for event in WITH_NULLS],
    "CR": [event.replace(b"\n", b"\r") for event in WITH_NULLS],
    "mixed ends": [USUAL[0][:-1] + b"\r\n", USUAL[1].replace(b"\n\n", b"\r\r"), *USUAL[2:], DONE],
    "comments": [b": ping\n\n", USUAL[0], b":\n\n", b"retry: 3\n" + USUAL[1], b"id: 7\n" + STOP, DONE],
    "blank lines": [b"\n\n", *(event + b"\n" for event in USUAL), DONE],
    "no space": [event.replace(b"data: ", b"data:") for event in [*USUAL, STOP, DONE]],
    "lines of data": [event.replace(b'":', b'":\ndata: ', 1) for event in [*USUAL, STOP]] + [DONE],
    "no DONE": [*USUAL, STOP],
    "no DONE, usage": [*USUAL, STOP, said({"choices": [], **USAGE})],
    "no end": USUAL,
    "half an event at the end": [*USUAL, STOP, DONE[:9]],
    "half a DONE": [*USUAL, STOP, DONE[:-2]],
    "DONE in a text": [*texts("data: [DONE]", "\n\ndata: [DONE]\n\n"), STOP, DONE],
    "DONE among data": [USUAL[0], b"data: [DONE]\ndata: x\n\n", STOP, DONE],
    "more after DONE": [*USUAL, STOP, DONE, *texts("late"), DONE],
    "half an event after DONE": [*USUAL, STOP, DONE + b": tra"],
    "an event after DONE in halves": [*USUAL, STOP, DONE + b": tra", b"iling\n\n"],
    "error": [*USUAL, ERROR, DONE],
    "error at the end": [*USUAL, ERROR],
    "error at first": [ERROR, DONE],
    "two choices": [
        *USUAL,
        said({"choices": [{"index": 1, "delta": {}, "finish_reason": "length"}]}),
        said({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        DONE,
    ],
    "a secret in pieces": [*texts("key: ", SECRET[:7], SECRET[7:20], SECRET[20:], " ok"), STOP, DONE],
    "a large copy": [*texts(*["x" * 1500] * 50), STOP, DONE],
    "a large event": [*texts("a", "x" * 140_000, "b"), STOP, DONE],
    "not events": [b"SSH-2.0", b'{"choices":[', b"\0\xff\n"],
    "nothing": [],
    "response": [*DELTAS, last_response("completed")],
    "response failed": [*DELTAS, last_response("failed", error={"code": "x"}, usage=None)],
    "response incomplete": [*DELTAS, last_response("incomplete", usage=None)],
    "response unfinished": DELTAS,
    "response error": [*DELTAS, said({"type": "error", "code": "x", "message": "y"}, "error")],
    "response unnamed": [*(event.partition(b"\n")[2] for event in [*DELTAS, last_response("completed")])],
    "response spaced": [*DELTAS, b'data: { "response": {"status": "completed"}, "type" : "response.completed" }\n\n'],
}

#: Streams that end without a terminator and without a finish reason; the client gets an error instead of the end.
NOT_COMPLETE = {"no end", "not events", "nothing", "error at the end", "response unfinished"}

#: Heads, and changes of the bytes that follow.
HEADS: dict[str, bytes] = {
    "usual": OK + TYPE + CHUNKED,
    "fields": OK + b"x-ratelimit-a: 1\r\nCache-Control: max-age=3\r\n" + TYPE + b"x-accel-buffering: yes\r\n" + CHUNKED,
    "charset": OK + b"Content-Type: Text/Event-Stream; charset=utf-8\r\n" + CHUNKED,
    "kept": OK + TYPE + b"Connection: keep-alive\r\nkeep-alive: timeout=5\r\n" + CHUNKED,
    "kept shortly": OK + TYPE + b"keep-alive: timeout=1\r\n" + CHUNKED,
    "closing": OK + TYPE + b"connection: close\r\n" + CHUNKED,
    "no type": OK + CHUNKED,
    "coded": OK + TYPE + b"content-encoding: gzip\r\n" + CHUNKED,
    "JSON": OK + b"content-type: application/json\r\n" + CHUNKED,
    "created": b"HTTP/1.1 201 Created\r\n" + TYPE + CHUNKED,
    "refused": b"HTTP/1.1 400 Bad Request\r\n" + TYPE + CHUNKED,
    "failed": b"HTTP/1.1 500 Bad\r\n" + TYPE + CHUNKED,
    "interim": b"HTTP/1.1 103 Early Hints\r\n\r\n" + OK + TYPE + CHUNKED,
}
FRAMES: dict[str, Callable[[bytes], bytes]] = {
    "extension": lambda chunks: re.sub(rb"^([0-9a-f]+)\r\n", rb"\1;x=y\r\n", chunks),
    "later extension": lambda chunks: chunks.replace(b"\r\n0\r\n", b"\r\n0;x=y\r\n"),
    "zeros": lambda chunks: b"000" + chunks,
    "large size": lambda chunks: b"0" * 9 + chunks,
    "trailer": lambda chunks: chunks[:-2] + b"x-sum: 1\r\n\r\n",
    "more": lambda chunks: chunks + b"HTTP/1.1 200 OK\r\n\r\n",
    "no line end": lambda chunks: chunks.replace(b"\n\n\r\n", b"\n\n.."),
    "not a size": lambda chunks: chunks.replace(b"\r\n0\r\n", b"\r\nzz\r\n"),
    "no chunks": lambda _: b"\r\n",
    "cut": lambda chunks: chunks[:-20],
    "cut before the end": lambda chunks: chunks[:-5],
    "cut in the end": lambda chunks: chunks[:-2],
}
CUT = {"cut", "cut before the end", "cut in the end", "no chunks"}


@dataclass(frozen=True)
class Ask:
    """A request for a stream, and how the deployment sends it."""

    stream: str = "usual"
    head: str = "usual"
    frame: str = "usual"
    model: str = "m"
    key: int = 0
    connection: int = 0
    usage: bool | None = None  #: what the client asks for; None: it says nothing
    cuts: tuple[int, ...] = ()  #: between chunks; without any there is one for each event
    packets: tuple[int, ...] = (-1,)
    middle: str = ""  #: what happens
    after: int = 2  #: so many events

    def request(self) -> bytes:
        body: dict[str, Any] = {"model": self.model, "messages": [], "stream": True, "user": json.dumps(self.__dict__)}
        if self.usage is not None:
            body["stream_options"] = {"include_usage": self.usage}
        data = json.dumps(body).encode()
        path = b"/v1/responses" if self.stream.startswith("response") else b"/v1/chat/completions"
        lines = [b"POST %b HTTP/1.1" % path, b"Host: h", b"Authorization: Bearer %b" % SECRETS[self.key].encode()]
        return b"\r\n".join([*lines, b"Content-Length: %d" % len(data), b"", data])

    def steps(self) -> list[Step]:
        """Give what the deployment sends."""
        first, second = self._parts()
        chunks = b"".join(map(http_chunk, [*self._chunks(first), *self._chunks(second)])) + b"0\r\n\r\n"
        wire = HEADS[self.head] + b"\r\n" + FRAMES.get(self.frame, lambda data: data)(chunks)
        then: list[Step] = [CLOSE] if self.frame in CUT or self.head == "closing" else []
        if not self.middle:
            return [*_sent(cut(wire, self.packets)), *then]
        before = HEADS[self.head] + b"\r\n" + b"".join(map(http_chunk, self._chunks(first)))
        acts: dict[str, list[Step]] = {"reset": [RESET], "end": [CLOSE]}
        rest = acts.get(self.middle) or [*_sent(cut(wire[len(before) :], self.packets)), *then]
        return [*_sent(cut(before, self.packets)), HANG, *rest]

    def _parts(self) -> tuple[list[bytes], list[bytes]]:
        events = STREAMS[self.stream]
        return events[: self.after], events[self.after :]

    def _chunks(self, events: list[bytes]) -> list[bytes]:
        return cut(b"".join(events), self.cuts) if self.cuts else events

    def mark(self) -> bytes:
        """Give what the client has got when something happens."""
        first = b"".join(self._parts()[0])
        marks = re.findall(rb'"n":\d+,', first)
        if marks:
            return marks[-1]
        return b"\r\n\r\n" if first else b""  # the end of the head: a blank line or a comment is relayed behind it


def _sent(packets: Sequence[bytes]) -> Iterator[Step]:
    for packet in packets:
        yield packet
        yield FLUSH


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    ends = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[begin:end] for begin, end in pairwise(ends)]


def script(request: Request) -> list[Step]:
    """Send what the request's ``user`` describes."""
    options = json.loads(request.payload["user"])
    if options["stream"] == "usual" and options["frame"] == "options refused" and "stream_options" in request.payload:
        refusal = b'{"error":{"message":"Unknown parameter: stream_options"}}'
        return [
            b"HTTP/1.1 400 Bad\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
            % (len(refusal), refusal)
        ]
    return Ask(**{name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}).steps()


# -- clients -----------------------------------------------------------------------------------------------------------


def read_answer(raw: bytes) -> tuple[bytes, int] | None:
    """Read a whole answer without its chunks, and give where it ends; None: it is incomplete."""
    head, found, body = raw.partition(b"\r\n\r\n")
    if not found:
        return None
    at = len(head) + 4
    if (length := re.search(rb"(?im)^content-length: (\d+)\r?$", head)) is not None:
        end = at + int(length[1])
        return (raw[:end], end) if len(raw) >= end else None
    pieces, place = [], 0
    while (line := body.find(b"\r\n", place)) >= 0:
        end = line + 2 + int(body[place:line], 16)
        if len(body) < end + 2:
            return None
        pieces.append(body[line + 2 : end])
        if end == line + 2:
            return head + b"\r\n\r\n" + b"".join(pieces), at + end + 2
        place = end + 2
    return None


class Client:
    """Reads answers from one connection."""

    def __init__(self, way: Way, number: int) -> None:
        self._way, self._number, self._raw = way, number, b""

    async def until(self, mark: bytes) -> bool:
        """Read until the deployment hangs and something has come. Return False if the deployment is not asked."""
        hanging = asyncio.create_task(self._way.upstream.until(lambda up: up.hanging == 1, 60))
        reading = asyncio.create_task(self._more())
        while not hanging.done():
            await asyncio.wait([hanging, reading], return_when=asyncio.FIRST_COMPLETED)
            if reading.done() and not hanging.done():
                if not reading.result() or read_answer(self._raw) is not None:
                    break
                reading = asyncio.create_task(self._more())
        is_hanging = hanging.done()
        while is_hanging and mark not in self._raw:
            assert await reading, self._raw
            reading = asyncio.create_task(self._more())
        for task in (hanging, reading):
            task.cancel()
        await asyncio.wait([hanging, reading])
        return is_hanging

    async def _more(self) -> bool:
        """Read what comes next. Return False at the end."""
        reader, _ = self._way.connections[self._number]
        with suppress(ConnectionError):
            data = await reader.read(1 << 16)
            self._raw += data
            return bool(data)
        return False

    async def answer(self) -> None:
        """Read one answer to its end."""
        async with asyncio.timeout(60):
            while (whole := read_answer(self._raw)) is None:
                if not await self._more():
                    whole = re.sub(rb"\r\n[0-9a-f]+\r\n", b"", self._raw) + b"<end>", len(self._raw)
                    await self._way.close(self._number)
                    break
        self._way.heard[self._number] = self._way.heard.get(self._number, b"") + whole[0]
        self._raw = self._raw[whole[1] :]
        if b"\r\nconnection: close\r\n" in whole[0]:
            await self._way.close(self._number)


async def ask(one: Ask, way: Way) -> None:
    await way.send(one.connection, [one.request()])
    client = Client(way, one.connection)
    is_hanging = bool(one.middle) and await client.until(one.mark())
    if is_hanging:
        if one.middle == "leave":
            await way.close(one.connection)
            await way.at_rest()
        elif one.middle == "next request":
            await way.send(one.connection, [Ask().request()])
        elif one.middle in EVENTS:
            EVENTS[one.middle](way)
        if one.middle == "too late":
            await client.answer()
        way.upstream.release()
    if not is_hanging or one.middle not in {"leave", "too late"}:
        await client.answer()
    if is_hanging and one.middle == "next request" and one.connection in way.connections:  # closed by one that drains
        await client.answer()
    await way.at_rest()


def reload(way: Way) -> None:
    changed = {**way.settings, "gateway": {**way.settings["gateway"], "capture_limit": 300}}
    config = Config.model_validate({"data_dir": str(way.gateway.gateway.config.data_dir), **changed})
    way.gateway.gateway.config, way.gateway.gateway.table = config, RoutingTable(config)


def drain(way: Way) -> None:
    way.gateway.gateway.draining = True
    way.gateway.server.drain()


EVENTS: dict[str, Callable[[Way], None]] = {
    "reload": reload,
    "revoke": lambda way: way.revoke("key_1"),
    "drain": drain,
}
MIDDLES = ["nothing", "reset", "end", "leave", "next request", *EVENTS]


async def drive(asks: Sequence[Ask], folder: Path, *, remembers: bool, changed: dict[str, Any] | None = None) -> Any:
    """Warm up, so that the head is known and a connection is idle; then ask. Give what can be seen of the way."""
    async with way(SETTINGS | (changed or {}), script, folder, remembers=remembers) as made:
        for one in [*[Ask(connection=9)] * 3, *asks]:
            await ask(one, made)
        return made.told(), made.taken


async def both(asks: Sequence[Ask], changed: dict[str, Any] | None = None) -> int:
    """Compare both ways; return how many requests were taken by their remembered heads after the warm-up."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        (expected, none), (found, taken) = await asyncio.gather(
            drive(asks, Path(one), remembers=False, changed=changed),
            drive(asks, Path(other), remembers=True, changed=changed),
        )
    for part, value in expected.items():
        assert found[part] == value, part
    assert none == 0
    return int(taken) - 1  # the third request of the warm-up


# -- tests -------------------------------------------------------------------------------------------------------------

numbers = st.lists(st.integers(0, 2000), max_size=4).map(tuple)
usual_or = lambda names: st.sampled_from(["usual"] * 3 * len(list(names)) + list(names))  # noqa: E731
asks = st.builds(
    Ask, st.sampled_from([name for name in STREAMS if "large" not in name]), usual_or(HEADS), usual_or(FRAMES),
    st.sampled_from(["m", "m", "m", *MODELS]), st.sampled_from([0, 0, 0, 1, 2]), st.integers(0, 1),
    st.sampled_from([None, None, True, False]), numbers, numbers,
)  # fmt: skip
interrupted = st.builds(
    Ask, st.sampled_from([name for name in STREAMS if "large" not in name and len(STREAMS[name]) > 1]),
    usage=st.sampled_from([None, True]), cuts=numbers, packets=numbers, middle=st.sampled_from(MIDDLES),
    after=st.integers(0, 6),
)  # fmt: skip


@settings(
    max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)
@given(st.lists(asks | interrupted, min_size=1, max_size=4))
@example([Ask("error", middle="leave", after=6)])
@example([Ask("CR", cuts=(40, 41, 42), packets=(7, 8, 9)), Ask("CRLF", cuts=(3,), usage=True)])
def test_both_ways_give_the_same(many: list[Ask]) -> None:
    asyncio.run(both(many))


@pytest.mark.parametrize("stream", list(STREAMS))
@pytest.mark.parametrize("usage", [None, pytest.param(True, marks=pytest.mark.slow)])
async def test_any_stream_is_relayed_alike(stream: str, usage: bool | None) -> None:
    one = Ask(stream, usage=usage)
    await both([one, one, one, replace(one, cuts=(30, 200, 330), packets=(100, 250, 251)), replace(one, packets=())])


COMPLETE = [name for name in STREAMS if "large" not in name and name not in NOT_COMPLETE]


@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.sampled_from(COMPLETE), numbers, numbers, st.booleans())
@example("an event after DONE in halves", (), (-1,), False)
@example("an event after DONE in halves", (), (-1,), True)
@example("half an event after DONE", (), (-1,), True)
def test_a_complete_stream_reaches_the_client_byte_for_byte(
    stream: str, cuts: tuple[int, ...], packets: tuple[int, ...], remembers: bool
) -> None:
    one = Ask(stream, usage=True, cuts=cuts, packets=packets)

    async def answered() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            async with way(SETTINGS, script, Path(folder), remembers=remembers) as made:
                for ask_now in [*[Ask(connection=9)] * 3, one]:
                    await ask(ask_now, made)
                return made.heard[0]

    _, _, body = asyncio.run(answered()).partition(b"\r\n\r\n")
    assert body == b"".join(STREAMS[stream])


@pytest.mark.parametrize("head", list(HEADS))
async def test_any_head_is_answered_alike(head: str) -> None:
    await both([Ask(head=head, model="n"), Ask(head=head, packets=(20, 60, 170)), Ask()])


@pytest.mark.parametrize("frame", [*FRAMES, "options refused"])
async def test_any_frame_is_read_alike(frame: str) -> None:
    await both([Ask(frame=frame), Ask(frame=frame, packets=(-3, -7, -30)), Ask(frame=frame, packets=()), Ask()])


@pytest.mark.parametrize("middle", MIDDLES)
@pytest.mark.parametrize("after", [0, 2, pytest.param(5, marks=pytest.mark.slow), 7])
async def test_what_happens_in_the_middle_ends_alike(middle: str, after: int) -> None:
    if middle == "reset" and after == 0:
        after = 1  # a reset before the first byte may be seen before or after the head
    await both([Ask(middle=middle, after=after), Ask(), Ask(connection=1)])


@pytest.mark.parametrize(
    ("deadline", "after"), [("first_token", 0), ("idle", 2), ("idle", 5), ("total", 0), ("total", 2), ("total", 6)]
)
async def test_a_deadline_ends_a_stream_alike(deadline: str, after: int) -> None:
    # Its deployment has the address of one that has been asked, so a connection is idle.
    assert await both([Ask(model=deadline, middle="too late", after=after), Ask(), Ask()]) == 3


async def test_a_client_that_does_not_read_stops_the_deployment(tmp_path: Path) -> None:
    large = [HEADS["usual"], b"\r\n", *map(http_chunk, texts(*["x" * 8000] * 2500)), http_chunk(DONE), b"0\r\n\r\n"]

    def answer(request: Request) -> list[Step]:
        return [b"".join(large)] if request.payload["user"] == "large" else script(request)

    async with way(SETTINGS, answer, tmp_path, remembers=True) as made:
        for _ in range(3):
            await ask(Ask(connection=9), made)
        body = {"model": "unsampled", "messages": [], "stream": True, "user": "large"}
        data = json.dumps(body).encode()
        head, _, _ = Ask().request().partition(b"Content-Length")
        await made.send(1, [head + b"Content-Length: %d\r\n\r\n%b" % (len(data), data)])
        pool = made.gateway.gateway.pool
        async with asyncio.timeout(20):
            while not any(connection._is_paused for connection in pool._open):  # noqa: ASYNC110 -- no event tells it
                await asyncio.sleep(0.001)
        assert made.upstream.requests[-1].outcome is Outcome.OPEN
        client = Client(made, 1)
        await client.answer()
        await made.at_rest()
        _, _, body_got = made.heard[1].partition(b"\r\n\r\n")
        assert body_got == b"".join([*texts(*["x" * 8000] * 2500), DONE])
        assert made.upstream.requests[-1].outcome is Outcome.SENT


USUAL_STREAMS = ["usual", "nulls", "no usage", "padded", "comments", "error", "a secret in pieces", "two choices"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("usage", [None, True])
async def test_streams_are_taken_by_their_remembered_head(model: str, usage: bool | None) -> None:
    asked = [Ask(stream, model=model, usage=usage) for stream in USUAL_STREAMS]
    assert await both(asked) == len(asked)
    asked = [Ask(model=model, usage=usage, cuts=(100, 200, 300), packets=(110, 222, 333)), Ask(packets=(), model=model)]
    assert await both(asked) == 2


async def test_responses_are_taken_by_their_remembered_head() -> None:
    one = Ask("response")
    assert await both([one] * 5) == 3  # the first two are seen for the plan


async def test_stream_heads_of_openai_s_package_are_remembered(tmp_path: Path) -> None:
    async with (
        way(SETTINGS, lambda _: Ask("nulls").steps(), tmp_path, remembers=True) as made,
        AsyncOpenAI(base_url=f"{made.gateway.url}/v1", api_key=SECRETS[0], max_retries=0) as client,
    ):
        for _ in range(5):
            stream = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "?"}], stream=True
            )
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
            assert text == "Which of"
        assert made.taken == 3  # the first two are seen for the plan
        assert [exchange.prompt_tokens for exchange in made.gateway.exchanges()] == [3] * 5
