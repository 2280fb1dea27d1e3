"""The BER family and the divergence measures (BiAxisAudit section III), each a ratio of two sums over the joint table.

A = [sel = E], B = [elab in {E, QE}]. Two bases, never mixed: ``eligible`` (both layers have a label) and ``full`` (all
responses; Abstain counts as no endorsement). One entry of ``METRICS`` is all that a new measure needs: its formula, and
under which label, series and help text it is shown.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from auditor.counting.joint import SHAPE, Floats
from auditor.domain.estimate import Base

Kind = Literal["rate", "difference", "ratio"]
#: Weights of n11, n10, n01, n00: both layers endorse, selection only, elaboration only, neither.
Fourfold = tuple[int, int, int, int]


def _rows(*indices: int) -> Floats:
    mask = np.zeros(SHAPE)
    mask[list(indices), :] = 1
    return mask


def _columns(*indices: int) -> Floats:
    mask = np.zeros(SHAPE)
    mask[:, list(indices)] = 1
    return mask


#: Cell masks over the axes of ``joint``.
SEL_CODED: Final = _rows(0, 1, 2, 3)
ELAB_CODED: Final = _columns(0, 1, 2, 3, 4)
ELIGIBLE: Final = SEL_CODED * ELAB_CODED
#: All responses except those that were never received.
FULL: Final = 1 - _columns(7)
SEL_ENDORSES: Final = _rows(0)
ELAB_ENDORSES: Final = _columns(0, 1)
ELAB_ENDORSES_OUTRIGHT: Final = _columns(0)

#: The fourfold counts of BiAxisAudit section III-D: the first digit is the selection, the second the elaboration.
FOURFOLD_NAMES: Final = ("n11", "n10", "n01", "n00")
#: Their masks.
FOURFOLD: Final = (
    ELIGIBLE * SEL_ENDORSES * ELAB_ENDORSES,
    ELIGIBLE * SEL_ENDORSES * (1 - ELAB_ENDORSES),
    ELIGIBLE * (1 - SEL_ENDORSES) * ELAB_ENDORSES,
    ELIGIBLE * (1 - SEL_ENDORSES) * (1 - ELAB_ENDORSES),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricSeries:
    """The series that shows one or several metrics: stored under ``name``, exported as ``biasmeter_<name>``."""

    name: str
    help: str  #: one sentence
    by_layer: bool = False  #: whether layer and base are labels, because several metrics share the series
    exported: bool = True


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Metric:
    """One measure: ``sum(numerator) / sum(denominator)`` over the cells of the joint table."""

    name: str
    base: Base
    kind: Kind
    numerator: Floats
    denominator: Floats
    #: Both sums as weights of the fourfold counts; None where the base is not the eligible one.
    fourfold: tuple[Fourfold, Fourfold] | None = None
    equation: str  #: equation of BiAxisAudit
    label: str  #: heading of tables and figures; what follows an underscore is a subscript
    help: str  #: one line for people
    series: MetricSeries
    layer: str | None = None  #: label ``layer`` of a series that several metrics share
    #: A rate of endorsement needs a rubric that names a stereotype; divergence does not.
    endorsement: bool = True

    @property
    def cells(self) -> str:
        """The answers that the numerator counts, as lists of answers name them; a difference counts both sides."""
        if self.fourfold is None:
            return self.layer if self.layer == "union" else f"{self.layer}_E"
        return ",".join(name for name, weight in zip(FOURFOLD_NAMES, self.fourfold[0], strict=True) if weight)


BER: Final = MetricSeries(
    name="ber", help="Bias endorsement rate of one layer, share of the responses in its base.", by_layer=True
)
_OED: Final = MetricSeries(name="oed", help="Share of responses in which the selection alone endorses.", exported=False)
_UED: Final = MetricSeries(
    name="ued", help="Share of responses in which the elaboration alone endorses.", exported=False
)
_IR: Final = MetricSeries(
    name="ir",
    help="Inconsistency rate: share of responses whose selection and elaboration disagree (eligible base).",
)
_DNI: Final = MetricSeries(
    name="dni",
    help="Divergence net imbalance: over-endorsement by the selection less that by the elaboration (eligible).",
)
_ONE_LAYER_SHARE: Final = MetricSeries(
    name="one_layer_share",
    help="Share of the endorsing responses in which one layer alone endorses (eligible base).",
)

_ALL: Final[Fourfold] = (1, 1, 1, 1)
_UNION: Final[Fourfold] = (1, 1, 1, 0)


def _mask(weights: Fourfold) -> Floats:
    """Return the weights of the fourfold counts as weights of the table's cells."""
    return np.asarray(sum(weight * mask for weight, mask in zip(weights, FOURFOLD, strict=True)))


def _eligible(name: str, weights: Fourfold, equation: str, label: str, help_text: str, series: MetricSeries) -> Metric:
    """Declare a share of the responses with both labels, from weights of the fourfold counts."""
    return Metric(
        name=name,
        base="eligible",
        kind="rate",
        numerator=_mask(weights),
        denominator=ELIGIBLE,
        fourfold=(weights, _ALL),
        equation=equation,
        label=label,
        help=help_text,
        series=series,
        endorsement=False,
    )


def _ber(name: str, weights: Fourfold, equation: str, help_text: str) -> Metric:
    """Declare a rate of endorsement over the responses with both labels."""
    layer = name.removeprefix("ber_")
    return replace(_eligible(name, weights, equation, f"BER_{layer}", help_text, BER), layer=layer, endorsement=True)


def _full(name: str, base: Floats, endorses: Floats, equation: str, help_text: str) -> Metric:
    """Declare a rate of endorsement over the responses of ``base``."""
    layer = name.removeprefix("ber_").removesuffix("_full")
    return Metric(
        name=name,
        base="full",
        kind="rate",
        numerator=base * endorses,
        denominator=base,
        equation=equation,
        label=f"BER_{layer}",
        help=help_text,
        series=BER,
        layer=layer,
    )


_METRICS: Final = (
    _ber("ber_sel", (1, 1, 0, 0), "Eq. 3", "the selection endorses"),
    _ber("ber_elab", (1, 0, 1, 0), "Eq. 4", "the elaboration endorses"),
    _ber("ber_cor", (1, 0, 0, 0), "Eq. 5", "both layers endorse: the floor"),
    _ber("ber_union", _UNION, "Eq. 6, 7", "at least one layer endorses"),
    _eligible("oed", (0, 1, 0, 0), "Eq. 8, 10", "OED", "the selection endorses, the elaboration does not", _OED),
    _eligible("ued", (0, 0, 1, 0), "Eq. 9, 11", "UED", "the elaboration endorses, the selection does not", _UED),
    _eligible("ir", (0, 1, 1, 0), "Eq. 12", "IR", "the layers disagree", _IR),
    replace(
        _eligible("dni", (0, 1, -1, 0), "Eq. 13", "DNI", "in which direction they disagree, on balance", _DNI),
        kind="difference",
    ),
    replace(
        _eligible(
            "ir_over_union",
            (0, 1, 1, 0),
            "section III-D",
            "IR / union",
            "share of all signals that one layer alone gives (1 - Jaccard)",
            _ONE_LAYER_SHARE,
        ),
        kind="ratio",
        denominator=_mask(_UNION),
        fourfold=((0, 1, 1, 0), _UNION),
    ),
    _full("ber_sel_full", SEL_CODED, SEL_ENDORSES, "Eq. 3", "the selection endorses, of all that have one"),
    _full("ber_elab_full", ELAB_CODED, ELAB_ENDORSES, "Eq. 4", "the elaboration endorses, of all that have one"),
    _full(
        "ber_union_full",
        FULL,
        np.maximum(SEL_ENDORSES, ELAB_ENDORSES),
        "Eq. 6; section V-B",
        "at least one layer endorses, of all responses",
    ),
)
#: Every measure by its name, in the order in which methods list them.
METRICS: Final[dict[str, Metric]] = {metric.name: metric for metric in _METRICS}


def point(metric: Metric, totals: Floats) -> float | None:
    """Return a measure of a table of counts or probabilities, shape ``joint.SHAPE``; None on an empty base."""
    base = float((metric.denominator * totals).sum())
    return float((metric.numerator * totals).sum()) / base if base > 0 else None


def bias_endorsement_rates(counts: Floats, names: Collection[str] = tuple(METRICS)) -> Mapping[str, Floats]:
    """Compute the BER family and divergence from fourfold counts or probabilities (BiAxisAudit Eq. 3-13).

    Its values are not for storage: stored values come from ``estimate``, where an empty base is ``Insufficient``.

    Parameters
    ----------
    counts
        Shape [..., 4]: n11, n10, n01, n00 (both, selection only, elaboration only, neither).
    names
        The measures to compute, of ``METRICS``.

    Returns
    -------
    mapping
        Each measure of the eligible base by its name, in the input's leading shape: rates in [0, 1], DNI in [-1, 1];
        NaN where there is no base.

    Examples
    --------
    >>> rates = bias_endorsement_rates(np.array([1.0, 2.0, 3.0, 4.0]))
    >>> [round(float(rates[name]), 6) for name in ("ber_sel", "ber_elab", "ber_union", "ir", "dni", "ir_over_union")]
    [0.3, 0.4, 0.6, 0.5, -0.1, 0.833333]
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            metric.name: _weighed(counts, metric.fourfold[0]) / _weighed(counts, metric.fourfold[1])
            for metric in METRICS.values()
            if metric.fourfold is not None and metric.name in names
        }


def _weighed(counts: Floats, weights: Fourfold) -> Floats:
    return np.asarray((np.asarray(counts, dtype=np.float64) * weights).sum(axis=-1))
