"""The circuit breaker of one deployment: one that fails is left alone for a while, then tried with one request.

Pure. The state is a row of integers, of which zeros are a closed breaker; workers share it, and whoever calls what
writes holds its lock. The time is passed in: nanoseconds of a clock that never goes back. Each function writes the cell
that decides last, so that a writer killed in the middle leaves a state of which the next request makes a whole one.

- Closed: every request is admitted. The breaker opens at a failure that is the fifth in a row, or one of ten or more
  among the last twenty outcomes (twenty must have been seen).
- Open: none is admitted, for ten seconds.
- Half-open: one is admitted, the trial. Success closes the breaker with nothing remembered, failure opens it again. A
  trial without an outcome makes room for the next; so does one that is not heard of for half a minute, though what it
  says later still counts.

What was admitted before the breaker last opened or closed says nothing about it any more.
"""

from enum import Enum, IntEnum, auto
from typing import NamedTuple, Protocol

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


class Row(Protocol):
    """At least ``WIDTH`` integers of 64 bits, zeros at first: a list, or memory that is shared."""

    def __getitem__(self, index: int, /) -> int: ...
    def __setitem__(self, index: int, value: int, /) -> None: ...


class Verdict(Enum):
    """What a request says about its deployment."""

    OK = auto()
    FAILED = auto()
    NONE = auto()  #: nothing: the client left, was refused (4xx), or asked too often (429)


class State(IntEnum):
    """How a breaker stands; the numbers are those of ``tiltmeter_deployment_state``."""

    CLOSED = 0
    HALF_OPEN = 1
    OPEN = 2


class Ticket(NamedTuple):
    """What an admitted request brings back with its verdict."""

    epoch: int
    trial: int  #: until when it is waited for, if it is a trial; else 0


def admit(row: Row, now: int) -> Ticket | None:
    """Let a request through, or not. Whoever is let through owes a verdict."""
    if not row[_OPEN_UNTIL]:
        return Ticket(row[_EPOCH], 0)
    if now < max(row[_OPEN_UNTIL], row[_TRIAL_UNTIL]):
        return None
    row[_TRIAL_UNTIL] = now + TRIAL_NS
    return Ticket(row[_EPOCH], now + TRIAL_NS)


def admit_closed(row: Row) -> Ticket | None:
    """Let a request through if the breaker is closed: only reads, so needs no lock.

    A breaker that opens at this very moment may get a verdict too many, as from a request that it let through before.
    """
    return None if row[_OPEN_UNTIL] else Ticket(row[_EPOCH], 0)


def says_nothing_new(row: Row, ticket: Ticket, verdict: Verdict) -> bool:
    """Whether `settle` would leave all as it is: nothing is known but successes, and this is one. Needs no lock."""
    if ticket.trial:
        return False
    return verdict is Verdict.NONE or (verdict is Verdict.OK and row[_HISTORY] == _NONE_FAILED)


def settle(row: Row, ticket: Ticket, verdict: Verdict, now: int) -> None:
    """Take a request's verdict, once."""
    if ticket.epoch != row[_EPOCH]:
        return
    if verdict is Verdict.NONE:
        if ticket.trial and ticket.trial == row[_TRIAL_UNTIL]:
            row[_TRIAL_UNTIL] = 0
    elif not ticket.trial:
        _remember(row, verdict, now)
    elif verdict is Verdict.FAILED:
        _turn(row, max(row[_OPEN_UNTIL], now + OPEN_NS))
    else:
        _turn(row, 0)


def state(row: Row, now: int) -> State:
    """Say how the breaker stands."""
    if not row[_OPEN_UNTIL]:
        return State.CLOSED
    return State.OPEN if now < row[_OPEN_UNTIL] else State.HALF_OPEN


def opens_in(row: Row, now: int) -> float:
    """Say in how many seconds a request is admitted at the latest; 0: now."""
    return (max(row[_OPEN_UNTIL], row[_TRIAL_UNTIL], now) - now) / 1e9


def _remember(row: Row, verdict: Verdict, now: int) -> None:
    # One bit an outcome, the latest lowest; a one before the first marks where they begin.
    failed = verdict is Verdict.FAILED
    history = (row[_HISTORY] or 1) << 1 | failed
    if history >> (LAST + 1):
        history = history & (_NONE_FAILED - 1) | _NONE_FAILED
    row[_HISTORY] = history
    seen, failures = history.bit_length() - 1, history.bit_count() - 1
    in_a_row = seen >= IN_A_ROW and history & _ALL_FAILED == _ALL_FAILED
    if failed and (in_a_row or (seen == LAST and failures >= HALF)):
        _turn(row, now + OPEN_NS)


def _turn(row: Row, open_until: int) -> None:
    """Open or close: what happened before is forgotten, and what began before will not be heard."""
    row[_HISTORY] = 0
    row[_TRIAL_UNTIL] = 0
    row[_EPOCH] += 1
    row[_OPEN_UNTIL] = open_until
