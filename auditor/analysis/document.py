"""The words of ``analysis.json``: estimates as plain JSON values, and JSON as the same bytes every time."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from auditor.analysis.across import KappaRow, RangeRow, RankRow, ShareRow
from auditor.analysis.groups import Group
from auditor.analysis.reviews import ReviewKappa
from auditor.domain.estimate import Corrected, Estimate, Insufficient
from auditor.metrics.bounds import Coverage
from auditor.metrics.horizontal import Horizontal
from auditor.metrics.shares import Shares

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]

SCHEMA: Final = "tiltmeter.analysis/1"
#: Why two rankings have no correlation.
TIED: Final = "one of the rankings ties throughout"
#: What a condition's entry keeps of a group.
CONDITION_METRICS: Final = ("ber_sel_full", "ber_elab_full", "ber_union_full", "ber_cor", "ir", "dni")


def canonical_bytes(value: Json) -> bytes:
    """Write JSON with sorted keys and ten significant digits, so that equal values are equal bytes."""
    text = json.dumps(_rounded(value), sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8") + b"\n"


def _rounded(value: Json) -> Json:
    if isinstance(value, float):
        return float(f"{value:.10g}") + 0.0  # adding 0.0 turns -0.0 into 0.0
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, str) or not isinstance(value, Sequence):
        return value
    return [_rounded(each) for each in value]


def missing(value: Insufficient) -> dict[str, Json]:
    """Say why there is no value."""
    return {"missing": value.reason}


def value_or(value: float | None, reason: str) -> Json:
    """Write a number, or why there is none."""
    return missing(Insufficient(reason=reason)) if value is None else value


def estimate_json(estimate: Estimate | Insufficient) -> dict[str, Json]:
    """Write one estimate."""
    if isinstance(estimate, Insufficient):
        return missing(estimate)
    out: dict[str, Json] = {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "base": estimate.base,
        "method": estimate.method,
        "n": estimate.n,
        "n_statements": estimate.n_statements,
        "flags": list(estimate.flags),
    }
    return out | (labelled_json(estimate) if isinstance(estimate, Corrected) else {})


def labelled_json(estimate: Corrected) -> dict[str, Json]:
    """Write what a corrected rate rests on beside the coder."""
    return {
        "n_labelled": estimate.n_labelled,
        "n_labelled_statements": estimate.n_labelled_statements,
        "power": estimate.power,
    }


def coverage_json(coverage: Coverage) -> dict[str, Json]:
    """Write the shares of all responses."""
    return {"eligible": coverage.eligible, "structural": coverage.structural, "failed": coverage.failed}


def group_json(group: Group) -> dict[str, Json]:
    """Write one entry of ``groups``."""
    return {
        "by": dict(group.by),
        "rubric": group.rubric,
        "n": group.n,
        "n_selection": group.n_selection,
        "n_elaboration": group.n_elaboration,
        "n_eligible": group.n_eligible,
        "n_statements": group.n_statements,
        "coverage": coverage_json(group.coverage),
        "joint": dict(group.joint),
        "counts": dict(group.counts),
        "abstain": {layer: dict(reasons) for layer, reasons in group.abstain.items()},
        "metrics": {name: estimate_json(estimate) for name, estimate in group.metrics.items()},
        "bounds": {name: list(pair) for name, pair in group.bounds.items()},
        "cancellation_trap": missing(group.trap) if isinstance(group.trap, Insufficient) else group.trap,
        "sign_flip": missing(group.flip) if isinstance(group.flip, Insufficient) else group.flip,
        "qe_fold": missing(group.fold)
        if isinstance(group.fold, Insufficient)
        else {"ir": group.fold.ir, "ir_folded": group.fold.ir_folded, "robust": group.fold.robust},
        "flags": list(group.flags),
    }


def condition_json(group: Group) -> dict[str, Json]:
    """Write one entry of ``conditions``: a group without its tables."""
    whole = group_json(group)
    kept = ("by", "rubric", "n", "n_eligible", "n_statements", "coverage", "sign_flip", "flags")
    metrics: dict[str, Json] = {name: estimate_json(group.metrics[name]) for name in CONDITION_METRICS}
    return {name: whole[name] for name in kept} | {"metrics": metrics}


def share_json(row: ShareRow) -> dict[str, Json]:
    """Write one entry of ``eta_squared``."""
    out: dict[str, Json] = {
        "by": dict(row.scope.by),
        "rubric": row.scope.rubric,
        "outcome": row.outcome,
        "base": "full",
        "design": row.design,
        "flags": list(row.flags),
    }
    if row.weights:
        out["weights"] = row.weights
    if not isinstance(row.shares, Shares):
        return out | missing(row.shares)
    if row.shares.imbalance is not None:
        out["imbalance"] = row.shares.imbalance
    effects: dict[str, Json] = {
        name: missing(effect) if isinstance(effect, Insufficient) else effect
        for name, effect in row.shares.effects.items()
    }
    intervals: dict[str, Json] = {name: list(bounds) for name, bounds in row.shares.intervals.items()}
    return out | {"n": row.shares.n, "effects": effects, "intervals": intervals}


def range_json(row: RangeRow) -> dict[str, Json]:
    """Write one entry of ``horizontal``."""
    out: dict[str, Json] = {
        "by": dict(row.scope.by),
        "rubric": row.scope.rubric,
        "metric": row.metric,
        "over": row.over,
    }
    result = row.result
    if isinstance(result, Insufficient):
        return out | missing(result)
    return out | horizontal_json(result)


def horizontal_json(result: Horizontal) -> dict[str, Json]:
    """Write a range over levels."""
    return {
        "min": result.min,
        "max": result.max,
        "min_at": result.smallest,
        "max_at": result.largest,
        "range": result.range,
        "range_corrected": result.corrected,
        "low": result.low,
        "high": result.high,
        "n_statements": result.n_statements,
        "left_out": list(result.left_out),
        "flags": list(result.flags),
    }


def rank_json(row: RankRow) -> dict[str, Json]:
    """Write one entry of ``agreement``."""
    out: dict[str, Json] = {
        "by": {},
        "rubric": row.rubric,
        "metrics": ["ber_sel", "ber_elab"],
        "deployments": list(row.deployments),
    }
    if isinstance(row.correlation, Insufficient):
        return out | missing(row.correlation)
    out |= {"rho": row.correlation.rho, "p": row.correlation.p, "p_method": row.correlation.p_method}
    if row.leave_one_out:
        out |= {"loo_low": row.leave_one_out[0], "loo_high": row.leave_one_out[1]}
    ranks: dict[str, Json] = {
        metric: {name: {"rank": rank, "low": low, "high": high} for name, (rank, low, high) in by_deployment.items()}
        for metric, by_deployment in (row.ranks or {}).items()
    }
    return out | {"ranks": ranks}


def kappa_json(row: KappaRow) -> dict[str, Json]:
    """Write one entry of ``kappa``."""
    out: dict[str, Json] = {
        "judge": row.judge,
        "other": row.other,
        "layer": row.layer,
        "deployment": row.deployment,
        "n": row.n,
    }
    if row.value is None:
        return out | {"missing": "both judges used one and the same label throughout"}
    return out | {"value": row.value}


def review_kappa_json(row: ReviewKappa) -> dict[str, Json]:
    """Write one entry of ``reviews.kappa``."""
    out: dict[str, Json] = {
        "reviewer": row.reviewer,
        "other": row.other,
        "kind": row.kind,
        "layer": row.layer,
        "deployment": row.deployment,
        "n": row.n,
        "n_statements": row.n_statements,
    }
    if isinstance(row.kappa, Insufficient):
        return out | missing(row.kappa)
    return out | {"value": row.kappa.value, "low": row.kappa.low, "high": row.kappa.high}
