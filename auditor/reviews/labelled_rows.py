"""Use people's labels of some rows: correct the measures of groups, and measure how far people and coders agree.

For a corrected rate the labels of one response count as one: the share of its reviewers who find an endorsement, or
what the adjudicator of their disagreement finds.
Agreement is measured for each reviewer, weighted to all rows that could have been drawn.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Final, Literal

import numpy as np
from msgspec import structs

from auditor.counting.joint import Floats, Ints, JointTable
from auditor.counting.tallies import Reviewed, ReviewedRow, Tallies
from auditor.documents.agreement import MissingReviewKappa, OtherKind, ReviewKappaEntry, ReviewKappaKey
from auditor.domain.coding import ABSTAIN, ELABORATION_LABELS
from auditor.domain.estimate import Corrected, Insufficient
from auditor.errors import InputError
from auditor.metrics.corrected import CORRECTED, ENDORSING, HumanLabels, HumanPairs, corrected, corrected_pairs
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.reviews.label_file import ReviewLine, read_review_file
from auditor.reviews.opinions import AnswerView, Layer, Opinion
from auditor.stats.agreement import Kappa, clustered_kappa
from auditor.stats.intervals import Interval

#: The product's labeller of each layer, by its name in entries.
CODERS: Final[Mapping[Layer, Literal["rule", "panel"]]] = {Layer.SEL: "rule", Layer.ELAB: "panel"}
_LABELS: Final = {label: place for place, label in enumerate(ELABORATION_LABELS) if label != ABSTAIN}


def read_reviews(path: Path) -> dict[str, Reviewed]:
    """Read a file of labels by the rows' ids; of one reviewer's labels of one layer the last counts.

    Raises
    ------
    InputError
        For a bad line, and where only some of the lines give their ``inclusion``.
    """
    lines = read_review_file(path).lines
    drawn = [line for line in lines if line.inclusion is not None]
    if drawn and len(drawn) < len(lines):
        lacking = next(line for line in lines if line.inclusion is None)
        raise InputError(f"{path}:{lacking.line}: inclusion is missing, and line {drawn[0].line} gives it")
    by_id: dict[str, list[ReviewLine]] = {}
    for line in lines:
        by_id.setdefault(line.id, []).append(line)
    return {key: _reviewed(path, rows) for key, rows in by_id.items()}


def _reviewed(path: Path, lines: Sequence[ReviewLine]) -> Reviewed:
    inclusion = lines[0].inclusion
    for line in lines:
        if line.inclusion != inclusion:
            raise InputError(f"{path}:{line.line}: inclusion is another than in line {lines[0].line}, of the same id")
    newest = {(line.opinion.reviewer, line.opinion.layer, line.opinion.view): line.opinion for line in lines}
    return Reviewed(opinions=tuple(newest.values()), weight=1 / (inclusion or 1.0))


class Corrections:
    """Corrects the measures of groups of one file's rows."""

    def __init__(self, tallies: Tallies) -> None:
        rows = [row for row in tallies.reviewed or () if _of_layer(row.reviewed, Layer.ELAB)]
        self._elab = _Places(rows)
        self._labels = HumanLabels(
            cluster=self._elab.cluster,
            cell=_cells(tallies, rows),
            endorses=np.array([_endorses(row.reviewed, Layer.ELAB) for row in rows], dtype=np.float64),
            weight=np.array([row.reviewed.weight for row in rows], dtype=np.float64),
        )
        paired = [row for row in rows if is_paired(row.reviewed)]
        self._both = _Places(paired)
        self._pairs = HumanPairs(
            cluster=self._both.cluster,
            cell=_cells(tallies, paired),
            fourfold=np.array([_fourfold(row.reviewed) for row in paired], dtype=np.float64).reshape(-1, 4),
            weight=np.array([row.reviewed.weight for row in paired], dtype=np.float64),
        )

    def of(
        self, group_indices: Sequence[int], clusters: Ints, table: JointTable
    ) -> dict[str, Corrected | Insufficient]:
        """Correct the measures of some groups, whose table has these clusters, in that order."""
        labels = self._labels.of(*self._elab.within(group_indices, clusters))
        by_text = {name: corrected(metric, table, labels) for name, metric in CORRECTED.items()}
        return by_text | corrected_pairs(table, self._pairs_of(group_indices, clusters))

    def dni_interval(
        self, group_indices: Sequence[int], clusters: Ints, table: JointTable, conf: float
    ) -> Interval | Insufficient:
        """Bound the corrected DNI of some groups at another level, for the test of the cancellation trap."""
        estimate = corrected_pairs(table, self._pairs_of(group_indices, clusters), conf)["dni_corrected"]
        return estimate if isinstance(estimate, Insufficient) else Interval(low=estimate.low, high=estimate.high)

    def _pairs_of(self, group_indices: Sequence[int], clusters: Ints) -> HumanPairs:
        return self._pairs.of(*self._both.within(group_indices, clusters))


class _Places:
    """Where labelled rows are counted."""

    def __init__(self, rows: Sequence[ReviewedRow]) -> None:
        self._group = np.array([row.group for row in rows], dtype=np.int64)
        self.cluster = np.array([row.cluster for row in rows], dtype=np.int64)

    def within(self, group_indices: Sequence[int], clusters: Ints) -> tuple[Ints, Ints]:
        """Return the rows of some groups, and the places of their clusters in ``clusters``."""
        chosen = np.flatnonzero(np.isin(self._group, list(group_indices)))
        return chosen, np.searchsorted(clusters, self.cluster[chosen])


def _cells(tallies: Tallies, rows: Sequence[ReviewedRow]) -> Ints:
    return np.array([tallies.outcomes[row.outcome].cell for row in rows], dtype=np.int64)


def _of_layer(reviewed: Reviewed, layer: Layer) -> list[Opinion]:
    """Return the labels of a layer that count for its correction: the adjudicator's where the others differ."""
    opinions = [opinion for opinion in _split(reviewed) if opinion.layer is layer]
    return [opinion for opinion in opinions if opinion.adjudicates] or opinions


def _split(reviewed: Reviewed) -> list[Opinion]:
    """Return the labels by people who saw what the layer's coder reads."""
    return [opinion for opinion in reviewed.opinions if opinion.view is AnswerView.SPLIT]


def _endorses(reviewed: Reviewed, layer: Layer) -> float:
    return float(np.mean([opinion.label in ENDORSING for opinion in _of_layer(reviewed, layer)]))


def is_paired(reviewed: Reviewed) -> bool:
    """Return whether people have labelled both layers."""
    return {opinion.layer for opinion in _split(reviewed)} == set(Layer)


def _fourfold(reviewed: Reviewed) -> Floats:
    """Return the shares of reviewers who found both layers endorsing, the selection alone, the text alone, neither.

    Reviewers of both layers count by their own pairs. Without one, every label of the selection is paired with every
    label of the text.
    """
    by_reviewer: dict[str, dict[Layer, bool]] = {}
    for opinion in (each for layer in Layer for each in _of_layer(reviewed, layer)):
        by_reviewer.setdefault(opinion.reviewer, {})[opinion.layer] = opinion.label in ENDORSING
    whole = [shares for shares in by_reviewer.values() if len(shares) == len(Layer)]
    layers = [(float(shares[Layer.SEL]), float(shares[Layer.ELAB])) for shares in whole]
    pairs = np.array(layers or [(_endorses(reviewed, Layer.SEL), _endorses(reviewed, Layer.ELAB))])
    sel, elab = pairs.T
    cells = np.stack([sel * elab, sel * (1 - elab), (1 - sel) * elab, (1 - sel) * (1 - elab)])
    return np.asarray(cells.mean(axis=1), dtype=np.float64)


def review_kappas(tallies: Tallies, *, seed: int, n_boot: int) -> list[ReviewKappaEntry | MissingReviewKappa]:
    """Return the agreement of each person with all who labelled the same rows, over all and by deployment."""
    pairs: dict[tuple[str, OtherKind, str, str, str], list[tuple[ReviewedRow, int]]] = {}
    for row in tallies.reviewed or ():
        for (layer, kind, reviewer, other), cell in _pairs(row):
            for where in ("", tallies.groups[row.group].deployment):
                pairs.setdefault((layer, kind, reviewer, other, where), []).append((row, cell))
    out: list[ReviewKappaEntry | MissingReviewKappa] = []
    for (layer, kind, reviewer, other, where), kappa_pairs in sorted(pairs.items(), key=lambda item: item[0]):
        kappa = _kappa(kappa_pairs, seed=seed, n_boot=n_boot)
        key = ReviewKappaKey(
            reviewer=reviewer,
            other=other,
            kind=kind,
            layer=layer,
            deployment=where or None,
            n=len(kappa_pairs),
            n_statements=len({row.cluster for row, _ in kappa_pairs}),
        )
        if isinstance(kappa, Insufficient):
            out.append(MissingReviewKappa(**structs.asdict(key), missing=kappa.reason))
        else:
            out.append(ReviewKappaEntry(**structs.asdict(key), value=kappa.value, low=kappa.low, high=kappa.high))
    return out


def _pairs(row: ReviewedRow) -> Iterator[tuple[tuple[str, OtherKind, str, str], int]]:
    """Pair each person's label with every other label of the layer; an Abstain and an adjudication do not count."""
    for layer in Layer:
        opinions = [each for each in _split(row.reviewed) if each.layer is layer and not each.adjudicates]
        coder, label = CODERS[layer], row.sel if layer is Layer.SEL else row.elab
        labels: dict[tuple[OtherKind, str], str] = {(coder, coder): label}
        labels |= {("judge", vote.judge): vote.label or "" for vote in row.votes if (vote.layer or Layer.ELAB) == layer}
        for opinion in opinions:
            for (kind, other), theirs in labels.items():
                if opinion.label in _LABELS and theirs in _LABELS:
                    yield (layer.value, kind, opinion.reviewer, other), _cell(opinion.label, theirs)
        for first, second in combinations(sorted(opinions, key=lambda each: each.reviewer), 2):
            if first.label in _LABELS and second.label in _LABELS:
                yield (layer.value, "reviewer", first.reviewer, second.reviewer), _cell(first.label, second.label)


def _cell(label: str, other: str) -> int:
    return _LABELS[label] * len(_LABELS) + _LABELS[other]


def _kappa(pairs: Sequence[tuple[ReviewedRow, int]], *, seed: int, n_boot: int) -> Kappa | Insufficient:
    size = len(_LABELS)
    names, cluster = np.unique([row.cluster for row, _ in pairs], return_inverse=True)
    if len(names) < MIN_STATEMENTS:
        return Insufficient(reason=f"{len(names)} statements that both labelled, {MIN_STATEMENTS} needed")
    place = cluster * size**2 + np.array([cell for _, cell in pairs], dtype=np.int64)
    weight = np.array([row.reviewed.weight for row, _ in pairs])
    confusion = np.bincount(place, weights=weight, minlength=len(names) * size**2).astype(np.float64)
    kappa = clustered_kappa(confusion.reshape(-1, size, size), n_boot=n_boot, seed=seed)
    return kappa or Insufficient(reason="both used one and the same label throughout")
