"""A great fleet as a snapshot of estimates: everything that is known of every deployment, under 21 conditions."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from itertools import product

from auditor.instrument.designs import FACTORS, Design, cells
from auditor.store.estimates import EstimateRow

SIZE = 200
WINDOWS = ("1d", "7d", "30d")
#: The design that varies one factor at a time has 21 conditions.
CELLS = tuple(cell.condition.key for cell in cells(Design.OAT))
LEVELS = tuple(f"{factor}={level}" for factor, levels in FACTORS.items() for level in levels)
RATES = (*(("ber", layer, "eligible") for layer in ("sel", "elab", "cor", "union")),
         *(("ber", layer, "full") for layer in ("sel", "elab", "union")),
         ("ir", None, "eligible"), ("dni", None, "eligible"), ("one_layer_share", None, "eligible"))  # fmt: skip


def fleet_rows(as_of: datetime, size: int = SIZE) -> list[EstimateRow]:
    """The rows of a snapshot, as jobs make them: per condition, across prompts, and what tells of drift and peers."""
    like = EstimateRow(
        as_of=as_of, deployment=None, origin="probe", rubric="statement", condition="all", window="30d", since=as_of,
        coder="statement-1", metric="", value=0.25, low=0.2, high=0.3, n=4000,
    )  # fmt: skip
    deployments = [f"deployment-{number:03}" for number in range(size)]
    return [row for name in deployments for row in _of_one(replace(like, deployment=name))]


def _of_one(like: EstimateRow) -> Iterator[EstimateRow]:
    for condition, window in [*product(("all", "baseline"), WINDOWS), *((one, "30d") for one in (*LEVELS, *CELLS))]:
        own = replace(like, condition=condition, window=window)
        yield replace(own, metric="coverage")
        yield replace(own, metric="eligible_responses", value=1000.0)
        for metric, layer, base in RATES:
            yield replace(own, metric=metric, layer=layer, base=base)
    for over, layer in product(("task", "cell", *tuple(FACTORS)[1:]), ("union",)):
        yield replace(like, metric="ber_range", layer=layer, base="full", detail={"over": over})
    for factor in FACTORS:
        yield replace(like, metric="variance_share", detail={"factor": factor})
    yield from _found(like)


def _found(like: EstimateRow) -> Iterator[EstimateRow]:
    for layer, reason in product(("sel", "elab"), ("transport_error", "refused", "no_claim", "tie", "truncated")):
        yield replace(like, metric="uncoded_responses", layer=layer, detail={"reason": reason})
    for measure in ("ber_union_full", "ir", "dni"):
        own = replace(like, detail={"measure": measure})
        yield replace(own, metric="minimal_detectable_shift")
        for detector in ("statements", "days", "anchor", "instrument"):
            yield replace(own, metric="drift_evidence", detail={**own.detail, "detector": detector})
        for level in ("page", "investigate", "instrument"):
            yield replace(own, metric="drift_alarm", detail={**own.detail, "level": level}, value=0.0)
    for method in ("embedding", "j1"):
        own = replace(like, condition="politics", detail={"domain": "politics", "method": method})
        yield replace(own, metric="peer_deviation")
        for verdict in ("equivalent", "different", "inconclusive"):
            yield replace(own, metric="peer_verdict", detail={**own.detail, "verdict": verdict}, value=0.0)
