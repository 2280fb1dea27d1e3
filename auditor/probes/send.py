"""Send planned calls to one deployment through the gateway: a few at a time, and slower after a 429.

``run`` decides what is sent. The gateway stores the answers; this module keeps only their outcomes. It handles all
exceptions and statuses of httpx2. A call that could exceed the budget of the run is not sent.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import httpx2

from auditor.access import GatewayAccess
from auditor.domain.exchange import Origin
from auditor.domain.question import Message
from auditor.domain.retry_after import read_retry_after
from auditor.errors import AuditError, UsageError


@dataclass(slots=True)
class RunBudget:
    """The limits of a run, and the amounts spent or reserved for calls in flight. ``None`` means no limit."""

    calls_limit: int | None = None
    usd_limit: float | None = None
    calls: int = 0
    usd: float = 0.0
    stop: Callable[[], bool] = lambda: False  #: whether a person has stopped the run
    _reserved: float = 0.0

    def refuses(self, usd: float) -> str | None:
        """Return which part of the budget has no room for one call of this price; ``None`` if there is room."""
        if self.stop():
            return "a person stopped it"
        if self.calls_limit is not None and self.calls >= self.calls_limit:
            return f"the budget of {self.calls_limit} calls is used up"
        if self.usd_limit is not None and usd > 0 and self.usd + self._reserved + usd > self.usd_limit:
            return f"the budget of {self.usd_limit:g} USD is used up"
        return None

    def reserve(self, usd: float) -> str | None:
        """Reserve one call of this price, or return the refusal of ``refuses``."""
        refused = self.refuses(usd)
        if refused is None:
            self.calls += 1
            self._reserved += usd
        return refused

    def settle(self, reserved: float, spent: float) -> None:
        """Replace the reservation of a call by its cost."""
        self._reserved -= reserved
        self.usd += spent


#: Statuses after which a retry may succeed.
_AGAIN: Final = frozenset({408, 409, 425, 500, 502, 503, 504, 529})
#: The codes and types of errors with which providers report a blocked prompt or answer.
_BLOCKS: Final = ("content_filter", "content_policy", "responsibleai", "data_inspection_failed", "moderation_blocked")
_LONGEST_PAUSE: Final = 300.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Outgoing:
    """One call to be sent. ``usd`` is its estimated cost."""

    ref: str
    messages: tuple[Message, ...]
    usd: float = 0.0
    parent: UUID | None = None  #: the exchange that is asked again
    members: Mapping[str, Any] = field(default_factory=dict)  #: members of the request besides its messages


@dataclass(frozen=True, kw_only=True, slots=True)
class CallTarget:
    """A deployment, and the settings of calls to it."""

    deployment: str
    model: str  #: the requested model name; a pin selects the deployment
    in_flight: int
    timeout: float  #: seconds one call may take
    price: Callable[[int, int], float]  #: USD of prompt and completion tokens
    origin: Origin = Origin.PROBE


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """Limits of retries. Times are seconds."""

    attempts: int = 6  #: attempts of one call
    first_backoff: float = 0.5
    longest_backoff: float = 8.0
    failed_in_a_row: int = 10  #: failed calls in a row after which the deployment is given up
    pauses_in_a_row: int = 10  #: pauses after a 429 without an answer between; then the deployment is given up
    first_pause: float = 1.0  #: pause after a 429 without Retry-After; doubled each time


@dataclass(slots=True)
class Tally:
    """How the calls to one deployment ended."""

    sent: int = 0  #: requests, including repeated ones
    answered: int = 0
    blocked: dict[str, UUID] = field(default_factory=dict)  #: exchanges of blocked calls, by ref
    failed: Counter[str] = field(default_factory=Counter)
    stopped: str | None = None  #: the reason why the rest was not sent
    budget_ended: bool = False  #: whether that reason was the budget


class Sender:
    """A sender of calls to one deployment."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        access: GatewayAccess,
        target: CallTarget,
        budget: RunBudget,
        *,
        patience: Patience = Patience(),
        on_end: Callable[[], None] = lambda: None,
        on_block: Callable[[str, UUID], Awaitable[None]] | None = None,
    ) -> None:
        self._client = client
        self._access = access
        self._target = target
        self._budget = budget
        self._patience = patience
        self._on_end = on_end
        self._on_block = on_block
        self._resume_at = 0.0
        self._pauses = 0
        self._failed_in_a_row = 0
        self._broken: AuditError | None = None
        self.tally = Tally()

    async def send(self, calls: Iterable[Outgoing]) -> Tally:
        """Send all calls, each read when it is sent, until the budget or the deployment's failures stop it.

        Raises
        ------
        UsageError
            The gateway refuses our key, or a header of ours.
        AuditError
            ``on_block`` cannot store a block.
        """
        rest = iter(calls)
        async with asyncio.TaskGroup() as group:
            for _ in range(self._target.in_flight):
                group.create_task(self._work(rest))
        if self._broken is not None:
            raise self._broken
        return self.tally

    async def _work(self, calls: Iterator[Outgoing]) -> None:
        for call in calls:
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

    def _settle(self, reason: str | None) -> None:
        if reason is None:
            self._failed_in_a_row = 0
            return
        self.tally.failed[reason] += 1
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= self._patience.failed_in_a_row:
            self._stop(f"{self._failed_in_a_row} calls in a row failed, the last with {reason}")

    def _stop(self, reason: str) -> None:
        self.tally.stopped = self.tally.stopped or reason

    async def _call(self, call: Outgoing) -> str | None:
        """Send one call until it is answered, or return the reason of its failure."""
        attempt = 0
        while True:
            await self._wait_out()
            if self.tally.stopped is not None:
                return self.tally.stopped
            if (used_up := self._budget.reserve(call.usd)) is not None:
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
        # Wait in short steps, because the end of the pause may change, or the rest be given up.
        while (held := self._resume_at - time.monotonic()) > 0 and self.tally.stopped is None:
            if self._budget.stop():
                return
            await asyncio.sleep(min(held, 1.0))

    def _pause(self, answer: httpx2.Response) -> None:
        """Pause all calls to the deployment, because it would refuse the others as well."""
        now = time.monotonic()
        if now >= self._resume_at:  # otherwise the call was sent before this pause
            self._pauses += 1
        if self._pauses > self._patience.pauses_in_a_row:
            self._stop(f"HTTP 429 after {self._patience.pauses_in_a_row} pauses in a row")
            return
        retry_after = read_retry_after(answer.headers)
        backoff = self._patience.first_pause * 2 ** min(self._pauses - 1, 8)
        pause = min(backoff if retry_after is None else retry_after, _LONGEST_PAUSE)
        self._resume_at = max(self._resume_at, now + pause)

    async def _post(self, call: Outgoing) -> tuple[httpx2.Response | None, str | None]:
        spent = 0.0
        try:
            async with asyncio.timeout(self._target.timeout):
                answer = await self._client.post(
                    f"{self._access.url}/chat/completions", json=self._body(call), headers=self._headers(call)
                )
            spent, why = self._read(call, answer)
        except TimeoutError:
            return None, "no answer in time"
        except httpx2.HTTPError as error:
            return None, type(error).__name__
        finally:
            self._budget.settle(call.usd, spent)
        return answer, why

    def _body(self, call: Outgoing) -> dict[str, Any]:
        # No other parameter is set, so the deployment answers as it answers everybody.
        return {
            "model": self._target.model,
            "messages": [{"role": message.role, "content": message.content} for message in call.messages],
            **call.members,
        }

    def _headers(self, call: Outgoing) -> dict[str, str]:
        # The gateway forwards only headers that the SDKs of applications also send. The others end at the gateway.
        return {
            "accept": "application/json",
            "authorization": f"Bearer {self._access.key}",
            "x-biasmeter-origin": self._target.origin,
            "x-biasmeter-ref": call.ref,
            "x-biasmeter-deployment": self._target.deployment,
            **({"x-biasmeter-parent": str(call.parent)} if call.parent is not None else {}),
        }

    def _read(self, call: Outgoing, answer: httpx2.Response) -> tuple[float, str | None]:
        """Return the cost of an answer, and the reason if it is not a complete answer."""
        body = _json(answer)
        if answer.status_code == 200:
            self.tally.answered += 1
            return self._cost(call, body), None
        error = body.get("error")
        code = str(error.get("code") or error.get("type") or "") if isinstance(error, dict) else ""
        exchange_id = answer.headers.get("x-biasmeter-exchange-id")
        if exchange_id is None and answer.status_code in {400, 401, 403, 404}:
            message = error.get("message") if isinstance(error, dict) else answer.text[:200]
            raise UsageError(f"the gateway at {self._access.url} refuses probes: {message}")
        if exchange_id and answer.status_code in {400, 403, 451} and is_block(error):
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


def is_block(error: object) -> bool:
    """Return whether an error object of an answer reports a content filter's block."""
    if not isinstance(error, dict):
        return False
    inner = error.get("innererror") or error.get("inner_error")
    named = [error.get("code"), error.get("type"), inner.get("code") if isinstance(inner, dict) else None]
    words = " ".join(str(part) for part in named if part).casefold()
    return any(block in words for block in _BLOCKS)


def _json(answer: httpx2.Response) -> dict[str, Any]:
    try:
        body = answer.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
