"""Define the joint Selection x Elaboration table, from which every measure is computed.

Internally, Abstain has three kinds: the layer is absent by design (*structural*), it *failed*, or no response came
(*transport*). Files and APIs show Abstain as one label.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from auditor.domain.coding import ABSTAIN, ELABORATION_LABELS, SELECTION_LABELS, ElaborationReason, SelectionReason
from auditor.domain.condition import Task

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Rows: the four selection labels, then Abstain by kind.
SELECTION_AXIS: Final = ("E", "N", "D", "R", "structural", "failed")
#: Columns: the five elaboration labels, then Abstain by kind. A response that never came is the last column.
ELABORATION_AXIS: Final = ("E", "QE", "N", "D", "R", "structural", "failed", "transport")
SHAPE: Final = (len(SELECTION_AXIS), len(ELABORATION_AXIS))
N_CELLS: Final = SHAPE[0] * SHAPE[1]

#: Tasks that ask for no discrete answer.
FREE_TASKS: Final = frozenset(task.value for task in Task if not task.has_selection)
#: The rubric of responses to a question without a statement: only their elaboration is read.
OPEN: Final = "open"
#: The reason of an Abstain if a file gives none.
UNSTATED: Final = "unstated"

_STRUCTURAL_ELABORATION: Final = frozenset({ElaborationReason.NO_CLAIM.value})
_SELECTION_REASONS: Final = frozenset(SelectionReason) - {SelectionReason.FILTERED}
_ELABORATION_REASONS: Final = frozenset(ElaborationReason)


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelPair:
    """The two labels of one response, with the reason of each Abstain."""

    sel: str
    sel_reason: str | None
    elab: str
    elab_reason: str | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Return the labels of a stored row."""
        return cls(sel=row["sel"], sel_reason=row["sel_reason"], elab=row["elab"], elab_reason=row["elab_reason"])


def is_selection_free(task: str | None, rubric: str | None, sel: str) -> bool:
    """Return whether a response has no selection layer, so that an Abstain there is structural and not a failure.

    That is so under a task that asks for no discrete answer. It is also so under the open rubric, where there is no
    statement to select a stance on; a label that stands there all the same is counted as a selection.

    Parameters
    ----------
    task
        Task of the instrument; ``None`` for clients' traffic, which was asked under no task.
    rubric
        ``open`` or another, with or without a version after a slash; ``None`` is a rubric with a statement.
    sel
        Label of the selection.

    Examples
    --------
    >>> is_selection_free("Explain", "statement", "Abstain"), is_selection_free("BJ", "statement", "Abstain")
    (True, False)
    >>> is_selection_free(None, "open/2", "Abstain"), is_selection_free(None, "open", "E")
    (True, False)
    """
    return task in FREE_TASKS or (sel == ABSTAIN and rubric is not None and rubric.partition("/")[0] == OPEN)


def stored_cell(row: Mapping[str, Any]) -> int:
    """Return the cell of a stored row, from its labels and reasons; planned calls need no ``rubric``."""
    return _cell(row["task"], row.get("rubric"), row["sel"], row["sel_reason"], row["elab"], row["elab_reason"])


# Many thousands of stored rows have few different outcomes.
@lru_cache(maxsize=4096)
def _cell(
    task: str | None, rubric: str | None, sel: str, sel_reason: str | None, elab: str, elab_reason: str | None
) -> int:
    labels = LabelPair(sel=sel, sel_reason=sel_reason, elab=elab, elab_reason=elab_reason)
    return joint_cell(labels, free=is_selection_free(task, rubric, sel))


def joint_cell(labels: LabelPair, *, free: bool) -> int:
    """Return a response's cell in the table (row * columns + column).

    A missing answer is ``transport`` if the selection has no label and either layer has that reason. With a selection
    there was a response, and only the judges' answer is missing.

    Parameters
    ----------
    labels
        Both labels with their reasons.
    free
        Whether the selection layer is absent by design; see ``is_selection_free``.

    Returns
    -------
    int
        Cell, in [0, N_CELLS).

    Raises
    ------
    ValueError
        For an unknown label or reason, or labels and reasons that contradict each other or the task.

    Examples
    --------
    >>> joint_cell(LabelPair(sel="E", sel_reason=None, elab="QE", elab_reason=None), free=False)
    1
    """
    row = _selection_row(labels, free=free)
    column = _elaboration_column(labels)
    transport = SelectionReason.TRANSPORT_ERROR.value
    if labels.sel == ABSTAIN and transport in {labels.sel_reason, labels.elab_reason}:
        if labels.elab != ABSTAIN:
            raise ValueError("sel_reason is transport_error, yet elab has a label")
        row = 4 if free else 5
        column = SHAPE[1] - 1
    return row * SHAPE[1] + column


def _selection_row(labels: LabelPair, *, free: bool) -> int:
    if labels.sel not in SELECTION_LABELS:
        raise ValueError(f"sel {labels.sel!r} is not one of {' '.join(SELECTION_LABELS)}")
    if labels.sel == ABSTAIN:
        if labels.sel_reason is None:
            return 4 if free else 5
        if labels.sel_reason not in _SELECTION_REASONS:
            raise ValueError(f"sel_reason {labels.sel_reason!r} is no reason to abstain")
        return 4 if labels.sel_reason == SelectionReason.NO_SELECTION_LAYER.value else 5
    if free:
        raise ValueError(f"sel is {labels.sel}, but the task has no selection layer")
    filtered = (labels.sel, labels.sel_reason) == ("R", SelectionReason.FILTERED.value)
    if labels.sel_reason is not None and not filtered:
        raise ValueError(f"sel is {labels.sel}, yet sel_reason is {labels.sel_reason!r}")
    return SELECTION_AXIS.index(labels.sel)


def _elaboration_column(labels: LabelPair) -> int:
    if labels.elab not in ELABORATION_LABELS:
        raise ValueError(f"elab {labels.elab!r} is not one of {' '.join(ELABORATION_LABELS)}")
    if labels.elab == ABSTAIN:
        if labels.elab_reason is not None and labels.elab_reason not in _ELABORATION_REASONS:
            raise ValueError(f"elab_reason {labels.elab_reason!r} is no reason to abstain")
        return 5 if labels.elab_reason in _STRUCTURAL_ELABORATION else 6
    if labels.elab_reason is not None:
        raise ValueError(f"elab is {labels.elab}, yet elab_reason is {labels.elab_reason!r}")
    return ELABORATION_AXIS.index(labels.elab)


@dataclass(frozen=True, kw_only=True, slots=True)
class JointTable:
    """Sparse counts of responses by cluster and cell: ``count[i]`` responses of ``cluster[i]`` are in ``cell[i]``.

    Clusters are numbered 0 .. n_clusters - 1. Tables over the same clusters add. ``weight[i]`` is one over the
    probability with which these responses were captured, up to a factor; without it all have the same weight.
    """

    cluster: Ints
    cell: Ints
    count: Ints
    n_clusters: int
    #: Where clusters were named: for each clustering, the cluster of each entry.
    clusterings: tuple[Ints, ...] = ()
    weight: Floats | None = None  #: > 0

    @classmethod
    def from_cells(cls, cluster: Ints, cell: Ints, n_clusters: int) -> Self:
        """Count responses given one by one."""
        keys, count = np.unique(cluster * N_CELLS + cell, return_counts=True)
        return cls(cluster=keys // N_CELLS, cell=keys % N_CELLS, count=count.astype(np.int64), n_clusters=n_clusters)

    def __add__(self, other: "JointTable") -> "JointTable":
        return JointTable.sum_of([self, other])

    @classmethod
    def sum_of(cls, tables: "Sequence[JointTable]") -> "JointTable":
        """Add tables, at least one.

        Raises
        ------
        ValueError
            For tables over different clusters.
        """
        if len({table.n_clusters for table in tables}) > 1:
            raise ValueError("tables over different clusters do not add")
        cluster = np.concatenate([table.cluster for table in tables])
        cell = np.concatenate([table.cell for table in tables])
        count = np.concatenate([table.count for table in tables])
        n_clusters = tables[0].n_clusters
        # Entries of one cluster and cell may lie in several crossed clusters, or have different weights.
        clusterings = tuple(
            np.concatenate(parts) for parts in zip(*(table.clusterings for table in tables), strict=True)
        )
        weight = None
        if any(table.weight is not None for table in tables):
            sides = [np.ones(len(table.count)) if table.weight is None else table.weight for table in tables]
            weight = np.concatenate(sides)
        if clusterings or weight is not None:
            return cls(
                cluster=cluster, cell=cell, count=count, n_clusters=n_clusters, clusterings=clusterings, weight=weight
            )
        keys, place = np.unique(cluster * N_CELLS + cell, return_inverse=True)
        added = np.zeros(len(keys), dtype=np.int64)
        np.add.at(added, place, count)
        return cls(cluster=keys // N_CELLS, cell=keys % N_CELLS, count=added, n_clusters=n_clusters)

    @property
    def totals(self) -> Ints:
        """Shape ``SHAPE``: responses by cell over all clusters."""
        flat = np.bincount(self.cell, weights=self.count, minlength=N_CELLS)
        return np.rint(flat).astype(np.int64).reshape(SHAPE)

    @property
    def weighted_totals(self) -> Floats:
        """Shape ``SHAPE``: weights of the responses by cell; without weights the counts."""
        each = self.count if self.weight is None else self.count * self.weight
        return np.bincount(self.cell, weights=each, minlength=N_CELLS).astype(np.float64).reshape(SHAPE)

    @property
    def n(self) -> int:
        """All responses, those that never came included."""
        return int(self.count.sum())

    @property
    def effective(self) -> float:
        """Kish's effective number of the responses; without weights their number."""
        if self.weight is None:
            return float(self.n)
        weighted = self.count * self.weight
        return float(weighted.sum() ** 2 / (weighted @ self.weight))

    def within(self, mask: Floats) -> "JointTable":
        """Return the part of the table in the cells of a mask, without weights if those of the part are all equal."""
        inside = mask.ravel()[self.cell] > 0
        weight = None if self.weight is None else self.weight[inside]
        if weight is not None and (not len(weight) or weight.min() == weight.max()):
            weight = None
        return JointTable(
            cluster=self.cluster[inside],
            cell=self.cell[inside],
            count=self.count[inside],
            n_clusters=self.n_clusters,
            clusterings=tuple(cluster[inside] for cluster in self.clusterings),
            weight=weight,
        )

    def by_entry(self, weights: Floats) -> Floats:
        """Weigh each entry's responses, also with their own weights; shape [entries]."""
        each = weights.ravel()[self.cell] * self.count
        return np.asarray(each if self.weight is None else each * self.weight, dtype=np.float64)

    def by_cluster(self, weights: Floats) -> Floats:
        """Sum ``weights[cell]`` over each cluster's responses, with their weights; shape [n_clusters]."""
        return np.bincount(self.cluster, weights=self.by_entry(weights), minlength=self.n_clusters).astype(np.float64)


def label_counts(totals: Ints) -> Mapping[str, int]:
    """Return the table as files show it: ``"D|QE" -> n``, Abstain as one label, without empty cells."""
    out: dict[str, int] = {}
    for row, column in np.argwhere(totals):
        sel = ABSTAIN if row in {4, 5} else SELECTION_AXIS[row]
        elab = ELABORATION_AXIS[column] if column < 5 else ABSTAIN
        key = f"{sel}|{elab}"
        out[key] = out.get(key, 0) + int(totals[row, column])
    return out
