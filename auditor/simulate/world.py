"""A running scenario: its clock, the draws made so far, and what has been broken or drifted by hand.

``server`` asks it; nothing here knows HTTP.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import TypeAdapter, ValidationError

from auditor.simulate.failing import Counter
from auditor.simulate.model import Deployment, Failures, Scenario
from auditor.simulate.respondent import Respondent
from auditor.simulate.wire import BadRequestError

Clock = Callable[[], datetime]


@dataclass(kw_only=True, slots=True)
class World:
    """A running scenario: what is declared, and what has happened to it so far."""

    scenario: Scenario
    respondent: Respondent
    clock: Clock
    started: datetime
    pool: tuple[str, ...] | None
    failures: dict[str, Failures] = field(default_factory=dict)
    drifted: dict[str, bool] = field(default_factory=dict)
    attempts: Counter = field(default_factory=Counter)
    answers: Counter = field(default_factory=Counter)

    def is_drifted(self, deployment: Deployment) -> bool:
        """Tell whether a deployment's drift is in force, by hand or by the clock."""
        by_hand = self.drifted.get(deployment.name)
        if by_hand is not None or deployment.drift is None:
            return bool(by_hand)
        return deployment.drift.began(self.clock(), self.started)

    def failures_of(self, name: str) -> Failures:
        """Give the failures in force for a model."""
        declared = self.scenario.deployment(name)
        return self.failures.get(name) or (declared.failures if declared else Failures())

    def set_failures(self, deployment: Deployment, given: object) -> None:
        """Change the declared failures by the members given; null takes all changes back."""
        self.failures[deployment.name] = deployment.failures if given is None else _changed(deployment, given)

    def set_drift(self, deployment: Deployment, given: object) -> None:
        """Put the drift in force, or out of force, whatever the clock says; null gives it back to the clock."""
        if given is None:
            self.drifted.pop(deployment.name, None)
        elif not isinstance(given, bool):
            raise BadRequestError("drifted must be true, false or null", param="drifted")
        elif given and deployment.drift is None:
            raise BadRequestError(f"{deployment.name!r} declares no drift", param="drifted")
        else:
            self.drifted[deployment.name] = given


def utc_now() -> datetime:
    """Give the time."""
    return datetime.now(UTC)


def _changed(deployment: Deployment, given: object) -> Failures:
    if not isinstance(given, dict):
        raise BadRequestError("failures must be an object or null", param="failures")
    declared = {name: getattr(deployment.failures, name) for name in Failures.__dataclass_fields__}
    try:
        return TypeAdapter(Failures).validate_python({**declared, **given})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(["failures", *map(str, first["loc"])])
        raise BadRequestError(f"{where}: {first['msg']}", param="failures") from None
