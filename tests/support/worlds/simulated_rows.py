"""Draw coded rows from a declaration without text: fast enough for coverage studies and speed measurements.

``coded_counts`` draws tables, ``coded_rows`` draws rows with every judge's vote. Both follow ``truth`` cell by cell,
so their limits are its closed forms. ``simulated_files`` writes such columns as rows of coded.jsonl.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.domain.coding import ELABORATION_LABELS
from auditor.simulate.channel import confusion_matrix
from auditor.simulate.expected import Ask, statement_tables
from auditor.simulate.model import Scenario, TaskTruth
from auditor.simulate.propensity import Floats, rates_at
from auditor.simulate.truth import SHAPE, joint_table, moments_of

Counts = NDArray[np.int64]
Codes = NDArray[np.int8]

_NONE = len(ELABORATION_LABELS) - 1
_CELLS = SHAPE[0] * SHAPE[1]


def coded_counts(
    truth: TaskTruth,
    *,
    statements: int,
    draws: int,
    rng: np.random.Generator,
    audits: int = 1,
    layers: float = 0.0,
    channel: Floats | None = None,
) -> Counts:
    """Draw whole audits of one task: the reported joint table of every statement.

    Parameters
    ----------
    truth : the declared rates; ``truth.icc`` spreads them over statements
    statements, draws : clusters G, and responses per statement
    audits : independent audits, each with statements of its own
    layers : correlation of selection and elaboration propensities, in (-1, 1)
    channel : [6, 6] of ``panel_channel``; absent: the judges make no errors

    Returns
    -------
    int64 [audits, G, 5, 6], order of SELECTION_LABELS and ELABORATION_LABELS; each [5, 6] sums to ``draws``.
    The limit over many audits is ``joint_table(truth, population_moments(truth, layers)) @ channel``.

    Examples
    --------
    >>> found = coded_counts(TaskTruth(p_a=0.3), statements=4, draws=10, rng=np.random.default_rng(0))
    >>> found.shape, found.sum(axis=(2, 3)).tolist()
    ((1, 4, 5, 6), [[10, 10, 10, 10]])
    """
    z = rng.standard_normal((2, audits, statements))
    z_elab = layers * z[0] + np.sqrt(1.0 - layers**2) * z[1]
    tables = joint_table(truth, moments_of(rates_at(truth, z[0], z_elab)))
    if channel is not None:
        tables = tables @ channel
    cells = tables.reshape(audits, statements, _CELLS)
    drawn = rng.multinomial(draws, cells / cells.sum(axis=-1, keepdims=True))
    return np.asarray(drawn.reshape(audits, statements, *SHAPE), dtype=np.int64)


def eligible_counts(joint: Counts) -> Counts:
    """Return (n11, n10, n01, n00) on the divergence-eligible base: [..., 5, 6] becomes [..., 4].

    >>> table = np.zeros((5, 6), dtype=np.int64); table[0, 1] = 3; table[2, 3] = 4; table[2, 5] = 9
    >>> eligible_counts(table).tolist()  # three E|QE, four D|D; nine without an elaboration do not count
    [3, 0, 0, 4]
    """
    both = joint[..., :-1, :-1]
    n11 = both[..., 0, :2].sum(axis=-1)
    n10 = both[..., 0, 2:].sum(axis=-1)
    n01 = both[..., 1:, :2].sum(axis=(-2, -1))
    n00 = both[..., 1:, 2:].sum(axis=(-2, -1))
    return np.stack((n11, n10, n01, n00), axis=-1)


@dataclass(frozen=True, kw_only=True, slots=True)
class CodedRows:
    """Coded responses as columns of one length n; codes index SELECTION_LABELS and ELABORATION_LABELS."""

    deployment: NDArray[np.int16]  #: index into the scenario's deployments
    ask: NDArray[np.int16]  #: index into the plan, in its order
    statement: NDArray[np.int32]  #: index into the statements
    template: NDArray[np.int16]
    draw: NDArray[np.int16]
    sel: Codes
    elab_true: Codes  #: what the text says
    elab: Codes  #: what the panel reports
    votes: Codes  #: [n, judges]; 5 where the judge gave no label, and where there was nothing to read


def coded_rows(
    scenario: Scenario,
    plan: Mapping[Ask, int],
    statements: Sequence[str],
    *,
    rng: np.random.Generator,
    draws: int = 1,
    drifted: bool = False,
) -> CodedRows:
    """Draw every response of a plan for every deployment of the scenario.

    Parameters
    ----------
    plan : conditions and how many templates each has; a template has no effect of its own
    statements : their texts; a text's true rates are the ones the server uses
    drifted : before or after the deployments' drift

    Returns
    -------
    deployments x statements x (sum of templates) x draws rows, ordered by deployment, condition, template, draw,
    statement
    """
    sizes = [len(statements) * templates * draws for templates in plan.values()]
    cells = np.empty((len(scenario.deployments), sum(sizes)), dtype=np.int8)
    for row, deployment in enumerate(scenario.deployments):
        start = 0
        for ask, size in zip(plan, sizes, strict=True):
            tables = statement_tables(scenario, deployment, ask, statements, drifted=drifted)
            repeats = size // len(statements) if statements else 0
            cells[row, start : start + size] = _draw_cells(tables.reshape(-1, _CELLS), repeats, rng)
            start += size
    sel, elab_true = np.divmod(cells.ravel(), np.int8(SHAPE[1]))
    votes = draw_votes(scenario, elab_true, rng)
    index = _index(len(scenario.deployments), list(plan.values()), len(statements), draws)
    return CodedRows(
        deployment=index[0].astype(np.int16),
        ask=index[1].astype(np.int16),
        statement=index[2].astype(np.int32),
        template=index[3].astype(np.int16),
        draw=index[4].astype(np.int16),
        sel=sel.astype(np.int8),
        elab_true=elab_true.astype(np.int8),
        elab=majority(votes) if scenario.judges else elab_true.astype(np.int8),
        votes=votes,
    )


def _draw_cells(tables: Floats, repeats: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Draw ``repeats`` cells from each row of [G, 30], statements running fastest."""
    cumulative = np.cumsum(tables, axis=1)
    u = rng.random((repeats, tables.shape[0]))
    drawn = np.zeros(u.shape, dtype=np.int8)
    for cell in range(tables.shape[1] - 1):
        drawn += u >= cumulative[:, cell]
    # Rounding may leave a sliver above the last cell that can happen at all.
    possible = tables.shape[1] - 1 - np.argmax(tables[:, ::-1] > 0, axis=1)
    return np.asarray(np.minimum(drawn, possible.astype(np.int8)).ravel(), dtype=np.int8)


def _index(deployments: int, templates: Sequence[int], statements: int, draws: int) -> list[NDArray[np.int64]]:
    """Return the five index columns in the order the cells are drawn in."""
    one = [
        np.stack(np.meshgrid([ask], range(count), range(draws), range(statements), indexing="ij")).reshape(4, -1)
        for ask, count in enumerate(templates)
    ]
    ask, template, draw, statement = np.concatenate(one, axis=1)
    deployment = np.repeat(np.arange(deployments), ask.size)
    return [deployment, *(np.tile(column, deployments) for column in (ask, statement, template, draw))]


def draw_votes(scenario: Scenario, elab_true: Codes, rng: np.random.Generator) -> Codes:
    """Draw every judge's label of true elaborations [n]: codes [n, judges], 5 where there is none."""
    n = elab_true.size
    votes = np.full((n, len(scenario.judges)), _NONE, dtype=np.int8)
    together = rng.random(n) < scenario.shared_error
    common = rng.random(n)
    present = elab_true < _NONE
    for column, judge in enumerate(scenario.judges):
        u = np.where(together, common, rng.random(n))
        cumulative = np.cumsum(confusion_matrix(judge), axis=1)
        cumulative[:, -1] = 1.0
        rows = cumulative[np.minimum(elab_true, _NONE - 1)]
        label = (u[:, None] >= rows[:, :-1]).sum(axis=1)
        votes[present, column] = label[present]
    return votes


def majority(votes: Codes) -> Codes:
    """Take the vote of [n, judges]: the most frequent stance; a tie at the top or no stance is 5, Abstain.

    >>> majority(np.array([[0, 0, 3], [0, 3, 5], [5, 5, 2]], dtype=np.int8)).tolist()
    [0, 5, 2]
    """
    counts = np.stack([(votes == label).sum(axis=1) for label in range(_NONE)], axis=1)
    top = counts.max(axis=1)
    tied = (counts == top[:, None]).sum(axis=1) > 1
    return np.where((top == 0) | tied, _NONE, counts.argmax(axis=1)).astype(np.int8)
