"""Estimate what the choice of templates adds to the variance of rates, as if templates were drawn at random.

A claim about a condition is a claim about all wordings of its question, of which an audit asks some. So the variance of
a rate has a part of the statements, which the bootstrap over statements has, and a part of the templates, which this
module adds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
from scipy import sparse, special

from auditor.stats.crossed import Ints
from auditor.stats.intervals import Floats

#: Eigenvalues below this share of the largest are rounding errors.
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, kw_only=True, slots=True)
class TemplateVariance:
    """What the choice of templates adds to the variance of C rates, of conditions or of deployments."""

    extra: Floats  #: shape [C, C]: covariance of the rates due to templates alone; no negative eigenvalue
    between: Floats  #: shape [C, C]: covariance of the rates with templates as clusters; ``extra`` is a part of it
    df: Floats  #: shape [C]: degrees of freedom of each variance of ``between``
    expected: Floats  #: shape [C]: diagonal of ``extra`` if templates differed alike everywhere on the logit scale
    share: Floats  #: shape [C, C]: sum of the products of two rates' shares of each template; a component times this is
    #: the (co)variance of the rates
    shared: Floats  #: shape [C, C]: 1 where two rates have templates in common
    borrowed: Floats  #: shape [C]: 1 where a rate has one template, and its variance is that expected of the others
    n_templates: Ints  #: shape [C]

    def subset(self, places: Sequence[int]) -> Self:
        """Return the part of some rates."""
        return replace(
            self,
            extra=self.extra[np.ix_(places, places)],
            between=self.between[np.ix_(places, places)],
            df=self.df[places],
            expected=self.expected[places],
            share=self.share[np.ix_(places, places)],
            shared=self.shared[np.ix_(places, places)],
            borrowed=self.borrowed[places],
            n_templates=self.n_templates[places],
        )

    def noise(self, size: int, seed: int) -> Floats:
        """Draw deviations of the rates due to the choice of templates; shape [size, C]."""
        values, vectors = np.linalg.eigh(self.extra)
        # The symmetric root, and no rounding errors as eigenvalues: vectors of equal eigenvalues differ by machine.
        values = np.where(values > _ROUNDING * values.max(), values, 0.0)
        root = (vectors * np.sqrt(values)) @ vectors.T
        draws = np.random.default_rng([seed, len(self.df)]).standard_normal((size, len(self.df)))
        return np.asarray(draws @ root, dtype=np.float64)

    def pair_variance(self, first: Ints, second: Ints) -> Floats:
        """Return what templates add to the variances of the differences of rates; shape as ``first``."""
        variance = np.diag(self.extra)
        return np.asarray(variance[first] + variance[second] - 2 * self.extra[first, second], dtype=np.float64)

    def pair_df(self, by_statement: Floats, first: Ints, second: Ints, n_clusters: float) -> Floats:
        """Compute Satterthwaite's degrees of freedom of the differences of two rates.

        Parameters
        ----------
        by_statement
            Shape [P]: variances of the differences by statements.
        first, second
            Shape [P]: places of the rates.
        n_clusters
            G, the statements.
        """
        a, b = (np.diag(self.between)[each] for each in (first, second))
        apart = a**2 / self.df[first] + b**2 / self.df[second]
        # The difference of two rates over the same templates is one sample of these.
        together = (a + b - 2 * self.between[first, second]) ** 2 / np.minimum(self.df[first], self.df[second])
        uncertain = np.where(self.shared[first, second] > 0, together, apart)
        return _satterthwaite(by_statement, self.pair_variance(first, second), uncertain, n_clusters)

    def total_df(self, by_statement: Floats, weights: Floats, n_clusters: float) -> float:
        """Compute the degrees of freedom of a weighted sum of the rates' variances.

        Parameters
        ----------
        by_statement, weights
            Shape [C]: the rates' variances by statements, and the weights.
        n_clusters
            G, the statements.
        """
        variance = np.diag(self.between)
        uncertain = float((weights**2 * variance**2 / self.df).sum())
        if self.shared.sum() > np.trace(self.shared):
            uncertain = float(weights @ variance) ** 2 / float(self.df.min())
        sampling, added = np.array([weights @ by_statement]), np.array([weights @ np.diag(self.extra)])
        return float(_satterthwaite(sampling, added, np.array([uncertain]), n_clusters)[0])


def _satterthwaite(by_statement: Floats, by_template: Floats, uncertain: Floats, n_clusters: float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        df = (by_statement + by_template) ** 2 / (by_statement**2 / (n_clusters - 1) + uncertain)
    return np.where(np.isfinite(df), np.clip(df, 1.0, n_clusters - 1), n_clusters - 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class TemplateCounts:
    """Successes and trials by statement, template and column, each that occurs once; trials over 0. Shape [N] each."""

    y: Floats
    n: Floats
    statement: Ints
    template: Ints
    column: Ints  #: condition or deployment, from 0 on, each with trials
    stratum: Ints  #: responses are compared within strata: conditions, if columns are deployments; else 0


def template_variance(counts: TemplateCounts) -> TemplateVariance | None:
    """Estimate what the choice of templates adds to the variance of the rates ``sum(y) / sum(n)`` of the columns.

    A template is one sampled unit wherever it occurs. Its variance component in a column is the mean product of the
    residuals of two responses in the same template to different statements, less that of two responses with neither in
    common (Koch 1967); its covariance between two columns likewise. A rate's variance is the component times the sum of
    the squared shares of the templates.

    Returns
    -------
    TemplateVariance or None
        None where no column has two templates in a stratum, so that nothing is known of templates.
    """
    columns, strata = int(counts.column.max()) + 1, int(counts.stratum.max()) + 1
    cell = counts.stratum * columns + counts.column
    trials = np.bincount(cell, weights=counts.n, minlength=strata * columns).astype(np.float64)
    rates = np.bincount(cell, weights=counts.y, minlength=strata * columns) / np.maximum(trials, 1)
    unit = counts.stratum * (int(counts.template.max()) + 1) + counts.template
    cell_of_unit = np.unique(unit * (strata * columns) + cell) % (strata * columns)
    n_templates = np.bincount(cell_of_unit, minlength=strata * columns)
    kept = n_templates[cell] > 1
    if not kept.any():
        return None
    column, size = counts.column[kept], int(counts.statement.max()) + 1
    rows = {
        "template": unit[kept],
        "part": unit[kept] * size + counts.statement[kept],
        "statement": counts.stratum[kept] * size + counts.statement[kept],
        "stratum": counts.stratum[kept],
    }
    rows = {name: _numbered(each) for name, each in rows.items()}
    residual = (counts.y - rates[cell] * counts.n)[kept]
    product = {name: _gram(residual, each, column, columns) for name, each in rows.items()}
    paired = {name: _gram(counts.n[kept], each, column, columns) for name, each in rows.items()}
    with np.errstate(divide="ignore", invalid="ignore"):
        same = (product["template"] - product["part"]) / (paired["template"] - paired["part"])
        none = product["part"] - product["template"] - product["statement"]
        none /= paired["stratum"] - paired["template"] - paired["statement"] + paired["part"]
        component = same - none
    total, events = (
        np.bincount(counts.column, weights=each, minlength=columns).astype(np.float64) for each in (counts.n, counts.y)
    )
    # The sum of the products of two rates' shares of each template.
    share = _gram(counts.n, _numbered(unit), counts.column, columns) / np.outer(total, total)
    shared = share > 0
    extra = np.where(shared & np.isfinite(component), component * share, 0.0)
    between, df = _between(residual, counts.n[kept], unit[kept], cell[kept], trials, total)
    several = df > 0
    # A template whose effect on the logit scale is e moves a rate p by about p (1 - p) e.
    pooled = events / total
    slope = (pooled * (1 - pooled)) ** 2
    moved = several & (slope > 0)
    donors = float(df[moved].sum())
    ratio = float((df[moved] * np.nan_to_num(np.diag(component)[moved]) / slope[moved]).sum()) / max(donors, 1.0)
    expected = max(ratio, 0.0) * slope * np.diag(share)
    single = np.flatnonzero(~several)
    toward = _toward_half(
        np.clip(pooled[single], 0.5 / total[single], 1 - 0.5 / total[single]), np.sqrt(max(ratio, 0.0))
    )
    expected[single] = max(ratio, 0.0) * (toward * (1 - toward)) ** 2 * np.diag(share)[single]
    extra[single, single] = expected[single]
    # A variance that came out too small by chance must not pass for a well known one.
    diagonal = np.arange(columns)
    between[diagonal, diagonal] = np.maximum(np.diag(between), expected)
    df[single] = max(donors, 1.0)
    return TemplateVariance(
        extra=_without_negative(extra),
        between=between,
        df=df,
        expected=expected,
        share=share,
        shared=shared.astype(np.float64),
        borrowed=(~several).astype(np.float64),
        n_templates=np.bincount(cell_of_unit % columns, minlength=columns),
    )


def _toward_half(rates: Floats, logits: float) -> Floats:
    """Move rates toward one half on the logit scale.

    The one template of a condition may have moved its rate to where templates seem to move it little.
    """
    positions = special.logit(rates)
    return np.asarray(special.expit(np.sign(positions) * np.maximum(np.abs(positions) - logits, 0)), dtype=np.float64)


def _between(
    residual: Floats, n: Floats, unit: Ints, cell: Ints, trials: Floats, total: Floats
) -> tuple[Floats, Floats]:
    """Return the rates' covariance with templates as clusters (CR2), and the degrees of freedom of each variance."""
    columns = len(total)
    cells = len(trials)
    places, group = np.unique(unit * cells + cell, return_inverse=True)
    sums, sizes = np.bincount(group, weights=residual), np.bincount(group, weights=n)
    place_cell = places % cells
    scaled = sums / total[place_cell % columns] / np.sqrt(1 - sizes / trials[place_cell])
    between = _gram(scaled, _numbered(places // cells), place_cell % columns, columns)
    df = np.bincount(place_cell % columns, minlength=columns) - np.bincount(
        np.unique(place_cell) % columns, minlength=columns
    )
    return between, df.astype(np.float64)


def _numbered(row: Ints) -> Ints:
    """Return the number of each value among those that occur."""
    return np.unique(row, return_inverse=True)[1]


def _gram(values: Floats, row: Ints, column: Ints, columns: int) -> Floats:
    """Sum ``values`` by row and column; return the products of the columns, summed over rows; shape [C, C]."""
    table = sparse.csr_array((values, (row, column)), shape=(int(row.max()) + 1, columns))
    return np.asarray((table.T @ table).toarray(), dtype=np.float64)


def _without_negative(covariance: Floats) -> Floats:
    """Return the nearest covariance without negative eigenvalues."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T, dtype=np.float64)
