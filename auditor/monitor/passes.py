"""Define passes: the counts of one run of a design over all its statements on one day, by statement and condition."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from auditor.counting.joint import SHAPE, Floats, stored_cell
from auditor.domain.estimate import Insufficient
from auditor.domain.readers import divergence_refusal
from auditor.metrics.estimate import ENOUGH_STATEMENTS
from auditor.metrics.rates import METRICS

Row = Mapping[str, Any]

#: The measures that are watched. Of ``dni`` a pass counts (1 + A - B) / 2, which lies in [0, 1].
WATCHED: Final = ("ber_union_full", "ir", "dni")
#: The measures that may page a person. Their number is K of the promise.
PAGING: Final = ("ber_union_full", "ir")
#: The measures that compare the two readings of a response.
_OF_BOTH: Final = frozenset({"ir", "dni"})
#: Share of the statements that must have answers, because an incomplete pass is not comparable.
_FEWEST: Final = 0.5
_FACTORS: Final = ("task", "perspective", "role", "sentiment")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Pass:
    """One measure of one pass over a panel: events and trials, each of shape [S, C], as statements by conditions."""

    events: Floats
    trials: Floats

    @property
    def rates(self) -> Floats:
        """Shape [S, C]; NaN where nothing was answered."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.events / self.trials

    @property
    def level(self) -> float | None:
        """The mean of the conditions' rates, each with the same weight; None if a condition has no answer."""
        trials = self.trials.sum(axis=0)
        if not (trials > 0).all() or not len(trials):
            return None
        return float((self.events.sum(axis=0) / trials).mean())


def shifts(rates: Floats, expected: Floats) -> Floats:
    """Return the difference of each statement from its expected rate, over the conditions that both have.

    Parameters
    ----------
    rates, expected
        Shape [..., S, C]; NaN where unknown.

    Returns
    -------
    ndarray
        Shape [..., S], in [-1, 1]; NaN for a statement with nothing to compare.

    Examples
    --------
    >>> shifts(np.array([[1.0, np.nan], [np.nan, 0.5]]), np.array([[0.25, 0.5], [0.5, np.nan]])).tolist()
    [0.75, nan]
    """
    apart = rates - expected
    known = ~np.isnan(apart)
    number = known.sum(axis=-1)
    total = np.where(known, apart, 0.0).sum(axis=-1)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def condition_key(row: Row) -> str:
    """Return the name of the condition a row was asked under, such as ``CTO/others/none/skeptical``."""
    return "/".join(row[factor] for factor in _FACTORS)


def design_of(rows: Iterable[Row]) -> str | None:
    """Choose the design whose passes are watched: the one with most days.

    Passes of two designs are never compared, because their templates differ.

    Parameters
    ----------
    rows
        Counts with ``day`` and ``design``.

    Returns
    -------
    str or None
        The first by name where several have as many; None without rows.

    Examples
    --------
    >>> design_of([{"day": 1, "design": "panel"}, {"day": 1, "design": "sentinel"}, {"day": 2, "design": "sentinel"}])
    'sentinel'
    """
    days = Counter(design for _, design in {(row["day"], row["design"]) for row in rows})
    return min(days, key=lambda design: (-days[design], design)) if days else None


@dataclass(frozen=True, kw_only=True)
class ProbeGrid:
    """The statements and conditions of one design, in the order of the arrays of its passes."""

    design: str
    statements: tuple[str, ...]
    conditions: tuple[str, ...]

    @cached_property
    def _places(self) -> tuple[dict[str, int], dict[str, int]]:
        return (
            {name: place for place, name in enumerate(self.statements)},
            {name: place for place, name in enumerate(self.conditions)},
        )

    def read(self, rows: Iterable[Row], metric: str) -> Pass:
        """Count one measure; statements and conditions that are not in the grid are left out.

        Parameters
        ----------
        rows
            Counts of one deployment: ``design``, the condition's factors, ``cluster``, both labels with their reasons,
            ``n``.
        metric
            One of ``WATCHED``.

        Examples
        --------
        >>> row = {"design": "panel", "task": "CTO", "perspective": "self", "role": "none", "sentiment": "neutral",
        ...        "cluster": "s1", "sel": "E", "sel_reason": None, "elab": "D", "elab_reason": None, "n": 2}
        >>> grid = grid_of([row], "panel")
        >>> grid.read([row], "ir").rates.tolist(), grid.read([row], "dni").rates.tolist()
        ([[1.0]], [[1.0]])
        """
        events, trials = np.zeros((2, len(self.statements), len(self.conditions)))
        for row in rows:
            at = self._place(row)
            if at is not None:
                gained, counted = _counts(row, metric)
                events[at] += gained
                trials[at] += counted
        return Pass(events=events, trials=trials)

    def _place(self, row: Row) -> tuple[int, int] | None:
        statements, conditions = self._places
        place, column = statements.get(row["cluster"]), conditions.get(condition_key(row))
        return None if place is None or column is None or row["design"] != self.design else (place, column)


def grid_of(rows: Sequence[Row], design: str) -> ProbeGrid:
    """Return the grid of all that was asked in a design."""
    design_rows = [row for row in rows if row["design"] == design]
    return ProbeGrid(
        design=design,
        statements=tuple(sorted({row["cluster"] for row in design_rows})),
        conditions=tuple(sorted({condition_key(row) for row in design_rows})),
    )


def usable(probe_pass: Pass, metric: str) -> bool:
    """Return whether a pass may be evidence: half of its statements answered, and for IR and DNI at least 100."""
    answered = int((probe_pass.trials.sum(axis=1) > 0).sum())
    needed = _FEWEST * len(probe_pass.trials)
    if METRICS[metric].base == "eligible":
        needed = max(needed, ENOUGH_STATEMENTS)
    return answered > 0 and answered >= needed


def finding_refusal(metric: str, judges: Collection[str]) -> Insufficient | None:
    """Return why a panel supports no finding on a measure; None if it does.

    Examples
    --------
    >>> finding_refusal("ir", ["lexicon"]) is None, finding_refusal("ber_union_full", ["lexicon"]) is None
    (False, True)
    """
    return divergence_refusal(judges) if metric in _OF_BOTH else None


def _counts(row: Row, metric: str) -> tuple[float, float]:
    """Return the events and trials of a row's responses."""
    where = divmod(stored_cell(row), SHAPE[1])
    measure = METRICS[metric]
    counted = float(measure.denominator[where]) * row["n"]
    gained = float(measure.numerator[where]) * row["n"]
    return ((counted + gained) / 2 if measure.kind == "difference" else gained), counted
