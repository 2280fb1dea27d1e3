"""Limits of client keys: requests per minute, tokens per minute, and a budget.

All workers of a host count in one file (`gateway.shared`) with one row per key, so the limits hold for the whole host.
A limit is the host's share of it where several hosts use one store (`gateway.limits.shares`).
A key that is used often is counted by leases (`LimitLease`), others request by request. Money is counted in the file
too; the shipper exchanges the totals with other hosts (`gateway.limits.ledger`).
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from auditor.config import Price
from auditor.domain.keys import Key
from gateway.errors import Limited
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
#: The smallest and the largest lease, in requests, where the limits have room for it.
_FEWEST_LEASED = 8
MOST_LEASED = 64
#: A lease is at most this part of what the limit has left, divided by the number of workers.
_LEASED_PART = 8
#: A token has about four bytes in most languages and formats.
BYTES_PER_TOKEN = 4
#: What a limit that a key does not have allows.
_UNLIMITED = 1 << 62


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
            requests_left = _UNLIMITED if key.rpm is None else key.rpm - use.requests.used(second)
            tokens_left = _UNLIMITED if key.tpm is None else key.tpm - use.tokens.used(second)
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


class LimitLease:
    """One worker's lease of one key: room in its limits that is counted in advance, so that most requests take no lock.

    A lease is counted as used when it is taken, so the limits hold whatever becomes of its worker: if that is killed,
    the rest of the lease counts as used until its second leaves the window. A lease serves requests only in the second
    in which it was taken, because its amounts count from that second. `take`, `settle` and `is_past` need no lock, the
    others that of the key's row.

    Parameters
    ----------
    requests, tokens
        The windows of the key.
    workers
        The number of workers that share the limits.
    """

    __slots__ = ("_admitted", "_before", "_is_taken", "_key", "_request_window", "_requests", "_second", "_share",
                 "_token_window", "_tokens", "_typical", "_unused")  # fmt: skip

    def __init__(self, requests: MinuteWindow, tokens: MinuteWindow, workers: int) -> None:
        self._request_window = requests
        self._token_window = tokens
        self._share = _LEASED_PART * workers
        self._is_taken = False
        self._key: Key | None = None
        self._second = -1
        self._requests = 0
        self._tokens = 0
        self._admitted = 0  # requests of this worker in the second
        self._before = 0  # and in the one before
        self._typical = 0  # tokens of the latest request
        self._unused: dict[int, int] = {}  # tokens to return to earlier seconds

    def is_past(self, second: int) -> bool:
        """Return whether the windows contain a lease that serves no request in ``second``."""
        return self._is_taken and self._second != second

    def take(self, key: Key, second: int, tokens: int) -> bool:
        """Take one request with its tokens out of the lease. Return False if it does not contain them."""
        if second != self._second or self._requests < 1 or self._tokens < tokens or key is not self._key:
            return False
        self._requests -= 1
        self._tokens -= tokens
        self._admitted += 1
        return True

    def settle(self, key: Key, admitted: int, now: int, more: int, used: int) -> bool:
        """Count ``more`` tokens than were reserved in the second ``admitted``; negative: fewer.

        Returns
        -------
        Whether that is done. If not, the caller counts them under the lock.
        """
        if now != self._second or not self._is_taken or key is not self._key:
            return False
        self._typical = used
        if more > 0:
            if self._tokens < more:
                return False
            self._tokens -= more
        elif admitted == now:
            self._tokens -= more
        elif more:
            self._unused[admitted] = self._unused.get(admitted, 0) - more
        return True

    def put_back(self, second: int) -> None:
        """Return what was not used to the windows, and advance them to ``second``."""
        self._request_window.move(second)
        self._token_window.move(second)
        if not self._is_taken:
            return
        assert self._key is not None
        if self._key.rpm is not None:
            self._request_window.add(self._second, -self._requests)
        if self._key.tpm is not None:
            self._token_window.add(self._second, -self._tokens)
            for earlier, amount in self._unused.items():
                self._token_window.add(earlier, -amount)
        self._is_taken = False
        self._requests = self._tokens = 0
        self._unused.clear()

    def renew(self, key: Key, second: int, tokens: int, requests_left: int, tokens_left: int) -> None:
        """Take a new lease after a request with ``tokens`` was admitted and counted under the lock.

        It holds as many requests as this worker has admitted in this second, or in the one before if those were more:
        `_FEWEST_LEASED` to `MOST_LEASED`, or the part that it may take of ``requests_left`` and ``tokens_left``,
        which are what the limits allow now. So a key whose limit is near gets none.
        """
        if second != self._second or key is not self._key:
            self._before = self._admitted if second == self._second + 1 and key is self._key else 0
            self._key, self._second, self._admitted = key, second, 0
        self._admitted += 1
        self._typical = max(self._typical, tokens)
        size = min(max(self._admitted, self._before, _FEWEST_LEASED), MOST_LEASED, requests_left // self._share)
        most = _UNLIMITED if key.tpm is None else min(size * self._typical, tokens_left // self._share)
        if size < 1 or most < tokens:
            return
        if key.rpm is not None:
            self._request_window.add(second, size)
        if key.tpm is not None:
            self._token_window.add(second, most)
        self._is_taken, self._requests, self._tokens = True, size, most


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
        self,
        prompt_tokens: int | None,
        completion_tokens: int | None,
        price: Price | None,
        *,
        failed: bool,
        answer_bytes: int = 0,
    ) -> None:
        """Report how the request ended. Only the first call counts.

        Unused reserved tokens are returned to the second of the admission; additional ones count from now on.

        Parameters
        ----------
        prompt_tokens, completion_tokens
            Tokens that the deployment reported. When it reported neither, the request has used what was reserved, and
            at least as many completion tokens as ``answer_bytes`` are.
        price
            Price of the deployment, if it has one.
        failed
            Whether the request ended before anything was generated: when nothing was reported, nothing was used.
        answer_bytes
            Bytes of the generated answer that the client got.
        """
        if self._is_settled:
            return
        self._is_settled = True
        prompt, completion = prompt_tokens or 0, completion_tokens or 0
        if prompt_tokens is None and completion_tokens is None and not failed:
            prompt = self.reserved.prompt
            completion = max(self.reserved.completion, answer_bytes // BYTES_PER_TOKEN)
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
