"""Estimate from the labels of one draw while people label it: their agreement, and the corrected measures.

Everything is of all deployments together, because the reviewers must not learn which deployment gave an answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.counting.stored import tallies_of
from auditor.documents.agreement import AlphaEntry, MissingAlpha
from auditor.documents.base import Missing
from auditor.documents.estimates import EstimateEntry, estimate_entry
from auditor.domain.coding import ABSTAIN
from auditor.estimation.groups import Estimator
from auditor.metrics.corrected import CORRECTED, CORRECTED_PAIRS
from auditor.reviews.agreement import alpha_entry
from auditor.reviews.opinions import AnswerView, Layer, Opinion
from auditor.reviews.queue import QueueItem, QueueKey
from auditor.store.codings import read_clusters
from auditor.store.review_draws import Bounds, ReviewDraw, read_drawn, read_frame

#: Replicates of the interval of alpha: fewer than in reports, because it is computed after each label.
_N_BOOT: Final = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveEstimates:
    """What the labels of a queue give so far."""

    alpha: AlphaEntry | MissingAlpha | None  #: None: no answer has two labels
    corrected: dict[str, EstimateEntry | Missing]  #: estimates by measure; empty if nothing is labelled


async def live_estimates(
    connection: AsyncConnection, draw: ReviewDraw, key: QueueKey, items: Sequence[QueueItem], now: datetime
) -> LiveEstimates:
    """Estimate from the labels of a draw: alpha of the queue, and what all labels of the draw correct."""
    return LiveEstimates(
        alpha=await _alpha(connection, draw, key, items),
        corrected=await _corrected(connection, draw, now) if key.view is AnswerView.SPLIT else {},
    )


async def _alpha(
    connection: AsyncConnection, draw: ReviewDraw, key: QueueKey, items: Sequence[QueueItem]
) -> AlphaEntry | MissingAlpha | None:
    units_by_exchange: dict[UUID, list[Opinion]] = {}
    for item in items:
        labels = [each for each in item.independent if each.label != ABSTAIN]
        if len(labels) > 1:
            units_by_exchange[item.exchange_id] = [
                Opinion(reviewer=each.reviewer, layer=key.layer, label=each.label, view=key.view) for each in labels
            ]
    if not units_by_exchange:
        return None
    clusters = await read_clusters(connection, draw.coder, list(units_by_exchange))
    numbers = {name: place for place, name in enumerate(sorted(set(clusters.values())))}
    units = [(numbers[clusters[exchange]], opinions) for exchange, opinions in units_by_exchange.items()]
    return alpha_entry(key.layer, key.view, units, seed=0, n_boot=_N_BOOT)


async def _corrected(
    connection: AsyncConnection, draw: ReviewDraw, now: datetime
) -> dict[str, EstimateEntry | Missing]:
    drawn = await read_drawn(connection, draw, Bounds(since=draw.since, until=now, as_of=now))
    labelled = [row for row in drawn if row["opinions"]]
    layers = [{Layer(layer) for layer, *_ in row["opinions"]} for row in labelled]
    if not any(Layer.ELAB in reviewed for reviewed in layers):
        return {}
    wanted = (*CORRECTED, *(CORRECTED_PAIRS if any(reviewed == set(Layer) for reviewed in layers) else ()))
    tallies = tallies_of(await read_frame(connection, draw), labelled=labelled)
    (pooled,) = Estimator(tallies, seed=0, panel_differs=False).groups(())
    return {name: estimate_entry(pooled.metrics[name]) for name in wanted}
