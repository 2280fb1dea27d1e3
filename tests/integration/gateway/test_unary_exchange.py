"""Requests whose heads are remembered get what parsed ones get: clients, deployments, records and counts are the same.

A gateway that remembers heads and one that parses each are driven with the same clients and deployments, and compared.
Where heads come again they have been taken from the cache; otherwise the comparison would say nothing.
"""

import asyncio
import gzip
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from openai import AsyncOpenAI
from support.servers.both_relays import SECRETS, Way, way
from support.servers.certificates import make_authority
from support.servers.gateway_app import served
from support.upstreams.scripted_upstream import scripted_upstream
from support.upstreams.upstream_answers import http_chunk, ordinary
from support.upstreams.upstream_wire import CLOSE, FLUSH, HANG, RESET, Request, Step

from auditor.config import Config
from gateway.routing.table import RoutingTable

MODELS = ("m", "n", "small", "alias", "hashed", "off", "nobody")
SETTINGS: dict[str, Any] = {
    "gateway": {"retries": 0, "forward_headers": ["x-also"]},
    "deployments": [
        {"name": "a", "base_url": "UP", "api_key": "sk-upstream"},
        {"name": "b", "base_url": "UP", "model": "real", "headers": {"x-fixed": "1"}, "concurrency": 2},
        {"name": "c", "base_url": "UP"},
    ],
    "routes": [
        {"model": "m", "deployments": ["a"], "capture": "full"},
        {"model": "n", "deployments": ["a"], "fallbacks": ["alias"], "capture": "full"},
        {"model": "alias", "deployments": ["b"], "capture": "full"},
        {"model": "small", "deployments": ["a"], "context_window_fallbacks": ["alias"], "capture": "full"},
        {"model": "hashed", "deployments": ["a"], "capture": "hashed"},
        {"model": "waiting", "deployments": ["c"], "capture": "full"},
        {"model": "off", "deployments": ["a"], "capture": "off"},
    ],
}
WHOLE = b'{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}'
TYPE = b"content-type: application/json\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\n"


def whole(body: bytes, *lines: bytes, status: bytes = OK) -> bytes:
    return status + TYPE + b"".join(line + b"\r\n" for line in lines) + b"content-length: %d\r\n\r\n" % len(body) + body


def chunked(body: bytes, *lines: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    fields = TYPE + b"".join(line + b"\r\n" for line in lines) + b"transfer-encoding: chunked\r\n\r\n"
    return OK + fields + http_chunk(body[:20]) + http_chunk(body[20:]) + end


SECRET = WHOLE.replace(b"stop", b"sk-abcdefghijklmnopqrstuvwxyz0123456789")
#: What deployments answer, as bytes; after some of them the connection ends.
ANSWERS: dict[str, tuple[bytes, Step | None]] = {
    "usual": (whole(WHOLE, b"x-request-id: up-1", b"openai-version: 7", b"Date: today"), None),
    "kept": (whole(WHOLE, b"connection: keep-alive", b"keep-alive: timeout=5, max=100"), None),
    "kept shortly": (whole(WHOLE, b"keep-alive: timeout=1"), None),
    "chunked": (chunked(WHOLE), None),
    "chunked with a trailer": (chunked(WHOLE, end=b"0\r\nx-sum: 1\r\n\r\n"), None),
    "chunked with an extension": (chunked(WHOLE).replace(b"14\r\n", b"14;x=y\r\n"), None),
    "redacted": (whole(SECRET), None),
    "twice": (whole(WHOLE, b"x-ratelimit-a: 1", b"openai-b: 2", b"X-RateLimit-A: 3"), None),
    "odd fields": (whole(WHOLE, b"openai-a:1", b"openai-b:  2 ", b"openai-c: \xc3\xa9", b"openai-d:"), None),
    "empty": (whole(b""), None),
    "no type": (OK + b"content-length: 2\r\n\r\n{}", None),
    "error inside": (whole(b'{"error":{"message":"overloaded"}}'), None),
    "not JSON": (whole(b'{"choices":['), None),
    "wrong types": (whole(b'{"usage":{"prompt_tokens":"many","completion_tokens":-1},"choices":7}'), None),
    "large": (whole(b'{"text":"' + b"x" * 70_000 + b'"}'), None),
    "compressed": (whole(gzip.compress(WHOLE, mtime=0), b"content-encoding: gzip"), None),
    "a stream unasked": (whole(b"data: {}\n\n").replace(b"application/json", b"text/event-stream"), None),
    "created": (whole(WHOLE, status=b"HTTP/1.1 201 Created\r\n"), None),
    "refused": (whole(b'{"error":{"message":"no"}}', status=b"HTTP/1.1 400 Bad Request\r\n"), None),
    "refused in chunks": (chunked(b'{"error":{"message":"no such thing"}}').replace(OK, NOT_FOUND), None),
    "to be tried again": (whole(b'{"error":{}}', b"X-Should-Retry: true", status=b"HTTP/1.1 422 \r\n"), None),
    "too long": (whole(b'{"error":{"code":"context_length_exceeded"}}', status=b"HTTP/1.1 400 No\r\n"), None),
    "refused oddly": (whole(b'{"message":7}', status=b"HTTP/1.1 499 what\r\n"), None),
    "refused untyped": (NOT_FOUND + b"content-length: 2\r\n\r\n{}", None),
    "refused at the end": (whole(b"{}", b"connection: close", status=NOT_FOUND), CLOSE),
    "refused, then cut": (whole(b"{}", status=NOT_FOUND)[:-1], CLOSE),
    "timed out": (whole(b"{}", status=b"HTTP/1.1 408 Timeout\r\n"), None),
    "no reason": (whole(b"{}", status=b"HTTP/1.1 403\r\n"), None),
    "busy": (whole(b"{}", b"retry-after: 7", status=b"HTTP/1.1 429 Slow\r\n"), None),
    "failed": (whole(b"{}", status=b"HTTP/1.1 500 Bad\r\n"), None),
    "interim": (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + whole(WHOLE), None),
    "line feeds": (whole(WHOLE).replace(b"\r\n", b"\n"), None),
    "two lengths": (whole(WHOLE, b"content-length: 3"), None),
    "length and chunks": (chunked(WHOLE, b"content-length: 3"), None),
    "not HTTP": (b"SSH-2.0-OpenSSH\r\n\r\n", None),
    "more than its length": (whole(WHOLE) + b"more", None),
    "two answers": (whole(WHOLE) + whole(WHOLE), None),
    "until the end": (OK + TYPE + b"\r\n" + WHOLE, CLOSE),
    "closing": (whole(WHOLE, b"connection: close"), CLOSE),
    "closing unsaid": (whole(WHOLE), CLOSE),
    "cut": (whole(WHOLE)[:-9], CLOSE),
    "cut in a chunk": (chunked(WHOLE)[:-20], CLOSE),
    "cut in its head": (OK + TYPE[:9], CLOSE),
    "reset": (whole(WHOLE)[:-9], RESET),
    "hung up": (b"", CLOSE),
}


@dataclass(frozen=True)
class Ask:
    """A request: of which key, for which model, to which answer; both cut at some places."""

    connection: int
    key: int
    model: str
    answer: str
    cuts: tuple[int, ...]
    answer_cuts: tuple[int, ...]
    kind: str

    def request(self) -> bytes:
        body = json.dumps(
            {"model": self.model, "messages": [], "user": self.answer, **BODIES.get(self.kind, {})}
        ).encode()
        body = RAW.get(self.kind, body)
        path = b"/v1/responses" if self.kind == "responses" else b"/v1/chat/completions"
        lines = [b"POST %b HTTP/1.1" % path, b"Host: h", b"Authorization: Bearer %b" % SECRETS[self.key].encode()]
        lines += HEADS.get(self.kind, [])
        if self.kind == "chunked":
            return b"\r\n".join([*lines, b"Transfer-Encoding: chunked", b"", http_chunk(body) + b"0\r\n\r\n"])
        return b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", body])

    def pieces(self) -> list[bytes]:
        return cut(self.request(), self.cuts)


#: What is in the body, and in the head, of requests that are not usual; most are.
BODIES: dict[str, dict[str, Any]] = {
    "tokens": {"max_tokens": 50, "n": 2},
    "text": {"x": "é\u2028" * 30},
    "stream": {"stream": True},
    "card": {"text": "4111 1111 1111 1111"},
}
RAW = {
    "no JSON": b"{",
    "two models": b'{"model":"m","Model":"n","user":"usual"}',
    "no text": b'{"model":"m","user":"usual","x":"\xff"}',
    "no model": b'{"user":"usual"}',
}
HEADS = {
    "traced": [b"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", b"tracestate: a=b"],
    "traced badly": [b"traceparent: 00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"],
    "named": [b"X-Request-ID: mine-1"],
    "named and traced": [b"traceparent: 00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", b"X-Request-ID: 2"],
    "named twice": [b"X-Request-ID: mine-1", b"x-request-id: mine-2"],
    "named in vain": [b"X-Request-ID:", b"x-request-id: "],
    "badly named": [b"X-Request-ID: not mine"],
    "also": [b"X-Also: 1", b"x-strength: 5", b"Accept: */*", b"accept: text/html"],
    "closing": [b"Connection: close"],
    "kept": [b"Connection: keep-alive"],
    "kept and closing": [b"Connection: keep-alive, close"],
    "expecting": [b"Expect: 100-continue"],
    "unknown directive": [b"x-biasmeter-origin: probe"],
    "compressed": [b"content-encoding: gzip"],
    "spaced": [b"X-Also:  2\t"],
}
KINDS = ["usual"] * 6 + ["responses", "chunked", *BODIES, *RAW, *HEADS]


#: Fields whose values differ from request to request.
VARYING: list[list[bytes]] = [
    [b"X-Request-ID: %d"],
    [b"Connection: keep-alive"],
    [b"connection: Keep-Alive", b"x-request-id: mine-%d"],
    [b"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333%d-01", b"tracestate: a=b"],
    [b"Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333%d-01", b"x-request-id: mine-%d"],
]


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    ends = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[begin:end] for begin, end in pairwise(ends)]


@dataclass(frozen=True)
class Together:
    """Requests of several connections, all of which the deployments have before the first is answered."""

    asks: tuple[Ask, ...]


@dataclass(frozen=True)
class Event:
    """Something that happens between requests."""

    what: str


cuts = st.just(()) | st.lists(st.integers(0, 2000), max_size=3).map(tuple)
answers = st.sampled_from(["usual"] * 12 + list(ANSWERS))
asks = st.builds(
    Ask, st.integers(0, 1), st.sampled_from([0, 0, 0, 1, 2]), st.sampled_from(["m", "m", *MODELS]), answers, cuts, cuts,
    st.sampled_from(KINDS),
)  # fmt: skip
together = st.lists(asks, min_size=2, max_size=3).map(
    lambda many: Together(tuple(one_of_many(ask, number) for number, ask in enumerate(many)))
)
events = st.sampled_from(["reload", "revoke", "leave", "drain", "idle connections end"]).map(Event)
USUAL = Ask(0, 0, "m", "usual", (), (), "usual")
#: For requests that are left unanswered for a while: nothing revokes its key or fails its deployment.
WAITING = Ask(5, 2, "waiting", "usual", (), (), "usual")


def one_of_many(ask: Ask, number: int) -> Ask:
    return Ask(number, 2, "waiting", "usual", ask.cuts, (), "usual")


class Script:
    """What the deployments answer: what the request's ``user`` names."""

    def __init__(self) -> None:
        self.cuts: tuple[int, ...] = ()
        self.hangs = False

    def __call__(self, request: Request) -> list[Step]:
        name = str(request.payload.get("user"))
        if self.hangs:
            return [HANG, ANSWERS["usual"][0]]
        if request.stream or name not in ANSWERS:
            # The answer names the request by its id, which is another one each time, and so is the hash of the answer.
            return ordinary(replace(request, headers=[]))
        data, then = ANSWERS[name]
        steps: list[Step] = []
        for piece in cut(data, self.cuts):
            steps += [piece, FLUSH]
        return steps[:-1] + ([then] if then else [])


async def drive(steps: Sequence[Ask | Together | Event], script: Script, way: Way) -> None:
    """Warm up, so that heads are known and a connection is idle; then do the steps."""
    for _ in range(3):
        await ask(USUAL, script, way)
        await ask(WAITING, script, way)
    for step in steps:
        if isinstance(step, Ask):
            await ask(step, script, way)
        elif isinstance(step, Together):
            await ask_together(step.asks, script, way)
        else:
            await EVENTS[step.what](script, way)
        await way.at_rest()


async def ask(one: Ask, script: Script, way: Way) -> None:
    script.cuts = one.answer_cuts
    await way.send(one.connection, one.pieces())
    await way.receive(one.connection)
    await way.at_rest()


async def ask_together(many: Sequence[Ask], script: Script, way: Way) -> None:
    script.hangs = True
    for one in many:
        await way.send(one.connection, one.pieces())
    await way.upstream.until(lambda up: up.hanging == len(many))
    script.hangs = False
    way.upstream.release()
    for one in many:
        await way.receive(one.connection)


async def reload(_: Script, way: Way) -> None:
    changed = {**way.settings, "gateway": {**way.settings["gateway"], "capture_limit": 1000, "forward_headers": []}}
    config = Config.model_validate({"data_dir": str(way.gateway.gateway.config.data_dir), **changed})
    way.gateway.gateway.config, way.gateway.gateway.table = config, RoutingTable(config)


async def revoke(_: Script, way: Way) -> None:
    way.revoke("key_1")


async def leave(script: Script, way: Way) -> None:
    script.hangs = True
    await way.send(5, WAITING.pieces())
    await way.leave(5)
    script.hangs = False


async def drain(script: Script, way: Way) -> None:
    """Drain while a request is being answered."""
    script.hangs = True
    await way.send(6, WAITING.pieces())
    await way.upstream.until(lambda up: up.hanging == 1)
    way.gateway.gateway.draining = True
    way.gateway.server.drain()
    script.hangs = False
    way.upstream.release()
    await way.receive(6)


async def end_idle_connections(_: Script, way: Way) -> None:
    """End the connections to deployments, so that one may be reused at the moment at which it ends."""
    for connection in list(way.upstream.connections):
        connection.reset()


EVENTS: dict[str, Callable[[Script, Way], Any]] = {
    "reload": reload,
    "revoke": revoke,
    "leave": leave,
    "drain": drain,
    "idle connections end": end_idle_connections,
}


async def both(steps: Sequence[Ask | Together | Event]) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Drive both ways; return what can be seen of each, and how many requests were taken by their remembered heads."""
    told, taken = [], 0
    for remembers in (False, True):
        script = Script()
        with tempfile.TemporaryDirectory() as folder:
            async with way(SETTINGS, script, Path(folder), remembers=remembers) as made:
                await drive(steps, script, made)
                told.append(made.told())
                taken = made.taken
    return told[0], told[1], taken


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(asks | together | events, min_size=1, max_size=6))
@example([Event("leave"), USUAL, Event("drain"), USUAL])
@example([Event("revoke"), USUAL])
@example([Event("reload"), USUAL, USUAL, USUAL])
@example([Event("idle connections end"), USUAL, USUAL])
def test_both_ways_give_the_same(steps: list[Ask | Together | Event]) -> None:
    parsed, remembered, _ = asyncio.run(both(steps))
    assert remembered == parsed


@pytest.mark.parametrize("answer", list(ANSWERS))
@pytest.mark.parametrize("places", [(), pytest.param((40, 90), marks=pytest.mark.slow)])
def test_any_answer_is_relayed_alike(answer: str, places: tuple[int, ...]) -> None:
    one = Ask(0, 0, "n", answer, (), places, "usual")
    parsed, remembered, _ = asyncio.run(both([one, USUAL]))
    assert remembered == parsed


def each_once(models: Sequence[str], answers: Sequence[str]) -> list[Any]:
    """Give all pairs; slow are those of which both are in another pair: with the first model, or the first answer."""
    return [
        pytest.param(model, answer, marks=[pytest.mark.slow] if models.index(model) and answers.index(answer) else [])
        for model in models
        for answer in answers
    ]


@pytest.mark.parametrize("kind", KINDS[5:])
def test_any_request_is_answered_alike(kind: str) -> None:
    one = Ask(0, 0, "m", "usual", (), (), kind)
    parsed, remembered, _ = asyncio.run(both([one, one, one, USUAL]))
    assert remembered == parsed


@pytest.mark.parametrize(
    ("model", "answer"),
    each_once(
        ["m", "n", "alias", "hashed", "off"],
        ["usual", "kept", "chunked", "redacted", "twice", "not JSON", "error inside"],
    ),
)
def test_requests_are_taken_by_their_remembered_head(model: str, answer: str) -> None:
    one = Ask(0, 0, model, answer, (-10,), (-5, -3), "usual")
    parsed, remembered, taken = asyncio.run(both([one, one, one]))
    assert remembered == parsed
    assert taken == 5  # the last two requests of the warm-up are as usual


@pytest.mark.parametrize(
    ("model", "answer"),
    each_once(
        ["m", "n", "hashed", "off"],
        ["refused", "refused in chunks", "to be tried again", "too long", "refused oddly"],
    ),
)
def test_refused_requests_are_taken_by_their_remembered_head(model: str, answer: str) -> None:
    one = Ask(0, 0, model, answer, (-10,), (-5, -3), "usual")
    parsed, remembered, taken = asyncio.run(both([one, one, one]))
    assert remembered == parsed
    assert taken == 5


def test_a_refusal_after_which_another_route_may_be_asked_is_taken() -> None:
    many = [Ask(0, 0, "small", answer, (), (), "usual") for answer in ("too long", "refused", "usual")]
    parsed, remembered, taken = asyncio.run(both(many))
    assert remembered == parsed
    assert taken == 2 + 3
    assert any(b"real" in asked for asked in remembered["deployments"])  # the fallback's deployment has been asked


@pytest.mark.parametrize("fields", VARYING)
def test_a_head_is_known_whatever_its_request_id_and_trace_are(fields: list[bytes]) -> None:
    for number in range(5):
        HEADS[f"varying {number}"] = [field.replace(b"%d", b"%d" % number) for field in fields]
    many = [Ask(0, 0, "m", "usual", (), (), f"varying {number}") for number in range(5)]
    parsed, remembered, taken = asyncio.run(both(many))
    assert remembered == parsed
    assert taken == 2 + 3


async def test_heads_of_openai_s_package_are_remembered(tmp_path: Path) -> None:
    async with (
        way(SETTINGS, Script(), tmp_path, remembers=True) as made,
        AsyncOpenAI(base_url=f"{made.gateway.url}/v1", api_key=SECRETS[0], max_retries=0) as client,
    ):
        for _ in range(5):
            await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}], user="usual")
        assert made.taken == 3  # the first two are seen for the plan


#: What is read differently by different readers of HTTP.
ODDITIES = [
    b"\r", b"\n", b"\r\n", b"\0", b" ", b"\t", b":", b",", b"0", b"9", b"-", b"+", b"\xff", b"\r\n ", b"\r\n\r\n",
    b"Content-Length: 3\r\n", b"content-length: 3\r\n",
    b"x-request-id: \r\n", b"traceparent: x\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n",
    b"Authorization: Bearer " + SECRETS[2].encode() + b"\r\n",
]  # fmt: skip
damages = st.tuples(st.integers(0, 250), st.integers(0, 4), st.sampled_from([b"", *ODDITIES]))
CLOSING = Ask(0, 0, "m", "usual", (), (), "closing").request()


async def send_damaged(request: bytes, pieces: Sequence[int], made: Way) -> None:
    """Send a request that was damaged and one behind it, and read what comes until the end, or until nothing comes."""
    await made.send(7, [*cut(request, pieces), CLOSING])
    reader, _ = made.connections[7]
    with suppress(TimeoutError, ConnectionError):
        async with asyncio.timeout(0.15):
            while data := await reader.read(1 << 16):
                made.heard[7] = made.heard.get(7, b"") + data
    await made.close(7)
    await made.at_rest()


#: Requests whose heads are known when one of them is damaged.
KNOWN = (USUAL, Ask(0, 0, "m", "usual", (), (), "named and traced"))


async def both_damaged(request: bytes, pieces: Sequence[int]) -> list[dict[str, Any]]:
    told = []
    for remembers in (False, True):
        script = Script()
        with tempfile.TemporaryDirectory() as folder:
            async with way(SETTINGS, script, Path(folder), remembers=remembers) as made:
                await drive(KNOWN * 3, script, made)
                await send_damaged(request, pieces, made)
                told.append(made.told())
    return told


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(KNOWN), st.lists(damages, min_size=1, max_size=3), cuts)
def test_a_known_head_that_was_tampered_with_is_read_as_by_the_parser(
    known: Ask, changes: list[tuple[int, int, bytes]], pieces: tuple[int, ...]
) -> None:
    request = known.request()
    for at, length, by in changes:
        request = request[:at] + by + request[at + length :]
    parsed, remembered = asyncio.run(both_damaged(request, pieces))
    assert remembered == parsed


async def silent(remembers: bool, folder: Path) -> dict[str, Any]:
    script = Script()
    slow = {**SETTINGS, "gateway": {"retries": 0, "timeouts": {"total": 0.3}}}
    async with way(slow, script, folder, remembers=remembers) as made:
        await drive([], script, made)
        script.hangs = True
        await ask(USUAL, script, made)
        assert made.heard[0].count(b"HTTP/1.1 504 ") == 1
        return made.told()


async def test_a_deployment_that_does_not_answer_in_time_is_given_up(tmp_path: Path) -> None:
    assert await silent(True, tmp_path / "short") == await silent(False, tmp_path / "ordinary")


async def test_a_deployment_over_tls_is_asked_on_a_kept_connection(tmp_path: Path) -> None:
    authority = make_authority(tmp_path, "ours")
    async with scripted_upstream(
        lambda request: [*ordinary(request), FLUSH], tls=authority.serving("here", "IP:127.0.0.1")
    ) as up:
        deployment = {"name": "a", "base_url": up.url, "ca_file": str(authority.ca_file)}
        routes = {"deployments": [deployment], "routes": [{"model": "m", "deployments": ["a"]}]}
        async with served(routes, tmp_path) as gateway:
            answers = [await gateway.chat("m") for _ in range(5)]
            assert [answer.status for answer in answers] == [200] * 5
            assert up.accepted == 1


async def test_of_several_deployments_one_that_fails_is_left_alone(tmp_path: Path) -> None:
    asked: Counter[str] = Counter()

    def fails(request: Request) -> list[Step]:
        asked[request.model] += 1
        return [ANSWERS["failed" if request.model == "bad" else "usual"][0]]

    async with scripted_upstream(fails) as up:
        deployments = [{"name": name, "base_url": up.url, "model": name} for name in ("good", "bad")]
        routes = [{"model": "m", "deployments": ["good", "bad"]}]
        async with served({"deployments": deployments, "routes": routes}, tmp_path) as gateway:
            statuses = {(await gateway.chat("m")).status for _ in range(60)}
            assert statuses == {200}  # a failure is tried again at the other one
            assert asked["bad"] == 5  # then its breaker is open
            assert asked["good"] == 60
