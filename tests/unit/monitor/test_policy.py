"""The policies of findings as a state machine: whatever findings, days, silences and configurations come.

``applied`` does to a dictionary what the job does to the store.
"""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import settings, stateful
from hypothesis import strategies as st

from auditor.config import FindingPolicy, Route
from auditor.domain.actions import KEPT, effective_weights
from auditor.monitor.policy import (
    ANSWERED,
    EXPIRED,
    NO_PEER,
    NO_POLICY,
    RECOVERED,
    SILENCED,
    Begin,
    End,
    FindingEvidence,
    Held,
    Renew,
    Step,
    decide,
)
from auditor.store.actions import StoredAction

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
NAMES = ("a", "b", "c")
SPAN = 3


def route(*policies: FindingPolicy, **weights: float) -> Route:
    deployments = [{"name": name, "weight": weights.get(name, 1.0)} for name in NAMES]
    return Route.model_validate({"model": "m", "deployments": deployments}).model_copy(update={"on_finding": policies})


def shift(**given: Any) -> FindingPolicy:
    return FindingPolicy.model_validate({"action": "shift_weight", "recovered_after": SPAN, **given})


def finding(name: str = "a", **given: Any) -> FindingEvidence:
    facts: dict[str, Any] = {
        "finding_id": f"finding_{name}", "deployment": name, "level": "page", "silenced": False,
        "day": date(2026, 3, 1), "states": {SPAN: "present"}, "n": 1000, "coverage": 1.0,
    }  # fmt: skip
    return FindingEvidence(**facts | given)


def applied(known: dict[str, StoredAction], steps: list[Step], now: datetime) -> None:
    for step in steps:
        if isinstance(step, End):
            known[step.action.id] = replace(step.action, ended_at=now, ended_because=step.because)
        elif not isinstance(step, Held):
            known[step.action.id] = step.action


def weights_of(one: Route, actions: list[StoredAction]) -> dict[str, float]:
    return effective_weights(
        {each.name: each.weight for each in one.deployments}, [each.on_route() for each in actions]
    )


def test_a_page_moves_weight_to_the_peers_and_back_when_the_days_no_longer_show_it() -> None:
    one, known = route(shift(share=0.2)), dict[str, StoredAction]()
    (begun,) = decide([one], [finding()], [], NOON)
    assert isinstance(begun, Begin)
    applied(known, [begun], NOON)
    moved = weights_of(one, list(known.values()))
    assert moved == pytest.approx({"a": 0.4, "b": 1.3, "c": 1.3})
    assert decide([one], [finding()], list(known.values()), NOON) == []

    later = NOON + timedelta(days=1)
    (renewed,) = decide([one], [finding(day=date(2026, 3, 2))], list(known.values()), later)
    assert isinstance(renewed, Renew)
    assert renewed.action.expires_at == later + timedelta(days=2)
    back = [finding(day=date(2026, 3, 5), states={SPAN: "recovered"})]
    (ended,) = decide([one], back, list(known.values()), later)
    assert isinstance(ended, End)
    assert ended.because == RECOVERED
    applied(known, [ended], later)
    assert decide([one], [finding(day=date(2026, 3, 9))], list(known.values()), later + timedelta(days=9)) == []


@pytest.mark.parametrize(
    ("facts", "policy", "after", "because"),
    [
        (None, shift(), timedelta(0), ANSWERED),
        (finding(silenced=True), shift(), timedelta(0), SILENCED),
        (finding(), shift(), timedelta(days=2), EXPIRED),
        (finding(), shift(level="investigate"), timedelta(0), NO_POLICY),
        (finding(), shift(dry_run=True), timedelta(0), NO_POLICY),
    ],
)
def test_an_action_ends_with_its_finding_its_time_or_its_policy(
    facts: FindingEvidence | None, policy: FindingPolicy, after: timedelta, because: str
) -> None:
    (begun,) = decide([route(shift())], [finding()], [], NOON)
    assert isinstance(begun, Begin)
    steps = decide([route(policy)], [facts] if facts else [], [begun.action], NOON + after)
    assert [(type(one), one.because) for one in steps if isinstance(one, End)] == [(End, because)]


def test_weight_does_not_stay_with_a_peer_that_gets_a_finding_of_its_own() -> None:
    one = route(shift(to=["b"]))
    (begun,) = decide([one], [finding()], [], NOON)
    assert isinstance(begun, Begin)
    steps = decide([one], [finding(), finding("b")], [begun.action], NOON)
    assert [one.because for one in steps if isinstance(one, End)] == [NO_PEER]
    assert not [one for one in steps if isinstance(one, Begin)]


@pytest.mark.parametrize(
    ("given", "words"),
    [({"n": 299}, "min_answers"), ({"n": 0}, "min_answers"), ({"coverage": 0.89}, "min_coverage")],
)
def test_numbers_below_their_floors_do_nothing_and_renew_nothing(given: dict[str, Any], words: str) -> None:
    (held,) = decide([route(shift())], [finding(**given)], [], NOON)
    assert isinstance(held, Held)
    assert words in held.because
    (begun,) = decide([route(shift())], [finding()], [], NOON)
    assert isinstance(begun, Begin)
    assert decide([route(shift())], [finding(day=date(2026, 3, 2), **given)], [begun.action], NOON) == []


def test_sampling_stops_once_and_a_notice_is_only_written() -> None:
    policies = [FindingPolicy(level="page", action=kind, recovered_after=SPAN) for kind in ("stop_sampling", "notify")]
    steps = decide([route(*policies)], [finding(), finding("b")], [], NOON)
    kinds = [(one.action.kind, one.action.deployment) for one in steps if isinstance(one, Begin)]
    assert kinds == [("stop_sampling", "a"), ("notify", "a"), ("notify", "b")]


class Acting(stateful.RuleBasedStateMachine):
    """Findings come, change, are silenced and answered; days pass; the process may sleep through any of it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOON
        self.known: dict[str, StoredAction] = {}
        self.findings: dict[str, FindingEvidence] = {}
        self.policy = shift()
        self.weights: dict[str, float] = {}

    @stateful.initialize(
        share=st.floats(0.05, 0.95), hours=st.integers(1, 72), per_day=st.integers(1, 3),
        weights=st.tuples(st.floats(0.1, 10), st.sampled_from([0.0, 0.5, 3.0]), st.floats(0, 10)),
    )  # fmt: skip
    def begin(self, share: float, hours: int, per_day: int, weights: tuple[float, float, float]) -> None:
        self.policy = shift(share=share, expires=f"{hours}h", per_day=per_day)
        self.weights = dict(zip(NAMES, weights, strict=True))

    @stateful.rule(
        name=st.sampled_from(NAMES), silenced=st.booleans(), days=st.integers(0, 3), n=st.sampled_from([0, 1000]),
        state=st.sampled_from(["present", "present", "recovered", "unknown"]), coverage=st.sampled_from([0.5, 1.0]),
    )  # fmt: skip
    def find(self, name: str, silenced: bool, days: int, n: int, state: str, coverage: float) -> None:
        day = max((self.findings[name].day if name in self.findings else self.now.date()), self.now.date())
        told = {"silenced": silenced, "states": {SPAN: state}, "n": n, "coverage": coverage}
        self.findings[name] = finding(name, day=day + timedelta(days=days), **told)

    @stateful.rule(name=st.sampled_from(NAMES))
    def answer(self, name: str) -> None:
        self.findings.pop(name, None)

    @stateful.rule(hours=st.integers(1, 60))
    def wait(self, hours: int) -> None:
        self.now += timedelta(hours=hours)

    @stateful.rule()
    def act(self) -> None:
        steps = decide([self.route], list(self.findings.values()), list(self.known.values()), self.now)
        applied(self.known, steps, self.now)
        for step in steps:
            if isinstance(step, Begin | Renew):
                found = next(one for one in self.findings.values() if one.finding_id == step.action.finding_id)
                assert (found.n, found.coverage, found.states[SPAN], found.silenced) == (1000, 1.0, "present", False)
        for one in self.in_force():
            told = self.findings[one.deployment]
            assert told.states[SPAN] != "recovered"
            assert not told.silenced
            assert one.expires_at > self.now
        # Deciding again changes nothing.
        again = decide([self.route], list(self.findings.values()), list(self.known.values()), self.now)
        assert [one for one in again if not isinstance(one, Held)] == []
        if not self.findings:
            assert self.in_force() == []

    @property
    def route(self) -> Route:
        return route(self.policy, **self.weights)

    def in_force(self) -> list[StoredAction]:
        return [one for one in self.known.values() if one.ended_at is None]

    @stateful.invariant()
    def is_bounded(self) -> None:
        if not self.weights:
            return
        configured, found = self.weights, weights_of(self.route, self.in_force())
        assert sum(found.values()) == pytest.approx(sum(configured.values()))
        assert all(found[name] >= configured[name] * KEPT * KEPT for name in NAMES)
        moved = sum(max(configured[name] - found[name], 0) for name in NAMES) / sum(configured.values())
        assert moved <= self.policy.share + 1e-9
        if not self.in_force():
            assert found == configured
        for one in self.known.values():
            begun = [each for each in self.known.values() if abs(each.began_at - one.began_at) < timedelta(hours=12)]
            assert len(begun) <= self.policy.per_day


Acting.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
test_policies_are_bounded_and_reversible = Acting.TestCase
