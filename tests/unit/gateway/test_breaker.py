"""The circuit breaker against a naive account of it, and by its promises over a long random walk."""

from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from typing_extensions import override

from gateway.routing import breaker
from gateway.routing.breaker import OPEN_NS, TRIAL_NS, BreakerState, BreakerVerdict, Ticket

OK, FAILED, ERROR, NONE = BreakerVerdict.OK, BreakerVerdict.FAILED, BreakerVerdict.ERROR, BreakerVerdict.NONE
SECOND = 10**9
ANN, BEN = 7, 8


def fresh() -> list[int]:
    return [0] * breaker.WIDTH


def ask(row: list[int], verdict: BreakerVerdict, now: int = 0) -> None:
    ticket = breaker.admit(row, now, ANN)
    assert ticket is not None
    breaker.settle(row, ticket, verdict, now)


def opened(now: int = 0) -> list[int]:
    row = fresh()
    for _ in range(5):
        ask(row, FAILED, now)
    assert breaker.state(row, now) is BreakerState.OPEN
    return row


def walk(outcomes: str) -> list[BreakerState]:
    """Ask once a letter; say how the breaker stands after each."""
    row, states = fresh(), []
    for letter in outcomes:
        ask(row, {".": OK, "x": FAILED, " ": NONE}[letter])
        states.append(breaker.state(row, 0))
    return states


@pytest.mark.parametrize(
    "outcomes",
    [
        "xxxxx",
        ".xxxxx",
        "xxxx.xxxxx",
        "x xx  xx",  # what says nothing does not break a row
        "xx.xxxx.xxxx......xx",  # the twentieth
        "x.x.x.x.x.x.x.x.x.x.x",  # ten of twenty at the twentieth, which is a success: the next failure
        "." * 40 + "x.x.x.x.x.x.x.x.x.x",
    ],
)
def test_it_opens_at_the_failure_that_is_one_too_many(outcomes: str) -> None:
    states = walk(outcomes)
    assert set(states[:-1]) <= {BreakerState.CLOSED}
    assert states[-1] is BreakerState.OPEN


@pytest.mark.parametrize(
    "outcomes",
    [
        "xxxx" + "." * 100,
        "xxxx.xxxx.",
        "xxxx.xxxx.x",  # nine failures of eleven: twenty have not been seen
        "xxx....xxx....xxx...." * 5,  # nine of twenty at most
        " " * 100,
    ],
)
def test_it_stays_closed_while_there_are_fewer(outcomes: str) -> None:
    assert set(walk(outcomes)) == {BreakerState.CLOSED}


def test_an_open_one_admits_nobody_for_ten_seconds_and_then_exactly_one() -> None:
    row = opened(now=7)
    for now in (7, 7 + OPEN_NS - 1):
        assert breaker.admit(row, now, ANN) is None
        assert breaker.seconds_until_open(row, now, ANN) == (7 + OPEN_NS - now) / 1e9
    assert breaker.state(row, 7 + OPEN_NS) is BreakerState.HALF_OPEN
    assert breaker.seconds_until_open(row, 7 + OPEN_NS, ANN) == 0
    assert breaker.admit(row, 7 + OPEN_NS, ANN) is not None
    assert breaker.admit(row, 7 + OPEN_NS, ANN) is None
    assert breaker.seconds_until_open(row, 7 + OPEN_NS, ANN) == TRIAL_NS / 1e9


def test_a_trial_that_succeeds_closes_it_and_what_was_is_forgotten() -> None:
    row = opened()
    ask(row, OK, OPEN_NS)
    for _ in range(4):
        ask(row, FAILED, OPEN_NS)
    assert breaker.state(row, OPEN_NS) is BreakerState.CLOSED


def test_a_trial_that_fails_opens_it_for_ten_seconds_from_then() -> None:
    row = opened()
    ticket = breaker.admit(row, OPEN_NS, ANN)
    assert ticket is not None
    breaker.settle(row, ticket, FAILED, OPEN_NS + SECOND)
    assert breaker.seconds_until_open(row, OPEN_NS + SECOND, ANN) == 10


def test_a_trial_that_says_nothing_makes_room_for_the_next_at_once() -> None:
    row = opened()
    for _ in range(3):
        ask(row, NONE, OPEN_NS)
    assert breaker.state(row, OPEN_NS) is BreakerState.HALF_OPEN
    ask(row, OK, OPEN_NS)
    assert breaker.state(row, OPEN_NS) is BreakerState.CLOSED


def lost_trial() -> tuple[list[int], Ticket, Ticket, int]:
    """Give a half-open breaker, a trial that was not heard of in time, the trial after it, and the time."""
    row = opened()
    lost = breaker.admit(row, OPEN_NS, ANN)
    assert lost is not None
    assert breaker.admit(row, OPEN_NS + TRIAL_NS - 1, ANN) is None
    after = breaker.admit(row, OPEN_NS + TRIAL_NS, ANN)
    assert after is not None
    return row, lost, after, OPEN_NS + TRIAL_NS


def test_a_trial_that_is_not_heard_of_makes_room_for_the_next_and_does_not_take_its_place_from_it() -> None:
    row, lost, _, now = lost_trial()
    breaker.settle(row, lost, NONE, now)
    assert breaker.admit(row, now, ANN) is None


def test_an_answer_slower_than_a_trial_is_waited_for_still_closes_it() -> None:
    """A deployment that takes a minute for each answer would otherwise never be found well."""
    row, lost, after, now = lost_trial()
    breaker.settle(row, lost, OK, now)
    assert breaker.state(row, now) is BreakerState.CLOSED
    breaker.settle(row, after, FAILED, now)
    assert breaker.state(row, now) is BreakerState.CLOSED


@pytest.mark.parametrize("verdict", list(BreakerVerdict))
def test_what_began_before_it_opened_is_not_heard_while_it_is_open_half_open_or_closed_again(
    verdict: BreakerVerdict,
) -> None:
    row = fresh()
    early = [ticket for _ in range(60) if (ticket := breaker.admit(row, 0, ANN))]
    for ticket in early[:5]:
        breaker.settle(row, ticket, FAILED, 0)
    stood = list(row)
    for ticket in early[5:20]:
        breaker.settle(row, ticket, verdict, SECOND)
    assert row == stood
    trial = breaker.admit(row, OPEN_NS, ANN)
    assert trial is not None
    stood = list(row)
    for ticket in early[20:40]:
        breaker.settle(row, ticket, verdict, OPEN_NS)
    assert row == stood
    breaker.settle(row, trial, OK, OPEN_NS)
    stood = list(row)
    for ticket in early[40:]:
        breaker.settle(row, ticket, verdict, OPEN_NS)
    assert row == stood


def test_the_time_it_is_left_alone_is_never_made_shorter() -> None:
    """Clocks are read before the lock is had, so a verdict may carry an earlier time than the one before it."""
    row = opened(now=SECOND)
    trial = breaker.admit(row, SECOND + OPEN_NS, ANN)
    assert trial is not None
    breaker.settle(row, trial, FAILED, 0)
    assert breaker.admit(row, SECOND + OPEN_NS - 1, ANN) is None


class Torn(list[int]):
    """A row whose writer is killed after a few cells."""

    writes = 0

    @override
    def __setitem__(self, index: Any, value: Any) -> None:
        if not self.writes:
            raise InterruptedError
        self.writes -= 1
        super().__setitem__(index, value)


@pytest.mark.parametrize("writes", range(7))
@pytest.mark.parametrize("verdict", [OK, FAILED])
def test_a_writer_that_is_killed_in_the_middle_leaves_one_state_or_the_other(
    verdict: BreakerVerdict, writes: int
) -> None:
    before = opened()
    trial = breaker.admit(before, OPEN_NS, ANN)
    assert trial is not None
    row = Torn(before)
    row.writes = writes
    with pytest.raises(InterruptedError):
        breaker.settle(row, trial, verdict, OPEN_NS)
    assert breaker.state(row, OPEN_NS) is BreakerState.HALF_OPEN
    row.writes = 99
    ask(row, OK, OPEN_NS + TRIAL_NS)
    assert breaker.state(row, OPEN_NS + TRIAL_NS) is BreakerState.CLOSED


@dataclass
class Naive:
    """The breaker as its description tells it: lists, sets and dates."""

    outcomes: deque[BreakerVerdict] = field(default_factory=lambda: deque(maxlen=20))
    state: BreakerState = BreakerState.CLOSED
    opens_at: int = 0
    trial: int | None = None
    trial_began: int = 0
    heard: set[int] = field(default_factory=set)  #: whose verdict counts
    trials: set[int] = field(default_factory=set)

    def look(self, now: int) -> None:
        if self.state is BreakerState.OPEN and now >= self.opens_at:
            self.state = BreakerState.HALF_OPEN
        if self.trial is not None and now >= self.trial_began + 30 * SECOND:
            self.trial = None

    def admit(self, request: int, now: int) -> bool:
        self.look(now)
        if self.state is BreakerState.OPEN or self.trial is not None:
            return False
        if self.state is BreakerState.HALF_OPEN:
            self.trial, self.trial_began = request, now
            self.trials.add(request)
        self.heard.add(request)
        return True

    def settle(self, request: int, verdict: BreakerVerdict, now: int) -> None:
        self.look(now)
        if request not in self.heard:
            return
        if request == self.trial:
            self.trial = None
        if verdict is NONE:
            return
        if request in self.trials:
            self.move(BreakerState.OPEN if verdict is FAILED else BreakerState.CLOSED, now)
            return
        self.outcomes.append(verdict)
        last_five = list(self.outcomes)[-5:]
        half = len(self.outcomes) == 20 and self.outcomes.count(FAILED) >= 10
        if verdict is FAILED and (last_five == [FAILED] * 5 or half):
            self.move(BreakerState.OPEN, now)

    def move(self, state: BreakerState, now: int) -> None:
        self.state, self.opens_at, self.trial = state, now + 10 * SECOND, None
        self.outcomes.clear()
        self.heard.clear()
        self.trials.clear()


class Breakers(RuleBasedStateMachine):
    """The row and the naive account side by side, for the only caller of a deployment."""

    failure = FAILED

    @initialize(now=st.integers(0, 2**62))
    def begin(self, now: int) -> None:
        self.now = now
        self.row = fresh()
        self.naive = Naive()
        self.flying: dict[int, Ticket] = {}
        self.asked = 0

    @rule()
    def ask(self) -> None:
        self.asked += 1
        ticket = breaker.admit(self.row, self.now, ANN)
        assert (ticket is not None) == self.naive.admit(self.asked, self.now)
        if ticket is not None:
            self.flying[self.asked] = ticket

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), verdict=st.sampled_from([OK, FAILED, FAILED, NONE]))
    def answer(self, data: st.DataObject, verdict: BreakerVerdict) -> None:
        request = data.draw(st.sampled_from(list(self.flying)))
        breaker.settle(self.row, self.flying.pop(request), self.failure if verdict is FAILED else verdict, self.now)
        self.naive.settle(request, verdict, self.now)

    @rule(outcomes=st.lists(st.sampled_from([OK, FAILED]), max_size=25))
    def ask_and_answer(self, outcomes: list[BreakerVerdict]) -> None:
        for verdict in outcomes:
            self.ask()
            if self.asked in self.flying:
                reported = self.failure if verdict is FAILED else verdict
                breaker.settle(self.row, self.flying.pop(self.asked), reported, self.now)
                self.naive.settle(self.asked, verdict, self.now)

    @rule(passed=st.sampled_from([1, SECOND, 10 * SECOND - 1, 10 * SECOND, 30 * SECOND - 1, 30 * SECOND]))
    def wait(self, passed: int) -> None:
        self.now += passed

    @invariant()
    def stand_alike(self) -> None:
        self.naive.look(self.now)
        assert breaker.state(self.row, self.now) is self.naive.state
        refused = self.naive.state is BreakerState.OPEN or self.naive.trial is not None
        assert (breaker.seconds_until_open(self.row, self.now, ANN) > 0) == refused
        assert all(-(2**63) <= cell < 2**63 for cell in self.row)


class BreakersOfErrors(Breakers):
    """The same where the failures are errors that requests may have provoked."""

    failure = ERROR


TestBreakers = Breakers.TestCase
TestBreakers.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
TestBreakersOfErrors = BreakersOfErrors.TestCase
TestBreakersOfErrors.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)


def ask_as(row: list[int], caller: int, verdict: BreakerVerdict, now: int = 0) -> bool:
    """Ask as a caller. Return whether the request was admitted."""
    ticket = breaker.admit(row, now, caller)
    if ticket is not None and not breaker.changes_nothing(row, ticket, verdict):
        breaker.settle(row, ticket, verdict, now)
    return ticket is not None


STEPS = st.lists(
    st.tuples(st.sampled_from([ANN, BEN]), st.sampled_from([OK, ERROR]), st.sampled_from([0, 0, 0, SECOND, OPEN_NS])),
    max_size=120,
)


@given(STEPS)
def test_errors_of_one_caller_never_refuse_another(steps: list[tuple[int, BreakerVerdict, int]]) -> None:
    row, now = fresh(), 0
    for caller, verdict, passed in steps:
        now += passed
        admitted = ask_as(row, caller, verdict if caller == ANN else OK, now)
        assert admitted or caller == ANN
        assert breaker.seconds_until_open(row, now, BEN) == 0


def test_a_caller_is_held_off_by_its_own_errors_and_tried_again() -> None:
    row = fresh()
    assert [ask_as(row, ANN, ERROR) for _ in range(7)] == [True] * 5 + [False] * 2
    assert (breaker.state(row, 0), breaker.is_for_one_caller(row)) == (BreakerState.OPEN, True)
    assert (breaker.is_open(row, 0, ANN), breaker.is_open(row, 0, BEN)) == (True, False)
    assert breaker.seconds_until_open(row, 0, ANN) == 10
    assert ask_as(row, ANN, ERROR, OPEN_NS)
    assert not ask_as(row, ANN, OK, OPEN_NS)
    assert ask_as(row, ANN, OK, 2 * OPEN_NS)
    assert breaker.state(row, 2 * OPEN_NS) is BreakerState.CLOSED


@pytest.mark.parametrize("other", [ERROR, FAILED])
def test_a_deployment_that_fails_for_two_callers_is_asked_by_none(other: BreakerVerdict) -> None:
    row = fresh()
    asked = sum(ask_as(row, caller, verdict) for _ in range(20) for caller, verdict in ((ANN, ERROR), (BEN, other)))
    assert asked <= 16
    assert not breaker.is_for_one_caller(row)
    assert [ask_as(row, caller, OK) for caller in (ANN, BEN, 9)] == [False] * 3


def test_a_deployment_that_fails_for_one_busy_caller_and_then_another_is_asked_by_none() -> None:
    row = fresh()
    asked = 0
    for number in range(60):
        asked += ask_as(row, ANN if number % 6 else BEN, ERROR)
    assert asked <= 20
    assert breaker.is_open(row, 0, 9)


def test_what_no_request_provokes_counts_whoever_asked() -> None:
    row = fresh()
    assert all(ask_as(row, ANN, FAILED) for _ in range(5))
    assert not ask_as(row, BEN, OK)


def test_a_caller_whose_requests_all_err_does_not_make_rare_errors_of_others_an_outage() -> None:
    rng = Random(3)
    row, now = fresh(), 0
    for _ in range(20_000):
        now += SECOND // 100
        for _ in range(10):
            ask_as(row, ANN, ERROR, now)
        assert ask_as(row, BEN, ERROR if rng.random() < 0.02 else OK, now)


def test_its_promises_hold_at_each_of_100_000_random_steps() -> None:
    rng = Random(7)
    row, now = fresh(), 0
    flying: list[Ticket] = []
    seen: set[BreakerState] = set()
    for _ in range(100_000):
        # Mostly well or mostly ill for a while, so that the breaker opens and closes often.
        ill = now // (40 * SECOND) % 2
        now += rng.randrange(SECOND // 2)
        state, wait = breaker.state(row, now), breaker.seconds_until_open(row, now, ANN)
        seen.add(state)
        if rng.random() < 0.5 or not flying:
            ticket = breaker.admit(row, now, ANN)
            assert (ticket is not None) == (wait == 0)
            assert not (state is BreakerState.OPEN and ticket)
            assert not (state is BreakerState.CLOSED and not ticket)
            if ticket is not None:
                flying.append(ticket)
                assert bool(ticket.trial) == (state is BreakerState.HALF_OPEN)
        else:
            ticket = flying.pop(rng.randrange(len(flying)))
            epoch = row[0]
            verdict = rng.choices([OK, FAILED, NONE], [1 + 5 * (1 - ill), 1 + 9 * ill, 1])[0]
            breaker.settle(row, ticket, verdict, now)
            if row[0] != epoch:  # it moved: only for one that was admitted since it last moved
                assert ticket.epoch == epoch
                assert breaker.state(row, now) is (BreakerState.OPEN if verdict is FAILED else BreakerState.CLOSED)
                assert breaker.seconds_until_open(row, now, ANN) == (10 if verdict is FAILED else 0)
        assert sum(ticket.trial > now and ticket.epoch == row[0] for ticket in flying) <= 1
    assert seen == set(BreakerState)
    assert row[0] > 1_000
