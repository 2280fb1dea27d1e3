"""Limits of client keys: requests per minute, tokens per minute, and a budget.

All workers of a host count in one file (`gateway.shared`) with one row per key, so limits are exact per host. Money is
counted there too; the shipper exchanges the totals with other hosts (`gateway.ledger`).
"""

import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from auditor.config import Price
from auditor.domain.keys import Key
from gateway.errors import Limited
from gateway.shared import SharedTable
from gateway.wire import MOST_TOKENS

#: Seconds that count: the current one and the 60 before it.
SPAN = 61
#: Integers of a window: the last second that was seen, and an amount for each second that counts.
CELLS = 1 + SPAN


class MinuteWindow:
    """The use of the last minute, in 64-bit integers that processes share.

    Amounts are summed per second. The current second and the 60 before it count, so an amount counts for 60 to 61
    seconds, and a limit on `used` holds in every interval of 60 seconds. If a process is killed during a call, the next
    call repairs the state.

    Parameters
    ----------
    cells
        `CELLS` integers of 64 bits, initially zero. Processes that share them hold a lock around each call.
    """

    def __init__(self, cells: memoryview) -> None:
        self._cells = cells
        self._amounts = cells[1:]

    def used(self, now: int) -> int:
        """Advance to the second ``now`` and return the sum."""
        self.move(now)
        return sum(self._amounts)

    def move(self, now: int) -> None:
        """Advance to the second ``now``, and drop what no longer counts.

        A ``now`` before the last one means that the machine and its clock were restarted: all amounts are dropped.
        """
        last = self._cells[0]
        if now != last:
            passed = range(last + 1, now + 1) if last < now < last + SPAN else range(SPAN)
            for second in passed:
                self._amounts[second % SPAN] = 0
            self._cells[0] = now

    def add(self, second: int, amount: int) -> None:
        """Add ``amount`` (which may be negative) to ``second``, unless that second no longer counts."""
        last = self._cells[0]
        if last - SPAN < second <= last:
            self._amounts[second % SPAN] += amount

    def falls_to(self, wanted: int) -> int:
        """Return the second at which the sum falls to ``wanted`` (>= 0), if nothing is added until then."""
        last, used = self._cells[0], sum(self._amounts)
        if used <= wanted:
            return last
        seconds = range(last - SPAN + 1, last + 1)
        expired = accumulate(self._amounts[second % SPAN] for second in seconds)
        return next(second + SPAN for second, gone in zip(seconds, expired, strict=True) if used - gone <= wanted)


#: A row: nano-USD spent, then the windows of requests and of tokens.
SPENT = 0
_REQUESTS = slice(1, 1 + CELLS)
_TOKENS = slice(1 + CELLS, 1 + 2 * CELLS)
WIDTH = 1 + 2 * CELLS

_SECOND = 1_000_000_000  # nanoseconds
#: The largest amount that is counted (a thousand million USD), so that it fits into 64 bits.
_MOST_NANO_USD = 10**18


class TokenCount(NamedTuple):
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
    clock
        Nanoseconds; the same clock for all processes of the host.
    """

    def __init__(self, path: Path, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._table = SharedTable(path, WIDTH)
        self._clock = clock
        self._uses: dict[str, _Use] = {}

    def admit(self, key: Key, spent_elsewhere: int, tokens: TokenCount) -> "Grant | None":
        """Admit a request and reserve its tokens. A key without limits gets no grant.

        Parameters
        ----------
        spent_elsewhere
            What the key has spent on other hosts, in nano-USD.
        tokens
            An estimate of the prompt, and the maximum output that the request allows.

        Raises
        ------
        Limited
            A limit is reached. A refused request uses nothing.
        """
        if key.rpm is None and key.tpm is None and key.budget is None:
            return None
        reserved = TokenCount(min(max(tokens.prompt, 0), MOST_TOKENS), min(max(tokens.completion, 0), MOST_TOKENS))
        use = self._use(key.id)
        with self._table.locked(key.id) as row:
            # Read within the lock, so that the time of a window never goes back.
            now = self._clock()
            if key.budget is not None and row[SPENT] + spent_elsewhere >= key.budget * 1e9:
                raise _spent(key.budget)
            second = now // _SECOND
            if _is_full(use.requests, key.rpm, second) or _is_full(use.tokens, key.tpm, second):
                raise _too_many(_minutes(key, use), now)
            if key.rpm is not None:
                use.requests.add(second, 1)
            if key.tpm is not None:
                use.tokens.add(second, reserved.prompt + reserved.completion)
        return Grant(self, key, reserved, second)

    def count(self, key: Key, reserved: TokenCount, used: TokenCount, admitted: int, price: Price | None) -> None:
        """Replace what was reserved in the second ``admitted`` by what was used."""
        if key.tpm is None and (key.budget is None or price is None):
            return
        with self._table.locked(key.id) as row:
            if key.tpm is not None:
                now, more = self._clock() // _SECOND, sum(used) - sum(reserved)
                tokens = self._use(key.id).tokens
                tokens.move(now)
                tokens.add(now if more > 0 else admitted, more)
            if key.budget is not None and price is not None:
                row[SPENT] = min(row[SPENT] + used.nano_usd(price), _MOST_NANO_USD)

    def _use(self, key_id: str) -> "_Use":
        use = self._uses.get(key_id)
        if use is None:
            row = self._table.row(key_id)  # its memory never moves
            use = self._uses[key_id] = _Use(MinuteWindow(row[_REQUESTS]), MinuteWindow(row[_TOKENS]))
        return use

    def close(self) -> None:
        """Close the file."""
        self._table.close()


class _Use(NamedTuple):
    """The use of a key in the last minute."""

    requests: MinuteWindow
    tokens: MinuteWindow


class Grant:
    """An admitted request, and the tokens reserved for it."""

    __slots__ = ("_key", "_limits", "_reserved", "_second", "_settled")

    def __init__(self, limits: KeyLimits, key: Key, reserved: TokenCount, second: int) -> None:
        self._limits = limits
        self._key = key
        self._reserved = reserved
        self._second = second
        self._settled = False

    def settle(
        self, prompt_tokens: int | None, completion_tokens: int | None, price: Price | None, *, failed: bool
    ) -> None:
        """Report how the request ended. Only the first call counts.

        Unused reserved tokens are returned to the second of the admission; additional ones count from now on.

        Parameters
        ----------
        prompt_tokens, completion_tokens
            What the deployment reported. When it reported neither, the request has used what was reserved.
        price
            The deployment's, if it has one.
        failed
            It ended before anything was generated: when nothing was reported, nothing was used.
        """
        if self._settled:
            return
        self._settled = True
        if prompt_tokens is not None or completion_tokens is not None:
            used = TokenCount(prompt_tokens or 0, completion_tokens or 0)
        else:
            used = TokenCount(0, 0) if failed else self._reserved
        self._limits.count(self._key, self._reserved, used, self._second, price)


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


def _minutes(key: Key, use: _Use) -> list[_Minute]:
    minutes = []
    if key.rpm is not None:
        minutes.append(_Minute("requests", key.rpm, use.requests))
    if key.tpm is not None:
        minutes.append(_Minute("tokens", key.tpm, use.tokens))
    return minutes


def _too_many(minutes: Sequence[_Minute], now: int) -> Limited:
    """Build the error for limits that are reached, with the time until all of them have room."""
    full = [one for one in minutes if _is_full(one.window, one.limit, now // _SECOND)]
    last = max(full, key=_Minute.has_room)
    wait = max(1, _seconds(last.has_room(), now))
    return Limited(
        f"This key has used up its {last.limit} {last.of} a minute. Try again in {wait} s.",
        code="rate_limit_exceeded",
        type_=last.of,
        headers={name: value for one in minutes for name, value in one.headers(now).items()},
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
