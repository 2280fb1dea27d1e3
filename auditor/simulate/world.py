"""Keep the state of a running scenario: its clock, the draws so far, and the failures and drifts set by hand.

``server`` uses it. This module does not depend on HTTP.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal

from pydantic import TypeAdapter, ValidationError

from auditor.simulate.chance import uniform
from auditor.simulate.model import Failures, Scenario, SimulatedDeployment
from auditor.simulate.respondent import Respondent
from auditor.simulate.wire import BadRequestError

Failure = Literal["rate_limited", "server_error", "cut"]

#: Requests that are remembered; beyond that number the oldest is forgotten and counted from 0 again.
_REMEMBERED: Final = 1_000_000


class Counter:
    """A counter of the latest million keys."""

    def __init__(self) -> None:
        self._seen: OrderedDict[bytes, int] = OrderedDict()

    def next(self, key: bytes) -> int:
        """Count the key once more and return its earlier count: 0 the first time."""
        count = self._seen.pop(key, 0)
        self._seen[key] = count + 1
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return count

    def now(self, key: bytes) -> int:
        """Return how often a key has been counted."""
        return self._seen.get(key, 0)


def failure_of(failures: Failures, *key: object) -> Failure | None:
    """Draw the failure of one attempt; ``None`` if it does not fail."""
    u = uniform(*key, "failure")
    kinds: tuple[tuple[Failure, float], ...] = (
        ("rate_limited", failures.rate_limited),
        ("server_error", failures.server_error),
        ("cut", failures.cut),
    )
    for kind, share in kinds:
        if u < share:
            return kind
        u -= share
    return None


def is_slow(failures: Failures, *key: object) -> bool:
    """Draw whether the first token of one attempt is slow."""
    return uniform(*key, "slow") < failures.slow


Clock = Callable[[], datetime]


@dataclass(kw_only=True, slots=True)
class World:
    """A running scenario: its declaration and its state."""

    scenario: Scenario
    respondent: Respondent
    clock: Clock
    started: datetime
    pool: tuple[str, ...] | None
    failures: dict[str, Failures] = field(default_factory=dict)
    drifted: dict[str, bool] = field(default_factory=dict)
    attempts: Counter = field(default_factory=Counter)
    answers: Counter = field(default_factory=Counter)

    def is_drifted(self, deployment: SimulatedDeployment) -> bool:
        """Return whether a deployment's drift is in force, set by hand or by the clock."""
        by_hand = self.drifted.get(deployment.name)
        if by_hand is not None or deployment.drift is None:
            return bool(by_hand)
        return deployment.drift.began(self.clock(), self.started)

    def failures_of(self, name: str) -> Failures:
        """Return the failures in force for a model."""
        declared = self.scenario.deployment(name)
        return self.failures.get(name) or (declared.failures if declared else Failures())

    def set_failures(self, deployment: SimulatedDeployment, value: object) -> None:
        """Replace some of the declared failures; null restores all of them."""
        self.failures[deployment.name] = deployment.failures if value is None else _changed(deployment, value)

    def set_drift(self, deployment: SimulatedDeployment, value: object) -> None:
        """Switch the drift on or off independently of the clock; null returns control to the clock."""
        if value is None:
            self.drifted.pop(deployment.name, None)
        elif not isinstance(value, bool):
            raise BadRequestError("drifted must be true, false or null", param="drifted")
        elif value and deployment.drift is None:
            raise BadRequestError(f"{deployment.name!r} declares no drift", param="drifted")
        else:
            self.drifted[deployment.name] = value


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


def _changed(deployment: SimulatedDeployment, changes: object) -> Failures:
    if not isinstance(changes, dict):
        raise BadRequestError("failures must be an object or null", param="failures")
    declared = {name: getattr(deployment.failures, name) for name in Failures.__dataclass_fields__}
    try:
        return TypeAdapter(Failures).validate_python({**declared, **changes})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(["failures", *map(str, first["loc"])])
        raise BadRequestError(f"{where}: {first['msg']}", param="failures") from None
