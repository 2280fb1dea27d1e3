"""Who is compared, and how."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from auditor.errors import UsageError
from auditor.peers.comparison import Rule
from auditor.peers.score_table import Blocked

#: Far beyond any margin that means something, and small enough that no statistic overflows.
LARGEST: Final = 1000.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What is asked of a comparison.

    Raises
    ------
    UsageError
        For no target, a name given twice, or a number out of its range.
    """

    targets: tuple[str, ...]
    peers: tuple[str, ...] | None = None  #: all deployments compared; None is everybody in the table
    blocked: Blocked = "answer"
    k: float = 2.81  #: margin in standard deviations of the peers' means
    alpha: float = 0.05  #: level of each one-sided test
    margin: float | None = None  #: declared for every instrument, in its units
    margins: Mapping[str, float] = field(default_factory=dict)  #: declared for one instrument, by its name
    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  #: deployments of the same weights, by these

    def __post_init__(self) -> None:
        if not self.targets:
            raise UsageError("--target: name at least one deployment")
        named = [("--hosts", names) for names in self.hosts.values()]
        for option, names in (("--target", self.targets), ("--peers", self.peers or ()), *named):
            if len(set(names)) < len(names):
                raise UsageError(f"{option}: a deployment is named twice")
        for weights, names in self.hosts.items():
            if len(names) < 2:
                raise UsageError(f"--hosts: {weights!r} takes two deployments or more")
        declared = [*self.margins.values(), *([] if self.margin is None else [self.margin])]
        for option, number in (("--k", self.k), *(("--margin", margin) for margin in declared)):
            if not 0 < number <= LARGEST:
                raise UsageError(f"{option} must be greater than 0 and at most {LARGEST:g}, not {number:g}")
        if not 0 < self.alpha < 0.5:
            raise UsageError(f"--alpha must be between 0 and 0.5, not {self.alpha:g}")

    @property
    def other_blocked(self) -> Blocked:
        """The other reading of blocked answers."""
        return "drop" if self.blocked == "answer" else "answer"

    def rule(self, instrument: str) -> Rule:
        """Give the rule of one instrument."""
        return Rule(k=self.k, alpha=self.alpha, margin=self.margins.get(instrument, self.margin))
