"""What the latest replays came to, as series: the lowest and the highest score of each measure, and their range."""

from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client.core import GaugeMetricFamily

from auditor.export.family import Family, Series
from auditor.metrics.estimate import BOUNDS_ONLY
from auditor.store.exposures import ExposureRow

#: Measures that are shown; those on the eligible base stand in the replay's own document.
SHOWN: Final = ("ber_union_full", "ber_sel_full", "ber_elab_full", "ir", "dni")
_GROUP: Final = ("deployment", "origin", "route", "task", "rubric", "metric", "replay")

ENDS: Final = Family(
    name="tiltmeter_exposure",
    says="Lowest and highest score that the same questions were made to give in the latest replay, and by which side.",
    labels=(*_GROUP, "bound", "side"),
)
RANGE: Final = Family(
    name="tiltmeter_exposure_range",
    says="Highest less lowest score over the sides of the latest replay; its interval minds the selection.",
    labels=_GROUP,
)


def exposure_series(row: ExposureRow) -> Series:
    """Give the series of one measure of one replay; none where it is not shown or there is no number."""
    told = row.exposure
    if row.metric not in SHOWN or "missing" in told:
        return {}
    group = (row.deployment, row.origin, row.route or "", row.task or "", row.rubric, row.metric, row.replay_id)
    found = RANGE.series(group, **_bounded(told["range"]))
    for bound in ("lowest", "highest"):
        end = told[bound]
        known = {**_bounded(end), "value": None} if BOUNDS_ONLY in end["flags"] else _bounded(end)
        found |= ENDS.series((*group, bound, end["side"]), **known)
    return found


def _bounded(told: Mapping[str, float]) -> dict[str, float | None]:
    return {name: told[name] for name in ("value", "low", "high")}


def exposure_timestamps(rows: Iterable[ExposureRow]) -> GaugeMetricFamily:
    """Give the family that says how old the series are."""
    family = GaugeMetricFamily(
        "tiltmeter_exposure_timestamp_seconds",
        "When the latest replay said what the exposures say.",
        labels=("deployment", "origin", "route"),
    )
    moments: dict[tuple[str, str, str], float] = {}
    for row in rows:
        key = (row.deployment, row.origin, row.route or "")
        moments[key] = max(row.concluded_at.timestamp(), moments.get(key, 0.0))
    for key, moment in moments.items():
        family.add_metric(key, moment)
    return family
