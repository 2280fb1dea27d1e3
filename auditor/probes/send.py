"""Sends planned calls to one deployment through the gateway's door: a few at a time, and no harder than it takes.

``run`` decides what is sent; answers are kept by the gateway, so nothing of them is kept here but how they ended. This
file owns httpx's exceptions and statuses.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import httpx

from auditor.access import GatewayAccess
from auditor.domain.exchange import Origin
from auditor.domain.question import Message
from auditor.errors import AuditError, UsageError
from auditor.probes.purse import Purse
from auditor.retry_after import read_retry_after

#: Answers after which the same call may succeed.
_AGAIN: Final = frozenset({408, 409, 425, 500, 502, 503, 504, 529})
#: What providers call a blocked prompt or answer, in the code or type of an error.
_BLOCKS: Final = ("content_filter", "content_policy", "responsibleai", "data_inspection_failed", "moderation_blocked")
_LONGEST_PAUSE: Final = 300.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Outgoing:
    """One call to be sent. ``usd`` is what it is expected to cost."""

    ref: str
    messages: tuple[Message, ...]
    usd: float = 0.0
    parent: UUID | None = None  #: the exchange that is asked again
    members: Mapping[str, Any] = field(default_factory=dict)  #: of the request, beside its messages


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Whom the calls go to, and how."""

    deployment: str
    model: str  #: what is asked for; the pin decides who answers
    in_flight: int
    timeout: float  #: seconds one call may take
    price: Callable[[int, int], float]  #: USD of prompt and completion tokens
    origin: Origin = Origin.PROBE


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How much failure is borne. Times are seconds."""

    attempts: int = 6  #: of one call
    first_backoff: float = 0.5
    longest_backoff: float = 8.0
    failed_in_a_row: int = 10  #: calls; then the deployment is given up
    pauses_in_a_row: int = 10  #: 429 without any answer between; then the deployment is given up
    first_pause: float = 1.0  #: where a 429 names none; doubled each time


@dataclass(slots=True)
class Tally:
    """How the calls to one deployment ended."""

    sent: int = 0  #: requests, repeated ones included
    answered: int = 0
    blocked: dict[str, UUID] = field(default_factory=dict)  #: refs of blocked calls, and their exchange
    failed: Counter[str] = field(default_factory=Counter)
    stopped: str | None = None  #: why the rest was not sent
    budget_ended: bool = False  #: and that it was the budget


class Sender:
    """Sends to one deployment."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        access: GatewayAccess,
        target: Target,
        purse: Purse,
        *,
        patience: Patience = Patience(),
        on_end: Callable[[], None] = lambda: None,
        on_block: Callable[[str, UUID], Awaitable[None]] | None = None,
    ) -> None:
        self._client = client
        self._access = access
        self._target = target
        self._purse = purse
        self._patience = patience
        self._on_end = on_end
        self._on_block = on_block
        self._resume_at = 0.0
        self._pauses = 0
        self._failed_in_a_row = 0
        self._broken: AuditError | None = None
        self.tally = Tally()

    async def send(self, calls: Iterable[Outgoing]) -> Tally:
        """Send all calls, each taken when it is its turn, unless the budget or the deployment's failures stop it.

        Raises
        ------
        UsageError
            The gateway refuses our key, or a header of ours.
        AuditError
            ``on_block`` cannot keep a block.
        """
        rest = iter(calls)
        async with asyncio.TaskGroup() as group:
            for _ in range(self._target.in_flight):
                group.create_task(self._work(rest))
        if self._broken is not None:
            raise self._broken
        return self.tally

    async def _work(self, rest: Iterator[Outgoing]) -> None:
        for call in rest:
            try:
                why = await self._call(call)
                await self._keep_block(call)
            except AuditError as error:
                self._broken = error
                self._stop(str(error))
                return
            if self.tally.stopped is not None and why is not None:
                return
            self._settle(why)
            self._on_end()

    async def _keep_block(self, call: Outgoing) -> None:
        exchange_id = self.tally.blocked.get(call.ref)
        if exchange_id is not None and self._on_block is not None:
            await self._on_block(call.ref, exchange_id)

    def _settle(self, why: str | None) -> None:
        if why is None:
            self._failed_in_a_row = 0
            return
        self.tally.failed[why] += 1
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= self._patience.failed_in_a_row:
            self._stop(f"{self._failed_in_a_row} calls in a row failed, the last with {why}")

    def _stop(self, why: str) -> None:
        self.tally.stopped = self.tally.stopped or why

    async def _call(self, call: Outgoing) -> str | None:
        """Send one call until it is answered; give why it is not."""
        attempt = 0
        while True:
            await self._wait_out()
            if self.tally.stopped is not None:
                return self.tally.stopped
            if (used_up := self._purse.reserve(call.usd)) is not None:
                self.tally.budget_ended = True
                self._stop(used_up)
                return used_up
            self.tally.sent += 1
            answer, why = await self._post(call)
            if answer is not None and answer.status_code == 429:
                self._pause(answer)
                continue
            if why is None:
                self._pauses = 0
                return None
            attempt += 1
            if answer is not None and answer.status_code not in _AGAIN:
                return why
            if attempt >= self._patience.attempts:
                return why
            await asyncio.sleep(min(self._patience.first_backoff * 2 ** (attempt - 1), self._patience.longest_backoff))

    async def _wait_out(self) -> None:
        # In short steps: meanwhile the moment may move on, or the rest be given up.
        while (held := self._resume_at - time.monotonic()) > 0 and self.tally.stopped is None:  # noqa: ASYNC110
            await asyncio.sleep(min(held, 1.0))

    def _pause(self, answer: httpx.Response) -> None:
        """Hold back every call to the deployment: the others would only be refused as well."""
        now = time.monotonic()
        if now >= self._resume_at:  # else it is one more answer to what was sent before this pause
            self._pauses += 1
        if self._pauses > self._patience.pauses_in_a_row:
            self._stop(f"HTTP 429 after {self._patience.pauses_in_a_row} pauses in a row")
            return
        asked = read_retry_after(answer.headers)
        own = self._patience.first_pause * 2 ** min(self._pauses - 1, 8)
        pause = min(own if asked is None else asked, _LONGEST_PAUSE)
        self._resume_at = max(self._resume_at, now + pause)

    async def _post(self, call: Outgoing) -> tuple[httpx.Response | None, str | None]:
        spent = 0.0
        try:
            async with asyncio.timeout(self._target.timeout):
                answer = await self._client.post(
                    f"{self._access.url}/chat/completions", json=self._body(call), headers=self._headers(call)
                )
            spent, why = self._read(call, answer)
        except TimeoutError:
            return None, "no answer in time"
        except httpx.HTTPError as error:
            return None, type(error).__name__
        finally:
            self._purse.settle(call.usd, spent)
        return answer, why

    def _body(self, call: Outgoing) -> dict[str, Any]:
        # Nothing else is set: the deployment answers as it answers everybody.
        return {
            "model": self._target.model,
            "messages": [{"role": one.role, "content": one.content} for one in call.messages],
            **call.members,
        }

    def _headers(self, call: Outgoing) -> dict[str, str]:
        # What the gateway passes on is what the SDKs of applications send; the rest of it stays here.
        return {
            "accept": "application/json",
            "authorization": f"Bearer {self._access.key}",
            "x-tiltmeter-origin": self._target.origin,
            "x-tiltmeter-ref": call.ref,
            "x-tiltmeter-deployment": self._target.deployment,
            **({"x-tiltmeter-parent": str(call.parent)} if call.parent is not None else {}),
        }

    def _read(self, call: Outgoing, answer: httpx.Response) -> tuple[float, str | None]:
        """Tell what an answer cost, and why it is none."""
        body = _json(answer)
        if answer.status_code == 200:
            self.tally.answered += 1
            return self._cost(call, body), None
        error = body.get("error")
        code = str(error.get("code") or error.get("type") or "") if isinstance(error, dict) else ""
        exchange_id = answer.headers.get("x-tiltmeter-exchange-id")
        if exchange_id is None and answer.status_code in {400, 401, 403, 404}:
            message = error.get("message") if isinstance(error, dict) else answer.text[:200]
            raise UsageError(f"the gateway at {self._access.url} refuses probes: {message}")
        if exchange_id and answer.status_code in {400, 403, 451} and _is_block(error):
            self.tally.blocked[call.ref] = UUID(exchange_id)
            return 0.0, None
        return 0.0, f"HTTP {answer.status_code}" + (f" {code}" if code.isprintable() and len(code) < 60 else "")

    def _cost(self, call: Outgoing, body: Mapping[str, Any]) -> float:
        usage = body.get("usage")
        if not isinstance(usage, dict):
            return call.usd
        prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if not isinstance(prompt, int) or not isinstance(completion, int):
            return call.usd
        return self._target.price(prompt, completion)


def _is_block(error: object) -> bool:
    if not isinstance(error, dict):
        return False
    inner = error.get("innererror") or error.get("inner_error")
    named = [error.get("code"), error.get("type"), inner.get("code") if isinstance(inner, dict) else None]
    words = " ".join(str(one) for one in named if one).casefold()
    return any(block in words for block in _BLOCKS)


def _json(answer: httpx.Response) -> dict[str, Any]:
    try:
        body = answer.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
