"""The series of stored estimates: names, labels and help texts. A measure of ``METRICS`` brings its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from auditor.metrics.rates import METRICS
from auditor.store.estimates import EstimateRow

_SCOPE: Final = ("deployment", "origin", "rubric", "condition", "window")
_OF_PEERS: Final = ("deployment", "domain", "method")
_OF_ARMS: Final = ("route", "arm", "metric")


Series = dict[tuple[str, tuple[str, ...]], float]


@dataclass(frozen=True, kw_only=True, slots=True)
class SeriesFamily:
    """One series name, its labels, and whether series of the bounds belong to it."""

    name: str
    help: str
    labels: tuple[str, ...]
    bounds: bool = True
    #: Returns whether the family shows a row. Its rows do not differ in labels that it lacks.
    shows: Callable[[EstimateRow], bool] = lambda _: True
    counts: "SeriesFamily | None" = None  #: the series with the number of responses behind each value

    def series(self, labels: tuple[str, ...], value: float | None, low: float | None, high: float | None) -> Series:
        """Return the series of one number; unknown values have none."""
        entries: Series = {}
        if value is not None:
            entries[self.name, labels] = value
        if self.bounds and low is not None and high is not None:
            entries[f"{self.name}_low", labels] = low
            entries[f"{self.name}_high", labels] = high
        return entries


def _of_probes(row: EstimateRow) -> bool:
    return row.origin == "probe"


def _pooled(row: EstimateRow) -> bool:
    return row.deployment is None


#: Families of stored rows that are not measures of ``METRICS``.
_OTHERS: Final[Mapping[str, SeriesFamily]] = {
    "coverage": SeriesFamily(
        name="biasmeter_coverage",
        help="Share of responses that are coded on both layers.",
        labels=_SCOPE,
        bounds=False,
    ),
    "eligible_responses": SeriesFamily(
        name="biasmeter_eligible_responses",
        help="Responses that are coded on both layers.",
        labels=_SCOPE,
        bounds=False,
    ),
    "effective_responses": SeriesFamily(
        name="biasmeter_effective_responses",
        help="Effective number of responses: responses of equal weight with the same information as the weighted ones.",
        labels=_SCOPE,
        bounds=False,
    ),
    "ber_range": SeriesFamily(
        name="biasmeter_ber_range",
        help="Largest less smallest rate over the levels of a factor of the prompt; its interval minds the selection.",
        labels=("deployment", "layer", "base", "over"),
        shows=_of_probes,
    ),
    "variance_share": SeriesFamily(
        name="biasmeter_variance_share",
        help="Share of the response-level variance of the union rate that a factor of the prompt explains.",
        labels=("deployment", "factor"),
        bounds=False,
        shows=_of_probes,
    ),
    "uncoded_responses": SeriesFamily(
        name="biasmeter_uncoded_responses",
        help="Responses without a label on a layer, by reason, in the longest window; both: without any coding.",
        labels=("deployment", "origin", "layer", "reason"),
        bounds=False,
    ),
    "judge_kappa": SeriesFamily(
        name="biasmeter_judge_kappa",
        help="Cohen's kappa of two judges over the responses that both labelled.",
        labels=("judge", "other", "layer"),
        bounds=False,
        shows=_pooled,
        counts=SeriesFamily(
            name="biasmeter_judge_kappa_responses",
            help="Responses that both judges labelled.",
            labels=("judge", "other", "layer", "window"),
            bounds=False,
        ),
    ),
    "judge_anchor_agreement": SeriesFamily(
        name="biasmeter_judge_anchor_agreement",
        help="Share of the anchor texts that a judge gives their frozen label, in its newest run.",
        labels=("judge",),
        counts=SeriesFamily(
            name="biasmeter_judge_anchor_texts",
            help="Anchor texts of a judge's newest run.",
            labels=("judge",),
            bounds=False,
        ),
    ),
    "peer_deviation": SeriesFamily(
        name="biasmeter_peer_deviation",
        help="How far a deployment departs from its peers on the same questions: own value less the peers' mean.",
        labels=_OF_PEERS,
        counts=SeriesFamily(
            name="biasmeter_peer_questions",
            help="Questions that a deviation rests on.",
            labels=(*_OF_PEERS, "window"),
            bounds=False,
        ),
    ),
    "peer_verdict": SeriesFamily(
        name="biasmeter_peer_verdict",
        help="Whether a deployment is equivalent to its peers, different, or neither can be said: 1 for what holds.",
        labels=(*_OF_PEERS, "verdict"),
        bounds=False,
    ),
    "drift_evidence": SeriesFamily(
        name="biasmeter_drift_evidence",
        help="Log evidence of a detector that a measure has changed since its reference; it alarms at -log(alpha).",
        labels=("deployment", "metric", "detector"),
        bounds=False,
    ),
    "drift_alarm": SeriesFamily(
        name="biasmeter_drift_alarm",
        help="Whether a measure's evidence has reached a level since its reference: 1 for the one that holds.",
        labels=("deployment", "metric", "level"),
        bounds=False,
    ),
    "reference_since_seconds": SeriesFamily(
        name="biasmeter_reference_since_seconds",
        help="First day of the reference in force, which begins with a release if a person accepted it so.",
        labels=("deployment",),
        bounds=False,
    ),
    "arm_rate": SeriesFamily(
        name="biasmeter_arm_rate",
        help="A measure of the answers to one arm of a route's trial.",
        labels=_OF_ARMS,
    ),
    "arm_difference": SeriesFamily(
        name="biasmeter_arm_difference",
        help="A measure of one arm of a route's trial less that of the control.",
        labels=_OF_ARMS,
    ),
    "arm_tokens": SeriesFamily(
        name="biasmeter_arm_tokens",
        help="Mean number of tokens of a request to one arm of a route's trial.",
        labels=("route", "arm", "kind"),
    ),
    "arm_tokens_difference": SeriesFamily(
        name="biasmeter_arm_tokens_difference",
        help="Mean number of tokens of a request to one arm of a route's trial less that of the control.",
        labels=("route", "arm", "kind"),
    ),
    "arm_requests": SeriesFamily(
        name="biasmeter_arm_requests",
        help="Stored requests of one arm; with a reason those that were forwarded without the instruction.",
        labels=("route", "arm", "untouched"),
        bounds=False,
    ),
    "minimal_detectable_shift": SeriesFamily(
        name="biasmeter_minimal_detectable_shift",
        help="Change of a measure that is expected to be found within seven passes.",
        labels=("deployment", "metric"),
        bounds=False,
    ),
}


def row_families() -> dict[str, SeriesFamily]:
    """Return the families of stored rows by the rows' metric: those of ``METRICS``, then all others."""
    measures = {
        metric.series.name: SeriesFamily(
            name=f"biasmeter_{metric.series.name}",
            help=metric.series.help,
            labels=(*_SCOPE, "layer", "base") if metric.series.by_layer else _SCOPE,
        )
        for metric in METRICS.values()
        if metric.series.exported
    }
    return {**measures, **_OTHERS}
