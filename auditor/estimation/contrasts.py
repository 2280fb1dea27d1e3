"""Sum up the crossed design and the categories: do changes add up, how often DNI flips, where one factor dominates."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from auditor.counting.conditions import BASELINE, FACTORS, Levels
from auditor.counting.joint import Floats
from auditor.counting.rows import STATEMENT
from auditor.counting.tallies import Tallies
from auditor.documents.base import Missing
from auditor.documents.conditions import MissingVarianceShare, VarianceShareEntry
from auditor.documents.contrasts import (
    AdditivityContrast,
    AdditivityEntry,
    CategoryDominance,
    DominanceEntry,
    MissingAdditivity,
    MissingDominance,
    MissingSignFlip,
    SignFlipEntry,
)
from auditor.documents.estimates import BoundedEntry
from auditor.domain.condition import Factor
from auditor.domain.estimate import Estimate, Insufficient
from auditor.estimation.grid import Grid
from auditor.estimation.groups import Group
from auditor.estimation.variation import SHARED, Scope, few_flags
from auditor.metrics.additivity import Contrasts, additivity_contrasts, find_squares
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.metrics.rates import METRICS
from auditor.metrics.shares import crossing
from auditor.stats.max_t import Simultaneous

#: Its selections are what the paper's contrast is of.
ADDED: Final = "ber_sel_full"
#: How many times the next share a dominating share is (BiAxisAudit section V-B).
DOMINATES: Final = 2.0
_DOMINANT: Final[Factor] = "task"


def additivity(
    tallies: Tallies, scopes: Sequence[Scope], *, seed: int, n_boot: int
) -> list[AdditivityEntry | MissingAdditivity]:
    """Return the entries of ``additivity``: joint changes of two factors against their sum (BiAxisAudit section VI-B).

    The reference is no role, the neutral tone, one's own perspective, and of the tasks that were asked so the one whose
    selection endorses most, as in ``mitigation``. There is no entry where no condition differs from it in two factors.
    """
    out: list[AdditivityEntry | MissingAdditivity] = []
    for scope in scopes:
        grid = Grid.of(tallies, scope.group_indices)
        y, n = (side.sum(axis=2) for side in grid.sums(METRICS[ADDED]))
        reference = _reference(grid.conditions, y, n)
        if reference is None or not any(_distance(each, reference) == 2 for each in grid.conditions):
            continue
        squares = find_squares(grid.conditions, reference)
        measured = additivity_contrasts(squares, y, n, n_boot=n_boot, seed=seed)
        if measured is None:
            reason = (
                f"no two changes whose four conditions have {MIN_STATEMENTS} statements each"
                if squares
                else "no two changes were asked one at a time and together"
            )
            out.append(MissingAdditivity(rubric=scope.rubric, by=scope.by, outcome=ADDED, missing=reason))
        else:
            contrasts = [_contrast(measured, place) for place in range(len(measured.squares))]
            out.append(
                AdditivityEntry(
                    rubric=scope.rubric, by=scope.by, outcome=ADDED, reference=reference, contrasts=contrasts
                )
            )
    return out


def _reference(conditions: Sequence[Levels], y: Floats, n: Floats) -> Levels | None:
    """Return the condition with the highest rate of those that differ from the baseline in the task at most."""
    indices = [index for index, each in enumerate(conditions) if each[1:] == BASELINE[1:] and n[:, index].any()]
    rates = {index: float(y[:, index].sum() / n[:, index].sum()) for index in indices}
    return conditions[max(rates, key=lambda index: rates[index])] if rates else None


def _distance(condition: Levels, reference: Levels) -> int:
    return sum(level != base for level, base in zip(condition, reference, strict=True))


def _contrast(contrasts: Contrasts, place: int) -> AdditivityContrast:
    square, statements = contrasts.squares[place], int(contrasts.n_statements[place])
    return AdditivityContrast(
        factors=[FACTORS[factor] for factor in square.factors],
        levels=square.levels,
        joint=_bounded(contrasts.joint, place),
        additive=_bounded(contrasts.additive, place),
        departure=_bounded(contrasts.departure, place),
        n=round(contrasts.n[place]),
        n_statements=statements,
        flags=few_flags(statements),
    )


def _bounded(intervals: Simultaneous, place: int) -> BoundedEntry:
    return BoundedEntry(
        value=float(intervals.value[place]), low=float(intervals.low[place]), high=float(intervals.high[place])
    )


def sign_flips(conditions: Iterable[Group], cells: Iterable[Group]) -> list[SignFlipEntry | MissingSignFlip]:
    """Return the entries of ``sign_flips``: in how many conditions DNI changes its sign (BiAxisAudit Figure 8).

    Parameters
    ----------
    conditions, cells
        The groups by deployment and condition, and by condition.

    Returns
    -------
    list
        Entries of all deployments together and of each one. Nothing where fewer than two conditions were asked.
    """
    parts: dict[str | None, list[Group]] = {None: [group for group in cells if group.rubric == STATEMENT]}
    for group in conditions:
        if group.rubric == STATEMENT:
            parts.setdefault(str(group.by["deployment"]), []).append(group)
    out = []
    for deployment, groups in parts.items():
        by = {} if deployment is None else {"deployment": deployment}
        by_condition = {cast("Levels", tuple(str(group.by[factor]) for factor in FACTORS)): group for group in groups}
        ordered = sorted(by_condition)
        kept = [ordered[index] for index in crossing(ordered)] or ordered
        if len(kept) > 1:
            out.append(_flips(by, {levels: by_condition[levels] for levels in kept}))
    return out


def _flips(by: Mapping[str, str], groups: Mapping[Levels, Group]) -> SignFlipEntry | MissingSignFlip:
    dni = {
        levels: dni_estimate
        for levels, group in groups.items()
        if isinstance(dni_estimate := group.metrics["dni"], Estimate)
    }
    base = dni.get(BASELINE)
    if base is None:
        reason = "no DNI at the baseline condition" if BASELINE in groups else "the baseline condition was not asked"
        return MissingSignFlip(rubric=STATEMENT, by=by, missing=reason)
    compared = [levels for levels in dni if levels != BASELINE]
    flips = [flip for levels in compared if not isinstance(flip := groups[levels].sign_flip, Insufficient)]
    return SignFlipEntry(
        rubric=STATEMENT,
        by=by,
        n_conditions=len(groups),
        n_compared=len(compared),
        n_opposite=sum(dni[levels].value * base.value < 0 for levels in compared),
        n_tested=len(flips),
        n_flipped=sum(flips),
        baseline=BoundedEntry(value=base.value, low=base.low, high=base.high),
        lowest=min(each.value for each in dni.values()),
        highest=max(each.value for each in dni.values()),
    )


def dominance(shares: Iterable[VarianceShareEntry | MissingVarianceShare]) -> list[DominanceEntry | MissingDominance]:
    """Return the entry of ``dominance``: in how many categories the task explains most (BiAxisAudit section V-B).

    Parameters
    ----------
    shares
        The document's entries of ``eta_squared``.

    Returns
    -------
    list
        Nothing where no row has a category.
    """
    entries = {
        str(entry.by["category"]): entry
        for entry in shares
        if (entry.rubric, entry.design, entry.weights) == (STATEMENT, "oat", "responses")
        and set(entry.by) == {"category"}
    }
    if not entries:
        return []
    categories = [_category(name, entry) for name, entry in entries.items() if isinstance(entry, VarianceShareEntry)]
    known = [each for each in categories if isinstance(each, CategoryDominance)]
    if not known:
        reason = f"no category has shares of the {_DOMINANT} and of another factor"
        return [MissingDominance(rubric=STATEMENT, outcome=SHARED, missing=reason)]
    named = {each.category for each in known}
    return [
        DominanceEntry(
            rubric=STATEMENT,
            outcome=SHARED,
            factor=_DOMINANT,
            times=DOMINATES,
            n_categories=len(known),
            n_largest=sum(each.share.value > each.next_share.value for each in known),
            n_exceeding=sum(each.exceeds for each in known),
            n_supported=sum(each.supported for each in known),
            categories=known,
            left_out=[name for name in entries if name not in named],
        )
    ]


def _category(name: str, entry: VarianceShareEntry) -> CategoryDominance | Insufficient:
    shares = {factor: share for factor in FACTORS if (share := _share(entry, factor)) is not None}
    dominant = shares.pop(_DOMINANT, None)
    if dominant is None or not shares:
        return Insufficient(reason="one factor")
    second = max(shares, key=lambda factor: shares[factor].value)
    other = shares[second]
    return CategoryDominance(
        category=name,
        share=dominant,
        next_factor=second,
        next_share=other,
        ratio=dominant.value / other.value if other.value > 0 else Missing(missing=f"the share of {second} is 0"),
        exceeds=dominant.value > DOMINATES * other.value,
        # Of each other factor, because any of them may be the next one in truth.
        supported=dominant.low > DOMINATES * max(each.high for each in shares.values()),
        flags=entry.flags,
    )


def _share(entry: VarianceShareEntry, factor: str) -> BoundedEntry | None:
    value, bounds = entry.effects.get(factor), entry.intervals.get(factor)
    if value is None or isinstance(value, Missing) or bounds is None:
        return None
    return BoundedEntry(value=value, low=bounds[0], high=bounds[1])
