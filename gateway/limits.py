"""The limits of client keys: requests and tokens a minute, and a budget.

All workers of a host count in one file (`gateway.shared`), a row a key, so a limit is the host's and exact however the
requests fall to its workers. Money is counted there too, and the shipper tells the other hosts (`gateway.ledger`).
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from auditor.config import Price
from auditor.domain.keys import Key
from gateway.errors import Limited
from gateway.shared import SharedTable
from gateway.window import CELLS, Window
from gateway.wire import MOST_TOKENS

#: A row: nano-USD spent, then the windows of requests and of tokens.
SPENT = 0
_REQUESTS = slice(1, 1 + CELLS)
_TOKENS = slice(1 + CELLS, 1 + 2 * CELLS)
WIDTH = 1 + 2 * CELLS

_SECOND = 1_000_000_000  # nanoseconds
#: More than this (a thousand million USD) is not counted: a price may be any number, an integer of a row may not.
_MOST_NANO_USD = 10**18


class TokenCount(NamedTuple):
    """Tokens of one request."""

    prompt: int
    completion: int

    def nano_usd(self, price: Price) -> int:
        """Give what they cost; a price is USD per million tokens, which makes it 1000 nano-USD a token."""
        return round(min(1000 * (self.prompt * price.input + self.completion * price.output), _MOST_NANO_USD))


class Limits:
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
        """Let a request begin, and reserve its tokens; a key without limits costs nothing and gets no grant.

        Parameters
        ----------
        spent_elsewhere
            What the key has spent on other hosts, in nano-USD.
        tokens
            What the request may use, as far as that can be said: its prompt, and the most it lets be written.

        Raises
        ------
        Limited
            Not now, or never again. A request that is refused takes nothing.
        """
        if key.rpm is None and key.tpm is None and key.budget is None:
            return None
        reserved = TokenCount(min(max(tokens.prompt, 0), MOST_TOKENS), min(max(tokens.completion, 0), MOST_TOKENS))
        use = self._use(key.id)
        with self._table.locked(key.id) as row:
            # Within the lock: the clock of a window never goes back.
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
        """Put what was used in the place of what was reserved in the second ``admitted``."""
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
            row = self._table.row(key_id)  # which stays where it is
            use = self._uses[key_id] = _Use(Window(row[_REQUESTS]), Window(row[_TOKENS]))
        return use

    def close(self) -> None:
        """Let go of the file."""
        self._table.close()


class _Use(NamedTuple):
    """What a key has used in the last minute."""

    requests: Window
    tokens: Window


class Grant:
    """A request that was let in, and what is reserved for it since then."""

    __slots__ = ("_key", "_limits", "_reserved", "_second", "_settled")

    def __init__(self, limits: Limits, key: Key, reserved: TokenCount, second: int) -> None:
        self._limits = limits
        self._key = key
        self._reserved = reserved
        self._second = second
        self._settled = False

    def settle(
        self, prompt_tokens: int | None, completion_tokens: int | None, price: Price | None, *, failed: bool
    ) -> None:
        """Say how the request ended. Only the first call counts.

        Tokens fewer than reserved are given back to the second of the admission; those beyond it count from now on.

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
    """A limit of a minute: of what, how many, and what counts."""

    of: str
    limit: int
    window: Window

    def has_room(self) -> int:
        """Give the second in which another request may begin."""
        return self.window.falls_to(max(self.limit - 1, 0))

    def headers(self, now: int) -> dict[str, str]:
        """Write it as OpenAI does; ``reset`` is when all of it is there again."""
        minutes, seconds = divmod(_seconds(self.window.falls_to(0), now), 60)
        return {
            f"x-ratelimit-limit-{self.of}": str(self.limit),
            f"x-ratelimit-remaining-{self.of}": str(max(0, self.limit - self.window.used(now // _SECOND))),
            f"x-ratelimit-reset-{self.of}": f"{minutes}m{seconds}s" if minutes else f"{seconds}s",
        }


def _is_full(window: Window, limit: int | None, second: int) -> bool:
    return limit is not None and window.used(second) >= limit


def _minutes(key: Key, use: _Use) -> list[_Minute]:
    minutes = []
    if key.rpm is not None:
        minutes.append(_Minute("requests", key.rpm, use.requests))
    if key.tpm is not None:
        minutes.append(_Minute("tokens", key.tpm, use.tokens))
    return minutes


def _too_many(minutes: Sequence[_Minute], now: int) -> Limited:
    """Refuse until there is room in all that are full."""
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
    """Give the seconds from ``now`` (nanoseconds) until the second ``until``, rounded up; none if it is here."""
    return max(0, -((now - until * _SECOND) // _SECOND))


def _spent(budget: float) -> Limited:
    return Limited(
        f"This key has spent its budget of {budget:.2f} USD.",
        code="insufficient_quota",
        type_="insufficient_quota",
        headers={"x-should-retry": "false"},
    )
