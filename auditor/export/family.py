"""One series name with its labels, and the series of one number with its bounds."""

from collections.abc import Callable
from dataclasses import dataclass

from auditor.store.estimates import EstimateRow

#: Values by name and labels.
Series = dict[tuple[str, tuple[str, ...]], float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """One series name: its labels, and whether bounds stand beside it."""

    name: str
    says: str
    labels: tuple[str, ...]
    bounds: bool = True
    #: Which rows it shows; the labels it lacks are the same for all of these.
    shows: Callable[[EstimateRow], bool] = lambda _: True
    counts: "Family | None" = None  #: the series of how much a number rests on

    def series(self, labels: tuple[str, ...], value: float | None, low: float | None, high: float | None) -> Series:
        """Give the series of one number: what is unknown is absent."""
        found: Series = {}
        if value is not None:
            found[self.name, labels] = value
        if self.bounds and low is not None and high is not None:
            found[f"{self.name}_low", labels] = low
            found[f"{self.name}_high", labels] = high
        return found
