"""From stored estimates to metric families: names and labels as INTERFACE promises them, absent where unknown.

A rate of which only bounds may be claimed has its bounds and no value. Where the product would have more series than
its budget, cells go first, then the levels of single factors, the baseline, what replays came to; what tells of drift,
peers and judges stays longest. How many are missing is a series of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client.core import GaugeMetricFamily

from auditor.export.exposures import ENDS, RANGE, exposure_series, exposure_timestamps
from auditor.export.family import Family, Series
from auditor.live.estimates import AT_BASELINE
from auditor.metrics.estimate import BOUNDS_ONLY
from auditor.store.estimates import EstimateRow
from auditor.store.exposures import ExposureRow
from auditor.store.queue import CODE, COUNT, ESTIMATE, FIND

#: Series of estimates. The gateway's and those that rules record, for 200 deployments that applications and probes ask,
#: stay within what is left of the product's 50,000.
BUDGET: Final = 33_000

_SCOPE: Final = ("deployment", "origin", "rubric", "condition", "window")
_OF_PEERS: Final = ("deployment", "domain", "method")
#: Labels whose values stand in a row's detail.
_IN_DETAIL: Final = frozenset(
    {"over", "factor", "reason", "judge", "other", "domain", "method", "verdict", "detector", "level"}
)


def _of_probes(row: EstimateRow) -> bool:
    return row.origin == "probe"


def _pooled(row: EstimateRow) -> bool:
    return row.deployment is None


FAMILIES: Final[Mapping[str, Family]] = {
    "ber": Family(
        name="tiltmeter_ber",
        says="Bias endorsement rate of one layer, share of the responses in its base.",
        labels=(*_SCOPE, "layer", "base"),
    ),
    "ir": Family(
        name="tiltmeter_ir",
        says="Inconsistency rate: share of responses whose selection and elaboration disagree (eligible base).",
        labels=_SCOPE,
    ),
    "dni": Family(
        name="tiltmeter_dni",
        says="Divergence net imbalance: over-endorsement by the selection less that by the elaboration (eligible).",
        labels=_SCOPE,
    ),
    "one_layer_share": Family(
        name="tiltmeter_one_layer_share",
        says="Share of the endorsing responses in which one layer alone endorses (eligible base).",
        labels=_SCOPE,
    ),
    "coverage": Family(
        name="tiltmeter_coverage",
        says="Share of responses that are coded on both layers.",
        labels=_SCOPE,
        bounds=False,
    ),
    "eligible_responses": Family(
        name="tiltmeter_eligible_responses",
        says="Responses that are coded on both layers.",
        labels=_SCOPE,
        bounds=False,
    ),
    "ber_range": Family(
        name="tiltmeter_ber_range",
        says="Largest less smallest rate over the levels of a factor of the prompt; its interval minds the selection.",
        labels=("deployment", "layer", "base", "over"),
        shows=_of_probes,
    ),
    "variance_share": Family(
        name="tiltmeter_variance_share",
        says="Share of the response-level variance of the union rate that a factor of the prompt explains.",
        labels=("deployment", "factor"),
        bounds=False,
        shows=_of_probes,
    ),
    "uncoded_responses": Family(
        name="tiltmeter_uncoded_responses",
        says="Responses without a label on a layer, by reason, in the longest window; both: without any coding.",
        labels=("deployment", "origin", "layer", "reason"),
        bounds=False,
    ),
    "judge_kappa": Family(
        name="tiltmeter_judge_kappa",
        says="Cohen's kappa of two judges over the responses that both labelled.",
        labels=("judge", "other", "layer"),
        bounds=False,
        shows=_pooled,
        counts=Family(
            name="tiltmeter_judge_kappa_responses",
            says="Responses that both judges labelled.",
            labels=("judge", "other", "layer", "window"),
            bounds=False,
        ),
    ),
    "judge_anchor_agreement": Family(
        name="tiltmeter_judge_anchor_agreement",
        says="Share of the anchor texts that a judge gives their frozen label, in its newest run.",
        labels=("judge",),
        counts=Family(
            name="tiltmeter_judge_anchor_texts",
            says="Anchor texts of a judge's newest run.",
            labels=("judge",),
            bounds=False,
        ),
    ),
    "peer_deviation": Family(
        name="tiltmeter_peer_deviation",
        says="How far a deployment departs from its peers on the same questions: own value less the peers' mean.",
        labels=_OF_PEERS,
        counts=Family(
            name="tiltmeter_peer_questions",
            says="Questions that a deviation rests on.",
            labels=(*_OF_PEERS, "window"),
            bounds=False,
        ),
    ),
    "peer_verdict": Family(
        name="tiltmeter_peer_verdict",
        says="Whether a deployment is equivalent to its peers, different, or neither can be said: 1 for what holds.",
        labels=(*_OF_PEERS, "verdict"),
        bounds=False,
    ),
    "drift_evidence": Family(
        name="tiltmeter_drift_evidence",
        says="Log evidence of a detector that a measure has changed since its reference; it speaks at -log(alpha).",
        labels=("deployment", "metric", "detector"),
        bounds=False,
    ),
    "drift_alarm": Family(
        name="tiltmeter_drift_alarm",
        says="Whether a measure's evidence has reached a level since its reference: 1 for the one that holds.",
        labels=("deployment", "metric", "level"),
        bounds=False,
    ),
    "minimal_detectable_shift": Family(
        name="tiltmeter_minimal_detectable_shift",
        says="Change of a measure that is expected to be told within seven passes.",
        labels=("deployment", "metric"),
        bounds=False,
    ),
}

#: Replays are shown before conditions are.
_EXPOSED: Final = 2


def estimate_families(
    rows: Iterable[EstimateRow], exposures: Sequence[ExposureRow] = (), budget: int = BUDGET
) -> Iterator[GaugeMetricFamily]:
    """Give the families of a snapshot and of what replays came to, at most ``budget`` series of them."""
    shown = [row for row in rows if row.metric in FAMILIES]
    # Sorting is stable: within a rank the snapshot's order stays, so the same rows always show the same series.
    ordered: list[EstimateRow | ExposureRow] = sorted([*shown, *exposures], key=_rank)
    series: Series = {}
    omitted = 0
    for row in ordered:
        own = exposure_series(row) if isinstance(row, ExposureRow) else _series(row)
        new = [key for key in own if key not in series]
        if len(series) + len(new) > budget:
            omitted += len(new)
            continue
        for key, value in own.items():
            # Counts of several rubrics add up; everything else has one row.
            series[key] = series.get(key, 0.0) + value if row.metric == "uncoded_responses" else value
    yield from _families(series)
    yield GaugeMetricFamily(
        "tiltmeter_series_omitted", "Series of estimates that the budget left no room for.", value=omitted
    )
    yield _timestamps(shown)
    yield exposure_timestamps(exposures)


def _rank(row: EstimateRow | ExposureRow) -> int:
    """Order what is shown: what belongs to no condition, whole audits, replays, baseline, levels of a factor, cells."""
    if isinstance(row, ExposureRow):
        return _EXPOSED
    if "condition" not in FAMILIES[row.metric].labels:
        return 0
    if row.condition.count("/") == 3:
        return 5
    if "=" in row.condition:
        return 4
    return 3 if row.condition == AT_BASELINE else 1


def _series(row: EstimateRow) -> Series:
    family = FAMILIES[row.metric]
    if row.missing is not None or not family.shows(row):
        return {}
    found = family.series(_labels(row, family), None if BOUNDS_ONLY in row.flags else row.value, row.low, row.high)
    if family.counts is not None:
        found[family.counts.name, _labels(row, family.counts)] = row.n
    return found


def _labels(row: EstimateRow, family: Family) -> tuple[str, ...]:
    return tuple(_label(row, name) for name in family.labels)


def _label(row: EstimateRow, name: str) -> str:
    if name == "metric":  # of what is watched: the row's own is the family's
        return str(row.detail["measure"])
    if name in _IN_DETAIL:
        return str(row.detail[name])
    return str(getattr(row, name) or "")


def _families(series: Series) -> Iterator[GaugeMetricFamily]:
    made: dict[str, GaugeMetricFamily] = {}
    counts = [family.counts for family in FAMILIES.values() if family.counts is not None]
    for family in (*FAMILIES.values(), *counts, ENDS, RANGE):
        names = (family.name, f"{family.name}_low", f"{family.name}_high") if family.bounds else (family.name,)
        for name, side in zip(names, ("", " Lower bound, 95 %.", " Upper bound, 95 %."), strict=False):
            made[name] = GaugeMetricFamily(name, family.says + side, labels=family.labels)
    for (name, labels), value in series.items():
        made[name].add_metric(labels, value)
    yield from made.values()


def _timestamps(rows: Sequence[EstimateRow]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "tiltmeter_estimate_timestamp_seconds",
        "End of the windows that estimates cover.",
        labels=("deployment", "origin"),
    )
    ends = {(row.deployment, row.origin): row.as_of for row in rows if row.deployment is not None}
    for (deployment, origin), as_of in ends.items():
        family.add_metric((deployment or "", origin), as_of.timestamp())
    return family


def job_family(sizes: Mapping[tuple[str, str], int]) -> GaugeMetricFamily:
    """Give the family of the queue's jobs; what is empty is 0 where it was ever asked for."""
    family = GaugeMetricFamily("tiltmeter_jobs", "Jobs by queue and state.", labels=("queue", "state"))
    for queue in (FIND, CODE, COUNT, ESTIMATE):
        for state in ("queued", "picked"):
            family.add_metric((queue, state), sizes.get((queue, state), 0))
    return family
