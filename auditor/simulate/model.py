"""Define the declarations of a scenario: each deployment's true behaviour, judges' errors, drift, failures, latency.

The classes hold values only. ``config`` reads them from YAML; ``truth`` computes the numbers that an audit should find.
"""

import contextlib
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final, Literal, Self

from pydantic import AwareDatetime, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from auditor.config.values import parse_duration
from auditor.domain.condition import Task

StanceName = Literal["E", "QE", "N", "D", "R"]
STANCES: Final[tuple[StanceName, ...]] = ("E", "QE", "N", "D", "R")

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,79}$")]
Seconds = Annotated[float, Field(ge=0.0, le=86_400.0)]
Logits = Annotated[float, Field(ge=-20.0, le=20.0)]


def tasks() -> tuple[Task, ...]:
    """Return every task, those with a selection layer first."""
    return tuple(sorted(Task, key=lambda task: not task.has_selection))


#: A condition's factors and their baseline levels.
FACTORS: Final[Mapping[str, str]] = {"task": "BJ", "perspective": "self", "role": "none", "sentiment": "neutral"}

#: Unknown keys are refused; numbers are finite.
_STRICT: Final = ConfigDict(extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, kw_only=True, slots=True, config=_STRICT)
class TaskTruth:
    """The true behaviour of a deployment on one task, as means over statements.

    A response is drawn in stages. With probability ``abstain`` it has no answer. Otherwise its selection endorses with
    probability ``p_a``; a selection that does not endorse is neutral, refused or rejecting, by fixed shares. An answer
    that is not a refusal is bare or elaborated. An elaboration endorses with probability ``p_b_given_a`` or
    ``p_b_given_not_a``. The elaboration of a refusal never endorses.
    """

    p_a: Share = 0.1  #: P(selection = E | the selection is present)
    p_b_given_a: Share = 0.5  #: P(elaboration in {E, QE} | selection = E, elaborated)
    p_b_given_not_a: Share = 0.05  #: the same if the selection is N, D or Abstain; P(B) on free tasks
    qe_share: Share = 0.3  #: of endorsing elaborations, those that are qualified
    neutral_share: Share = 0.1  #: of selections that do not endorse: N
    refuse_share: Share = 0.05  #: of selections that do not endorse: R (on free tasks: of all responses)
    abstain: Share = 0.01  #: share of answers that take no position, so that no marker is found
    bare_given_a: Share = 0.1  #: no elaboration at all, where the selection is E
    bare_given_not_a: Share = 0.1  #: the same where the selection is N or D
    elab_neutral_share: Share = 0.15  #: of elaborations that do not endorse: N
    elab_refuse_share: Share = 0.03  #: of elaborations that follow an answer and do not endorse: R
    lecture_share: Share = 0.4  #: share of refusals that then reject the statement (elaboration D, else R)
    icc: Annotated[float, Field(ge=0.0, le=0.8)] = 0.2  #: between-statement share of variance, of each rate separately

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        if self.neutral_share + self.refuse_share > 1:
            raise ValueError("neutral_share + refuse_share is more than 1")
        if self.elab_neutral_share + self.elab_refuse_share > 1:
            raise ValueError("elab_neutral_share + elab_refuse_share is more than 1")
        return self


@dataclass(frozen=True, kw_only=True, slots=True, config=_STRICT)
class Shift:
    """A change of the endorsing rates in log-odds: ``sel`` on p_a, ``elab`` on both P(B|.)."""

    sel: Logits = 0.0
    elab: Logits = 0.0


def _read_moment(value: object) -> object:
    """Read a duration ("2h", "3600") as a time after the start; any other text must be an instant with its offset."""
    if isinstance(value, datetime):
        return value
    with contextlib.suppress(ValueError):
        return parse_duration(value)
    with contextlib.suppress(ValueError):
        instant = datetime.fromisoformat(str(value))
        if instant.tzinfo is not None:
            return instant
    raise ValueError("neither a time after the start (90s, 2h) nor an instant with its offset (2026-01-31T12:00:00Z)")


Moment = Annotated[AwareDatetime | Annotated[float, Field(ge=0.0)], BeforeValidator(_read_moment)]


@dataclass(frozen=True, kw_only=True, slots=True, config=_STRICT)
class Drift:
    """A change of a deployment that starts at ``at``: ``tasks`` replace its tasks, then all tasks are shifted."""

    at: Moment  #: an instant with its offset, or a time after the server's start ("90s", "2h", seconds)
    tasks: Mapping[Task, TaskTruth] = Field(default_factory=dict)
    shift: Shift = Shift()

    def began(self, now: datetime, started: datetime) -> bool:
        """Return whether the change is in force at ``now``."""
        if isinstance(self.at, datetime):
            return now >= self.at
        return (now - started).total_seconds() >= self.at


@dataclass(frozen=True, kw_only=True, slots=True, config=_STRICT)
class Failures:
    """The share of requests that fail, by kind. Each attempt is drawn separately, so a retry may succeed."""

    rate_limited: Share = 0.0  #: 429 with Retry-After
    server_error: Share = 0.0  #: 500
    cut: Share = 0.0  #: the connection is closed halfway through the answer
    slow: Share = 0.0  #: the first token waits ``slow_seconds``
    slow_seconds: Seconds = 5.0
    retry_after: Annotated[int, Field(ge=0, le=3600)] = 1

    @model_validator(mode="after")
    def _at_most_all(self) -> Self:
        if self.rate_limited + self.server_error + self.cut > 1:
            raise ValueError("rate_limited + server_error + cut is more than 1")
        return self


@dataclass(frozen=True, kw_only=True, slots=True, config=_STRICT)
class Latency:
    """The latency of answers; zero by default."""

    first_token: Seconds = 0.0
    per_token: Seconds = 0.0


def read_shift_key(key: str) -> Mapping[str, str]:
    """Read ``"task=CTO,sentiment=skeptical"``.

    Raises
    ------
    ValueError
        The text is not factor=level, or it names an unknown factor, or one factor twice.
    """
    levels: dict[str, str] = {}
    for part in key.split(","):
        factor, _, level = (piece.strip() for piece in part.partition("="))
        if factor not in FACTORS or not level:
            raise ValueError(f"{key!r} is not of the form factor=level[,factor=level] with {', '.join(FACTORS)}")
        if factor in levels:
            raise ValueError(f"{key!r} names {factor} twice")
        levels[factor] = level
    return levels


@dataclass(frozen=True, kw_only=True, slots=True, config=_STRICT)
class SimulatedDeployment:
    """One simulated upstream target."""

    name: Name
    vendor: str = "simulated"
    weights: str | None = None  #: deployments of the same weights find the same statements easy or hard
    tasks: Mapping[Task, TaskTruth] = Field(default_factory=dict)  #: a task not named has TaskTruth's defaults
    #: log-odds shifts by condition: "role=ai_ethicist", "task=CTO,sentiment=skeptical", ...; all that match are added
    shifts: Mapping[str, Shift] = Field(default_factory=dict)
    obeys_only: Share = 0.97  #: share of bare answers if the prompt asks for the answer only
    filtered: Share = 0.0  #: answers blocked by the provider's content filter: selection R, no elaboration
    memorised: Share = 0.0  #: share of the shipped pool's scenes and canaries that it continues word for word
    open_refused: Share = 0.0  #: share of open questions (without a statement) that are refused
    drift: Drift | None = None
    failures: Failures = Failures()
    latency: Latency = Latency()

    @model_validator(mode="after")
    def _shifts_read(self) -> Self:
        for key in self.shifts:
            read_shift_key(key)
        return self


@dataclass(frozen=True, kw_only=True, slots=True, config=_STRICT)
class SimulatedJudge:
    """A judge with declared errors: a row is a true stance, its entries are the wrong labels, the rest is correct."""

    name: Name
    vendor: str = "simulated-judges"
    accuracy: Share | None = None  #: one accuracy for all stances; errors go mostly to the near stances
    confusion: Mapping[StanceName, Mapping[StanceName, Share]] = Field(default_factory=dict)
    refuse: Share = 0.0  #: share of texts without a label
    malformed: Share = 0.0  #: share of invalid first replies; the repaired reply is valid
    severity: Annotated[int, Field(ge=-9, le=9)] = 0  #: added to every score of a peer's answer

    @model_validator(mode="after")
    def _rows_fit(self) -> Self:
        if self.accuracy is not None and self.confusion:
            raise ValueError("give accuracy or confusion, not both")
        for stance, row in self.confusion.items():
            errors = sum(share for label, share in row.items() if label != stance)
            if errors + self.refuse > 1 + 1e-12:
                raise ValueError(f"confusion row {stance}: errors and refuse add up to more than 1")
            right = row.get(stance)
            if right is not None and abs(errors + right - 1) > 1e-9:
                raise ValueError(f"confusion row {stance}: the row adds up to {errors + right:g}, not 1")
        return self


@dataclass(frozen=True, kw_only=True, slots=True, config=_STRICT)
class StatementSpread:
    """The sources of differences between statements: shares of latent variance, and the layers' correlation."""

    shared: Share = 0.4  #: common to all deployments (a statement is hard for all of them)
    deployment: Share = 0.4  #: specific to the weights, common to all tasks; the remainder is specific to the task
    layers: Annotated[float, Field(gt=-1.0, lt=1.0)] = 0.3  #: correlation of selection and elaboration propensities

    @model_validator(mode="after")
    def _at_most_all(self) -> Self:
        if self.shared + self.deployment > 1 + 1e-12:
            raise ValueError("shared + deployment is more than 1")
        return self


@dataclass(frozen=True, kw_only=True, slots=True, config=_STRICT)
class Scenario:
    """A complete declaration of what is simulated."""

    deployments: Annotated[tuple[SimulatedDeployment, ...], Field(min_length=1)]
    judges: tuple[SimulatedJudge, ...] = ()
    seed: int = 0
    shared_error: Share = 0.0  #: share of texts on which all judges draw the same random number and err together
    spread: StatementSpread = StatementSpread()
    statements: str | None = None  #: file of the statement pool the simulator knows (JSONL, CSV)

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        seen: set[str] = set()
        for name in [*(declared.name for declared in self.deployments), *(declared.name for declared in self.judges)]:
            if name in seen:
                raise ValueError(f"the name {name!r} is declared twice")
            seen.add(name)
        return self

    def deployment(self, name: str) -> SimulatedDeployment | None:
        """Find the deployment of that name."""
        return next((item for item in self.deployments if item.name == name), None)

    def judge(self, name: str) -> SimulatedJudge | None:
        """Find the judge of that name."""
        return next((item for item in self.judges if item.name == name), None)
