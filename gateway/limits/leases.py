"""Leases: room in the limits of a key that a worker has counted in advance, so that most requests take no lock.

A lease is counted as used when it is taken, so the limits hold whatever becomes of its worker: if that is killed, the
rest of the lease counts as used until its second leaves the window. A lease serves requests only in the second in which
it was taken, because its amounts count from that second.
"""

from auditor.domain.keys import Key
from gateway.limits.minute_window import MinuteWindow

#: The smallest and the largest lease, in requests, where the limits have room for it.
FEWEST_REQUESTS = 8
MOST_REQUESTS = 64
#: A lease is at most this part of what the limit has left, divided by the number of workers.
_PART = 8
#: What a limit that a key does not have allows.
UNLIMITED = 1 << 62


class LimitLease:
    """One worker's lease of one key. `take`, `settle` and `is_past` need no lock, the others that of the key's row.

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
        self._share = _PART * workers
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
        `FEWEST_REQUESTS` to `MOST_REQUESTS`, or the part that it may take of ``requests_left`` and ``tokens_left``,
        which are what the limits allow now. So a key whose limit is near gets none.
        """
        if second != self._second or key is not self._key:
            self._before = self._admitted if second == self._second + 1 and key is self._key else 0
            self._key, self._second, self._admitted = key, second, 0
        self._admitted += 1
        self._typical = max(self._typical, tokens)
        size = min(max(self._admitted, self._before, FEWEST_REQUESTS), MOST_REQUESTS, requests_left // self._share)
        most = UNLIMITED if key.tpm is None else min(size * self._typical, tokens_left // self._share)
        if size < 1 or most < tokens:
            return
        if key.rpm is not None:
            self._request_window.add(second, size)
        if key.tpm is not None:
            self._token_window.add(second, most)
        self._is_taken, self._requests, self._tokens = True, size, most
