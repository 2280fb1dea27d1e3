"""The circuit breaker of one deployment: after failures the deployment is not asked for a while, then tried once.

Pure functions on a row of integers that workers share; zeros are a closed breaker. The caller of a function that writes
holds the row's lock. Times are nanoseconds of a monotonic clock. Each function writes the deciding cell last, so that
the next request repairs the state of a writer that was killed.

- Closed: every request is admitted. The breaker opens at a failure that is the fifth in a row, or one of ten or more
  among the last twenty outcomes (twenty must have been seen).
- Open: none is admitted, for ten seconds. Or none of one caller, while the others are served as before.
- Half-open: one is admitted, the trial. Success closes the breaker with nothing remembered, failure opens it again. A
  trial without an outcome allows the next one; so does a trial without a result for half a minute, whose later result
  still counts.

Results of requests that were admitted before the breaker last opened or closed are ignored.

A request may provoke an error of its deployment, so a caller must not open the breaker for others by its errors alone.
Among the outcomes by which it opens for all, an error counts only if the error before it was another caller's. All
errors of the caller of the last error count among the outcomes of that caller, which begin with those of all, and by
which the breaker opens for it alone. Other failures and successes count among both. So for the only caller of a
deployment nothing is different.
"""

from enum import Enum, IntEnum, auto
from typing import Final, Protocol
from zlib import crc32

import msgspec

IN_A_ROW = 5
LAST = 20
HALF = LAST // 2
OPEN_NS = 10 * 10**9
TRIAL_NS = 30 * 10**9

#: How often it has opened and closed for all; the last outcomes; when it may be tried; when a trial under way is given
#: up. Then the caller for which it is or was open, 0 for all; how often it has opened and closed for somebody; the
#: caller of the last error, 0 for none; the last outcomes of that caller.
_EPOCH, _HISTORY, _OPEN_UNTIL, _TRIAL_UNTIL, _OPEN_FOR, _SWITCHES, _CALLER, _CALLER_HISTORY = range(8)
WIDTH = 8
_ALL_FAILED = (1 << IN_A_ROW) - 1
_NONE_FAILED = 1 << LAST


class BreakerRow(Protocol):
    """At least ``WIDTH`` integers of 64 bits, zeros at first: a list, or memory that is shared."""

    def __getitem__(self, index: int, /) -> int: ...
    def __setitem__(self, index: int, value: int, /) -> None: ...


class BreakerVerdict(Enum):
    """The result of a request for its deployment."""

    OK = auto()
    FAILED = auto()  #: not reached, no answer in time, or not to its end
    ERROR = auto()  #: an answer with an error of the deployment, which the request may have provoked
    NONE = auto()  #: no information: the client disconnected, or the answer was 429


class BreakerState(IntEnum):
    """The state of a breaker, with the values of ``biasmeter_deployment_state``."""

    CLOSED = 0
    HALF_OPEN = 1
    OPEN = 2


#: Members are looked up in Python, and each request asks for these.
_OK, _ERROR, _NONE = BreakerVerdict.OK, BreakerVerdict.ERROR, BreakerVerdict.NONE


class Ticket(msgspec.Struct, frozen=True, gc=False):
    """What an admitted request returns with its verdict."""

    epoch: int
    trial: int  #: until when it is waited for, if it is a trial; else 0
    switches: int
    caller: int


#: Of a request that does not affect the breaker: no breaker has opened or closed so often.
UNCOUNTED: Final = Ticket(-1, 0, 0, 0)


def caller_of(key_id: str | None) -> int:
    """Return the number of a caller, above 0: of a client key, or of all requests without one."""
    return crc32((key_id or "").encode()) + 1


def admit(row: BreakerRow, now: int, caller: int) -> Ticket | None:
    """Admit a request, or return None. Each admitted request must report a verdict."""
    if not _concerns(row, caller):
        return Ticket(row[_EPOCH], 0, row[_SWITCHES], caller)
    if now < max(row[_OPEN_UNTIL], row[_TRIAL_UNTIL]):
        return None
    row[_TRIAL_UNTIL] = now + TRIAL_NS
    return Ticket(row[_EPOCH], now + TRIAL_NS, row[_SWITCHES], caller)


def admit_closed(row: BreakerRow, caller: int) -> Ticket | None:
    """Admit a request if the breaker is closed. Only reads, so it needs no lock.

    A breaker that opens at the same moment may get one verdict more, as from a request that was admitted before.
    """
    return None if row[_OPEN_UNTIL] else Ticket(row[_EPOCH], 0, row[_SWITCHES], caller)


def changes_nothing(row: BreakerRow, ticket: Ticket, verdict: BreakerVerdict) -> bool:
    """Return whether `settle` would change nothing: only successes are recorded, and this is one. Needs no lock."""
    if verdict is _OK and (row[_HISTORY] != _NONE_FAILED or row[_CALLER] == ticket.caller):
        return False
    return not ticket.trial and (verdict is _OK or verdict is _NONE)


def settle(row: BreakerRow, ticket: Ticket, verdict: BreakerVerdict, now: int) -> None:
    """Record the verdict of a request, once."""
    if ticket.epoch != row[_EPOCH]:
        return
    if not ticket.trial:
        if verdict is not _NONE:
            _remember(row, ticket, verdict, now)
    elif ticket.switches != row[_SWITCHES]:  # of a breaker that was open for one caller, and is no more
        return
    elif verdict is _NONE:
        if ticket.trial == row[_TRIAL_UNTIL]:
            row[_TRIAL_UNTIL] = 0
    elif verdict is _OK:
        _switch(row, 0, row[_OPEN_FOR])
    else:
        _switch(row, max(row[_OPEN_UNTIL], now + OPEN_NS), row[_OPEN_FOR])


def state(row: BreakerRow, now: int) -> BreakerState:
    """Return the state of the breaker, for all or for the caller for which it is open."""
    if not row[_OPEN_UNTIL]:
        return BreakerState.CLOSED
    return BreakerState.OPEN if now < row[_OPEN_UNTIL] else BreakerState.HALF_OPEN


def is_open(row: BreakerRow, now: int, caller: int) -> bool:
    """Return whether the breaker is open for a caller; half-open is not open."""
    return _concerns(row, caller) and now < row[_OPEN_UNTIL]


def is_for_one_caller(row: BreakerRow) -> bool:
    """Return whether a breaker that is not closed is open for one caller alone."""
    return row[_OPEN_FOR] != 0


def seconds_until_open(row: BreakerRow, now: int, caller: int) -> float:
    """Return the seconds until a request of a caller is admitted at the latest; 0 means now."""
    return (max(row[_OPEN_UNTIL], row[_TRIAL_UNTIL], now) - now) / 1e9 if _concerns(row, caller) else 0.0


def _concerns(row: BreakerRow, caller: int) -> bool:
    """Return whether the breaker is open or half-open for a caller."""
    return row[_OPEN_UNTIL] != 0 and row[_OPEN_FOR] in {0, caller}


def _remember(row: BreakerRow, ticket: Ticket, verdict: BreakerVerdict, now: int) -> None:
    failed, caller, of_all, of_caller = verdict is not _OK, ticket.caller, 0, 0
    is_first_error = verdict is _ERROR and caller != row[_CALLER]
    if is_first_error:
        row[_CALLER_HISTORY] = row[_HISTORY]
        row[_CALLER] = caller
    if verdict is not _ERROR or is_first_error:
        of_all = row[_HISTORY] = _appended(row[_HISTORY], failed=failed)
    if caller == row[_CALLER] and ticket.switches == row[_SWITCHES]:
        of_caller = row[_CALLER_HISTORY] = _appended(row[_CALLER_HISTORY], failed=failed)
    if failed and _fails(of_all):
        _switch(row, now + OPEN_NS, 0)
    elif failed and _fails(of_caller):
        _switch(row, now + OPEN_NS, caller)
    elif of_caller == _NONE_FAILED:
        row[_CALLER] = 0


def _appended(history: int, *, failed: bool) -> int:
    # One bit an outcome, the latest lowest; a one before the first marks where they begin.
    history = (history or 1) << 1 | failed
    return history & (_NONE_FAILED - 1) | _NONE_FAILED if history >> (LAST + 1) else history


def _fails(history: int) -> bool:
    seen, failures = history.bit_length() - 1, history.bit_count() - 1
    in_a_row = seen >= IN_A_ROW and history & _ALL_FAILED == _ALL_FAILED
    return in_a_row or (seen == LAST and failures >= HALF)


def _switch(row: BreakerRow, open_until: int, open_for: int) -> None:
    """Open or close, for all or for one caller: clear the history, and ignore results of requests that began before."""
    if open_for:
        row[_HISTORY] = row[_HISTORY] if open_until else _appended(row[_HISTORY], failed=False)
    else:
        row[_HISTORY] = 0
        row[_EPOCH] += 1
    row[_CALLER_HISTORY] = 0
    row[_CALLER] = open_for
    row[_TRIAL_UNTIL] = 0
    row[_SWITCHES] += 1
    row[_OPEN_FOR] = open_for
    row[_OPEN_UNTIL] = open_until
