"""Answers that were damaged on the way: the gateway's own client and the reference take or refuse the same ones.

Both fail, or both give the same status and the same bytes. Known to differ, and left out here:

- status 101, which nobody asked for, and those below 100: no answer to the gateway's own client;
- what stands in one packet behind a whole answer, which the reference takes for a fault of that answer;
- a transfer-encoding that names none or contains a tab, or a blank before a field's colon, which the gateway's own
  client refuses: where the body ends would be a guess;
- a head of more than 64 KiB, which the reference allows in several fields (no case grows that large).

An answer that the reference never ends counts as failed: it is told so once its connection is gone.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream
from support.upstreams.upstream_requests import Asking, Told, asking
from support.upstreams.upstream_wire import CLOSE, FLUSH, Step

ANSWERS = [
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n" + b'{"choices":1}',
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\ndata: \r\n3;x=y\r\n{}\n\r\n0\r\nx-sum: 1\r\n\r\n",
    b"HTTP/1.0 200 OK\r\nserver: old\r\n\r\nuntil the end",
    b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 429 Slow\r\nretry-after: 1\r\ncontent-length: 2\r\n\r\n{}",
    b"HTTP/1.1 204 No Content\r\nx-request-id: 1\r\n\r\n",
]
#: What is often wrong, or read differently by different parsers.
ODDITIES = [
    b"\r", b"\n", b"\r\n", b"\0", b" ", b"\t", b":", b";", b",", b"0", b"f", b"-", b"+", b"\xff",
    b"content-length: 3\r\n", b"transfer-encoding: chunked\r\n", b"connection: close\r\n", b"HTTP/1.1 200 OK\r\n\r\n",
]  # fmt: skip
NEVER_ASKED_FOR = re.compile(rb"HTTP/\d\.\d (101|0\d\d)")
BODY_TO_GUESS = re.compile(rb"(?i)transfer-encoding:(\s*|[^\n]*\t[^\n]*)\n|\n[\w-]+[ \t]+:")


@dataclass(frozen=True)
class Damage:
    """A stretch of an answer that is replaced."""

    at: int
    length: int
    by: bytes

    def do(self, answer: bytes) -> bytes:
        at = self.at % (len(answer) + 1)
        return answer[:at] + self.by + answer[at + self.length :]


damages = st.builds(
    Damage, st.integers(0, 200), st.integers(0, 4), st.sampled_from([b"", *ODDITIES]) | st.binary(max_size=3)
)


@st.composite
def damaged_answers(draw: st.DrawFn) -> list[bytes]:
    """Draw an answer with up to three damages, cut into up to three pieces."""
    answer = draw(st.sampled_from(ANSWERS))
    for damage in draw(st.lists(damages, max_size=3)):
        answer = damage.do(answer)
    cuts = sorted(draw(st.lists(st.integers(0, len(answer)), max_size=2)))
    return [answer[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(answer)], strict=True)]


async def ask_till_gone(up: ScriptedUpstream, client: Asking) -> Told:
    """Ask; where no end is told though the connection has long ended, none will be."""
    asked = asyncio.create_task(client.ask())
    await up.until(lambda up: up.received > 0 and not up.connections)
    for _ in range(20):
        await asyncio.sleep(0)
    asked.cancel()
    try:
        return await asked
    except asyncio.CancelledError:
        return Told(failure="endless")


async def tell(implementation: str, pieces: Sequence[bytes]) -> Told:
    steps: list[Step] = [step for piece in pieces for step in (piece, FLUSH)]
    async with scripted_upstream(lambda _: [*steps, CLOSE]) as up, asking(implementation, up.url) as client:
        return await ask_till_gone(up, client)


async def check(pieces: list[bytes]) -> None:
    own, reference = await tell("own", pieces), await tell("reference", pieces)
    sent = b"".join(pieces)
    if NEVER_ASKED_FOR.search(sent) or (BODY_TO_GUESS.search(sent) and own.failure is not None):
        return
    if own.failure is None and reference.failure is not None:
        assert await stands_behind(own, sent), (own, reference)
        return
    assert (own.failure is None) == (reference.failure is None), (own, reference)
    if own.failure is None:
        assert own == reference


async def stands_behind(told: Told, sent: bytes) -> bool:
    """Say whether an answer was whole before all that was sent: the reference reads the same in less."""
    for end in reversed(range(len(sent))):
        if await tell("reference", [sent[:end]]) == told:
            return True
    return False


def run_check(pieces: list[bytes]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(check(pieces))


@settings(max_examples=150, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged_answers())
def test_damaged_answers_are_taken_or_refused_alike(pieces: list[bytes]) -> None:
    run_check(pieces)


@pytest.mark.bench
@settings(max_examples=20_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged_answers())
def test_many_damaged_answers_are_taken_or_refused_alike(pieces: list[bytes]) -> None:
    run_check(pieces)
