"""Read samples that people have labelled, and estimate from them: corrected measures, and agreement.

Labels of the elaboration correct its BER. Labels of both layers also correct IR, DNI and the other measures that
compare the layers. A sample stands for its frame, so the base of a corrected measure is the frame: what had been coded
in the window when the sample was drawn. Each deployment uses the newest sample that has enough labels.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.counting.stored import Row, tallies_of
from auditor.counting.tallies import Tallies
from auditor.documents.agreement import MissingReviewKappa, ReviewKappaEntry
from auditor.documents.estimates import estimate_entry
from auditor.domain.coding import ABSTAIN
from auditor.domain.estimate import Estimate, Insufficient
from auditor.estimation.groups import Estimator
from auditor.metrics.corrected import CORRECTED, CORRECTED_PAIRS
from auditor.period.document import CorrectedDeployment, CorrectionsEntry
from auditor.reviews.labelled_rows import review_kappas
from auditor.reviews.opinions import Layer
from auditor.store.estimates import EstimateRow, with_estimate
from auditor.store.review_draws import Bounds, ReviewDraw, count_frame, read_drawn, read_draws
from auditor.store.tallies import move_windows, read_windows

#: Name of the rows of ``CORRECTED``; those of ``CORRECTED_PAIRS`` have the names of the measures.
METRIC: Final = "ber_elab_corrected"
KAPPA: Final = "review_kappa"
#: Flag: some of the drawn responses have no label yet, or have lost their text.
PARTLY: Final = "partly_labelled"
_N_BOOT: Final = 2000

_Corrections = Mapping[str, Estimate | Insufficient]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewSample:
    """The part of one draw that lies in a window."""

    draw: str
    origin: str
    rows: Sequence[Row]  #: counts of the frame
    labelled: Sequence[Row]  #: its responses with a person's label, one by one
    unlabelled: int  #: responses drawn whose elaboration has no label
    unpaired: int  #: responses drawn that the coder labelled on both layers, and people have not

    @property
    def tallies(self) -> Tallies:
        """The frame's counts, with the labels."""
        return tallies_of(self.rows, labelled=self.labelled)


def corrected_rows(template: EstimateRow, samples: Sequence[ReviewSample]) -> Iterator[EstimateRow]:
    """Estimate what people would find, and the agreement of people and coder.

    Parameters
    ----------
    template
        The fields that the rows share.
    samples
        Samples of one origin and window, the newest first.
    """
    for deployment, (sample, estimates) in _newest_enough(samples, template.seed).items():
        base_row = replace(template, deployment=deployment, detail={"draw": sample.draw})
        for name, metric in CORRECTED.items():
            row = replace(base_row, metric=METRIC, layer="elab", base=metric.base)
            yield _corrected_row(row, estimates[name], partly=sample.unlabelled > 0)
        for name, metric in CORRECTED_PAIRS.items():
            if name in estimates:
                row = replace(base_row, metric=name, layer=metric.layer, base=metric.base)
                yield _corrected_row(row, estimates[name], partly=sample.unpaired > 0)
    if samples:
        tallies = samples[0].tallies
        for kappa in review_kappas(tallies, seed=template.seed, n_boot=_N_BOOT):
            yield _kappa_row(replace(template, metric=KAPPA, detail={"draw": samples[0].draw}), kappa)


def corrections(samples: Sequence[ReviewSample], *, seed: int, n_boot: int) -> CorrectionsEntry:
    """Return each deployment's corrected rates over a period, and the newest sample's agreement."""
    return CorrectionsEntry(
        deployments=[
            CorrectedDeployment(
                deployment=name,
                draw=sample.draw,
                n_unlabelled=sample.unlabelled,
                metrics={key: estimate_entry(estimate) for key, estimate in estimates.items()},
            )
            for name, (sample, estimates) in _newest_enough(samples, seed).items()
        ],
        kappa=review_kappas(samples[0].tallies, seed=seed, n_boot=n_boot),
    )


def _newest_enough(samples: Sequence[ReviewSample], seed: int) -> dict[str, tuple[ReviewSample, _Corrections]]:
    """Return for each deployment the newest sample that suffices; where none does, the newest with a label of it.

    A sample that suffices for the elaboration and for both layers goes before one that suffices for less. Measures of
    both layers are left out where no response of the deployment has people's labels of both.
    """
    chosen: dict[str, tuple[ReviewSample, _Corrections]] = {}
    for sample in samples:
        labelled = {row["deployment"] for row in sample.labelled}
        paired = {row["deployment"] for row in sample.labelled if _is_paired(row)}
        for group in Estimator(sample.tallies, seed=seed, panel_differs=False).groups(("deployment",)):
            name = str(group.by["deployment"])
            estimates = {key: group.metrics[key] for key in (*CORRECTED, *(CORRECTED_PAIRS if name in paired else ()))}
            before = chosen.get(name)
            if name in labelled and (before is None or _suffices(estimates) > _suffices(before[1])):
                chosen[name] = (sample, estimates)
    return dict(sorted(chosen.items()))


def _is_paired(row: Row) -> bool:
    """Return whether people have labelled both layers of a drawn response."""
    return {layer for layer, *_ in row["opinions"] or ()} == set(Layer)


def _suffices(estimates: _Corrections) -> tuple[bool, bool]:
    """Return whether there is any corrected measure of the elaboration, and any of both layers."""
    return (
        any(isinstance(estimates[key], Estimate) for key in CORRECTED),
        any(isinstance(estimates.get(key), Estimate) for key in CORRECTED_PAIRS),
    )


def _corrected_row(row: EstimateRow, estimate: Estimate | Insufficient, *, partly: bool) -> EstimateRow:
    filled = with_estimate(row, estimate)
    if isinstance(estimate, Insufficient):
        return filled
    labelled = {name: getattr(estimate, name) for name in ("n_labelled", "n_labelled_statements", "power")}
    flags = (*estimate.flags, PARTLY) if partly else estimate.flags
    return replace(filled, flags=flags, detail={**row.detail, **labelled})


def _kappa_row(row: EstimateRow, kappa: ReviewKappaEntry | MissingReviewKappa) -> EstimateRow:
    detail: dict[str, Any] = {**row.detail, "reviewer": kappa.reviewer, "other": kappa.other, "kind": kappa.kind}
    kappa_row = replace(
        row, deployment=kappa.deployment, layer=kappa.layer, detail=detail, n=kappa.n, n_statements=kappa.n_statements
    )
    if isinstance(kappa, MissingReviewKappa):
        return replace(kappa_row, missing=kappa.missing)
    return replace(kappa_row, value=kappa.value, low=kappa.low, high=kappa.high, method="cluster_bootstrap")


#: Draws of a coder that are looked at: labels are the exchanges', so a new draw has those of the old ones.
MOST_DRAWS: Final = 10


async def read_samples(connection: AsyncConnection, coder_id: str, bounds: Bounds) -> list[ReviewSample]:
    """Read the samples of a coder's codings that people have labelled, the newest first."""
    samples = []
    for draw in await read_draws(connection, coder_id, bounds.as_of, MOST_DRAWS):
        sample = await _labelled(connection, draw, bounds)
        if sample is not None:
            samples.append(replace(sample, rows=await count_frame(connection, draw, bounds)))
    return samples


async def read_window_samples(
    connection: AsyncConnection, coder_id: str, starts: Mapping[str, datetime], as_of: datetime
) -> dict[str, list[ReviewSample]]:
    """Read the samples of rolling windows, by window name, from running sums instead of a new count.

    Parameters
    ----------
    starts
        Start of each window.
    """
    samples: dict[str, list[ReviewSample]] = {name: [] for name in starts}
    for draw in await read_draws(connection, coder_id, as_of, MOST_DRAWS):
        await move_windows(connection, draw.id, starts)
        frames = await read_windows(connection, draw.id, starts)
        for name, since in starts.items():
            sample = await _labelled(connection, draw, Bounds(since=since, until=as_of, as_of=as_of))
            if sample is not None:
                samples[name].append(replace(sample, rows=frames[name]))
    return samples


async def _labelled(connection: AsyncConnection, draw: ReviewDraw, bounds: Bounds) -> ReviewSample | None:
    """Read what people have labelled of a draw, without its frame, which is expensive to count."""
    drawn = await read_drawn(connection, draw, bounds)
    labelled = [row for row in drawn if row["opinions"]]
    if not labelled:
        return None
    return ReviewSample(
        draw=draw.id,
        origin=draw.origin,
        rows=(),
        labelled=labelled,
        unlabelled=sum(all(layer != Layer.ELAB for layer, *_ in row["opinions"] or ()) for row in drawn),
        unpaired=sum(row["sel"] != ABSTAIN and not _is_paired(row) for row in drawn),
    )
