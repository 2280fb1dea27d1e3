"""An estimate with its interval, or the reason why there is none. Never NaN; 0 only if it is 0."""

from dataclasses import dataclass
from typing import Literal

#: What the rate is a share of: responses coded on both layers, or all responses.
Base = Literal["eligible", "full"]
#: How an interval came about; the words of INTERFACE's files.
IntervalMethod = Literal[
    "wilson", "design_effect_wilson", "cluster_bootstrap", "logit_cluster", "prediction_powered"
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A value with its 95 % interval and what it rests on."""

    value: float
    low: float
    high: float
    base: Base
    method: IntervalMethod
    n: int  #: responses in the base
    n_statements: int  #: statements with a response in the base
    flags: tuple[str, ...] = ()
    #: Kish's effective number of responses, where they were captured with different probabilities.
    n_effective: float | None = None
    #: The same for statements; at most ``n_statements``.
    effective_statements: float | None = None

    @property
    def worth(self) -> float:
        """The number of statements that verdicts count: the effective number where there is one."""
        return self.n_statements if self.effective_statements is None else self.effective_statements


@dataclass(frozen=True, kw_only=True, slots=True)
class Corrected(Estimate):
    """A rate that the coder gives for every response of the base, put right by people's labels of a sample."""

    n_labelled: int  #: responses of the base with a person's label
    n_labelled_statements: int
    power: float  #: in [0, 1]: how far the coder was followed; 0 is the people's labels alone


@dataclass(frozen=True, kw_only=True, slots=True)
class Insufficient:
    """There is no value, and this is why."""

    reason: str
