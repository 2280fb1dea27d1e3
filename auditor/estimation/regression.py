"""Explain endorsement by several fields at once: a logistic regression of coded rows, and differences in points.

A table of rates by one field mixes in all others: where a deployment was asked the hard tasks more often, its pooled
rate is higher (Simpson's paradox). The model answers where the analysis of variance refuses, too: levels may be missing
or asked unequally often.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.counting.conditions import BASELINE, FACTORS, level_order
from auditor.counting.joint import Floats, Ints
from auditor.counting.rows import LENGTH_CLASS, STATEMENT
from auditor.counting.tallies import GROUP_FIELDS, Scalar, Tallies
from auditor.documents.model import (
    CoefficientEntry,
    CoefficientKey,
    MarginalEntry,
    MissingCoefficient,
    MissingMarginal,
    ModelClustersEntry,
    ModelDocument,
    ModelMethodEntry,
)
from auditor.errors import UsageError
from auditor.estimation.formula import OUTCOMES, Formula, Term
from auditor.estimation.groups import group_value
from auditor.estimation.variation import few_flags
from auditor.metrics.estimate import LOW_RATE, MIN_STATEMENTS
from auditor.metrics.rates import METRICS
from auditor.stats.binomial_model import BinomialCells, Fit, fit_binomial, independent_columns
from auditor.stats.intervals import t_quantile
from auditor.stats.max_t import adjusted_p, as_t, level_of, normal_maxima

#: Terms that are read from a field of another name.
_FIELDS: Final = {"order": "keyed", "length": LENGTH_CLASS, "thinking": "thought_kind"}
#: A field with more levels than this is no factor, but an id.
MOST_LEVELS: Final = 100
#: More coefficients than this are a mistake.
_MOST_COLUMNS: Final = 200
#: The level of rows that do not have a field, by field.
_ABSENT: Final = {"language": "en"}
#: Sorts after all levels that begin with a number.
_NO_NUMBER: Final = 10**30
_NOT_STATED: Final = "not stated"
#: What is smaller than this, relative to the largest, is a rounding error.
_DEPENDENT: Final = 1e-9
_INTERCEPT: Final = CoefficientKey(term="intercept", level="")
_LEVEL: Final = 0.95


def read_fields(formula: Formula) -> tuple[str, ...]:
    """Return the fields of rows that a formula needs, beside those that all tallies have."""
    fields = (_FIELDS.get(name, name) for name in formula.fields)
    return tuple(name for name in fields if name not in (*GROUP_FIELDS, "keyed"))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Cells:
    """Answers by combination of levels (R of them) and cluster."""

    levels: dict[str, tuple[str, ...]]  #: by field, the reference level first
    combinations: Ints  #: shape [R, fields]: place in ``levels``
    counts: BinomialCells
    n_clusters: int

    @classmethod
    def of(cls, tallies: Tallies, formula: Formula) -> Self:
        """Count the rows about statements by the levels of a formula's fields.

        Raises
        ------
        UsageError
            No row has one of the fields, or it has too many values; or clusters are crossed.
        """
        if len(tallies.clusterings) > 1:
            raise UsageError("a model is clustered by one field only")
        keys = [(index, key) for index, key in enumerate(tallies.groups) if key.rubric == STATEMENT]
        values: dict[str, list[str]] = {}
        for name in formula.fields:
            field = _FIELDS.get(name, name)
            if field not in (*GROUP_FIELDS, "keyed", *tallies.extra):
                raise UsageError(f"the model's term {name!r} is no field of the rows")
            raw: list[Scalar] = [group_value(tallies, key, field) for _, key in keys]
            if all(value is None for value in raw):
                raise UsageError(f"the model's term {name!r}: no row has a field {field!r}")
            values[name] = [_ABSENT.get(name, _NOT_STATED) if value is None else str(value) for value in raw]
        levels = {name: _levels(name, each) for name, each in values.items()}
        codes = np.array([[levels[name].index(value) for value in each] for name, each in values.items()]).T
        combinations, group_row = np.unique(codes, axis=0, return_inverse=True)
        entries = tallies.entries([index for index, _ in keys])
        sizes = [tallies.spans[index + 1] - tallies.spans[index] for index, _ in keys]
        clusters, cluster = np.unique(tallies.cluster[entries], return_inverse=True)
        metric = METRICS[OUTCOMES[formula.outcome]]
        cell, weight = tallies.cells(entries), tallies.weight(entries)
        mass = tallies.count[entries] * (1.0 if weight is None else weight)
        trials = metric.denominator.ravel()[cell] * mass
        pairs, place = np.unique(np.repeat(group_row.ravel(), sizes) * len(clusters) + cluster, return_inverse=True)
        sums = [
            np.bincount(place, weights=each, minlength=len(pairs)).astype(np.float64)
            for each in (metric.numerator.ravel()[cell] * mass, trials)
        ]
        kept = sums[1] > 0
        rows, row = np.unique(pairs[kept] // len(clusters), return_inverse=True)
        used, within = np.unique(pairs[kept] % len(clusters), return_inverse=True)
        return cls(
            levels=levels,
            combinations=combinations[rows],
            counts=BinomialCells(row=row, cluster=within, events=sums[0][kept], trials=sums[1][kept]),
            n_clusters=len(used),
        )

    def sums(self) -> tuple[Floats, Floats]:
        """Return events and trials of each combination; shape [R]."""
        size = len(self.combinations)
        events, trials = (
            np.bincount(self.counts.row, weights=each, minlength=size).astype(np.float64)
            for each in (self.counts.events, self.counts.trials)
        )
        return events, trials


def _levels(name: str, values: Sequence[str]) -> tuple[str, ...]:
    """Order the levels of a field: its baseline first, which is the first by name where the instrument has none."""
    if name in FACTORS:
        baseline = BASELINE[FACTORS.index(name)]
        ordered = sorted(set(values), key=lambda level: (level != baseline, *level_order(name, level)))
    else:
        first = _ABSENT.get(name)
        ordered = sorted(set(values), key=lambda level: (level != first, level == _NOT_STATED, _size(level)))
    if len(ordered) > MOST_LEVELS:
        raise UsageError(f"the model's term {name!r} has {len(ordered)} values, {MOST_LEVELS} at most")
    return tuple(ordered)


def _size(level: str) -> tuple[int, str]:
    """Sort levels that begin with a number by it, before the others."""
    digits = level[: len(level) - len(level.lstrip("0123456789"))]
    return (int(digits), level) if digits else (_NO_NUMBER, level)


class _Design:
    """The columns of a formula: an intercept, and indicators of all levels but the reference ones."""

    def __init__(self, formula: Formula, levels: dict[str, tuple[str, ...]]) -> None:
        self._levels = levels
        self._fields = list(levels)
        self.keys = [_INTERCEPT]
        self._parts: list[tuple[tuple[int, int], ...]] = [()]
        for term in formula.terms:
            for places in np.ndindex(*(len(levels[name]) - 1 for name in term)):
                chosen = [place + 1 for place in places]
                self.keys.append(CoefficientKey(term=":".join(term), level=self._name(term, chosen)))
                self._parts.append(tuple(zip(map(self._fields.index, term), chosen, strict=True)))
        if len(self.keys) > _MOST_COLUMNS:
            raise UsageError(f"the model has {len(self.keys)} coefficients, {_MOST_COLUMNS} at most")

    def _name(self, term: Term, places: Sequence[int]) -> str:
        return ":".join(self._levels[name][place] for name, place in zip(term, places, strict=True))

    def columns(self, combinations: Ints) -> Floats:
        """Return the columns of some combinations of levels; shape [R, P]."""
        out = np.ones((len(combinations), len(self._parts)))
        for column, part in enumerate(self._parts):
            for field, place in part:
                out[:, column] *= combinations[:, field] == place
        return out


def regress(tallies: Tallies, formula: Formula, *, cluster: str = "statement", seed: int = 0) -> ModelDocument:
    """Fit a model to the rows about statements.

    Parameters
    ----------
    tallies
        Of rows that were grouped by ``read_fields(formula)``.
    formula
        What is explained by what.
    cluster
        Name of what the tallies are clustered by.
    seed
        Seed of the draws for intervals that hold together.

    Raises
    ------
    UsageError
        No row has one of the fields, or nothing can be explained: too few statements, or an outcome that never varies.
    """
    return explain(Cells.of(tallies, formula), formula, cluster=cluster, seed=seed)


def explain(cells: Cells, formula: Formula, *, cluster: str, seed: int) -> ModelDocument:
    """Fit a model to counts, as ``regress``.

    Raises
    ------
    UsageError
        There are too few clusters, or the outcome never varies.
    """
    events, trials = cells.sums()
    if cells.n_clusters < MIN_STATEMENTS:
        raise UsageError(f"the model has {cells.n_clusters} clusters, {MIN_STATEMENTS} needed")
    if not 0 < events.sum() < trials.sum():
        raise UsageError(f"the model explains nothing: {'no answer endorses' if not events.sum() else 'all endorse'}")
    design = _Design(formula, cells.levels)
    columns = design.columns(cells.combinations)
    kept = independent_columns(columns)
    fit = fit_binomial(columns[:, kept], cells.counts)
    values, vectors = np.linalg.eigh(columns.T @ columns)
    span = vectors[:, values > _DEPENDENT * values.max()]
    model = _Model(cells=cells, design=design, columns=columns, kept=kept, span=span, fit=fit)
    return ModelDocument(
        schema="biasmeter.model/1",
        version=version("biasmeter"),
        formula=str(formula),
        metric=OUTCOMES[formula.outcome],
        rubric=STATEMENT,
        seed=seed,
        n=round(float(trials.sum())),
        n_events=round(float(events.sum())),
        n_cells=len(cells.combinations),
        clusters=ModelClustersEntry(field=cluster, n=cells.n_clusters),
        method=ModelMethodEntry(
            model="binomial GLM, logit link",
            covariance="CR2",
            intervals="t; differences of one term hold together (max-T)",
            is_separated=fit.is_separated,
        ),
        coefficients=model.coefficients(),
        differences=[entry for field in range(len(cells.levels)) for entry in model.differences(field, seed=seed)],
        flags=few_flags(cells.n_clusters),
    )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Marginal:
    """A difference of two rates over the same mix, as far as it can be told."""

    rate: float
    reference_rate: float
    gradient: Floats
    support: float


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Model:
    """A fitted model and what it was fitted to."""

    cells: Cells
    design: _Design
    columns: Floats  #: shape [R, P]
    kept: NDArray[np.bool_]  #: shape [P]: the columns that were fitted
    span: Floats  #: shape [P, rank]: a basis of the combinations that were asked
    fit: Fit

    def coefficients(self) -> list[CoefficientEntry | MissingCoefficient]:
        """Return an entry for each column."""
        events, trials = self.cells.sums()
        se, df, _ = self.fit.estimate(np.eye(int(self.kept.sum())))
        place = np.cumsum(self.kept) - 1
        out: list[CoefficientEntry | MissingCoefficient] = []
        for column, key in enumerate(self.design.keys):
            marked = self.columns[:, column] > 0
            y, n = float(events[marked].sum()), float(trials[marked].sum())
            reason = ""
            if n == 0:
                reason = "no answer has these levels"
            elif not self.kept[column]:
                reason = "cannot be told from other terms"
            elif not 0 < y < n:
                reason = f"{'no' if y == 0 else 'every'} answer with these levels endorses"
            elif se[place[column]] == 0:
                reason = "one cluster alone decides it"
            if reason:
                out.append(MissingCoefficient(term=key.term, level=key.level, missing=reason))
            else:
                at = place[column]
                out.append(_coefficient(key, float(self.fit.beta[at]), float(se[at]), float(df[at])))
        return out

    def differences(self, field: int, *, seed: int) -> list[MarginalEntry | MissingMarginal]:
        """Return the differences of a field's levels from its reference level, which hold together."""
        name = list(self.cells.levels)[field]
        reference, *others = self.cells.levels[name]
        size, level = len(others) + 1, self.cells.combinations[:, field]
        y, n = (np.bincount(level, weights=each, minlength=size) for each in self.cells.sums())
        pooled = y / np.maximum(n, 1)
        marginals = [self._marginal(field, place + 1) for place in range(len(others))]
        known = [place for place, marginal in enumerate(marginals) if marginal is not None]
        out: list[MarginalEntry | MissingMarginal] = [
            MissingMarginal(term=name, level=level, reference=reference, missing="cannot be told from other terms")
            for level in others
        ]
        if not known:
            return out
        chosen = [marginal for marginal in marginals if marginal is not None]
        values = np.array([marginal.rate - marginal.reference_rate for marginal in chosen])
        se, df, parts = self.fit.estimate(np.stack([marginal.gradient for marginal in chosen]))
        se = np.maximum(se, [_least_se(marginal, self.cells.n_clusters) for marginal in chosen])
        correlation = (parts / se).T @ (parts / se)
        np.fill_diagonal(correlation, 1.0)
        half = as_t(level_of(normal_maxima(correlation, seed=seed), _LEVEL), df + 1) * se
        half = np.maximum(half, [t_quantile(_LEVEL, each) for each in df] * se)
        p = 2 * special.stdtr(df, -np.abs(values) / se)
        together = adjusted_p(p, correlation, seed=seed)
        for at, (place, marginal) in enumerate(zip(known, chosen, strict=True)):
            out[place] = MarginalEntry(
                term=name,
                level=others[place],
                reference=reference,
                value=float(values[at]),
                low=float(max(-1.0, values[at] - half[at])),
                high=float(min(1.0, values[at] + half[at])),
                p=float(p[at]),
                p_adjusted=float(together[at]),
                rate=marginal.rate,
                reference_rate=marginal.reference_rate,
                pooled=float(pooled[place + 1] - pooled[0]),
                n=round(float(n[place + 1])),
                support=marginal.support,
            )
        return out

    def _marginal(self, field: int, place: int) -> _Marginal | None:
        """Compare a level with the reference level over the mix of all other fields; None if that is not known."""
        _, trials = self.cells.sums()
        sides = []
        known = np.ones(len(trials), dtype=bool)
        for level in (place, 0):
            moved = self.cells.combinations.copy()
            moved[:, field] = level
            columns = self.design.columns(moved)
            known &= self._is_known(columns)
            sides.append(columns[:, self.kept])
        if not known.any():
            return None
        weights = trials * known / (trials * known).sum()
        means = [special.expit(side @ self.fit.beta) for side in sides]
        slopes = [(weights * mean * (1 - mean)) @ side for mean, side in zip(means, sides, strict=True)]
        return _Marginal(
            rate=float(weights @ means[0]),
            reference_rate=float(weights @ means[1]),
            gradient=slopes[0] - slopes[1],
            support=float((trials * known).sum() / trials.sum()),
        )

    def _is_known(self, columns: Floats) -> NDArray[np.bool_]:
        """Return whether the answers tell the rate of each combination: whether it is a sum of those asked."""
        rest = columns - (columns @ self.span) @ self.span.T
        return np.asarray(np.abs(rest).max(axis=1) < 1e-6)


def _coefficient(key: CoefficientKey, value: float, se: float, df: float) -> CoefficientEntry:
    half = t_quantile(_LEVEL, df) * se
    return CoefficientEntry(
        term=key.term,
        level=key.level,
        value=value,
        se=se,
        df=df,
        low=value - half,
        high=value + half,
        p=float(2 * special.stdtr(df, -abs(value) / se)),
    )


def _least_se(marginal: _Marginal, n_clusters: int) -> float:
    """Return the least error: where a rate is near 0 or 1, the weight of one cluster; else rare events seem exact."""
    rates = (marginal.rate, marginal.reference_rate)
    return 1 / n_clusters if min(*rates, *(1 - rate for rate in rates)) < LOW_RATE else 1e-12
