"""From counted codings to passes: the statements and conditions a reference knows, and what each day says of them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from auditor.metrics.estimate import ENOUGH_STATEMENTS
from auditor.metrics.joint import FREE_TASKS, SHAPE, Coded, Floats, joint_cell
from auditor.metrics.rates import BY_NAME
from auditor.monitor.passes import Pass

Row = Mapping[str, Any]

#: Of a reference's statements, so many must have answered: a pass that was cut short is no day like the others.
_FEWEST: Final = 0.5
_FACTORS: Final = ("task", "perspective", "role", "sentiment")


def condition_key(row: Row) -> str:
    """Name the condition a row was asked under, such as ``CTO/others/none/skeptical``."""
    return "/".join(row[factor] for factor in _FACTORS)


def design_of(rows: Iterable[Row]) -> str | None:
    """Choose the design whose passes are watched: the one with most days. Another's templates are another question.

    Parameters
    ----------
    rows
        With ``day`` and ``design``.

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
class Panel:
    """What is compared: one design's statements and conditions, in the order of the arrays."""

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
        """Count one measure; statements and conditions that the panel does not know are left out.

        Parameters
        ----------
        rows
            Of one deployment: ``design``, the condition's factors, ``cluster``, both labels with their reasons, ``n``.
        metric
            One of ``passes.WATCHED``; ``dni`` counts (1 + A - B) / 2.

        Examples
        --------
        >>> row = {"design": "panel", "task": "CTO", "perspective": "self", "role": "none", "sentiment": "neutral",
        ...        "cluster": "s1", "sel": "E", "sel_reason": None, "elab": "D", "elab_reason": None, "n": 2}
        >>> panel = panel_of([row], "panel")
        >>> panel.read([row], "ir").rates.tolist(), panel.read([row], "dni").rates.tolist()
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


def panel_of(rows: Sequence[Row], design: str) -> Panel:
    """Give the panel of all that was asked in a design."""
    own = [row for row in rows if row["design"] == design]
    return Panel(
        design=design,
        statements=tuple(sorted({row["cluster"] for row in own})),
        conditions=tuple(sorted({condition_key(row) for row in own})),
    )


def usable(one: Pass, metric: str) -> bool:
    """Say whether a pass may be bet on: half of its panel answered; for IR and DNI enough statements on both layers."""
    answered = int((one.trials.sum(axis=1) > 0).sum())
    needed = _FEWEST * len(one.trials)
    if BY_NAME[metric].base == "eligible":
        needed = max(needed, ENOUGH_STATEMENTS)
    return answered > 0 and answered >= needed


def _counts(row: Row, metric: str) -> tuple[float, float]:
    """Give the events and trials of a row's responses."""
    coded = Coded(sel=row["sel"], sel_reason=row["sel_reason"], elab=row["elab"], elab_reason=row["elab_reason"])
    where = divmod(joint_cell(coded, free=row["task"] in FREE_TASKS), SHAPE[1])
    measure = BY_NAME[metric]
    counted = float(measure.denominator[where]) * row["n"]
    gained = float(measure.numerator[where]) * row["n"]
    return ((counted + gained) / 2 if measure.kind == "difference" else gained), counted


def added_up(passes: Sequence[Pass]) -> Pass:
    """Give several passes as one."""
    events: Floats = np.sum([each.events for each in passes], axis=0)
    trials: Floats = np.sum([each.trials for each in passes], axis=0)
    return Pass(events=events, trials=trials)
