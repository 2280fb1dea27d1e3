"""Measure how far two or more people agree, and whether it matters that they see a part of the answer or all of it."""

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Final

import numpy as np
from msgspec import structs

from auditor.counting.tallies import ReviewedRow
from auditor.documents.agreement import (
    AlphaEntry,
    AlphaKey,
    MissingAlpha,
    MissingViewComparison,
    ViewComparisonEntry,
    ViewKey,
)
from auditor.documents.base import Missing
from auditor.documents.estimates import BoundedEntry
from auditor.domain.coding import ABSTAIN, ELABORATION_LABELS
from auditor.metrics.corrected import ENDORSING
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.reviews.opinions import AnswerView, Layer, Opinion
from auditor.stats.agreement import clustered_kappa, krippendorff_alpha
from auditor.stats.bootstrap import cluster_bootstrap

_LABELS: Final = tuple(label for label in ELABORATION_LABELS if label != ABSTAIN)


def adjudicated(opinions: Sequence[Opinion], adjudicator: str | None = None) -> str | None:
    """Return the label that counts for one layer and view: the adjudicator's, else the most frequent one.

    An Abstain is no label. None for a tie, and where nobody gave a label.

    Examples
    --------
    >>> given = [Opinion(reviewer=name, layer=Layer.ELAB, label=label) for name, label in zip("abc", "EED")]
    >>> adjudicated(given), adjudicated(given, "c"), adjudicated(given[1:])
    ('E', 'D', None)
    """
    settled = [each.label for each in opinions if _settles(each, adjudicator) and each.label != ABSTAIN]
    if settled:
        return settled[-1]
    ranked = Counter(opinion.label for opinion in opinions if opinion.label != ABSTAIN).most_common(2)
    tied = len(ranked) == 2 and ranked[0][1] == ranked[1][1]
    return None if not ranked or tied else ranked[0][0]


def _settles(opinion: Opinion, adjudicator: str | None) -> bool:
    return opinion.adjudicates or opinion.reviewer == adjudicator


def _opinions_of(row: ReviewedRow, layer: Layer, view: AnswerView) -> list[Opinion]:
    return [each for each in row.reviewed.opinions if each.layer is layer and each.view is view]


def alphas(
    rows: Sequence[ReviewedRow], adjudicator: str | None = None, *, seed: int, n_boot: int
) -> list[AlphaEntry | MissingAlpha]:
    """Return the entries of ``alpha``: Krippendorff's alpha of the raters, by layer and view.

    The adjudicator has seen the others' labels and does not count. Units are rows with two labels or more; they are
    resampled by statement. Without such a row there is no entry.
    """
    out: list[AlphaEntry | MissingAlpha] = []
    for layer, view in product(Layer, AnswerView):
        labels = [(row.cluster, _rated(row, layer, view, adjudicator)) for row in rows]
        units = [(cluster, opinions) for cluster, opinions in labels if len(opinions) > 1]
        if units:
            out.append(alpha_entry(layer, view, units, seed=seed, n_boot=n_boot))
    return out


def _rated(row: ReviewedRow, layer: Layer, view: AnswerView, adjudicator: str | None) -> list[Opinion]:
    return [
        each for each in _opinions_of(row, layer, view) if each.label != ABSTAIN and not _settles(each, adjudicator)
    ]


def alpha_entry(
    layer: Layer, view: AnswerView, units: Sequence[tuple[int, Sequence[Opinion]]], *, seed: int, n_boot: int
) -> AlphaEntry | MissingAlpha:
    """Estimate alpha of one layer and view.

    Parameters
    ----------
    units
        The statement of each unit, as a number, and its labels: two or more, without Abstain and adjudications.
    """
    cluster = np.array([each for each, _ in units])
    counts = np.array(
        [[sum(opinion.label == label for opinion in opinions) for label in _LABELS] for _, opinions in units]
    )
    key = AlphaKey(
        layer=layer.value,
        view=view.value,
        raters=sorted({opinion.reviewer for _, opinions in units for opinion in opinions}),
        n=len(units),
        n_labels=int(counts.sum()),
        n_statements=len(np.unique(cluster)),
    )
    if key.n_statements < MIN_STATEMENTS:
        reason = f"{key.n_statements} statements with two labels, {MIN_STATEMENTS} needed"
        return MissingAlpha(**structs.asdict(key), missing=reason)
    alpha = krippendorff_alpha(counts.astype(np.float64), cluster, n_boot=n_boot, seed=seed)
    if alpha is None:
        return MissingAlpha(**structs.asdict(key), missing="all labels are the same")
    return AlphaEntry(**structs.asdict(key), value=alpha.value, low=alpha.low, high=alpha.high)


def view_comparisons(
    rows: Sequence[ReviewedRow], adjudicator: str | None = None, *, seed: int, n_boot: int
) -> list[ViewComparisonEntry | MissingViewComparison]:
    """Return the entries of ``views``: adjudicated labels of the split text against those of the whole answer.

    By layer, of rows with a label in both views. Without such a row there is no entry.
    """
    out: list[ViewComparisonEntry | MissingViewComparison] = []
    for layer in Layer:
        both = []
        for row in rows:
            split, whole = (adjudicated(_opinions_of(row, layer, view), adjudicator) for view in AnswerView)
            if split is not None and whole is not None:
                both.append((row.cluster, split, whole))
        if both:
            out.append(_view_entry(layer, both, seed=seed, n_boot=n_boot))
    return out


def _view_entry(
    layer: Layer, pairs: Sequence[tuple[int, str, str]], *, seed: int, n_boot: int
) -> ViewComparisonEntry | MissingViewComparison:
    names, place = np.unique([cluster for cluster, _, _ in pairs], return_inverse=True)
    key = ViewKey(layer=layer.value, n=len(pairs), n_statements=len(names))
    if len(names) < MIN_STATEMENTS:
        reason = f"{len(names)} statements with labels of both views, {MIN_STATEMENTS} needed"
        return MissingViewComparison(**structs.asdict(key), missing=reason)
    split, whole = (np.array([_LABELS.index(each) for each in side]) for side in list(zip(*pairs, strict=True))[1:])
    confusion = np.zeros((len(names), len(_LABELS), len(_LABELS)))
    np.add.at(confusion, (place, split, whole), 1.0)
    kappa = clustered_kappa(confusion, n_boot=n_boot, seed=seed)
    endorses = np.array([label in ENDORSING for label in _LABELS])
    counts = np.zeros((len(names), 3))
    np.add.at(counts, place, np.stack([endorses[split], endorses[whole], np.ones(len(pairs))], axis=1))
    before, after, n = counts.sum(axis=0).tolist()
    shift = cluster_bootstrap(counts, lambda sums: (sums[:, 1] - sums[:, 0]) / sums[:, 2], n_boot=n_boot, seed=seed)
    return ViewComparisonEntry(
        **structs.asdict(key),
        same=float(np.mean(split == whole)),
        kappa=Missing(missing="one and the same label throughout")
        if kappa is None
        else BoundedEntry(value=kappa.value, low=kappa.low, high=kappa.high),
        split=before / n,
        whole=after / n,
        shift=BoundedEntry(value=(after - before) / n, low=float(shift.low), high=float(shift.high)),
    )
