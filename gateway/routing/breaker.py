"""The circuit breaker of one deployment: after failures the deployment is not asked for a while, then tried once.

Pure functions on a row of integers that workers share; zeros are a closed breaker. The caller of a function that writes
holds the row's lock. Times are nanoseconds of a monotonic clock. Each function writes the deciding cell last, so that
the next request repairs the state of a writer that was killed.

- Closed: every request is admitted. The breaker opens at a failure that is the fifth in a row, or one of ten or more
  among the last twenty outcomes (twenty must have been seen).
- Open: none is admitted, for ten seconds.
- Half-open: one is admitted, the trial. Success closes the breaker with nothing remembered, failure opens it again. A
  trial without an outcome allows the next one; so does a trial without a result for half a minute, whose later result
  still counts.

Results of requests that were admitted before the breaker last opened or closed are ignored.
"""

from enum import Enum, IntEnum, auto
from typing import Final, Protocol

import msgspec

IN_A_ROW = 5
LAST = 20
HALF = LAST // 2
OPEN_NS = 10 * 10**9
TRIAL_NS = 30 * 10**9

#: How often it has opened and closed; the last outcomes; when it may be tried; when a trial under way is given up.
_EPOCH, _HISTORY, _OPEN_UNTIL, _TRIAL_UNTIL = range(4)
WIDTH = 4
_ALL_FAILED = (1 << IN_A_ROW) - 1
_NONE_FAILED = 1 << LAST


class BreakerRow(Protocol):
    """At least ``WIDTH`` integers of 64 bits, zeros at first: a list, or memory that is shared."""

    def __getitem__(self, index: int, /) -> int: ...
    def __setitem__(self, index: int, value: int, /) -> None: ...


class BreakerVerdict(Enum):
    """The result of a request for its deployment."""

    OK = auto()
    FAILED = auto()
    NONE = auto()  #: no information: the client disconnected, or the answer was 429


class BreakerState(IntEnum):
    """The state of a breaker, with the values of ``biasmeter_deployment_state``."""

    CLOSED = 0
    HALF_OPEN = 1
    OPEN = 2


#: Members are looked up in Python, and each request asks for these two.
_OK, _FAILED = BreakerVerdict.OK, BreakerVerdict.FAILED


class Ticket(msgspec.Struct, frozen=True, gc=False):
    """What an admitted request returns with its verdict."""

    epoch: int
    trial: int  #: until when it is waited for, if it is a trial; else 0


#: Of a request that does not affect the breaker: no breaker has opened or closed so often.
UNCOUNTED: Final = Ticket(-1, 0)


def admit(row: BreakerRow, now: int) -> Ticket | None:
    """Admit a request, or return None. Each admitted request must report a verdict."""
    if not row[_OPEN_UNTIL]:
        return Ticket(row[_EPOCH], 0)
    if now < max(row[_OPEN_UNTIL], row[_TRIAL_UNTIL]):
        return None
    row[_TRIAL_UNTIL] = now + TRIAL_NS
    return Ticket(row[_EPOCH], now + TRIAL_NS)


def admit_closed(row: BreakerRow) -> Ticket | None:
    """Admit a request if the breaker is closed. Only reads, so it needs no lock.

    A breaker that opens at the same moment may get one verdict more, as from a request that was admitted before.
    """
    return None if row[_OPEN_UNTIL] else Ticket(row[_EPOCH], 0)


def changes_nothing(row: BreakerRow, ticket: Ticket, verdict: BreakerVerdict) -> bool:
    """Return whether `settle` would change nothing: only successes are recorded, and this is one. Needs no lock."""
    if verdict is _OK and row[_HISTORY] != _NONE_FAILED:
        return False
    return not ticket.trial and verdict is not _FAILED


def settle(row: BreakerRow, ticket: Ticket, verdict: BreakerVerdict, now: int) -> None:
    """Record the verdict of a request, once."""
    if ticket.epoch != row[_EPOCH]:
        return
    if verdict is BreakerVerdict.NONE:
        if ticket.trial and ticket.trial == row[_TRIAL_UNTIL]:
            row[_TRIAL_UNTIL] = 0
    elif not ticket.trial:
        _remember(row, verdict, now)
    elif verdict is BreakerVerdict.FAILED:
        _switch(row, max(row[_OPEN_UNTIL], now + OPEN_NS))
    else:
        _switch(row, 0)


def state(row: BreakerRow, now: int) -> BreakerState:
    """Return the state of the breaker."""
    if not row[_OPEN_UNTIL]:
        return BreakerState.CLOSED
    return BreakerState.OPEN if now < row[_OPEN_UNTIL] else BreakerState.HALF_OPEN


def seconds_until_open(row: BreakerRow, now: int) -> float:
    """Return the seconds until a request is admitted at the latest; 0 means now."""
    return (max(row[_OPEN_UNTIL], row[_TRIAL_UNTIL], now) - now) / 1e9


def _remember(row: BreakerRow, verdict: BreakerVerdict, now: int) -> None:
    # One bit an outcome, the latest lowest; a one before the first marks where they begin.
    failed = verdict is BreakerVerdict.FAILED
    history = (row[_HISTORY] or 1) << 1 | failed
    if history >> (LAST + 1):
        history = history & (_NONE_FAILED - 1) | _NONE_FAILED
    row[_HISTORY] = history
    seen, failures = history.bit_length() - 1, history.bit_count() - 1
    in_a_row = seen >= IN_A_ROW and history & _ALL_FAILED == _ALL_FAILED
    if failed and (in_a_row or (seen == LAST and failures >= HALF)):
        _switch(row, now + OPEN_NS)


def _switch(row: BreakerRow, open_until: int) -> None:
    """Open or close: clear the history, and ignore results of requests that began before."""
    row[_HISTORY] = 0
    row[_TRIAL_UNTIL] = 0
    row[_EPOCH] += 1
    row[_OPEN_UNTIL] = open_until
