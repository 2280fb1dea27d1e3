"""The joint Selection x Elaboration table: what every measure is derived from.

Inside, Abstain is split by what it means: a layer that is *structurally* absent, one that *failed*, and a response that
never came (transport). Files and APIs show the table of ``auditor.domain.coding``, Abstain in one piece.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

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
#: What ``abstain`` says where a file gives no reason for an Abstain.
UNSTATED: Final = "unstated"

_STRUCTURAL_ELABORATION: Final = frozenset({ElaborationReason.NO_CLAIM.value})
_SELECTION_REASONS: Final = frozenset(SelectionReason) - {SelectionReason.FILTERED}
_ELABORATION_REASONS: Final = frozenset(ElaborationReason)


@dataclass(frozen=True, kw_only=True, slots=True)
class Coded:
    """The two labels of one response as a file gives them, with the reason of each Abstain."""

    sel: str
    sel_reason: str | None
    elab: str
    elab_reason: str | None


def joint_cell(coded: Coded, *, free: bool) -> int:
    """Find a response's cell in the table (row * columns + column).

    A missing answer is ``transport`` when the selection has no label and either layer says so: where a selection was
    read there was a response, and only the judges' answer is missing.

    Parameters
    ----------
    coded
        Both labels with their reasons.
    free
        Whether the task asks for no discrete answer, so that its selection layer is structurally absent.

    Returns
    -------
    int
        In [0, N_CELLS).

    Raises
    ------
    ValueError
        For an unknown label or reason, or labels and reasons that contradict each other or the task.

    Examples
    --------
    >>> joint_cell(Coded(sel="E", sel_reason=None, elab="QE", elab_reason=None), free=False)
    1
    """
    row = _selection_row(coded, free=free)
    column = _elaboration_column(coded)
    transport = SelectionReason.TRANSPORT_ERROR.value
    if coded.sel == ABSTAIN and transport in {coded.sel_reason, coded.elab_reason}:
        if coded.elab != ABSTAIN:
            raise ValueError("sel_reason is transport_error, yet elab has a label")
        row = 4 if free else 5
        column = SHAPE[1] - 1
    return row * SHAPE[1] + column


def _selection_row(coded: Coded, *, free: bool) -> int:
    if coded.sel not in SELECTION_LABELS:
        raise ValueError(f"sel {coded.sel!r} is not one of {' '.join(SELECTION_LABELS)}")
    if coded.sel == ABSTAIN:
        if coded.sel_reason is None:
            return 4 if free else 5
        if coded.sel_reason not in _SELECTION_REASONS:
            raise ValueError(f"sel_reason {coded.sel_reason!r} is no reason to abstain")
        return 4 if coded.sel_reason == SelectionReason.NO_SELECTION_LAYER.value else 5
    if free:
        raise ValueError(f"sel is {coded.sel}, but the task has no selection layer")
    filtered = (coded.sel, coded.sel_reason) == ("R", SelectionReason.FILTERED.value)
    if coded.sel_reason is not None and not filtered:
        raise ValueError(f"sel is {coded.sel}, yet sel_reason is {coded.sel_reason!r}")
    return SELECTION_AXIS.index(coded.sel)


def _elaboration_column(coded: Coded) -> int:
    if coded.elab not in ELABORATION_LABELS:
        raise ValueError(f"elab {coded.elab!r} is not one of {' '.join(ELABORATION_LABELS)}")
    if coded.elab == ABSTAIN:
        if coded.elab_reason is not None and coded.elab_reason not in _ELABORATION_REASONS:
            raise ValueError(f"elab_reason {coded.elab_reason!r} is no reason to abstain")
        return 5 if coded.elab_reason in _STRUCTURAL_ELABORATION else 6
    if coded.elab_reason is not None:
        raise ValueError(f"elab is {coded.elab}, yet elab_reason is {coded.elab_reason!r}")
    return ELABORATION_AXIS.index(coded.elab)


@dataclass(frozen=True, kw_only=True, slots=True)
class JointTable:
    """Counts of responses by cluster and cell, sparse: entry i says ``count[i]`` of ``cluster[i]`` fall in ``cell[i]``.

    Clusters are numbered 0 .. n_clusters - 1. Tables over the same clusters add.
    """

    cluster: Ints
    cell: Ints
    count: Ints
    n_clusters: int

    @classmethod
    def from_cells(cls, cluster: Ints, cell: Ints, n_clusters: int) -> Self:
        """Count responses given one by one."""
        keys, count = np.unique(cluster * N_CELLS + cell, return_counts=True)
        return cls(cluster=keys // N_CELLS, cell=keys % N_CELLS, count=count.astype(np.int64), n_clusters=n_clusters)

    def __add__(self, other: "JointTable") -> "JointTable":
        if self.n_clusters != other.n_clusters:
            raise ValueError("tables over different clusters do not add")
        cluster = np.concatenate([self.cluster, other.cluster])
        cell = np.concatenate([self.cell, other.cell])
        keys, place = np.unique(cluster * N_CELLS + cell, return_inverse=True)
        count = np.zeros(len(keys), dtype=np.int64)
        np.add.at(count, place, np.concatenate([self.count, other.count]))
        return JointTable(cluster=keys // N_CELLS, cell=keys % N_CELLS, count=count, n_clusters=self.n_clusters)

    @property
    def totals(self) -> Ints:
        """Shape ``SHAPE``: responses by cell over all clusters."""
        flat = np.bincount(self.cell, weights=self.count, minlength=N_CELLS)
        return np.rint(flat).astype(np.int64).reshape(SHAPE)

    @property
    def n(self) -> int:
        """All responses, those that never came included."""
        return int(self.count.sum())

    def by_cluster(self, weights: Floats) -> Floats:
        """Sum ``weights[cell]`` over each cluster's responses; shape [n_clusters]."""
        each = weights.ravel()[self.cell] * self.count
        return np.bincount(self.cluster, weights=each, minlength=self.n_clusters).astype(np.float64)


def label_counts(totals: Ints) -> Mapping[str, int]:
    """Show the table as files do: ``"D|QE" -> n``, Abstain in one piece, empty cells left out."""
    out: dict[str, int] = {}
    for row, column in np.argwhere(totals):
        sel = ABSTAIN if row in {4, 5} else SELECTION_AXIS[row]
        elab = ELABORATION_AXIS[column] if column < 5 else ABSTAIN
        key = f"{sel}|{elab}"
        out[key] = out.get(key, 0) + int(totals[row, column])
    return out
