"""The soak's upstream, a process of its own: `steady` and `long` answer well, `limited` never, `weather` by chance.

What goes wrong is drawn here, answer by answer, so a request that is sent again may fare better.
A GET says how the upstream stands: its open connections, and the requests whose answer has not ended.
"""

import argparse
import asyncio
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop
from support.servers.child_processes import Child, child_process, die_with_parent, say
from support.upstreams import upstream_answers as answers
from support.upstreams.scripted_upstream import ScriptedUpstream
from support.upstreams.upstream_wire import Outcome, Request, Steps
from typing_extensions import override

#: One answer in this many of `weather` goes wrong: often enough to open a breaker now and then, not to keep it open.
_FAULT_EVERY = 5
#: Refusals, failures, silences, torn answers, and connections that do not last. (An upstream's 500 would pass for our
#: own, so it sends other statuses.)
_FAULTS = (
    "bad-request", "rate-limited:0.3", "status:503", "status:529", "html-error", "silence", "slow-head:1",
    "close-at-once", "reset-at-once", "not-http", "cut-unary", "cut-mid-event", "cut-between-events", "ended-early",
    "reset-mid-stream", "hang-mid-stream", "in-band-error", "stale", "close-idle",
)  # fmt: skip
#: Odd but whole answers.
_ODD = ("ordinary", "crlf", "comments", "utf8-split", "one-packet", "no-done", "after-done", "close-delimited")


class SoakUpstream(ScriptedUpstream):
    """Counts the answers that ended, and draws what `weather` brings."""

    def __init__(self, log: Path, seed: int = 0) -> None:
        super().__init__(self._answer, keep=False, log=log)
        self._settled = 0
        self._draw = random.Random(seed)

    @override
    def settle(self, request: Request, outcome: Outcome) -> None:
        self._settled += 1
        super().settle(request, outcome)

    @override
    def left(self, connection: Any) -> None:
        self._settled += len(connection._waiting)  # sent to a connection that was about to end
        super().left(connection)

    def _answer(self, request: Request) -> Steps:
        if request.method == "GET":
            busy = self.received - self._settled - 1  # but for this one
            return answers.json_answer({"connections": len(self.connections) - 1, "busy": busy})
        if request.model == "long":
            return answers.long_stream(request, "5000")
        if request.model == "limited":
            return answers.rate_limited(request, "0.1")
        if request.model == "weather":
            return self._weather(request)
        return self._steady(request)

    def _steady(self, request: Request) -> Steps:
        if not request.stream:
            return answers.unary(request)
        odd = self._draw.randrange(20)
        if odd == 0:
            return answers.large_event(request, "300000")
        return answers.slow_tokens(request, "0.02") if odd == 1 else answers.ordinary(request)

    def _weather(self, request: Request) -> Steps:
        kinds = _ODD if self._draw.randrange(_FAULT_EVERY) else _FAULTS
        name, colon, argument = self._draw.choice(kinds).partition(":")
        answer = answers.ANSWERS[name]
        if not request.stream and name in {"one-packet", "crlf", "comments", "utf8-split", "after-done", "no-done"}:
            answer = answers.ordinary
        return answer(request, argument) if colon else answer(request)


@contextmanager
def soak_upstream(log: Path) -> Iterator[tuple[str, Child]]:
    """Run the upstream until the block ends; give its URL."""
    with child_process(["-m", "support.upstreams.soak_upstream", "--log", str(log)]) as child:
        yield child.hello["url"], child


async def _serve(log: Path) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    up = SoakUpstream(log)
    await up.start()
    say(url=up.url)
    await stopped.wait()
    await up.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The soak's upstream.")
    parser.add_argument("--log", type=Path, required=True)
    die_with_parent()
    uvloop.run(_serve(parser.parse_args().log))
