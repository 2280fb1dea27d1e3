"""Limits of client keys: requests per minute, tokens per minute, and a budget.

All workers of a host count in one file (`gateway.shared`) with one row per key, so the limits hold for the whole host.
A limit is the host's share of it where several hosts use one store (`gateway.limits.shares`).
A key that is used often is counted by leases (`gateway.limits.leases`), others request by request. Money is counted
there too; the shipper exchanges the totals with other hosts (`gateway.limits.ledger`).
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from auditor.config import Price
from auditor.domain.keys import Key
from gateway.errors import Limited
from gateway.limits.leases import UNLIMITED, LimitLease
from gateway.limits.minute_window import CELLS, MinuteWindow
from gateway.shared import SharedTable
from gateway.wire import MOST_TOKENS

#: A row: nano-USD spent, the last second in which a limit was reached, then the windows of requests and of tokens.
SPENT = 0
FULL_AT = 1
REQUESTS = slice(2, 2 + CELLS)
TOKENS = slice(2 + CELLS, 2 + 2 * CELLS)
WIDTH = 2 + 2 * CELLS

_SECOND = 1_000_000_000  # nanoseconds
#: The largest amount that is counted (a thousand million USD), so that it fits into 64 bits.
_MOST_NANO_USD = 10**18


class TokenCount(msgspec.Struct, frozen=True, gc=False):
    """Tokens of one request."""

    prompt: int
    completion: int

    def nano_usd(self, price: Price) -> int:
        """Return the cost in nano-USD. A price of 1 USD per million tokens is 1000 nano-USD per token."""
        return round(min(1000 * (self.prompt * price.input + self.completion * price.output), _MOST_NANO_USD))


class KeyLimits:
    """The limits of all client keys on this host.

    Parameters
    ----------
    path
        The file that the processes of the host share. It outlives them: it holds what the keys have spent.
    workers
        The number of processes that admit requests.
    clock
        Nanoseconds; the same clock for all processes of the host.
    """

    def __init__(self, path: Path, workers: int = 1, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._table = SharedTable(path, WIDTH)
        self._workers = workers
        self._clock = clock
        self._uses: dict[str, LimitUse] = {}

    def admit(self, key: Key, spent_elsewhere: int, tokens: TokenCount) -> "Grant | None":
        """Admit a request and reserve its tokens. A key without limits gets no grant.

        Parameters
        ----------
        spent_elsewhere
            Amount that the key has spent on other hosts, in nano-USD.
        tokens
            An estimate of the prompt, and the maximum output that the request allows.

        Raises
        ------
        Limited
            A limit is reached. A refused request uses nothing.
        """
        budget = key.budget
        if budget is None and key.rpm is None and key.tpm is None:
            return None
        amount = tokens.prompt + tokens.completion
        if tokens.prompt < 0 or tokens.completion < 0 or amount > MOST_TOKENS:
            tokens = TokenCount(*[min(max(count, 0), MOST_TOKENS) for count in (tokens.prompt, tokens.completion)])
            amount = tokens.prompt + tokens.completion
        use = self._uses.get(key.id)
        if use is None:
            use = self._use(key.id)
        if budget is not None and use.row[SPENT] + spent_elsewhere >= budget * 1e9:
            raise _spent(budget)
        second = self._clock() // _SECOND
        if use.row[FULL_AT] == second or not use.lease.take(key, second, amount):
            second = self._admit_locked(key, use, amount)
        return Grant(self, key, use, tokens, second)

    def _admit_locked(self, key: Key, use: "LimitUse", tokens: int) -> int:
        if key.rpm is None and key.tpm is None:
            return self._clock() // _SECOND
        with self._table.locked(key.id) as row:
            # Read within the lock, so that the time of a window never goes back.
            now = self._clock()
            second = now // _SECOND
            use.lease.put_back(second)
            requests_left = UNLIMITED if key.rpm is None else key.rpm - use.requests.used(second)
            tokens_left = UNLIMITED if key.tpm is None else key.tpm - use.tokens.used(second)
            if requests_left <= 0 or tokens_left <= 0:
                row[FULL_AT] = second
                raise _too_many(_minutes(key, use), now)
            if key.rpm is not None:
                use.requests.add(second, 1)
            if key.tpm is not None:
                use.tokens.add(second, tokens)
            if tokens_left <= tokens:
                row[FULL_AT] = second
            if row[FULL_AT] != second:
                use.lease.renew(key, second, tokens, requests_left - 1, tokens_left - tokens)
        return second

    def count(self, grant: "Grant", prompt: int, completion: int, price: Price | None) -> None:
        """Replace the tokens that were reserved by those that were used. Called by `Grant.settle`."""
        key, use, admitted = grant.key, grant.use, grant.second
        costs = price is not None and key.budget is not None
        if key.tpm is None and not costs:
            return
        total = prompt + completion
        more = total - grant.reserved.prompt - grant.reserved.completion
        is_counted = key.tpm is None or use.lease.settle(key, admitted, self._clock() // _SECOND, more, total)
        if is_counted and not costs:
            return
        with self._table.locked(key.id) as row:
            if key.tpm is not None and not is_counted:
                now = self._clock() // _SECOND
                use.tokens.move(now)
                use.tokens.add(now if more > 0 else admitted, more)
                if more > 0 and _is_full(use.tokens, key.tpm, now):
                    row[FULL_AT] = now
            if costs:
                assert price is not None
                row[SPENT] = min(row[SPENT] + TokenCount(prompt, completion).nano_usd(price), _MOST_NANO_USD)

    def _use(self, key_id: str) -> "LimitUse":
        row = self._table.row(key_id)  # its memory never moves
        requests, tokens = MinuteWindow(row[REQUESTS]), MinuteWindow(row[TOKENS])
        use = self._uses[key_id] = LimitUse(row, requests, tokens, LimitLease(requests, tokens, self._workers))
        return use

    def return_past_leases(self) -> None:
        """Return what is left of leases whose second is over. Called twice a second."""
        second = self._clock() // _SECOND
        for key_id, use in self._uses.items():
            if use.lease.is_past(second):
                self._return_lease(key_id, use)

    def return_leases(self) -> None:
        """Return what is left of all leases."""
        for key_id, use in self._uses.items():
            self._return_lease(key_id, use)

    def _return_lease(self, key_id: str, use: "LimitUse") -> None:
        with self._table.locked(key_id):
            use.lease.put_back(self._clock() // _SECOND)

    def close(self) -> None:
        """Return all leases, and close the file."""
        self.return_leases()
        self._table.close()


class LimitUse(msgspec.Struct, frozen=True, eq=False):
    """What a key has used of its limits, in the row that processes share, and this process's lease of it."""

    row: memoryview
    requests: MinuteWindow
    tokens: MinuteWindow
    lease: LimitLease


class Grant(msgspec.Struct, eq=False):
    """An admitted request, and the tokens reserved for it."""

    limits: KeyLimits
    key: Key
    use: LimitUse
    reserved: TokenCount
    second: int  #: of the admission
    _is_settled: bool = False

    def settle(
        self, prompt_tokens: int | None, completion_tokens: int | None, price: Price | None, *, failed: bool
    ) -> None:
        """Report how the request ended. Only the first call counts.

        Unused reserved tokens are returned to the second of the admission; additional ones count from now on.

        Parameters
        ----------
        prompt_tokens, completion_tokens
            Tokens that the deployment reported. When it reported neither, the request has used what was reserved.
        price
            Price of the deployment, if it has one.
        failed
            Whether the request ended before anything was generated: when nothing was reported, nothing was used.
        """
        if self._is_settled:
            return
        self._is_settled = True
        prompt, completion = prompt_tokens or 0, completion_tokens or 0
        if prompt_tokens is None and completion_tokens is None and not failed:
            prompt, completion = self.reserved.prompt, self.reserved.completion
        self.limits.count(self, prompt, completion, price)


class _Minute(NamedTuple):
    """A limit per minute, and the window in which it applies."""

    of: str
    limit: int
    window: MinuteWindow

    def has_room(self) -> int:
        """Return the second in which another request may begin."""
        return self.window.falls_to(max(self.limit - 1, 0))

    def headers(self, now: int) -> dict[str, str]:
        """Return the headers in OpenAI's format; ``reset`` is the time until the whole limit is available."""
        minutes, seconds = divmod(_seconds(self.window.falls_to(0), now), 60)
        return {
            f"x-ratelimit-limit-{self.of}": str(self.limit),
            f"x-ratelimit-remaining-{self.of}": str(max(0, self.limit - self.window.used(now // _SECOND))),
            f"x-ratelimit-reset-{self.of}": f"{minutes}m{seconds}s" if minutes else f"{seconds}s",
        }


def _is_full(window: MinuteWindow, limit: int | None, second: int) -> bool:
    return limit is not None and window.used(second) >= limit


def _minutes(key: Key, use: LimitUse) -> list[_Minute]:
    minutes = []
    if key.rpm is not None:
        minutes.append(_Minute("requests", key.rpm, use.requests))
    if key.tpm is not None:
        minutes.append(_Minute("tokens", key.tpm, use.tokens))
    return minutes


def _too_many(minutes: Sequence[_Minute], now: int) -> Limited:
    """Build the error for limits that are reached, with the time until all of them have room."""
    full = [minute for minute in minutes if _is_full(minute.window, minute.limit, now // _SECOND)]
    last = max(full, key=_Minute.has_room)
    wait = max(1, _seconds(last.has_room(), now))
    return Limited(
        f"This key has used up its {last.limit} {last.of} a minute. Try again in {wait} s.",
        code="rate_limit_exceeded",
        type_=last.of,
        headers={name: value for minute in minutes for name, value in minute.headers(now).items()},
        retry_after=wait,
    )


def _seconds(until: int, now: int) -> int:
    """Return the seconds from ``now`` (nanoseconds) until the second ``until``, rounded up, at least 0."""
    return max(0, -((now - until * _SECOND) // _SECOND))


def _spent(budget: float) -> Limited:
    return Limited(
        f"This key has spent its budget of {budget:.2f} USD.",
        code="insufficient_quota",
        type_="insufficient_quota",
        headers={"x-should-retry": "false"},
    )
