"""Simulated answers whose statements lie in topics, or are crossed with raters, with known true rates."""

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from auditor.counting.joint import SHAPE, JointTable

#: 200 statements in 16 topics: of equal sizes as far as possible, and as uneven as pools are.
EVEN = (13,) * 8 + (12,) * 8
UNEVEN = (2, 3, 7, 7, 7, 8, 8, 9, 10, 12, 16, 17, 17, 17, 23, 37)
#: Logits of the selection and of the elaboration.
_LOGITS = (-1.0, -0.7)
#: Of a statement, and of one layer of a statement.
_STATEMENT, _LAYER = 0.8, 0.6
#: Cells of both, the selection only, the elaboration only, and neither.
_CELLS = (0, 3, 2 * SHAPE[1], 2 * SHAPE[1] + 3)


def truth(spread: float) -> dict[str, float]:
    """Compute the true measures; ``spread`` is the standard deviation of a topic's logit (of all crossed effects)."""
    rng = np.random.default_rng(0)
    size = 400_000
    shared = np.hypot(spread, _STATEMENT) * rng.standard_normal(size)
    a, b = (expit(logit + shared + _LAYER * rng.standard_normal(size)) for logit in _LOGITS)
    sel, elab, both = float(a.mean()), float(b.mean()), float((a * b).mean())
    return {"ber_sel": sel, "ber_union": sel + elab - both, "ir": sel + elab - 2 * both, "dni": sel - elab}


def in_topics(
    rng: np.random.Generator, sizes: Sequence[int], spread: float, responses: int
) -> tuple[JointTable, JointTable]:
    """Answer every statement some times; return the table by statement, and the one by topic."""
    topic = np.repeat(np.arange(len(sizes)), sizes)
    shared = spread * rng.standard_normal(len(sizes))[topic] + _STATEMENT * rng.standard_normal(len(topic))
    statement = np.repeat(np.arange(len(topic)), responses)
    cell = _answers(rng, shared, statement)
    return (
        JointTable.from_cells(statement, cell, len(topic)),
        JointTable(
            cluster=topic[statement],
            cell=cell,
            count=np.ones_like(cell),
            n_clusters=len(sizes),
            clusterings=(topic[statement],),
        ),
    )


def crossed(rng: np.random.Generator, statements: int, users: int, spread: float) -> JointTable:
    """Answer every statement once for every user; both have effects."""
    statement, user = (each.ravel() for each in np.indices((statements, users)))
    shared = spread * rng.standard_normal(users)[user] + _STATEMENT * rng.standard_normal(statements)[statement]
    part = np.arange(len(statement))
    cell = _answers(rng, shared, part)
    return JointTable(
        cluster=user, cell=cell, count=np.ones_like(cell), n_clusters=users, clusterings=(user, statement)
    )


def _answers(rng: np.random.Generator, shared: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Draw each response's cell from the shared effect of its part and the part's effects on the layers."""
    endorsed = []
    for logit in _LOGITS:
        p = expit(logit + shared + _LAYER * rng.standard_normal(len(shared)))
        endorsed.append(rng.random(len(part)) < p[part])
    return np.array(_CELLS)[2 * ~endorsed[0] + ~endorsed[1]]
